"""Means with intervals. The docstrings name the sources of the formulas."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from plait.analysis.model import Statistics
from plait.analysis.statistics.bootstrap import bootstrap_of_means, skewed
from plait.analysis.statistics.tests import t_quantile


def describe(values: Sequence[float | None], least: float | None = None) -> Statistics:
    """Return the statistics of the values that are known.

    The interval is Student's t interval of the mean, or of skewed values their bootstrap interval. `least` is the
    smallest value that there can be, where the interval ends as well; None for values without one.
    """
    measured = [value for value in values if value is not None]
    if not measured:
        return Statistics(n=0)
    mean = statistics.fmean(measured)
    if min(measured) == max(measured):
        # The mean of equal values, free of rounding.
        mean = measured[0]
    stdev = statistics.stdev(measured) if len(measured) > 1 else None
    ci95 = _interval(mean, stdev, len(measured), least)
    leaning = ci95 is not None and skewed(measured)
    return Statistics(
        n=len(measured),
        mean=mean,
        median=statistics.median(measured),
        min=min(measured),
        max=max(measured),
        stdev=stdev,
        ci95=bootstrap_of_means(measured).interval() if leaning else ci95,
        quartiles=_quartiles(measured),
        interval=None if ci95 is None else "bootstrap" if leaning else "t",
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and third quartile, by linear interpolation (type 7 of Hyndman and Fan, 1996)."""
    if min(values) == max(values):
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def _interval(centre: float, stdev: float | None, n: int, least: float | None) -> tuple[float, float] | None:
    """Return centre -+ t * stdev / sqrt(n), from `least` on; None when there is no spread to judge by."""
    if stdev is None or stdev == 0:
        return None
    half = t_quantile(n - 1) * stdev / math.sqrt(n)
    low = centre - half
    return (low if least is None else max(least, low), centre + half)
