"""Read `vary`: check its form, write out ranges, and list every value with its place.

    PATH: [values] or a range        combined with all others
    NAME: {LEVEL: {PATH: value, ..}, ..}    a named factor: each level sets several fields together
    zip: {PATH: values, ..}          these change together: first with first, second with second
    cases: [{PATH: value, ..}, ..]   only these combinations
    latin_hypercube: {points: N, seed: N, fields: {PATH: range or values, ..}}
    exclude: [{PATH: value or values, ..}, ..]

`plait.scenario.vary.combinations` computes the cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any

from plait.scenario.mistakes import FieldMistake, Where, as_one_error
from plait.scenario.spelling import rewritten_path
from plait.scenario.vary.ranges import looks_like_range, read_range

MAX_SWEEP = 1000
"""Most values of a varied field, and most points of a hypercube."""
MAX_CASES = 10_000
MAX_EXCLUSIONS = 100
MAX_HYPERCUBE_FIELDS = 16
MAX_ZIPPED_FIELDS = 64
MAX_LEVELS = 64
"""Most levels of a named factor."""
BLOCKS = ("zip", "cases", "latin_hypercube", "exclude")
"""Keys under `vary` that are not paths of fields."""
SHORTHANDS = {
    "transport": "transport",
    "congestion_control": "tcp.congestion_control",
    "scheduler": "mptcp.scheduler",
}
"""Short names under `vary`, and the path of the field of each."""
_FIELDS = (*SHORTHANDS, "engine", "kernel")
"""Fields that plait treats apart, so that no named factor may have their names."""
_FACTOR = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)
_LEVEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}", re.ASCII)


def field_path(name: str) -> str:
    """Return the path of the field of a name under `vary`; `h1-s1.rate` is a field of a link."""
    first, dot, _ = name.partition(".")
    if dot and "-" in first:
        return f"network.links.{name}"
    return SHORTHANDS.get(name) or rewritten_path(name)


def read_vary(value: object) -> object:
    """Return `vary` with ranges written out. Raises pydantic's error with all mistakes."""
    if not isinstance(value, dict):
        return value
    mistakes: list[FieldMistake] = []
    out: dict[str, Any] = {}
    for key, entry in value.items():
        named = isinstance(entry, dict) and str(key) not in _READERS
        reader = _levels if named else _READERS.get(str(key), _values)
        out[str(key)] = reader(entry, ("vary", str(key)), mistakes)
        cases = count_cases(out)
        if cases > MAX_CASES:
            count = f"{cases} cases" if len(out) == len(value) else f"{cases} cases and more"
            message = f"vary leads to {count}, and a study has at most {MAX_CASES}; vary less at once"
            mistakes.append((("vary",), message))
            break
    if not mistakes:
        mistakes += _placement_mistakes(out)
    if mistakes:
        raise as_one_error(mistakes)
    return out


