"""Quantities of traffic: bounded times and sizes, fixed or random times, and moments of a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plait.parts import Part
from plait.units import Duration, Size, Text

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

REQUEST_LEAST = 8
"""Bytes of a request's header, which holds the size of the response, and of a packet's sequence number."""
PACKET_MOST = 65_507
"""What IPv4 lets a UDP packet carry."""
EXPONENTIAL = "exponential"
_TIME = r"(\d+(\.\d+)?|\.\d+)\s*(ns|us|ms|s|min|h)"


class Period(Duration):
    """A time between messages: 1 us to 1 h, to the nanosecond."""

    least = 1000
    most = 3600 * 10**9


class Packet(Size):
    """Payload of a UDP packet."""

    least = REQUEST_LEAST
    most = PACKET_MOST


class RequestSize(Size):
    """Size of a request."""

    least = REQUEST_LEAST


class Unsent(Size):
    """A limit of unsent bytes in a socket."""

    least = 1
    most = 2**31 - 1


class _Span(Text):
    """A value that equals others with the same text."""

    pattern = ""
    examples: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        return {"type": "string", "pattern": cls.pattern, "examples": list(cls.examples)}


class _Within(Duration):
    least = 1000
    most = 3600 * 10**9
    step = 1000


class RandomTime(_Span):
    """A fixed duration `200ms`, or a random one `exponential 200ms` (its mean; the seed decides the values)."""

    pattern = rf"^({EXPONENTIAL}\s+)?{_TIME}$"
    examples = ("200ms", "exponential 200ms")

    def __init__(self, mean: Duration, *, exponential: bool = False) -> None:
        self.mean = mean
        self.exponential = exponential

    @classmethod
    def parse(cls, value: object) -> RandomTime:
        """Return `value` as a time. Raises ValueError."""
        if isinstance(value, cls):
            return value
        word, _, rest = value.strip().partition(" ") if isinstance(value, str) else ("", "", "")
        if word.isalpha() and rest:
            if word.lower() != EXPONENTIAL:
                raise ValueError(
                    f"'{word[:20]}' is not a known distribution; write 200ms, or {EXPONENTIAL} 200ms"
                )
            return cls(_Within.parse(rest), exponential=True)
        return cls(_Within.parse(value))

    def __str__(self) -> str:
        return f"{EXPONENTIAL} {self.mean}" if self.exponential else str(self.mean)


class _AnyTime(Duration):
    most = 3600 * 10**9
    step = 1000


class FlowMoment(_Span):
    """A moment of a flow: `5s` is 5 s after its start, `-1s` is 1 s before its end."""

    pattern = rf"^-?\s*{_TIME}$"
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
