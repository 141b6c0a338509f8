"""Old spellings of fields, which this version still reads: it rewrites them, and says what to write instead.

The next version removes this module. Names under `vary` stay as written, so cases keep their names.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.names import varied_by

_FLOWS: dict[str, dict[str, str]] = {
    "bulk": {"bidirectional": "back"},
    "transfer": {"pause": "gap"},
    "stream": {"interval": "every"},
    "udp": {"interval": "every"},
    "prototype": {"interval": "every"},
    "request": {"think": "gap"},
    "on_off": {},
    "on-off": {},
    "page": {},
}
"""New name by old name of the fields of each kind of flow, besides those of every kind."""
_WITH_GAP = ("transfer", "request")
"""Kinds in which `gap` has a meaning of its own today."""
_GENERATED = ("permutation", "pairs")
_OTHERS = {"monitors.trace": "monitors.tracepoints", "machine.memory": "memory"}
_FLOW = re.compile(r"(traffic\.[^.]+\.(?:(?:permutation|pairs)\.each\.)?)([^.]+)(?:\.([^.]+)(\..+)?)?")
_OLD_GAP = re.compile(rf"traffic\.[^.]+\.({'|'.join(_WITH_GAP)})\.gap")
_PROGRAM = re.compile(r"(programs\.[^.]+)\.until")


@dataclass
class Rewritten:
    """The fields of a scenario in today's spelling, and what was rewritten."""

    fields: dict[str, Any]
    moved: dict[Where, Where] = field(default_factory=dict)
    """Today's place of each field that has another name or parent, by its old place."""
    cautions: list[FieldMistake] = field(default_factory=list)
    """The new spelling, by today's place."""
    mistakes: list[FieldMistake] = field(default_factory=list)
    """Old spellings of what has another meaning today."""

    def place(self, where: Where) -> Where:
        """Return today's place of a field, for one in the text."""
        for length in range(len(where), 0, -1):
            if where[:length] in self.moved:
                return (*self.moved[where[:length]], *where[length:])
        return where

    def move(self, old: Where, new: Where, value: object) -> None:
        """Record that a field has another place, and what to write."""
        self.moved[old] = new
        line = f"{new[-1]}: .." if isinstance(value, dict) else f"{new[-1]}: {_text(value)}"
        parent = "" if len(old) == len(new) else " at the top level"
        self.cautions.append((new, f"the next version refuses '{old[-1]}'; write {line}{parent}"))


def rewritten(raw: dict[str, Any]) -> Rewritten:
    """Return the unvalidated fields of a scenario in today's spelling; the argument does not change."""
    result = Rewritten(dict(raw))
    for key, entries_of in (("traffic", _entry), ("programs", _program)):
        entries = raw.get(key)
        if isinstance(entries, (list, tuple)):
            result.fields[key] = [entries_of(entry, (key, i), result) for i, entry in enumerate(entries)]
    if any(old[-1] == "repeat" and old[2] in _WITH_GAP for old in result.moved if len(old) == 4):
        result.mistakes += [
            (("vary",), f"'{path[:60]}' is no time between repetitions any more; write round_gap")
            for path in sorted(varied_by(raw.get("vary")))
            if _OLD_GAP.fullmatch(path)
        ]
    monitors, machine = raw.get("monitors"), raw.get("machine")
    if isinstance(monitors, dict):
        result.fields["monitors"] = _renamed(monitors, {"trace": "tracepoints"}, ("monitors",), result)
    if isinstance(machine, dict) and "memory" in machine and raw.get("memory") is None:
        result.fields["memory"] = machine["memory"]
        result.fields["machine"] = {name: value for name, value in machine.items() if name != "memory"}
        result.move(("machine", "memory"), ("memory",), machine["memory"])
    return result


def rewritten_path(path: str) -> str:
    """Return the path of a field in today's spelling, for a dotted path with possible wildcards."""
    if path in _OTHERS:
        return _OTHERS[path]
    if (program := _PROGRAM.fullmatch(path)) is not None:
        return f"{program[1]}.wait"
    flow = _FLOW.fullmatch(path)
    if flow is None or flow[2] not in (*_FLOWS, "*"):
        return path
    kind, name = flow[2], flow[3]
    names = _names(kind, rounds=kind not in _WITH_GAP)
    today = "on-off" if kind == "on_off" else kind
    return flow[1] + today + (f".{names.get(name, name)}{flow[4] or ''}" if name else "")


def _names(kind: str, *, rounds: bool) -> dict[str, str]:
    """Return the new name of each old field of a kind; `rounds`: `gap` is the time between repetitions."""
    own = (
        {old: new for names in _FLOWS.values() for old, new in names.items()} if kind == "*" else _FLOWS[kind]
    )
    return {"repeat": "rounds"} | ({"gap": "round_gap"} if rounds else {}) | own


def _entry(entry: object, where: Where, result: Rewritten) -> object:
    """Return an entry of the traffic in today's spelling."""
    if not isinstance(entry, dict) or len(entry) != 1:
        return entry
    ((kind, fields),) = entry.items()
    if kind in _GENERATED and isinstance(fields, dict):
        inner = _entry(fields.get("each"), (*where, kind, "each"), result)
        return entry if inner is fields.get("each") else {kind: {**fields, "each": inner}}
    if kind not in _FLOWS:
        return entry
    today = "on-off" if kind == "on_off" else kind
    if today != kind:
        result.move((*where, kind), (*where, today), {})
    if not isinstance(fields, dict):
        return {today: fields}
    names = _names(kind, rounds="repeat" in fields or kind not in _WITH_GAP)
    renamed = _renamed(fields, names, (*where, kind), result, into=(*where, today))
    return entry if renamed is fields and today == kind else {today: renamed}


def _program(entry: object, where: Where, result: Rewritten) -> object:
    """Return a program in today's spelling."""
    if not isinstance(entry, dict) or entry.get("until") not in ("exit", "end") or "wait" in entry:
        return entry
    waits = entry["until"] == "exit"
    result.move((*where, "until"), (*where, "wait"), waits)
    return {name: value for name, value in entry.items() if name != "until"} | {"wait": waits}


def _renamed(
    fields: dict[str, Any],
    names: dict[str, str],
    where: Where,
    result: Rewritten,
    *,
    into: Where | None = None,
) -> dict[str, Any]:
    """Return the fields with new names, unless the new name of one is there too; the same object without old names."""
    given = {old: new for old, new in names.items() if old in fields and (new not in fields or new in names)}
    if not given:
        return fields
    for old, new in given.items():
        result.move((*where, old), (*(into or where), new), fields[old])
    return {given.get(name, name): value for name, value in fields.items()}


def _text(value: object) -> str:
    """Return a value as a scenario file has it, cut to a line."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"[:80]
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 .%_-]*", value)
    return str(value)[:80] if plain else json.dumps(value, default=str, ensure_ascii=False)[:80]
