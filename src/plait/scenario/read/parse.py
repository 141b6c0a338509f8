"""Parse YAML text to a valid scenario, or report all of its mistakes at once; reads no files.

To find all mistakes, it validates all fields together, and then removes wrong fields so that it can check the rest
against each other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from plait.errors import FieldMistakesError, Mistake, OldSpellingWarning, ScenarioError
from plait.scenario.check.events import WITHOUT_STATES
from plait.scenario.generators.written import names as made_names
from plait.scenario.generators.written import plain, with_traffic
from plait.scenario.messages import fields_at, mistakes_in
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.read import document
from plait.scenario.scenario import Scenario
from plait.scenario.source import Source
from plait.scenario.spelling import rewritten, rewritten_path
from plait.scenario.vary.overrides import NAMED, Choice, Override, assign
from plait.scenario.vary.text import count_cases, field_path, varied_fields, zipped_with
from plait.scenario.vary.unvaried import without_unvaried, without_unvaried_figures
from plait.scenario.vary.variants import NoSuchField, TooMany, Variants
from plait.scenario.wording import abbreviated
from plait.traffic.kinds import KEYS, SPECS

_ROUNDS = 5
"""Validations: fields, entries without wrong fields, parts against each other, and that without wrong parts."""
MAX_SHOWN = 100
MAX_COMPARED = 64
"""The most values of a varied field that plait compares as values; of longer lists it compares the texts."""


def parse(text: str, source: str, overrides: Sequence[str | Override | Choice] = ()) -> Scenario:
    """Return the scenario in `text`, with the overrides applied in their order before validation.

    `source` is the name of the text in messages. An override as text is `PATH=VALUE` of the option `--set`, with a
    value in YAML. Raises ScenarioError with every mistake.
    """
    raw, places, mistakes = read_located(text, source)
    if not isinstance(raw, dict):
        problem = "the file is empty" if raw is None else f"this is {abbreviated(raw)}, not a scenario"
        raise ScenarioError([*mistakes, Mistake(source, 1, 1, "", f"{problem}; {_HOW}")])
    return _validated(raw, places, overrides, mistakes)


def read_located(text: str, source: str) -> tuple[Any, Source, list[Mistake]]:
    """Return the value of YAML in the file `source`, its places, and the mistakes of YAML in it (ScenarioError)."""
    try:
        read = document.read(text)
    except document.Refused as refused:
        path = ".".join(map(str, refused.where))
        line, column = refused.place or (None, None)
        raise ScenarioError([Mistake(source, line, column, path, refused.reason)]) from refused
    mistakes = [
        Mistake(source, *place, ".".join(map(str, where)), message) for where, place, message in read.mistakes
    ]
    return read.value, Source(source, read.places), mistakes


def build(fields: Mapping[str, Any], overrides: Sequence[str | Override | Choice] = ()) -> Scenario:
    """Return the scenario with the fields of a file as Python values. Raises ScenarioError with every mistake."""
    return _validated(plain(dict(fields)), Source(""), overrides, [])


def _validated(
    raw: dict[str, Any],
    places: Source,
    overrides: Sequence[str | Override | Choice],
    mistakes: list[Mistake],
) -> Scenario:
    """Return the scenario of unvalidated fields. Raises ScenarioError with these and all further mistakes."""
    raw = with_traffic(_rewrite(raw, places, mistakes))
    mistakes += _apply_overrides(raw, overrides, places)
    raw = _rewrite(raw, places, mistakes)
    if any(where[:1] == ("vary",) for where in places.replaced):
        without_unvaried(raw)
        if not any(where[:1] == ("figures",) for where in places.replaced):
            without_unvaried_figures(raw)
    _place_names(raw, places)
    scenario, field_mistakes = _validate(raw)
    if scenario is not None:
        # plait cannot check varied values of a wrong program, nor of events if one of them is wrong.
        invalid = [where[: _JUDGED_WHOLE.get(str(where[0]))] for where, _ in field_mistakes]
        if ("events",) in invalid:
            scenario = scenario.model_copy(update={"events": []})
        field_mistakes += _vary_mistakes(scenario, invalid)
        mistakes += _without_effect(raw, scenario.vary, places)
    mistakes += [places.mistake(where, message) for where, message in field_mistakes]
    if mistakes or scenario is None:
        raise ScenarioError(_sorted(mistakes))
    for caution in [*places.cautions, *_old_paths(scenario, places)]:
        warnings.warn(str(caution), OldSpellingWarning, stacklevel=3)
    return scenario.attached(source=places)


def _old_paths(scenario: Scenario, places: Source) -> Iterator[Mistake]:
    """Yield a caution for each path under `vary` in an old spelling."""
    for where, key, _ in varied_fields(scenario.vary):
        if (today := rewritten_path(key)) != key:
            yield places.mistake(where, f"the next version refuses this path; write {today}")


def _rewrite(raw: dict[str, Any], places: Source, mistakes: list[Mistake]) -> dict[str, Any]:
    """Return the fields in today's spelling, move their places, and note a caution for each old one."""
    result = rewritten(raw)
    if result.moved:
        places.places = {result.place(where): place for where, place in places.places.items()}
        places.replaced = {result.place(where): text for where, text in places.replaced.items()}
        places.cautions += [places.mistake(where, message) for where, message in result.cautions]
    mistakes += [places.mistake(where, message) for where, message in result.mistakes]
    return result.fields


