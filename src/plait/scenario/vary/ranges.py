"""Parse ranges of values, `1mbit..1gbit log 10`, `10ms..100ms step 10ms` or `1..8`, and compute their points."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from plait.units import Duration, Rate, Size

MOST_POINTS = 1000
COUNTED = ("", "pkt")
"""Units of indivisible things: between whole numbers the points are whole numbers, too."""
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)\s*((?:(?!log\b|linear\b|step\b)[A-Za-z%]{1,5})?)"
_RANGE = re.compile(
    rf"\s*{_NUMBER}\s*\.\.\s*{_NUMBER}(?:\s+(linear|log))?(?:\s+step\s+{_NUMBER}|\s+(\d{{1,7}}))?\s*",
    re.ASCII,
)
_LOOKS_LIKE = re.compile(r"\s*\d[\d.]*\s*[A-Za-z%]{0,5}\s*\.\.\s*\d")
_KINDS: tuple[dict[str, int], ...] = (dict(Rate.units), dict(Duration.units), dict(Size.units))


@dataclass(frozen=True)
class Range:
    """A range from one value to another, both included."""

    low: Fraction
    high: Fraction
    """Both ends in the base unit of `units` (factor 1)."""
    units: tuple[tuple[str, int], ...]
    """The units of printed points with their factors, the smallest first."""
    ends: tuple[str, str]
    """The ends as in the text."""
    log: bool
    step: Fraction | None
    count: int | None

    @property
    def whole(self) -> bool:
        """Whether all points are whole: packets, or numbers between whole numbers."""
        return self.units[-1][0] in COUNTED and self.low.denominator == self.high.denominator == 1

    def points(self) -> list[int | float | str]:
        """Return the values: the ends as in the text, and points with three digits, or more if needed to differ.

        Raises ValueError if their number is not defined.
        """
        if self.step is not None:
            exact = [self.low + i * self.step for i in range(int((self.high - self.low) / self.step) + 1)]
            return [self._text(value) for value in exact]
        count = self.count
        if count is None:
            if (
                self.units != (("", 1),)
                or self.log
                or any(end.denominator > 1 for end in (self.low, self.high))
            ):
                raise ValueError("the range has no number of values; write for example 1mbit..1gbit log 10")
            count = int(self.high - self.low) + 1
            _bounded(count)
            return [int(self.low) + i for i in range(count)]
        inner = [self.value_at(Fraction(i, count - 1)) for i in range(1, count - 1)]
        for digits in range(3, 16):
            rounded = [self._rounded(value, digits) for value in inner]
            if _rising([self.low, *rounded, self.high]):
                break
        if self.whole:
            rounded = [Fraction(round(value)) for value in inner]
            if not _rising([self.low, *rounded, self.high]):
                raise ValueError(
                    f"between {self.low} and {self.high} are fewer than {count} whole numbers; write fewer values"
                )
        return [self._text(value) for value in (self.low, *rounded, self.high)]

    def value_at(self, share: Fraction | float) -> Fraction:
        """Return the value at a fraction (0 to 1) of the range."""
        if not self.log:
            return self.low + (self.high - self.low) * Fraction(share)
        power = Fraction(float(self.low) * (float(self.high) / float(self.low)) ** float(share))
        return _rounded(power, 12)  # so that rounding errors of floats do not change the unit

    def text_at(self, share: float) -> int | float | str:
        """Return the value at a fraction of the range as text: three digits, or whole if both ends are."""
        value = self.value_at(share)
        if self.whole and not self.log:
            return self._text(min(self.high, self.low + int((self.high - self.low + 1) * Fraction(share))))
        if self.whole:
            return self._text(Fraction(round(value)))
        return self._text(min(max(self._rounded(value, 3), self.low), self.high))

    def _text(self, value: Fraction) -> int | float | str:
        if self.units != (("", 1),) and value in (self.low, self.high):
            return self.ends[0] if value == self.low else self.ends[1]
        if self.units == (("", 1),):
            return int(value) if value.denominator == 1 else float(value)
        name, size = self._unit(value)
        return f"{_decimal(value / size)}{name}"

    def _unit(self, value: Fraction) -> tuple[str, int]:
        """Return the unit of a printed value: the largest unit between the ends' that is not above the value."""
        return next((unit for unit in reversed(self.units) if unit[1] <= value), self.units[0])

    def _rounded(self, value: Fraction, digits: int) -> Fraction:
        """Return the value rounded to a number of digits in its printed unit; bytes are whole."""
        name, size = self._unit(value)
        return Fraction(round(value)) if name == "B" else _rounded(value / size, digits) * size


