"""TriScale's estimates of replicability: convergence of a run, a bound over a series of runs, variability of series.

TriScale (Jacob et al., "TriScale: A Framework Supporting Replicable Performance Evaluations in Networking", JSys 2021)
has three time scales. A run gives the value of a metric; a series of runs gives a KPI, a one-sided confidence bound of
a percentile of the metric; several series give the variability score, an interval that covers the middle half of the
KPIs. Bounds are those of order statistics (Thompson, Ann. Math. Statist. 7, 1936), which assume no distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
from scipy.stats import quantile_test, theilslopes  # type: ignore[import-untyped]  # scipy ships no types

KPI_PERCENTILE = 0.5
KPI_CONFIDENCE = 0.95
"""A KPI bounds the median of the runs."""
SCORE_PERCENTILE = 0.25
SCORE_CONFIDENCE = 0.75
"""The variability score is the interval of this percentile and of its counterpart above the median."""
CONVERGENCE_CONFIDENCE = 0.95
CONVERGENCE_TOLERANCE = 0.05
"""The largest slope of a run that has converged, of axes from -1 to 1: the defaults of TriScale's implementation."""
STATIONARY_CONFIDENCE = 0.5
STATIONARY_TOLERANCE = 0.1
"""The same for a series of runs whose order says nothing."""
_MOST_WINDOWS = 100


def fewest(percentile: float, confidence: float) -> int:
    """Return the least number of values that bound a percentile of at most 0.5 on one side with this confidence."""
    return math.ceil(math.log(1 - confidence) / math.log(1 - percentile))


RUNS = fewest(KPI_PERCENTILE, KPI_CONFIDENCE)
"""The runs of a series."""
SERIES = fewest(SCORE_PERCENTILE, SCORE_CONFIDENCE)
"""The series of a variability score."""


def kpi(values: Sequence[float], *, more_is_better: bool) -> float | None:
    """Return the value that the median of all runs reaches at least, or at most if less is better.

    It holds with 95 %. None with fewer than RUNS values.
    """
    return _bound(values, KPI_PERCENTILE, KPI_CONFIDENCE, upper=not more_is_better)


def series_of(values: Sequence[float]) -> list[Sequence[float]]:
    """Return SERIES series of equal length, in the order of the runs; empty if there are too few runs."""
    length = len(values) // SERIES
    if length < RUNS:
        return []
    return [values[number * length : (number + 1) * length] for number in range(SERIES)]


def variability(kpis: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval that covers the middle half of the KPIs with 75 %; None with fewer than SERIES KPIs."""
    low = _bound(kpis, SCORE_PERCENTILE, SCORE_CONFIDENCE, upper=False)
    high = _bound(kpis, 1 - SCORE_PERCENTILE, SCORE_CONFIDENCE, upper=True)
    return None if low is None or high is None else (low, high)


def _bound(values: Sequence[float], percentile: float, confidence: float, *, upper: bool) -> float | None:
    if not values:
        return None
    side = "less" if upper else "greater"
    interval = quantile_test(values, q=0, p=percentile, alternative=side).confidence_interval(confidence)
    bound = float(interval.high if upper else interval.low)
    return bound if math.isfinite(bound) else None


def has_converged(samples: Sequence[float]) -> bool | None:
    """Return whether the mean of a run no longer changes: the interval of its trend is within the tolerance.

    `samples` are equally spaced measurements of a rate. The means of windows of half the run are the data of the
    trend (Theil-Sen). None with fewer than six samples, or without any rate.
    """
    if len(samples) < 6:
        return None
    length = len(samples) // 2
    count = min(length, _MOST_WINDOWS)
    starts = [int(number * length / count) for number in range(count)]
    means = [statistics.fmean(samples[start : start + length]) for start in starts]
    return _is_level(means, CONVERGENCE_CONFIDENCE, CONVERGENCE_TOLERANCE)


def looks_independent(values: Sequence[float]) -> bool | None:
    """Return whether runs in their order look independent: no trend, and no autocorrelation beyond that of chance.

    The coefficients of independent values stay within 1.96 / sqrt(n) (Brockwell and Davis, Time Series, 1991). Equal
    values count as independent. None with fewer than RUNS values.
    """
    if len(values) < RUNS:
        return None
    if min(values) == max(values):
        return True
    centred = np.asarray(values) - statistics.fmean(values)
    correlation = np.correlate(centred, centred, mode="full")[len(values) :] / float(np.dot(centred, centred))
    is_level = _is_level(values, STATIONARY_CONFIDENCE, STATIONARY_TOLERANCE)
    return bool((abs(correlation) < 1.96 / math.sqrt(len(values))).all()) and is_level is not False


def _is_level(values: Sequence[float], confidence: float, tolerance: float) -> bool | None:
    """Return whether the interval of the Theil-Sen slope is within the tolerance, of both axes from -1 to 1.

    The axis of the values, which are not negative, begins at zero and ends at the largest one.
    """
    largest = max(values)
    if largest <= 0:
        return None
    scaled = [2 * value / largest - 1 for value in values]
    trend = theilslopes(scaled, np.linspace(-1, 1, len(values)), confidence)
    return bool(trend.low_slope >= -tolerance and trend.high_slope <= tolerance)
