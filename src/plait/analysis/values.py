"""Values of metrics as a person reads them: as text with their unit, and on the axes of figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plait.analysis.metrics.catalogue import title_of, unit_of
from plait.analysis.model import Statistics
from plait.analysis.wording import MISSING, significant

LEANING = 0.02
"""Share of its width by which the middle of an interval may be off the mean and still be written as a half."""


def show(metric: str, value: float | None) -> str:
    """Return a metric's value with its unit."""
    return unit_of(metric).show(value)


def with_interval(metric: str, value: float | None, ci95: tuple[float, float] | None) -> str:
    """Return a mean and half its interval in one unit: "9.20 \N{PLUS-MINUS SIGN} 0.03 Mbit/s", "2 (0 to 9) s"."""
    text = show(metric, value)
    if value is None or not value or ci95 is None:
        return text
    number, _, unit = text.partition(" ")
    divisor = abs(value / float(number)) if float(number) else math.inf
    return f"{_with_bound(number, value, divisor, ci95)} {unit}".rstrip()


def in_one_unit(metric: str, column: Sequence[Statistics | None]) -> tuple[list[str], str]:
    """Return the means of a column with half their intervals as numbers of one unit, and that unit."""
    means = [stats.mean for stats in column if stats is not None and stats.mean is not None]
    divisor, unit = scale_of(metric, max(map(abs, means), default=0.0))
    texts = []
    for stats in column:
        if stats is None or stats.mean is None:
            texts.append(MISSING)
        elif unit:
            texts.append(_with_bound(significant(stats.mean / divisor), stats.mean, divisor, stats.ci95))
        else:
            texts.append(with_interval(metric, stats.mean, stats.ci95))
    return texts, unit


def bound(number: str, mean: float, divisor: float, ci95: tuple[float, float]) -> str:
    """Return half the width of an interval with as many decimals as its mean has; the ends of one that leans."""
    low, high = ci95
    reads_alike = significant(low / divisor) == significant(high / divisor)
    if not reads_alike and abs(low + high - 2 * mean) > LEANING * (high - low):
        return f"({significant(low / divisor)} to {significant(high / divisor)})"
    half = (high - low) / 2 / divisor
    decimals = len(number.partition(".")[2])
    least = 10.0**-decimals
    return f"\N{PLUS-MINUS SIGN} {f'{half:.{decimals}f}' if half >= least / 2 else f'<{least:.{decimals}f}'}"


def _with_bound(number: str, mean: float, divisor: float, ci95: tuple[float, float] | None) -> str:
    """Return a number with its `bound`, if it has an interval."""
    return number if ci95 is None else f"{number} {bound(number, mean, divisor, ci95)}"


def span(metric: str, low: float | None, high: float | None) -> str:
    """Return a range in one unit where that is possible: "4.77 to 4.79 Mbit/s"; one value when both read alike."""
    first, last = show(metric, low), show(metric, high)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"


def scale_of(metric: str, largest: float) -> tuple[float, str]:
    """Return the divisor and the unit in which an axis shows `metric` when its largest value is `largest`."""
    return unit_of(metric).scale(largest)


def axis_title(metric: str, unit: str) -> str:
    """Return the title of an axis: the metric's title, and its unit if it has one."""
    return f"{title_of(metric)}, {unit}" if unit else title_of(metric)
