"""Two sides of trials: their difference and their ratio, each with an interval, and the test that agrees with these.

One procedure gives the ratio, its interval and the p value, so that an interval excludes 1 exactly where p is at most
0.05. For values that are not skewed it is Student's t of y - R x: the ratios R that it does not reject are Fieller's
interval (Fieller, J. R. Statist. Soc. B 16, 1954), and the test of R = 1 is the t test of the difference. For skewed
pairs it is the bootstrap over pairs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plait.analysis.model import Estimate
from plait.analysis.statistics.bootstrap import bootstrap_of_means, bootstrap_of_ratio, skewed
from plait.analysis.statistics.tests import (
    ALPHA,
    BOOTSTRAP,
    PAIRED_T,
    STUDENT,
    WELCH,
    t_quantile,
    t_two_sided,
)

Direction = Literal["more", "less", "same", "unclear"]
_NO_SPREAD = 1e-12
"""Share of a mean below which a spread is rounding."""


@dataclass(frozen=True)
class Compared:
    """The result of a comparison. Test, p value and intervals are None where there is no spread to judge by."""

    difference: Estimate
    """Second minus first."""
    ratio: Estimate | None
    """Second divided by first; None where the first mean is zero. No interval where that mean may be zero."""
    test: str | None = None
    p_value: float | None = None
    """How often chance alone would give a mean difference as large, two-sided."""
    effect_size: float | None = None
    """Cohen's d: the mean difference in standard deviations (of pairs' differences, or else of the trials, pooled)."""


def fields_of(tested: Compared | None) -> dict[str, Any]:
    """Return what a comparison found by the names of the records that hold it; all None if nothing was compared."""
    return dict.fromkeys(Compared.__dataclass_fields__) if tested is None else vars(tested)


def paired(first: Sequence[float], second: Sequence[float]) -> Compared:
    """Return the comparison of two sides whose trials are pairs; at least one pair."""
    x, y = statistics.fmean(first), statistics.fmean(second)
    differences = [y_i - x_i for x_i, y_i in zip(first, second, strict=True)]
    n, mean = len(differences), statistics.fmean(differences)
    stdev = statistics.stdev(differences) if n > 1 else 0.0
    if stdev <= _NO_SPREAD * max(abs(x), abs(y)):
        return _single(mean, x, y)
    if skewed(differences):
        return _bootstrapped(first, second, mean / stdev)
    half = t_quantile(n - 1) * stdev / math.sqrt(n)
    variances = (
        statistics.variance(first) / n,
        statistics.variance(second) / n,
        statistics.covariance(first, second) / n,
    )
    return Compared(
        Estimate(value=mean, ci95=(mean - half, mean + half)),
        _ratio(first, second, variances, n - 1),
        PAIRED_T,
        t_two_sided(mean / stdev * math.sqrt(n), n - 1),
        mean / stdev,
    )


def unpaired(first: Sequence[float], second: Sequence[float]) -> Compared:
    """Return the comparison of two sides whose trials are no pairs; each has one at least.

    Spreads may differ (Welch, Biometrika 34, 1947). The spread of a single trial is unknown: it has that of the other
    side (Student, Biometrika 6, 1908; pooled for two samples: Fisher, Statistical Methods for Research Workers, 24.1).
    """
    x, y = statistics.fmean(first), statistics.fmean(second)
    several = [side for side in (first, second) if len(side) > 1]
    pooled = math.sqrt(statistics.fmean(map(statistics.variance, several))) if several else 0.0
    if pooled <= _NO_SPREAD * max(abs(x), abs(y)):
        return _single(y - x, x, y)
    if len(several) == 1:
        test, degrees = STUDENT, len(several[0]) - 1.0
        x_variance, y_variance = pooled**2 / len(first), pooled**2 / len(second)
    else:
        test = WELCH
        x_variance, y_variance = (
            statistics.variance(first) / len(first),
            statistics.variance(second) / len(second),
        )
        squares = x_variance**2 / (len(first) - 1) + y_variance**2 / (len(second) - 1)
        degrees = (x_variance + y_variance) ** 2 / squares
    error = math.sqrt(x_variance + y_variance)
    half = t_quantile(degrees) * error
    return Compared(
        Estimate(value=y - x, ci95=(y - x - half, y - x + half)),
        _ratio(first, second, (x_variance, y_variance, 0.0), degrees),
        test,
        t_two_sided((y - x) / error, degrees),
        (y - x) / pooled,
    )


def direction(tested: Compared, p_holm: float | None, margin: float) -> Direction:
    """Return what a comparison shows, after Holm's correction; `margin` is the smallest ratio of interest (0.01: 1 %).

    `same`: the whole interval of the ratio is within the margin, which is two one-sided tests, each at 2.5 %
    (Schuirmann, J. Pharmacokin. Biopharm. 15, 1987). Without any spread the values decide.
    """
    if tested.ratio is not None and (tested.ratio.ci95 is not None or tested.p_value is None):
        low, high = tested.ratio.ci95 or (tested.ratio.value, tested.ratio.value)
        if 1 - margin <= low and high <= 1 + margin:
            return "same"
    if tested.difference.value == 0 and tested.p_value is None:
        return "same"
    p_value = tested.p_value if p_holm is None else p_holm
    if p_value is not None and p_value > ALPHA:
        return "unclear"
    return "more" if tested.difference.value > 0 else "less"


def _single(difference: float, x: float, y: float) -> Compared:
    return Compared(Estimate(value=difference), Estimate(value=y / x) if x else None)


def _ratio(
    first: Sequence[float], second: Sequence[float], variances: tuple[float, float, float], degrees: float
) -> Estimate | None:
    """Return the ratio of two means with Fieller's interval; `variances` are those of the means, and their covariance.

    Where no value is negative, neither is the interval.
    """
    x, y = statistics.fmean(first), statistics.fmean(second)
    if x == 0:
        return None
    t2 = t_quantile(degrees) ** 2
    x_term, xy_term, y_term = x * x - t2 * variances[0], x * y - t2 * variances[2], y * y - t2 * variances[1]
    if x_term <= 0:
        return Estimate(value=y / x)
    root = math.sqrt(max(0.0, xy_term * xy_term - x_term * y_term))
    low, high = (xy_term - root) / x_term, (xy_term + root) / x_term
    return Estimate(value=y / x, ci95=(max(0.0, low) if min(*first, *second) >= 0 else low, high))


def _bootstrapped(first: Sequence[float], second: Sequence[float], effect_size: float) -> Compared:
    x, y = statistics.fmean(first), statistics.fmean(second)
    by_difference = bootstrap_of_means([y_i - x_i for x_i, y_i in zip(first, second, strict=True)])
    by_ratio = bootstrap_of_ratio(first, second)
    ratio = Estimate(value=y / x, ci95=by_ratio.interval()) if by_ratio is not None else None
    if ratio is None and x:
        ratio = Estimate(value=y / x)
    return Compared(
        Estimate(value=y - x, ci95=by_difference.interval()),
        ratio,
        BOOTSTRAP,
        by_ratio.p_value(1.0) if by_ratio is not None else by_difference.p_value(0.0),
        effect_size,
    )
