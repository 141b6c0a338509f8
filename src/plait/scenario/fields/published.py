"""What others have published of the same experiment, to be shown beside what is measured; it changes no trial."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from plait.scenario.fields.parts import GROUP, Part
from plait.units import Rate


class PublishedValue(Part):
    """A figure, and the cases that it is about."""

    case: dict[str, Any] = {}
    """Settings by their names under `vary`; every case that has all of them is meant."""
    goodput: Rate | None = None
    """Of all flows together."""
    each: dict[Annotated[str, Field(pattern=GROUP)], Rate] = {}
    """By group, the goodput of each of its flows in the mean."""

    @model_validator(mode="after")
    def _require_a_value(self) -> PublishedValue:
        if self.goodput is None and not self.each:
            raise ValueError("this has no figure; give goodput, or each: {GROUP: ..}")
        return self


class PublishedSpec(Part):
    """Figures and where they come from."""

    source: Annotated[str, Field(min_length=1, max_length=300)]
    values: Annotated[list[PublishedValue], Field(min_length=1, max_length=1000)]