def looks_like_range(value: object) -> bool:
    """Return whether a value looks like a range: text with a number on both sides of two dots."""
    return isinstance(value, str) and len(value) <= 120 and _LOOKS_LIKE.match(value) is not None


def read_range(text: str) -> Range:
    """Return the range in `text`. Raises ValueError with the problem and the remedy."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(
            f"'{text[:60]}' is not a range; write for example 1mbit..1gbit log 10, or 10ms..100ms step 10ms"
        )
    a, a_unit, b, b_unit, scale, step, step_unit, count = match.groups()
    units = _units(text, a_unit, b_unit, step_unit)
    sizes = dict(units)
    low, high = Fraction(a) * sizes[a_unit], Fraction(b) * sizes[b_unit]
    width = Fraction(step) * sizes[step_unit] if step is not None else None
    if low >= high:
        raise ValueError(f"'{text[:60]}' does not ascend; write the smaller end first")
    if scale == "log" and (low == 0 or width is not None):
        raise ValueError(
            f"'{text[:60]}': a logarithmic range cannot start at zero or have a step; write a start above zero and "
            "a number of values"
        )
    if width is not None:
        if width == 0:
            raise ValueError(f"'{text[:60]}': a step of zero never ends; write a larger one")
        _bounded(int((high - low) / width) + 1)
    points = int(count) if count is not None else None
    if points is not None:
        _bounded(points)
    least, most = sorted((sizes[a_unit], sizes[b_unit]))
    between = tuple(
        (name, size) for name, size in units if least <= size <= most and _same_family(name, a_unit, b_unit)
    )
    return Range(low, high, between, (f"{a}{a_unit}", f"{b}{b_unit}"), scale == "log", width, points)


def _bounded(count: int) -> None:
    if not 2 <= count <= MOST_POINTS:
        raise ValueError(f"the range has {count} values; write 2 to {MOST_POINTS}")


def _units(text: str, *written: str | None) -> tuple[tuple[str, int], ...]:
    """Return the units of the kind to which all of these belong."""
    named = {unit for unit in written if unit is not None}
    for kind in _KINDS:
        if named <= set(kind):
            return tuple(sorted(kind.items(), key=lambda entry: entry[1]))
    if len(named) == 1:
        return ((named.pop(), 1),)
    raise ValueError(f"'{text[:60]}' mixes units; write both ends in units of one kind")


def _same_family(name: str, a: str, b: str) -> bool:
    """Return whether points between ends in units a and b may use unit `name`: KiB only for KiB, never min or h."""
    if name in {"min", "h"}:
        return False
    binary = [unit.endswith("iB") for unit in (a, b, name)]
    return all(binary) or not any(binary)


def _rising(values: list[Fraction]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _rounded(value: Fraction, digits: int) -> Fraction:
    if value == 0:
        return value
    scale = digits - 1 - math.floor(math.log10(value))
    return Fraction(round(value * Fraction(10) ** scale)) / Fraction(10) ** scale


def _decimal(value: Fraction) -> str:
    """Return a number without exponent and trailing zeros."""
    text = f"{float(value):.12f}".rstrip("0").rstrip(".")
    return text or "0"
