"""The places of a scenario's fields in its text, for located mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plait.errors import Mistake
from plait.scenario.mistakes import Where

TextPlace = tuple[int, int]
"""Line and column of a place in the text; both count from 1."""


@dataclass
class Source:
    """A text, the places of its fields, and the fields that an override replaced."""

    name: str
    places: dict[Where, TextPlace] = field(default_factory=dict)
    replaced: dict[Where, str] = field(default_factory=dict)
    """The origin of each field's value, as people wrote it: `--set PATH=VALUE`, or an argument in Python."""
    cautions: list[Mistake] = field(default_factory=list)
    """Old spellings, and what to write instead."""

    def mistake(self, where: Sequence[str | int], message: str) -> Mistake:
        """Return a mistake at the field `where`, or at the nearest field around it that the text contains."""
        path = ".".join(str(part)[:60] for part in where)
        message = " ".join(message.split()).removesuffix(
            ";"
        )  # a remedy is empty if no name is near and there are many
        for length in range(len(where), -1, -1):
            around = tuple(where[:length])
            if around in self.replaced:
                return Mistake(self.replaced[around], None, None, path, message)
            place = self.places.get(around)
            if place is not None and around:
                return Mistake(self.name, *place, path, message)
        for field_, written in self.replaced.items():
            if field_[: len(where)] == tuple(where):  # the override created the fields around it
                return Mistake(written, None, None, path, message)
        line, column = self.places.get((), (None, None))
        return Mistake(self.name, line, column, path, message)