_JUDGED_WHOLE = {"programs": 2, "events": 1}
_HOW = "start with title:, network: and traffic:; `plait list` shows examples"


def _apply_overrides(
    raw: dict[str, Any], overrides: Sequence[str | Override | Choice], places: Source
) -> list[Mistake]:
    """Apply the overrides, and return their mistakes."""
    mistakes = []
    for asked in overrides:
        override = _from_text(asked) if isinstance(asked, str) else asked
        if isinstance(override, Mistake):
            mistakes.append(override)
            continue
        chosen = override.override(raw) if isinstance(override, Choice) else override
        if chosen is not None:
            mistakes += _apply(raw, chosen, places)
    return mistakes


def _from_text(option: str) -> Override | Mistake:
    """Return the override in the text of an option `--set`, or its mistake."""
    path, equals, text = option.partition("=")
    label = f"--set {option}"
    if not equals:
        return Mistake(label, None, None, "", "the option has no '='; write PATH=VALUE, for example repeat=3")
    try:
        return Override(path, document.read(text).value, label)
    except document.Refused as refused:
        return Mistake(label, None, None, path, f"the value cannot be read: {refused.reason}")


def _apply(raw: dict[str, Any], override: Override, places: Source) -> list[Mistake]:
    """Set the field of an override in place, and return its mistake."""
    path = override.path.strip()
    today = rewritten_path(path)
    if today != path:
        caution = f"the next version refuses this path; write {today}"
        places.cautions.append(Mistake(override.label, None, None, "", caution))
    try:
        for where in assign(raw, today, override.value):
            places.replaced[where] = override.label
    except ValueError as error:
        return [Mistake(override.label, None, None, "", str(error))]
    return []


def _without_effect(raw: dict[str, Any], vary: dict[str, Any], places: Source) -> list[Mistake]:
    """Return a mistake for each override of nothing but fields that every case sets."""
    given: dict[str, list[Where]] = {}
    for where, label in places.replaced.items():
        given.setdefault(label, []).append(where)
    by_case: dict[Where, Where] = {}
    changed = deepcopy(raw) if given else {}
    for here, key, values in varied_fields(vary) if given else ():
        if len(here) == 2 or here[1] in {"zip", "latin_hypercube"}:  # some cases may leave out the others
            with suppress(ValueError):  # a path without a match, which is a mistake of its own
                by_case |= dict.fromkeys(assign(changed, field_path(key), values[0][1]), here)
    mistakes = []
    for label, wheres in given.items():
        setters = [
            next((by_case[where[:end]] for end in range(len(where) + 1) if where[:end] in by_case), None)
            for where in wheres
        ]
        if setters[0] is not None and None not in setters:
            name, value = ".".join(map(str, setters[0])), label.partition("=")[2]
            example = f", for example {name}=[{value}]" if len(setters[0]) == 2 and value else ""
            problem = (
                f"it has no effect, because {name} sets this in each case; change the values there{example}"
            )
            mistakes.append(Mistake(label, None, None, "", problem))
    return mistakes


