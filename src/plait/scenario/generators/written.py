"""Replace every generator in a scenario's fields by plain fields, and apply the other fields of the file to them.

The request remains beside the result (a scenario varies `network.k`, not the generated links), and so does the origin
of each written-out entry of traffic and programs, so that mistakes are reported at fields of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, ValidationError

from plait.errors import FieldMistakesError, refuse_fields
from plait.scenario.fields.network import NetworkSpec
from plait.scenario.generators import traffic
from plait.scenario.generators.base import MAX_LINKS, Description, TooManyLinksError
from plait.scenario.generators.kinds import KINDS
from plait.scenario.messages import mistakes_in
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.wording import nearest

PLACES = ("hosts", "switches", "routers", "links")
"""Fields in which a file adds nodes and links to a generated network, or changes generated ones."""


@dataclass
class Written:
    """A request to generators, and the plain fields that they write."""

    asked: dict[str, Any]
    """`network`, `traffic` and `programs` as in the file."""
    fields: dict[str, Any]
    """All fields of the scenario, with these written out."""
    origins: dict[str, list[Where]] = field(default_factory=dict)
    """The path in the file of each written-out entry of `traffic` and `programs`."""

    def place(self, where: Sequence[str | int]) -> Where:
        """Return the path in the file of a written-out field."""
        origins = self.origins.get(str(where[0]), ()) if where else ()
        if len(where) > 1 and isinstance(where[1], int) and where[1] < len(origins):
            return (*origins[where[1]], *where[2:])
        return tuple(where)

    def relocated(self, mistakes: Sequence[FieldMistake]) -> list[FieldMistake]:
        """Return the mistakes at fields of the file; only the first of several entries with one origin reports one."""
        first: dict[Where, Where] = {}
        placed = [(self.place(where), tuple(where[:2]), message) for where, message in mistakes]
        return [
            (place, message) for place, entry, message in placed if first.setdefault(place, entry) == entry
        ]


def with_traffic(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the fields, with the generator's default traffic if the scenario has none."""
    kind = KINDS.get(_kind(raw.get("network")) or "")
    if kind is None or raw.get("traffic") is not None or not kind.TRAFFIC:
        return raw
    return {**raw, "traffic": deepcopy(kind.TRAFFIC)}


def write_out(raw: dict[str, Any]) -> Written | None:
    """Return the scenario's fields without generators; None if it has none. Raises FieldMistakesError."""
    raw = with_traffic(raw)
    network, entries, run = raw.get("network"), raw.get("traffic"), raw.get("programs")
    generated = _kind(network) is not None or (isinstance(network, dict) and "generator" in network)
    listed = isinstance(entries, (list, tuple))
    flows = listed and any(_generated(entry) for entry in entries or ())
    grouped = isinstance(run, (list, tuple)) and any(traffic.is_group(entry) for entry in run)
    if not generated and not flows and not grouped:
        return None
    fields = dict(raw)
    if generated:
        fields["network"] = _network(network)  # type: ignore[arg-type]  # a mapping, if `generated`
    written = Written(
        {key: plain(raw[key]) for key in ("network", "traffic", "programs") if key in raw}, fields
    )
    if listed:
        origins = written.origins["traffic"] = []
        fields["traffic"] = _traffic(list(entries or ()), _names(fields.get("network"), "hosts"), origins)
    if grouped:
        nodes = [name for place in ("hosts", "routers") for name in _names(fields.get("network"), place)]
        origins = written.origins["programs"] = []
        fields["programs"] = _programs(list(run or ()), nodes, origins)
    return written


def plain(value: Any) -> Any:
    """Return a copy in the form of a file: parts as mappings, quantities as text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    is_plain = value is None or type(value) in (str, bool, int, float)
    return value if is_plain else str(value)


def names(network: Any) -> dict[str, list[str]]:
    """Return the names of generated nodes and links by kind; empty without a valid generator."""
    if _kind(network) is None:
        return {}
    try:
        made = _described(network)
    except FieldMistakesError:
        return {}
    return {place: list(getattr(made, place)) for place in PLACES}


def _kind(network: Any) -> str | None:
    name = network.get("generator") if isinstance(network, dict) else None
    return name if isinstance(name, str) else None


def _network(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the generated network, with the nodes, links and conditions of the file applied."""
    made = _described(asked)
    out = {place: getattr(made, place) for place in PLACES}
    out |= {key: _over(made.more.get(key), asked.get(key)) for key in {**made.more, **_beside(asked)}}
    mistakes: list[FieldMistake] = []
    for place in PLACES:
        entries = asked.get(place)
        if entries is None:
            continue
        if isinstance(entries, (list, tuple)) and place != "links":
            entries = {str(name): {} for name in entries}
        if not isinstance(entries, dict):
            mistakes.append(
                (
                    ("network", place),
                    "this is not a mapping from names to options; write {NAME: {field: value}}",
                )
            )
            continue
        patterns = [key for key in entries if any(c in str(key) for c in "*?[")]
        for key in patterns:
            fitting = [name for name in out[place] if fnmatchcase(name, key)]
            if not fitting:
                problem = f"nothing that {asked['generator']} generates matches '{key[:40]}'"
                mistakes.append(
                    (("network", place, key), f"{problem}; {nearest(key, out[place])}".rstrip("; "))
                )
            for name in fitting:
                out[place][name] = _over(out[place][name], entries[key])
        for key, options in entries.items():
            if key not in patterns:
                out[place][key] = _over(out[place].get(key), options)
    refuse_fields(mistakes)
    return out


