"""The base record and the number types of the plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

IfName = Annotated[str, Field(min_length=1, max_length=15)]
Micros = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A ratio or a probability."""


class Record(BaseModel):
    """A closed, immutable record: it refuses unknown fields and converts nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