def _place_names(raw: dict[str, Any], places: Source) -> None:
    """Record the place of each node of a list, which is a mapping in the model."""
    for where in NAMED:
        names = raw.get("network")
        names = names.get(where[1]) if isinstance(names, dict) else None
        for i, name in enumerate(names if isinstance(names, list) else ()):
            place = places.places.get((*where, i))
            if place is not None:
                places.places.setdefault((*where, str(name)), place)


def _validate(raw: dict[str, Any]) -> tuple[Scenario | None, list[FieldMistake]]:
    """Return the scenario, and all mistakes: first of fields, then of the rest without them.

    A scenario with mistakes is returned without the wrong parts; None if the rest is invalid, too.
    """
    mistakes: list[FieldMistake] = []
    rest = raw
    for _ in range(_ROUNDS):
        try:
            context = {WITHOUT_STATES: any(where[0] == "events" for where, _ in mistakes if where)}
            scenario = Scenario.model_validate(rest, context=context)
        except ValidationError as error:
            now = mistakes_in(error, Scenario)
            earlier = [where for where, _ in mistakes]
            mistakes += [
                (where, message) for where, message in now if not any(_related(where, e) for e in earlier)
            ]
            if len(mistakes) > MAX_SHOWN:
                break
            wheres = [where for where, _ in now]
            if any((where[:2] in NAMED and len(where) < 4) or where in _WITHOUT_NODES for where in wheres):
                break  # without a node, valid links and flows would seem wrong
            rest = _repaired(rest, [_wider(where, earlier) for where in wheres])
        else:
            return scenario, mistakes
    return None, mistakes


_WITHOUT_NODES: tuple[Where, ...] = ((), ("network",), ("network", "generator"))


def _related(a: Where, b: Where) -> bool:
    """Return whether the fields are equal, or one contains the other."""
    shared = min(len(a), len(b))
    return a[:shared] == b[:shared]


def _wider(where: Where, earlier: Sequence[Where]) -> Where:
    """Return the field to repair: `where`, or its parent if an earlier repair of it or of a part did not help."""
    lengths = [min(len(where), len(other)) for other in earlier if _related(where, other)]
    return where[: max(1, min(lengths) - 1)] if lengths else where


def _repaired(raw: dict[str, Any], wheres: Sequence[Where]) -> dict[str, Any]:
    """Return a copy of the raw scenario without these fields, or with harmless values of required ones."""
    rest = deepcopy(raw)
    for where in sorted(wheres, key=len, reverse=True):
        if len(where) > 1 and where[0] in ("traffic", "events", "programs"):
            _replace_entry(rest, where)
            continue
        if where[:2] == ("network", "links") and len(where) == 3:
            rest["network"]["links"][where[2]] = {}  # other parts may refer to it
            continue
        holder, key = _innermost(rest, where)
        field = str(where[-1])
        if where == ("traffic",):
            rest["traffic"] = [valid_flow(None, where, _hosts(rest))]
            continue
        if field in _HARMLESS and (holder is None or isinstance(holder, dict)):
            target = rest if holder is None else holder if key == field else holder[key]
            target[field] = _HARMLESS[field]
        elif isinstance(holder, list) and where[:2] == ("mptcp", "endpoints"):
            holder[key] = {"address": "10.0.0.1", "flags": ["subflow"]}  # the other entries keep their index
        elif holder is not None:
            del holder[key]
            if _was_rate(where, holder, key):
                for name in _NEED_RATE:
                    holder.pop(name, None)
    return rest


