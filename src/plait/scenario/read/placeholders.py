"""Valid replacements of wrong entries in lists, so that the other entries can be checked.

An entry keeps its index, its kind and all fields to which other entries may refer; only the wrong field changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.traffic.kinds import KEYS, SPECS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.mistakes import Where

_SMALLEST = {KEYS[kind]: spec.SMALLEST for kind, spec in SPECS.items()}
"""The required fields of each kind of flow, without its ends."""
_ENDS = ("from", "to")
_AT_AN_END = ("via", "bind", "connect")


def flow(entry: object, where: Where, hosts: Sequence[str]) -> dict[str, Any]:
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


def event(hosts: Sequence[str]) -> dict[str, Any]:
    """Return a valid event that changes nothing."""
    return {"at": "0s", "sysctls": {host: {"net.ipv4.tcp_sack": 1} for host in hosts[:1]}}


def program(entry: object, where: Where, hosts: Sequence[str]) -> dict[str, Any]:
    """Return a program that does nothing, with the fields to which others may refer, except the wrong field `where`."""
    fields = entry if isinstance(entry, dict) else {}
    kept = {
        field: fields[field]
        for field in ("name", "node", "transport")
        if field in fields and field not in where[2:3] and (field != "transport" or "node" not in where[2:3])
    }
    names = {"name": f"entry-{where[1]}"} if "name" in where[2:3] else {}
    return {"node": (hosts or [""])[0], **kept, **names, "run": "true", "wait": True}
