"""Periods of traffic that recur: a pause or burst of fixed or random length."""

from __future__ import annotations

from typing import Annotated

from plait.parts import Record, Span
from plait.units import Duration, TimeText, Within

EXPONENTIAL = "exponential"


class Gap(Record):
    """A period that recurs: always `mean_us` long, or exponentially distributed with this mean, drawn from the seed."""

    mean_us: Span
    exponential: bool = False

    def __str__(self) -> str:
        return f"{'exponential, ' if self.exponential else ''}{self.mean_us / 1e6:g} s"


Period = Annotated[Duration, Within(least=1000, most=3600 * 10**9)]
"""A time between messages: 1 us to 1 h, to the nanosecond."""


class _Within(Duration):
    least = 1000
    most = 3600 * 10**9
    step = 1000


class RandomTime(TimeText):
    """A fixed duration `200ms`, or a random one `exponential 200ms` (its mean; the seed decides the values)."""

    pattern = rf"^({EXPONENTIAL}\s+)?{TimeText.TIME}$"
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

    @property
    def planned(self) -> Gap:
        """The record of the plan."""
        return Gap(mean_us=self.mean.us, exponential=self.exponential)
