"""The units of metrics: how a value reads as text, and in which steps an axis shows it.

The name of a field of data ends in its unit; names without one are ratios and counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.wording import MISSING, count, micros, percent, rate, seconds, significant, size

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Unit:
    """One unit."""

    show: Callable[[float | None], str]
    """Return a value as text, with its unit."""
    steps: tuple[tuple[float, str], ...] = ((1.0, ""),)
    """Divisors and their units on an axis, the largest first."""

    def scale(self, largest: float) -> tuple[float, str]:
        """Return the divisor and the unit of an axis whose largest value is `largest`."""
        return next((step for step in self.steps if largest >= step[0]), self.steps[-1])


def _number(value: float | None) -> str:
    return MISSING if value is None else significant(value)


RATE = Unit(rate, ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")))
MICROSECONDS = Unit(micros, ((1e6, "s"), (1e3, "ms"), (1.0, "\N{MICRO SIGN}s")))
SECONDS = Unit(seconds, ((1.0, "s"), (1e-3, "ms")))
BYTES = Unit(size, ((1e6, "MB"), (1e3, "kB"), (1.0, "B")))
PER_SECOND = Unit(count, ((1.0, "1/s"),))
PERCENT = Unit(percent, ((0.01, "%"),))
COUNT = Unit(count)
NUMBER = Unit(_number)

_BY_ENDING = (
    ("_per_s", PER_SECOND),
    ("_bps", RATE),
    ("_bytes", BYTES),
    ("_us", MICROSECONDS),
    ("_s", SECONDS),
)


def unit_by_ending(name: str) -> Unit:
    """Return the unit that the end of a field's name says; a plain number without one."""
    return next((unit for ending, unit in _BY_ENDING if name.endswith(ending)), NUMBER)
