"""The records of changes: a command of root with its undo, and a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plait.engine.remote.lasting import Change as Lasting


@dataclass(frozen=True)
class HostCommand:
    """A command of root on a host, and the one that takes it back."""

    host: str
    command: str
    undo: str
    lasting: Lasting | None = None
    """The same change for `plait.engine.remote.lasting`; None if plait does not make it itself."""
    note: str = ""
    """What a person must do first."""


@dataclass(frozen=True)
class Candidate:
    """One change, or several together."""

    name: str
    words: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the scenario by path."""
    commands: tuple[HostCommand, ...] = ()
    parts: tuple[str, ...] = ()
    """The names of the changes that it has together; empty for one change."""
    first: str | None = None
    """The link over which connections begin; None: the first line."""

    def fields(self, traffic: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the fields of the scenario that it sets, by path, if the scenario has this traffic."""
        begin = [f"traffic.{number}.{kind}.via" for number, item in enumerate(traffic) for kind in item]
        return {**self.settings, **(dict.fromkeys(begin, self.first) if self.first else {})}


NOW = Candidate("now", "the settings as they are")


def together(first: Candidate, second: Candidate) -> Candidate | None:
    """Return two changes at once; None if one would replace the other."""
    merged = {**first.settings, **second.settings}
    if (
        len(merged) < len(first.settings) + len(second.settings)
        or first is NOW
        or second is NOW
        or "transport" in merged
        or (first.first and second.first)
    ):
        return None
    return Candidate(
        f"{first.name}+{second.name}",
        f"{first.words}; {second.words}",
        merged,
        (*first.commands, *second.commands),
        (*(first.parts or (first.name,)), *(second.parts or (second.name,))),
        first.first or second.first,
    )
