"""Where a scenario's fields stand in their text, so that every mistake can name its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plait.errors import Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.mistakes import Where
    from plait.scenario.read.document import TextPlace


@dataclass
class Source:
    """A text and the places of its fields, and which fields `--set` replaced."""

    name: str
    places: dict[Where, TextPlace] = field(default_factory=dict)
    replaced: dict[Where, str] = field(default_factory=dict)
    """The `--set` option by the field it set."""

    def mistake(self, where: Sequence[str | int], message: str) -> Mistake:
        """A mistake at the field `where`, or at the nearest field around it that stands in the text."""
        path = ".".join(str(part)[:60] for part in where)
        message = " ".join(message.split()).removesuffix(
            ";"
        )  # where no name is near, and the known ones are many
        for length in range(len(where), -1, -1):
            around = tuple(where[:length])
            if around in self.replaced:
                return Mistake(f"--set {self.replaced[around]}", None, None, path, message)
            place = self.places.get(around)
            if place is not None and around:
                return Mistake(self.name, place.line, place.column, path, message)
        for field_, option in self.replaced.items():
            if field_[: len(where)] == tuple(where):  # what the option made on its way
                return Mistake(f"--set {option}", None, None, path, message)
        begin = self.places.get(())
        line, column = (begin.line, begin.column) if begin is not None else (None, None)
        return Mistake(self.name, line, column, path, message)
