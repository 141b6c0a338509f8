"""Means with intervals, and paired comparisons. The docstrings name the sources of the formulas."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from plait.analysis.model import Estimate, Statistics
from plait.analysis.statistics.bootstrap import bootstrap_interval, skewed
from plait.analysis.statistics.student import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


def describe(values: Sequence[float | None]) -> Statistics:
    """Return the statistics of the values that are known; the interval is Student's t interval of the mean."""
    measured = [value for value in values if value is not None]
    if not measured:
        return Statistics(n=0)
    mean = statistics.fmean(measured)
    if min(measured) == max(measured):
        # The mean of equal values, free of rounding.
        mean = measured[0]
    stdev = statistics.stdev(measured) if len(measured) > 1 else None
    ci95 = _interval(mean, stdev, len(measured))
    leaning = ci95 is not None and skewed(measured)
    return Statistics(
        n=len(measured),
        mean=mean,
        median=statistics.median(measured),
        min=min(measured),
        max=max(measured),
        stdev=stdev,
        ci95=ci95,
        quartiles=_quartiles(measured),
        interval=None if ci95 is None else "bootstrap" if leaning else "t",
        bootstrap95=bootstrap_interval(measured) if leaning else None,
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and third quartile, by linear interpolation (type 7 of Hyndman and Fan, 1996)."""
    if min(values) == max(values):
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def paired_difference(baseline: Sequence[float], case: Sequence[float]) -> Estimate:
    """Return the mean of case - baseline over pairs, with the t interval of the paired differences."""
    differences = describe([y - x for x, y in zip(baseline, case, strict=True)])
    if differences.mean is None:
        raise ValueError("no pairs to compare")
    return Estimate(value=differences.mean, ci95=differences.ci95)


def paired_ratio(baseline: Sequence[float], case: Sequence[float]) -> Estimate | None:
    """Return mean(case) / mean(baseline) over pairs, with its interval; None when the baseline's mean is zero.

    The ratio estimator and its linearised variance (Cochran, Sampling Techniques, 3rd ed., section 6.4): with
    R = mean(y) / mean(x) and residuals d_i = y_i - R x_i, the standard error is sd(d) / (sqrt(n) |mean(x)|).
    It is the ratio of the two means that are shown, unlike a mean of ratios.
    """
    x_mean = statistics.fmean(baseline)
    if x_mean == 0:
        return None
    ratio = statistics.fmean(case) / x_mean
    if len(baseline) < 2 or _identical(baseline, case):
        return Estimate(value=ratio)
    residuals = [y - ratio * x for x, y in zip(baseline, case, strict=True)]
    stdev = statistics.stdev(residuals, xbar=0.0)
    return Estimate(value=ratio, ci95=_interval(ratio, stdev / abs(x_mean), len(baseline)))


def _identical(baseline: Sequence[float], case: Sequence[float]) -> bool:
    return len(set(zip(baseline, case, strict=True))) == 1


def _interval(centre: float, stdev: float | None, n: int) -> tuple[float, float] | None:
    """Return centre -+ t * stdev / sqrt(n); None when there is no spread to judge by."""
    if stdev is None or stdev == 0:
        return None
    half = t_quantile(n - 1) * stdev / math.sqrt(n)
    return (centre - half, centre + half)
