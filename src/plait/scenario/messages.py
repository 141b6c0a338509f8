"""Translate pydantic's errors to plait's messages: `problem; remedy`."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from plait.scenario.mistakes import SEVERAL, FieldMistake, Where
from plait.scenario.wording import abbreviated, closest, nearest
from plait.traffic.kinds import KEYS, SPECS

_SMALLEST: dict[str, dict[str, Any]] = {key: SPECS[kind].SMALLEST for kind, key in KEYS.items()}
_OF_FLOWS = {info.alias or name for spec in SPECS.values() for name, info in spec.model_fields.items()}


def mistakes_in(error: ValidationError, root: type[BaseModel]) -> list[FieldMistake]:
    """Return every mistake of a validation of `root`."""
    mistakes: list[FieldMistake] = []
    for detail in error.errors(include_url=False):
        if detail["type"] == SEVERAL:
            mistakes += detail["ctx"]["mistakes"]
            continue
        where = detail["loc"]
        if where and where[-1] == "[key]" and detail["type"] != "extra_forbidden":
            where = where[:-1]  # pydantic's mark of a mistake in the key itself
        mistakes.append((where, _message(detail, where, root)))
    return mistakes


def _message(detail: ErrorDetails, where: Where, root: type[BaseModel]) -> str:
    value, context = detail.get("input"), detail.get("ctx", {})
    kind = detail["type"]
    if kind == "value_error":
        of_link = isinstance(value, dict) and tuple(where[:2]) == ("network", "links") and len(where) == 4
        hint = f", or forward: {{{where[-1]}: ..}} for one direction" if of_link else ""
        return f"{context['error']}{hint}"
    if kind == "missing":
        return f"this field is missing; {_HINTS.get(str(where[-1])) or _example(where)}"
    if kind == "extra_forbidden":
        if (
            elsewhere := _ELSEWHERE.get(tuple(map(str, where[-2:] if len(where) > 1 else where)))
        ) is not None:
            return f"there is no such field here; {elsewhere}"
        names = fields_at(where[:-1], root)
        if value is None and str(where[-1])[:1].isdigit():
            return "a comma ends a value here; write a decimal with a point, for example 12.5mbit"
        if len(where) == 3 and where[0] == "traffic" and where[-1] in _OF_FLOWS:
            return "there is no such field here; indent the line below its kind of traffic"
        short: dict[str, str] = getattr(root, "SHORTHANDS", {}) if len(where) == 1 else {}
        return f"there is no such field here; {_other_field(str(where[-1]), names, short, is_top=len(where) == 1)}"
    if kind == "literal_error":
        if isinstance(value, list) and len(where) == 1:
            return f"one value is expected here; to compare several, write vary: {{{where[0]}: [..]}}"
        choices = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        guess = nearest(str(value), choices) or "use one of: " + ", ".join(choices)
        return f"{abbreviated(value)} is not a valid value; {guess}"
    if kind == "list_type" and isinstance(value, dict):
        return "a mapping is not a list; begin each entry with `- `"
    if kind in _KINDS:
        return f"{_noun(value)} is not {_KINDS[kind]}"
    if kind in _BOUNDS:
        sign, key = _BOUNDS[kind]
        return f"{abbreviated(value)} is out of range; write {sign} {context[key]}"
    if kind in ("too_short", "too_long"):
        side = "at least" if kind == "too_short" else "at most"
        bound = context.get("min_length", context.get("max_length"))
        length = context["actual_length"]
        return f"there {'is 1 entry' if length == 1 else f'are {length} entries'}; write {side} {bound}"
    return f"{abbreviated(value)}: {detail['msg'][0].lower()}{detail['msg'][1:]}"


def _example(where: Where) -> str:
    """Return what to write for a missing field: as its kind of traffic has it at the smallest, if it is of one."""
    value = _SMALLEST.get(str(where[-2]), {}).get(str(where[-1])) if len(where) > 1 else None
    if value is None:
        return "add it"
    text = f"[{', '.join(value)}]" if isinstance(value, list) else value
    return f"write for example {where[-1]}: {text}"


def _other_field(name: str, names: list[str], shorthands: dict[str, str], *, is_top: bool) -> str:
    """Return which field to write instead of `name`: a similar one, one of the same meaning, or any of them."""
    meant = closest(name, [*names, *shorthands])
    if meant in shorthands:
        return f"did you mean '{shorthands[meant]}'?"
    if name.lower() in _DIRECTIONS and "forward" in names:
        return (
            "write forward: {rate: ..} for the direction from the first node of the link's name, or backward"
        )
    if name.lower() in _ENDS and "forward" in names:
        return "the name of a link says its ends: write NODE-NODE, such as h1-s1"
    synonym = next((field for field in _SYNONYMS.get(name.lower(), ()) if field in names), None)
    if synonym is not None:
        return f"did you mean '{synonym}'?"
    if is_top and meant is None and set(name) & set("-#"):
        return f"if it is a link, write network.links.{name}"
    return nearest(name, names) or "the fields are: " + ", ".join(names)


_HINTS = {
    "title": "describe the scenario in a line, for example title: Two paths between two hosts",
    "network": "write network: with hosts and links",
    "hosts": "write for example hosts: [h1, h2]",
    "links": "write for example links: {h1-h2: {rate: 5mbit}}",
    "traffic": "write for example traffic: [{bulk: {from: h1, to: h2, duration: 10s}}]",
    "from": "name the sending host",
    "to": "name the receiving host",
    "duration": "write for example duration: 10s",
    "at": "write for example at: 5s",
    "flags": "write for example flags: [subflow]",
    "on": "write for example on: 1s",
    "off": "write for example off: 1s",
    "baseline": "write for example baseline: 10mbit",
    "burst": "write for example burst: 1MB",
    "peak": "write for example peak: 100mbit",
    "p": "write for example p: 0.3%",
    "r": "write for example r: 25%",
    "node": "name the node that runs the program",
    "run": 'write for example run: [ping, -c, "3", h2]',
    "file": "name a file beside the scenario",
    "source": "say who published the values",
    "each": "write for example each: {bulk: {duration: 10s}}",
}
_OF_A_LINK = "a link has it: write network.links.NAME.{0}, or network.links.*.{0} for all links"
_ELSEWHERE: dict[tuple[str, ...], str] = {
    ("bulk", "bytes"): "bulk ends by the time: write transfer for a number of bytes",
    ("bulk", "file"): "bulk ends by the time: write transfer for a file",
    ("transfer", "duration"): "a transfer ends with its last byte: write bulk for a duration",
    ("links",): "links are below network: write network.links.NAME",
    **{(field,): _OF_A_LINK.format(field) for field in ("rate", "delay", "loss", "jitter", "queue")},
}
"""Fields by the entry and the name that people give them there, and where they are."""
_SYNONYMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("bandwidth", "bw", "capacity", "speed"), ("rate",)),
    **dict.fromkeys(("latency", "lag"), ("delay",)),
    **dict.fromkeys(("size", "amount", "length"), ("bytes", "response", "packet", "message")),
    **dict.fromkeys(("source", "src", "sender", "client"), ("from",)),
    **dict.fromkeys(("destination", "dest", "dst", "receiver", "target"), ("to",)),
    **dict.fromkeys(("download", "upload", "file"), ("transfer",)),
    "bytes": ("response",),
    "buffer": ("queue",),
    "time": ("duration", "until"),
    "duration": ("until",),
    "name": ("title",),
    "nodes": ("hosts",),
}
"""Words of other tools, and the fields that have their meaning, the first that an entry has."""
_DIRECTIONS = {"up", "upload", "uplink", "upstream", "down", "download", "downlink", "downstream"}
"""Words of other tools for one direction of a link."""
_ENDS = {
    "between",
    "connects",
    "ends",
    "endpoints",
    "hosts",
    "nodes",
    "from",
    "to",
    "source",
    "target",
    "a",
    "b",
}
"""Words of other tools for the nodes at the ends of a link."""
_KINDS = {
    "string_type": "text; put text in quotes",
    "int_type": "a whole number; write for example 3",
    "int_from_float": "a whole number; write for example 3",
    "bool_type": "true or false; write one of them",
    "bool_parsing": "true or false; write one of them",
    "dict_type": "a mapping; write {name: value}",
    "model_type": "a mapping of fields; write {field: value}",
    "list_type": "a list; write [a, b]",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _noun(value: object) -> str:
    if value is None:
        return "nothing"
    return {dict: "a mapping", list: "a list", bool: str(value).lower()}.get(type(value), abbreviated(value))


def fields_at(where: Where, root: type[BaseModel]) -> list[str]:
    """Return the names of the fields at a path of a scenario; empty where users choose the names."""
    kind: Any = root
    for part in where:
        kind = _inside(kind, part)
        if kind is None:
            return []
    model = _model(kind)
    return [] if model is None else [info.alias or name for name, info in model.model_fields.items()]


def _inside(kind: Any, part: str | int) -> Any:
    """Return the type of the entry `part` in a value of type `kind`."""
    model = _model(kind)
    if model is not None:
        for name, info in model.model_fields.items():
            if part in (name, info.alias):
                return info.annotation
        return None
    return next((get_args(t)[-1] for t in _alternatives(kind) if get_origin(t) in (dict, list)), None)


def _model(kind: Any) -> type[BaseModel] | None:
    return next((t for t in _alternatives(kind) if isinstance(t, type) and issubclass(t, BaseModel)), None)


def _alternatives(kind: Any) -> list[Any]:
    """Return the members of a union, or the type itself, without `Annotated`."""
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [alternative for member in get_args(kind) for alternative in _alternatives(member)]
    return [kind]
