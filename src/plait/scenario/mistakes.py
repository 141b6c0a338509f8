"""Mistakes in the fields of a scenario, before `located` finds their places in a text."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import PydanticCustomError

Where = tuple[str | int, ...]
"""The path of a field: `("network", "links", "h1-s1", "rate")`."""
FieldMistake = tuple[Where, str]
"""A field, and `problem; remedy`."""
SEVERAL = "scenario"
"""The type of pydantic's error that carries several mistakes as `ctx["mistakes"]`."""


def as_one_error(mistakes: Sequence[FieldMistake]) -> PydanticCustomError:
    """Return one error that a validator can raise for all mistakes (`messages.mistakes_in` reads it)."""
    where, message = mistakes[0]
    text = f"{'.'.join(map(str, where))}: {message}".replace("{", "{{").replace("}", "}}")
    return PydanticCustomError(SEVERAL, text, {"mistakes": list(mistakes)})
