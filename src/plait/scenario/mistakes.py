"""Mistakes in the fields of a scenario: stages that know values alone raise them, `source` locates them in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from plait.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

Where = tuple[str | int, ...]
"""The path of a field: `("network", "links", "h1-s1", "rate")`."""
FieldMistake = tuple[Where, str]
"""A field, and `problem; remedy`."""
SEVERAL = "scenario"
"""The type of pydantic's error that carries several mistakes as `ctx["mistakes"]`."""


class FieldMistakesError(RequestError):
    """One or more mistakes of fields, by their paths."""

    def __init__(self, *mistakes: FieldMistake) -> None:
        super().__init__("\n".join(f"{'.'.join(map(str, where))}: {problem}" for where, problem in mistakes))
        self.mistakes = mistakes

    def within(self, *outer: str | int) -> FieldMistakesError:
        """Return the same mistakes of the fields below another one."""
        return FieldMistakesError(*(((*outer, *where), problem) for where, problem in self.mistakes))


def as_one_error(mistakes: Sequence[FieldMistake]) -> PydanticCustomError:
    """Return one error that a validator can raise for all mistakes (`messages.mistakes_in` reads it)."""
    where, message = mistakes[0]
    text = f"{'.'.join(map(str, where))}: {message}".replace("{", "{{").replace("}", "}}")
    return PydanticCustomError(SEVERAL, text, {"mistakes": list(mistakes)})
