"""Moments of a flow, and the window of them over which plait measures its steady goodput."""

from __future__ import annotations

from pydantic import Field, model_validator

from plait.parts import Part
from plait.units import Duration, TimeText


class _AnyTime(Duration):
    most = 3600 * 10**9
    step = 1000


class FlowMoment(TimeText):
    """A moment of a flow: `5s` is 5 s after its start, `-1s` is 1 s before its end."""

    pattern = rf"^-?\s*{TimeText.TIME}$"
    examples = ("5s", "-1s")

    def __init__(self, offset: Duration, *, before_end: bool = False) -> None:
        self.offset = offset
        self.before_end = before_end

    @classmethod
    def parse(cls, value: object) -> FlowMoment:
        """Return `value` as a moment. Raises ValueError."""
        if isinstance(value, cls):
            return value
        text = value.strip() if isinstance(value, str) else value
        if isinstance(text, str) and text.startswith("-"):
            return cls(_AnyTime.parse(text[1:].strip()), before_end=True)
        return cls(_AnyTime.parse(text))

    def __str__(self) -> str:
        return f"-{self.offset}" if self.before_end else str(self.offset)


class MeasureSpec(Part):
    """The window of each flow over which plait measures its steady goodput."""

    from_: FlowMoment = Field(default=FlowMoment(Duration(0)), alias="from")
    """Start of the window: `5s` is 5 s after the flow's start."""
    to: FlowMoment = FlowMoment(Duration(0), before_end=True)
    """End of the window: `-1s` is 1 s before the flow's end."""

    @model_validator(mode="after")
    def _check_order(self) -> MeasureSpec:
        same_side = self.from_.before_end == self.to.before_end
        later = (
            self.from_.offset > self.to.offset if self.to.before_end else self.from_.offset < self.to.offset
        )
        if same_side and not later:
            raise ValueError("the window ends before it starts; write a later to")
        return self