def _was_rate(where: Where, holder: Any, key: Any) -> bool:
    """Return whether the field `key`, removed from `holder`, may have been the rate of a link, perhaps misspelt."""
    if where[:2] != ("network", "links") or not isinstance(holder, dict) or "rate" in holder:
        return False
    return key == where[-1] and (key == "rate" or key not in fields_at(where[:-1], Scenario))


_NEED_RATE = ("queue", "aqm", "bucket")
_HARMLESS: dict[str, object] = {"title": "-", "duration": "1s", "flags": ["subflow"]}


def _replace_entry(rest: dict[str, Any], where: Where) -> None:
    """Replace the entry that contains the wrong field `where` by a valid one."""
    entries, number, hosts = rest[str(where[0])], where[1], _hosts(rest)
    if where[0] == "events":
        entries[number] = valid_event(hosts)
    else:
        valid = valid_flow if where[0] == "traffic" else valid_program
        entries[number] = valid(entries[number], where, hosts)


def _hosts(raw: dict[str, Any]) -> list[str]:
    """Return the names of all hosts, also of generated ones."""
    network = raw.get("network")
    declared = network.get("hosts") if isinstance(network, dict) else None
    return [str(host) for host in declared or made_names(network).get("hosts") or ()]


def _innermost(raw: dict[str, Any], where: Where) -> tuple[Any, Any]:
    """Return the innermost existing entry on the path `where`, as its container and its key there."""
    node: Any = raw
    innermost: tuple[Any, Any] = (None, None)
    for part in where:
        inside = (
            part in node if isinstance(node, dict) else isinstance(node, list) and part in range(len(node))
        )
        if not inside:
            break
        innermost = (node, part)
        node = node[part]
    return innermost


def _vary_mistakes(scenario: Scenario, invalid: Sequence[Where]) -> list[FieldMistake]:
    """Return mistakes of single values under `vary` (for a range, of its ends), at most MAX_SHOWN + 1.

    The scenario lacks the fields that are wrong themselves, so values of them or of their parts cannot be checked.
    """
    mistakes: list[FieldMistake] = []
    variants = Variants(scenario)
    try:
        variants.foresee(count_cases(scenario.vary))
        for here, key, values in varied_fields(scenario.vary):
            path = field_path(key)
            if (field := path.split(".")[0]) in _NOT_VARIED:
                mistakes.append((here, f"'{field}' belongs to the whole study and cannot vary; remove it"))
            elif path.endswith(".label"):
                mistakes.append((here, "a label belongs to the whole study and cannot vary; remove it"))
            elif not any(_fits(path, where) for where in invalid):
                mistakes += _value_mistakes(variants, scenario.vary, here, path, values)
            if len(mistakes) > MAX_SHOWN:
                break
    except TooMany as error:
        mistakes.append((("vary",), str(error)))
    return mistakes


def _value_mistakes(
    variants: Variants, vary: dict[str, Any], here: Where, path: str, values: Sequence[tuple[Where, Any]]
) -> list[FieldMistake]:
    """Return the mistakes of the values of one field. Equal texts are made once."""
    mistakes: list[FieldMistake] = []
    known: dict[str, Scenario | FieldMistake] = {}
    for where, value in values:
        try:
            made = known.get(repr(value)) or _made(variants, {path: value})
            if where[:-1] == here and here[1] != "zip" and isinstance(made, Scenario):
                mistakes += [(where, mistake) for mistake in _again(made, value, known)]
            known[repr(value)] = made
            others = zipped_with(vary, where) if not isinstance(made, Scenario) else {}
            # A value that is wrong alone may be valid with the values of its row or case.
            if not isinstance(made, Scenario) and (
                not others or not isinstance(_made(variants, {**others, path: value}), Scenario)
            ):
                field_, message = made
                mistakes.append((where, f"{'.'.join(map(str, field_))}: {message}"))
        except NoSuchField as error:
            return [(here, str(error))]
        if len(mistakes) > MAX_SHOWN:
            break
    return mistakes


