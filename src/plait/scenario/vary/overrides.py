"""Set fields of an unvalidated scenario by their dotted path, for `--set` and `vary`.

A path consists of fields and indices of lists, and may contain shell-style wildcards for existing names:
`network.links.*.rate`, `network.links.h1-*.delay`, `traffic.0.bulk.duration`, `traffic.*.bulk.count`. After `vary`,
the path of a field is one name: `vary.network.links.h1-s1.rate` adds this factor, or replaces its values.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from plait.scenario.generators.written import names
from plait.scenario.mistakes import Where
from plait.scenario.names import varied_by
from plait.scenario.vary.text import field_path
from plait.scenario.wording import nearest

NAMED = (("network", "hosts"), ("network", "switches"), ("network", "routers"))
"""Fields that may be a list of names, which `assign` turns into a mapping."""
_FIXED = (("network", "links"), *NAMED)
"""Mappings to which setting a field adds no entry."""
_WITH_FIELDS = (("vary", "zip"), ("vary", "latin_hypercube", "fields"))
"""Mappings below `vary` from fields to their values."""
_DEPTH = 12


@dataclass(frozen=True)
class Override:
    """A value that replaces the one of a field before validation."""

    path: str
    """The path of the field, as under `--set`."""
    value: Any
    """In the form of a file: mappings, lists, and text for quantities."""
    label: str
    """Its origin, as people wrote it: `--set repeat=3`, or `repeat=3` in Python."""


@dataclass(frozen=True)
class Choice:
    """Values of one field: a single one replaces the field's value, several vary it."""

    field: str
    values: tuple[str, ...]
    label: str
    if_given: bool = False
    """Whether a single value only replaces one that the scenario gives."""

    def override(self, raw: dict[str, Any]) -> Override | None:
        """Return the override of a scenario's unvalidated fields; None if there is nothing to replace."""
        if len(self.values) > 1 or self.field in varied_by(raw.get("vary")):
            return Override(f"vary.{self.field}", list(self.values), self.label)
        if self.if_given and raw.get(self.field) is None:
            return None
        return Override(self.field, self.values[0], self.label)


def split(path: str) -> tuple[str, ...]:
    """Return the parts of a dotted path. Sysctl names in it need `/`.

    Raises ValueError for an empty part.
    """
    parts = tuple(path.split("."))
    if not all(parts) or len(parts) > _DEPTH or len(path) > 200:
        raise ValueError(f"'{path[:60]}' is not a path of fields; write for example network.links.h1-s1.rate")
    return parts


def assign(raw: dict[str, Any], path: str, value: object) -> list[Where]:
    """Set the field at `path` in place, and return the fields set.

    Raises ValueError for a path without a match.
    """
    parts = _in_vary(raw.get("vary"), split(path), value)
    _name_generated(raw, parts)
    done = _assign(raw, parts, (), value)
    if not done:
        raise ValueError(f"'{path}' matches no field of this scenario; check the path")
    return done


def _in_vary(vary: object, parts: tuple[str, ...], value: object) -> tuple[str, ...]:
    """Return the parts of a path, of which the field that varies is one part, by the name that it has there."""
    head = next((at for at in _WITH_FIELDS if parts[: len(at)] == at), ("vary",))
    rest = parts[len(head) :]
    if (
        parts[0] != "vary"
        or not rest
        or (head == ("vary",) and rest[0] in ("latin_hypercube", "cases", "exclude"))
    ):
        return parts
    holder: Any = vary
    for part in head[1:]:
        holder = holder.get(part) if isinstance(holder, dict) else None
    known = holder if isinstance(holder, dict) else {}
    levels = known.get(rest[0])
    if isinstance(levels, dict) and (
        (rest[1:2] and rest[1] in levels) or (len(rest) == 2 and isinstance(value, dict))
    ):
        return (*head, *rest[:2], *([".".join(rest[2:])] if rest[2:] else []))
    index = rest[-1:] if rest[-1].isdecimal() and ".".join(rest[:-1]) in known else ()
    name = ".".join(rest[: len(rest) - len(index)])
    return (*head, next((key for key in known if field_path(str(key)) == field_path(name)), name), *index)


def _name_generated(raw: dict[str, Any], parts: tuple[str, ...]) -> None:
    """Add the generated nodes and links that match the path, so that `assign` can set their fields."""
    network = raw.get("network")
    if len(parts) < 3 or parts[0] != "network" or not isinstance(network, dict):
        return
    generated = names(network).get(parts[1], [])
    declared = network.get(parts[1])
    fitting = [name for name in generated if fnmatchcase(name, parts[2])]
    if not fitting:
        if generated and not any(fnmatchcase(str(name), parts[2]) for name in declared or ()):
            there = nearest(parts[2], generated)
            raise ValueError(f"network.{parts[1]} has no '{parts[2]}'; {there}".rstrip("; "))
        return
    if isinstance(declared, list):
        declared = {str(name): {} for name in declared}
    if declared is None or isinstance(declared, dict):
        network[parts[1]] = {
            **(declared or {}),
            **{name: (declared or {}).get(name) or {} for name in fitting},
        }


def _assign(node: Any, parts: tuple[str, ...], at: Where, value: object) -> list[Where]:
    head, rest = parts[0], parts[1:]
    if isinstance(node, list):
        return [w for i in _indices(node, head, at) for w in _step(node, i, rest, (*at, i), value)]
    if not isinstance(node, dict):
        raise ValueError(f"{_dotted(at)} is a single value and has no field '{head}'; shorten the path")  # noqa: TRY004
    keys: list[str]
    if any(c in head for c in "*?[") and at[:1] != ("vary",):
        keys = [key for key in node if fnmatchcase(key, head)]
        if not keys:
            raise ValueError(f"nothing in {_dotted(at)} matches '{head}'; {nearest(head, node)}")
    else:
        keys = [head]
        if head not in node and at in _FIXED:
            raise ValueError(f"{_dotted(at)} has no '{head}'; {nearest(head, node)}")
    return [w for key in keys for w in _step(node, key, rest, (*at, key), value)]


def _step(node: Any, key: Any, rest: tuple[str, ...], at: Where, value: object) -> list[Where]:
    if not rest:
        node[key] = deepcopy(value)
        return [at]
    if isinstance(node, dict) and node.get(key) is None:
        node[key] = {}
    if at in NAMED and isinstance(node[key], list):
        node[key] = {str(name): {} for name in node[key]}
    return _assign(node[key], rest, at, value)


def _indices(node: list[Any], head: str, at: Where) -> list[int]:
    if head == "*":
        return list(range(len(node)))
    if not (head.isascii() and head.isdigit() and len(head) < 6 and int(head) < len(node)):
        numbers = f"0 to {len(node) - 1}, or *" if len(node) > 1 else "which is 0"
        raise ValueError(
            f"{_dotted(at)} is a list; write the number of an entry, {numbers}"
            if node
            else f"{_dotted(at)} is a list without entries; write the whole list"
        )
    return [int(head)]


def _dotted(at: Where) -> str:
    return ".".join(map(str, at)) or "the scenario"
