"""Published results of the same experiment, which reports show beside the measured ones; they change no trial."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from plait.parts import GROUP, Part
from plait.units import Rate


class PublishedValue(Part):
    """One published result, and its cases."""

    case: dict[str, Any] = {}
    """Settings by their names under `vary`; the result is for every case that has all of them."""
    goodput: Rate | None = None
    """Goodput of all flows together."""
    each: dict[Annotated[str, Field(pattern=GROUP)], Rate] = {}
    """By group, the mean goodput of its flows."""

    @model_validator(mode="after")
    def _require_a_value(self) -> PublishedValue:
        if self.goodput is None and not self.each:
            raise ValueError("this entry has no result; add goodput, or each: {GROUP: ..}")
        return self


class PublishedSpec(Part):
    """Published results and their source."""

    source: Annotated[str, Field(min_length=1, max_length=300)]
    values: Annotated[list[PublishedValue], Field(min_length=1, max_length=1000)]