def _again(made: Scenario, value: object, known: dict[str, Scenario | FieldMistake]) -> Iterator[str]:
    """Yield the mistake of a value if the known ones already have it, maybe in other words (1MiB and 1024KiB)."""
    if repr(value) in known:
        yield f"{abbreviated(value)} occurs twice; remove one"
    elif len(known) <= MAX_COMPARED and (text := next((t for t, k in known.items() if k == made), None)):
        yield f"{abbreviated(value)} is the same as {text[:80]}; remove one"


def _fits(path: str, where: Where) -> bool:
    """Return whether a dotted path with wildcards and a field are equal, or one contains the other."""
    return all(fnmatchcase(str(part), name) for part, name in zip(where, path.split("."), strict=False))


def _made(variants: Variants, settings: dict[str, Any]) -> Scenario | FieldMistake:
    """Return the scenario with these values, or its first mistake."""
    try:
        return variants.make(settings)
    except FieldMistakesError as error:
        return error.mistakes[0]


_NOT_VARIED = (
    "vary", "baseline", "across", "figures", "labels", "repeat", "seed", "title", "description", "published", "pause"
)  # fmt: skip


def _sorted(mistakes: list[Mistake]) -> list[Mistake]:
    """Return the mistakes in the order of the file, each once, cut to MAX_SHOWN."""
    distinct = list(dict.fromkeys(mistakes))
    distinct.sort(key=lambda m: (m.line or 0, m.column or 0))
    if len(distinct) > MAX_SHOWN:
        cut = distinct[MAX_SHOWN]
        further = len(distinct) - MAX_SHOWN
        message = f"at least {further} more mistake{'s follow' if further > 1 else ' follows'}; fix those above first"
        return [*distinct[:MAX_SHOWN], Mistake(cut.source, cut.line, cut.column, "", message)]
    return distinct


_SMALLEST = {KEYS[kind]: spec.SMALLEST for kind, spec in SPECS.items()}
"""The required fields of each kind of flow, without its ends."""
_ENDS = ("from", "to")
_AT_AN_END = ("via", "bind", "connect")


def valid_flow(entry: object, where: Where, hosts: Sequence[str]) -> dict[str, Any]:
    """Return a valid entry of the traffic for one with the wrong field `where`; `hosts` are all hosts."""
    kinds = [kind for kind in _SMALLEST if isinstance(entry, dict) and isinstance(entry.get(kind), dict)]
    kind = kinds[0] if len(kinds) == 1 else "bulk"
    fields: dict[str, Any] = entry[kind] if len(kinds) == 1 and isinstance(entry, dict) else {}
    field = where[3] if len(where) > 3 else None
    kept = {name: fields[name] for name in (*_ENDS, "name") if name in fields and name != field}
    if field not in _ENDS:
        ends = _AT_AN_END[:1] if "via" in fields else _AT_AN_END[1:]
        kept |= {name: fields[name] for name in ends if name in fields and name != field}
    for name, other in (_ENDS, _ENDS[::-1]):
        kept.setdefault(name, next((host for host in hosts if host != kept.get(other)), ""))
    return {kind: {**_SMALLEST[kind], **kept}}


def valid_event(hosts: Sequence[str]) -> dict[str, Any]:
    """Return a valid event that changes nothing."""
    return {"at": "0s", "sysctls": {host: {"net.ipv4.tcp_sack": 1} for host in hosts[:1]}}


def valid_program(entry: object, where: Where, hosts: Sequence[str]) -> dict[str, Any]:
    """Return a program that does nothing, with the fields to which others may refer, except the wrong field `where`."""
    fields = entry if isinstance(entry, dict) else {}
    kept = {
        field: fields[field]
        for field in ("name", "node", "transport")
        if field in fields and field not in where[2:3] and (field != "transport" or "node" not in where[2:3])
    }
    names = {"name": f"entry-{where[1]}"} if "name" in where[2:3] else {}
    return {"node": (hosts or [""])[0], **kept, **names, "run": "true", "wait": True}