def _beside(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the file that every network has, and that are not parameters of its generator."""
    kind = KINDS.get(_kind(asked) or "")
    parameters = kind.model_fields if kind is not None else {}
    return {
        key: value
        for key, value in asked.items()
        if key in NetworkSpec.model_fields and key not in PLACES and key not in parameters
    }


def _over(below: Any, above: Any) -> Any:
    """Return options with others applied: mappings merge field by field, other values are replaced."""
    if isinstance(above, BaseModel):
        above = plain(above)
    if above is None:
        return below if below is not None else {}
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{key: _over(below.get(key), value) for key, value in above.items()}}
    return deepcopy(above)


def _described(asked: dict[str, Any]) -> Description:
    """Return the network of a generator, without other fields applied. Raises FieldMistakesError."""
    name = asked.get("generator")
    if not isinstance(name, str) or name not in KINDS:
        guess = nearest(str(name), KINDS) or f"use one of: {', '.join(KINDS)}"
        raise FieldMistakesError(
            (("network", "generator"), f"no generator is called '{str(name)[:40]}'; {guess}")
        )
    parameters = {key: value for key, value in asked.items() if key not in (*PLACES, *_beside(asked))}
    try:
        part = KINDS[name].model_validate(parameters)
    except ValidationError as error:
        mistakes = mistakes_in(error, KINDS[name])
        raise FieldMistakesError(*mistakes).within("network") from error
    mistakes = [(("network", *where), message) for where, message in part.mistakes()]
    refuse_fields(mistakes)
    try:
        return part.describe()
    except TooManyLinksError:
        value = getattr(part, part.SIZE)
        message = (
            f"{value} leads to too many links, and a network has at most {MAX_LINKS}; write a smaller value"
        )
        raise FieldMistakesError((("network", part.SIZE), message)) from None


def _generated(entry: Any) -> str | None:
    """Return the kind of a generated entry of the traffic; None for a plain one."""
    if not isinstance(entry, dict):
        return None
    return next((kind for kind in traffic.KINDS if kind in entry), None)


def _names(network: Any, place: str) -> list[str]:
    """Return the names of hosts or routers, as far as they are readable."""
    nodes = network.get(place) if isinstance(network, dict) else getattr(network, place, None)
    return [str(name) for name in nodes] if isinstance(nodes, (dict, list, tuple)) else []


_HARMLESS = {"bulk": {"from": "h1", "to": "h2", "duration": "1s"}}
"""A substitute for traffic between unknown hosts, if the network is wrong."""


def _traffic(entries: list[Any], hosts: list[str], origins: list[Where]) -> list[Any]:
    """Return the entries with the generated ones written out, and fill `origins`. Raises FieldMistakesError."""
    out: list[Any] = []
    mistakes: list[FieldMistake] = []
    for i, entry in enumerate(entries):
        kind = _generated(entry)
        if kind is None:
            out.append(entry)
            origins.append(("traffic", i))
            continue
        here: Where = ("traffic", i, kind)
        if len(entry) > 1:
            other = next(key for key in entry if key != kind)
            mistakes.append(
                (
                    ("traffic", i, other),
                    f"this entry of the traffic has {kind} already; write one entry for each",
                )
            )
            continue
        try:
            part = traffic.KINDS[kind].model_validate(entry[kind])
            made = part.entries(kind, hosts) if hosts else [_HARMLESS]
        except ValidationError as error:
            mistakes += [
                ((*here, *where), message) for where, message in mistakes_in(error, traffic.KINDS[kind])
            ]
        except ValueError as error:
            mistakes.append((here, str(error)))
        else:
            out += made
            origins += [(*here, "each")] * len(made)
    refuse_fields(mistakes)
    return out


def _programs(entries: list[Any], nodes: list[str], origins: list[Where]) -> list[Any]:
    """Return the entries with those of several nodes written out, and fill `origins`. Raises FieldMistakesError."""
    out: list[Any] = []
    mistakes: list[FieldMistake] = []
    groups: dict[str, list[str]] = {}
    for i, asked in enumerate(entries):
        entry = traffic.after_groups(asked, groups)
        members = [entry]
        if traffic.is_group(entry):
            try:
                members = traffic.programs_of(entry, nodes)
            except ValueError as error:
                mistakes.append((("programs", i, "node"), str(error)))
            if isinstance(entry.get("name"), str):
                groups[entry["name"]] = [program["name"] for program in members]
        out += members
        origins += [("programs", i)] * len(members)
    refuse_fields(mistakes)
    return out