def factors(vary: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the fields that are combined with all others, with their values."""
    return {key: values for key, values in vary.items() if key not in BLOCKS and not isinstance(values, dict)}


def named_factors(vary: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the named factors: the fields that each level sets, with their values."""
    return {key: levels for key, levels in vary.items() if key not in BLOCKS and isinstance(levels, dict)}


def networks(vary: object) -> tuple[str, ...]:
    """Return the named factors of a `vary`, as JSON has it, whose levels set fields of the network.

    Each of their levels is another network. Of damaged entries, which are none of plait's, there are none.
    """
    return tuple(
        name
        for name, levels in named_factors(vary if isinstance(vary, dict) else {}).items()
        if all(isinstance(fields, dict) for fields in levels.values())
        and any(field_path(path).startswith("network.") for fields in levels.values() for path in fields)
    )


def strata(scenario: object) -> tuple[str, ...]:
    """Return the factors of a scenario, as its JSON has it, whose levels plait does not compare with each other."""
    fields = scenario if isinstance(scenario, dict) else {}
    across = fields.get("across")
    compared = across if isinstance(across, list) else ()
    return tuple(name for name in networks(fields.get("vary")) if name not in compared)


def zipped(scenario: object) -> tuple[tuple[str, ...], ...]:
    """Return the groups of fields of a scenario, as its JSON has it, that change together."""
    vary = scenario.get("vary") if isinstance(scenario, dict) else None
    together = vary.get("zip") if isinstance(vary, dict) else None
    return (tuple(map(str, together)),) if isinstance(together, dict) else ()


def setting_names(vary: dict[str, Any]) -> list[str]:
    """Return the names of everything that varies, as the settings of cases have them."""
    named = named_factors(vary)
    return list(
        dict.fromkeys(str(where[1]) if where[1] in named else key for where, key, _ in varied_fields(vary))
    )


def count_cases(vary: dict[str, Any]) -> int:
    """Return the number of combinations, before any is excluded."""
    return prod(_rows(key, entry) for key, entry in vary.items())


def _rows(key: str, entry: Any) -> int:
    """Return the factor by which an entry under `vary` multiplies the cases; 1 if it is wrong."""
    if key == "zip":
        return max(map(len, entry.values()), default=1) or 1
    if key == "latin_hypercube":
        return entry["points"] if _whole(entry["points"], 2, MAX_SWEEP) else 1
    return 1 if key == "exclude" else len(entry) or 1


def varied_fields(vary: dict[str, Any]) -> Iterator[tuple[Where, str, list[tuple[Where, Any]]]]:
    """Yield every varied field: its place, its name, and its values with their places (of a range, the ends)."""
    for key, values in factors(vary).items():
        yield ("vary", key), key, [(("vary", key, i), value) for i, value in enumerate(values)]
    for name, levels in named_factors(vary).items():
        for level, fields in levels.items():
            for key, value in fields.items():
                yield ("vary", name, level, key), key, [(("vary", name, level, key), value)]
    for key, values in vary.get("zip", {}).items():
        yield ("vary", "zip", key), key, [(("vary", "zip", key, i), value) for i, value in enumerate(values)]
    for i, case in enumerate(vary.get("cases", ())):
        for key, value in case.items():
            yield ("vary", "cases", i, key), key, [(("vary", "cases", i, key), value)]
    for key, values in vary.get("latin_hypercube", {}).get("fields", {}).items():
        place: Where = ("vary", "latin_hypercube", "fields", key)
        ends = read_range(values).ends if isinstance(values, str) else values
        numbers = isinstance(values, str) and read_range(values).units == (("", 1),)
        yield place, key, [(place, read_number(end) if numbers else end) for end in ends]


def zipped_with(vary: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return the other fields of the zip row, case or level of the value at `where`, with their values."""
    if where[1] == "zip":
        _, _, field, row = where
        return {key: values[row] for key, values in vary["zip"].items() if key != field}
    if where[1] == "cases":
        _, _, row, field = where
        return {key: value for key, value in vary["cases"][row].items() if key != field}
    levels = named_factors(vary).get(str(where[1]))
    return {} if levels is None else {k: value for k, value in levels[str(where[2])].items() if k != where[3]}


def read_number(text: str) -> int | float:
    """Return a number as YAML reads it."""
    return float(text) if "." in text else int(text)


def _values(entry: object, where: Where, mistakes: list[FieldMistake]) -> list[Any]:
    """Return the values of one field: a list whose entries may be ranges, or a single range."""
    if looks_like_range(entry):
        entry = [entry]
    if not isinstance(entry, (list, tuple)):
        mistakes.append(
            (where, f"{_kind(entry)} is not a list; write [a, b], or a range such as 1mbit..1gbit log 10")
        )
        return []
    out: list[Any] = []
    for i, value in enumerate(entry):
        if len(out) > MAX_SWEEP:
            break
        if looks_like_range(value):
            try:
                out += read_range(value).points()
            except ValueError as error:
                mistakes.append(((*where, i) if len(entry) > 1 else where, str(error)))
        else:
            out.append(value)
    if not entry or len(out) > MAX_SWEEP:
        side = f"at most {MAX_SWEEP}" if entry else "at least 1"
        mistakes.append((where, f"there are {max(len(entry), len(out))} values; write {side}"))
    return out


def _mapping(entry: object, where: Where, mistakes: list[FieldMistake]) -> dict[str, Any]:
    if isinstance(entry, dict) and entry:
        return {str(key): value for key, value in entry.items()}
    mistakes.append((where, f"{_kind(entry)} is not a mapping from fields to values; write {{FIELD: ..}}"))
    return {}


def _zip(entry: object, where: Where, mistakes: list[FieldMistake]) -> dict[str, list[Any]]:
    fields = _mapping(entry, where, mistakes)
    if len(fields) > MAX_ZIPPED_FIELDS:
        mistakes.append((where, f"there are {len(fields)} fields; write at most {MAX_ZIPPED_FIELDS}"))
        return {}
    out = {key: _values(values, (*where, key), mistakes) for key, values in fields.items()}
    lengths = {key: len(values) for key, values in out.items()}
    if len(set(lengths.values())) > 1 and not mistakes:
        lengths_of_fields = ", ".join(f"{key} has {n}" for key, n in lengths.items())
        mistakes.append((where, f"fields of a zip need equal numbers of values; {lengths_of_fields}"[:300]))
    return out


def _levels(entry: object, where: Where, mistakes: list[FieldMistake]) -> dict[str, dict[str, Any]]:
    """Return the levels of a named factor: the fields that each sets; none sets nothing at all."""
    name = str(where[-1])
    if name in _FIELDS or not _FACTOR.fullmatch(name):
        problem = "is a field, which has a list of values" if name in _FIELDS else "is not one word"
        mistakes.append(
            (where, f"'{name[:60]}' {problem}; give the factor of these levels another name, such as network")
        )
    levels = _mapping(entry, where, mistakes)
    if len(levels) > MAX_LEVELS:
        mistakes.append((where, f"there are {len(levels)} levels; write at most {MAX_LEVELS}"))
        return {}
    out: dict[str, dict[str, Any]] = {}
    for level, fields in levels.items():
        place: Where = (*where, level)
        if not _LEVEL.fullmatch(level):
            problem = f"'{level[:60]}' is not one word; write letters, digits, and any of _ . + -"
            mistakes.append((place, problem))
        out[level] = {} if fields is None or fields == {} else _mapping(fields, place, mistakes)
        same = next((other for other in out if other != level and out[other] == out[level]), None)
        if same is not None and not mistakes:
            mistakes.append((place, f"the level sets the same as {same}; remove one"))
    return out


def _cases(entry: object, where: Where, mistakes: list[FieldMistake]) -> list[dict[str, Any]]:
    if not isinstance(entry, (list, tuple)) or not 1 <= len(entry) <= MAX_SWEEP:
        mistakes.append(
            (where, f"{_kind(entry)} is not a list of 1 to {MAX_SWEEP} mappings; write [{{FIELD: value}}]")
        )
        return []
    return [_mapping(case, (*where, i), mistakes) for i, case in enumerate(entry)]


def _exclude(entry: object, where: Where, mistakes: list[FieldMistake]) -> list[dict[str, list[Any]]]:
    cases = _cases(entry, where, mistakes)
    if len(cases) > MAX_EXCLUSIONS:
        problem = f"there are {len(cases)} exclusions; write at most {MAX_EXCLUSIONS}"
        mistakes.append((where, f"{problem}, for example with several values in one, {{FIELD: [a, b]}}"))
    return [
        {key: list(value) if isinstance(value, (list, tuple)) else [value] for key, value in case.items()}
        for case in cases
    ]


def _hypercube(entry: object, where: Where, mistakes: list[FieldMistake]) -> dict[str, Any]:
    entries = _mapping(entry, where, mistakes)
    mistakes += [
        ((*where, key), "there is no such field here; the fields are: points, seed, fields")
        for key in entries
        if key not in ("points", "seed", "fields")
    ]
    points, seed = entries.get("points"), entries.get("seed", 1)
    if not _whole(points, 2, MAX_SWEEP):
        mistakes.append(
            (
                (*where, "points"),
                f"this is not a number of points; write 2 to {MAX_SWEEP}",
            )
        )
    if not _whole(seed, 0, 2**53 - 1):
        mistakes.append(((*where, "seed"), "this is not a seed; write a whole number, for example 1"))
    fields: dict[str, Any] = {}
    place: Where = (*where, "fields")
    if isinstance(entries.get("fields"), dict) and len(entries["fields"]) > MAX_HYPERCUBE_FIELDS:
        mistakes.append((place, f"there are {len(entries['fields'])} here; at most {MAX_HYPERCUBE_FIELDS}"))
        return {"points": points, "seed": seed, "fields": fields}
    for key, values in _mapping(entries.get("fields"), place, mistakes).items():
        fields[key] = values
        if looks_like_range(values):
            try:
                read = read_range(values)
            except ValueError as error:
                mistakes.append(((*place, key), str(error)))
            else:
                if read.count is not None or read.step is not None:
                    mistakes.append(((*place, key), "points sets the number of values; remove it here"))
        else:
            fields[key] = _values(values, (*place, key), mistakes)
    return {"points": points, "seed": seed, "fields": fields}


_READERS: dict[str, Any] = {"zip": _zip, "cases": _cases, "latin_hypercube": _hypercube, "exclude": _exclude}


def _placement_mistakes(vary: dict[str, Any]) -> list[FieldMistake]:
    """Return fields that vary in two places, and exclusions of fields that do not vary."""
    mistakes: list[FieldMistake] = []
    places: dict[str, str] = {}
    named = named_factors(vary)
    for where, key, _ in varied_fields(vary):
        block = str(where[1]) if where[1] in (*BLOCKS, *named) else "vary itself"
        if key in BLOCKS:
            mistakes.append((where, f"'{key}' is not a field; write it directly under vary"))
        elif places.setdefault(key, block) != block:
            mistakes.append(
                (where, f"'{key[:60]}' varies under {places[key]} already; write its values in one place")
            )
    settings = setting_names(vary)
    for i, case in enumerate(vary.get("exclude", ())):
        mistakes += [
            (("vary", "exclude", i, key), f"'{key[:60]}' does not vary, so it excludes nothing; remove it")
            for key in case
            if key not in settings
        ]
    return mistakes


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "this list", bool: str(value).lower(), type(None): "nothing"}
    return names.get(type(value), f"'{str(value)[:40]}'")
