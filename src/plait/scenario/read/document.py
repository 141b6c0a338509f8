"""Parse YAML text to plain values and their places, with bounds, and write YAML; independent of scenarios.

The reader works event by event, so it refuses a huge or hostile text (a million entries, aliases of aliases) as soon as
it exceeds a bound, and not after building the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError

from plait.scenario.mistakes import Where
from plait.scenario.read.not_yaml import explained
from plait.scenario.source import TextPlace

MAX_CHARACTERS = 500_000
MAX_VALUES = 25_000
MAX_ENTRIES = 4096
MAX_DEPTH = 20
MAX_MISTAKES = 100
MAX_SCALAR = 20_000

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII
)
_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class Refused(Exception):  # noqa: N818  # it carries a mistake of the text, not an error of the program
    """plait refuses to read the text any further."""

    def __init__(self, reason: str, place: TextPlace | None = None, where: Where = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.where = where


@dataclass
class Document:
    """The content of a text: plain values, their places, and mistakes of single entries."""

    value: Any = None
    places: dict[Where, TextPlace] = field(default_factory=dict)
    """Place of each entry: of its key in a mapping, of the entry in a list."""
    mistakes: list[tuple[Where, TextPlace, str]] = field(default_factory=list)


def read(text: str) -> Document:
    """Read one YAML document. Raises Refused if it is not YAML or exceeds a bound."""
    if len(text) > MAX_CHARACTERS:
        reason = f"the text has more than {MAX_CHARACTERS} characters; shorten it"
        raise Refused(reason, _place_at(text, MAX_CHARACTERS))
    text = text.removeprefix("\ufeff")
    try:
        return _Reader(YAML(typ="safe", pure=True).parse(text)).document()
    except MarkedYAMLError as error:
        mark, reason = explained(error, text)
        place = (mark.line + 1, mark.column + 1) if mark is not None else None
        raise Refused(reason, place) from error
    except ReaderError as error:
        reason = "this character is not allowed; save the file as UTF-8 text"
        position = error.position if isinstance(error.position, int) else 0
        raise Refused(reason, _place_at(text, position)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise Refused(f"this is not YAML: {str(error).splitlines()[0]}", (1, 1)) from error


def written(record: dict[str, Any], *, short_lists: bool = False) -> str:
    """Return `record` as YAML in its order, with `short_lists` and mappings of single values in one line each."""
    text = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None if short_lists else False
    yaml.width = 100 if short_lists else 80
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # declared as None
    yaml.dump(record, text)
    return text.getvalue()


def _place_at(text: str, position: int) -> TextPlace:
    before = text[:position]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _Reader:
    """Build values from events; `_count` bounds their number, with aliases counted at each use."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._out = Document()
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def document(self) -> Document:
        documents = 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Refused("a second document begins here; keep one document in a file", _place(event))
            elif isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent, AliasEvent)):
                self._out.places[()] = _place(event)
                self._out.value = self._value(event, ())
            elif isinstance(event, StreamEndEvent):
                break
        return self._out

    def _value(self, event: Any, where: Where) -> Any:
        self._count_values(1, event, where)
        if isinstance(event, AliasEvent):
            return self._alias(event, where)
        if len(where) > MAX_DEPTH:
            raise Refused(
                f"this is nested more than {MAX_DEPTH} levels deep; flatten it", _place(event), where
            )
        before = self._count
        if isinstance(event, MappingStartEvent):
            value: Any = self._mapping(event, where)
        elif isinstance(event, SequenceStartEvent):
            value = self._sequence(event, where)
        else:
            value = self._scalar(event, where)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - before + 1)
        return value

    def _alias(self, event: AliasEvent, where: Where) -> Any:
        if event.anchor not in self._anchors:
            self._report(
                where, event, f"*{event.anchor} has no &{event.anchor} before it; write the value itself"
            )
            return None
        value, size = self._anchors[event.anchor]
        self._count_values(size, event, where)
        return deepcopy(value)

    def _mapping(self, start: Any, where: Where) -> dict[str, Any]:
        self._refuse_tag(start, where, "map")
        out: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            name = self._key(event, where)
            value_event = next(self._events)
            here = (*where, name)
            first = name not in out
            if first:
                self._out.places[here] = _place(event)
                self._bound_entries(len(out), event, where)
            kept = len(self._out.mistakes)
            value = self._value(value_event, here)
            if first:
                out[name] = value
            else:
                del self._out.mistakes[kept:]
                earlier = self._out.places[here][0]
                second = f", or call a second link {name}#2" if where == ("network", "links") else ""
                self._report(
                    here, event, f"this key occurs twice, first in line {earlier}; remove one{second}"
                )
        return out

    def _key(self, event: Any, where: Where) -> str:
        if isinstance(event, AliasEvent) or not isinstance(event, ScalarEvent):
            raise Refused("the key of this mapping is not plain text; write a name", _place(event), where)
        if len(event.value) > 200:
            raise Refused(
                f"this key has {len(event.value)} characters; write at most 200", _place(event), where
            )
        if event.value == "<<" and event.style is None:
            message = (
                "plait does not read merge keys (<<); write the fields, or use an alias as the whole value"
            )
            self._report((*where, "<<"), event, message)
        return str(event.value)

    def _sequence(self, start: Any, where: Where) -> list[Any]:
        self._refuse_tag(start, where, "seq")
        out: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            self._bound_entries(len(out), event, where)
            here = (*where, len(out))
            self._out.places[here] = _place(event)
            out.append(self._value(event, here))
        return out

    def _scalar(self, event: Any, where: Where) -> Any:
        tag = (
            str(event.tag)
            if event.tag is not None and not event.implicit[0] and not event.implicit[1]
            else None
        )
        if tag is not None and not tag.endswith(":str"):
            self._report(where, event, f"plait does not read tags such as {tag[:40]}; remove it")
        if len(event.value) > MAX_SCALAR:
            raise Refused(
                f"this text has {len(event.value)} characters; write at most {MAX_SCALAR}",
                _place(event),
                where,
            )
        if tag is not None or event.style is not None:
            return str(event.value)
        return plain(event.value)

    def _refuse_tag(self, event: Any, where: Where, kind: str) -> None:
        if event.tag is not None and not str(event.tag).endswith(f":{kind}"):
            self._report(where, event, f"plait does not read tags such as {str(event.tag)[:40]}; remove it")

    def _count_values(self, n: int, event: Any, where: Where) -> None:
        self._count += n
        if self._count > MAX_VALUES:
            raise Refused(
                f"there are more than {MAX_VALUES} values, aliases included; use fewer", _place(event), where
            )

    def _bound_entries(self, entries: int, event: Any, where: Where) -> None:
        if entries >= MAX_ENTRIES:
            raise Refused(f"there are more than {MAX_ENTRIES} entries here; use fewer", _place(event), where)

    def _report(self, where: Where, event: Any, message: str) -> None:
        self._out.mistakes.append((where, _place(event), message))
        if len(self._out.mistakes) > MAX_MISTAKES:
            raise Refused(
                "there are too many mistakes to continue; fix those above first", _place(event), where
            )


class _WrittenFloat(float):
    """A number that remembers its text, because a name such as 6.10 can look like a number."""

    text: str


def plain(text: str) -> object:
    """Return the value of an unquoted word, by the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) <= 100:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text) and len(text) <= 100:
        number = _WrittenFloat(text.lower().replace(".i", "i").replace(".n", "n"))
        number.text = text
        return number
    return text


def _place(event: Any) -> TextPlace:
    return event.start_mark.line + 1, event.start_mark.column + 1
