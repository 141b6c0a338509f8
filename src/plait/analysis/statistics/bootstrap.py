"""The shape of a few values: whether they are skewed, and the bootstrap interval for those that are."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from plait.analysis.statistics.resampling import RESAMPLES, resampled_means

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 8
"""Values from which on a shape can be judged at all."""
SKEWED = 2.576
"""Standard errors (1 % of normal samples have more) from which on values count as skewed."""


def skewed(values: Sequence[float]) -> bool:
    """Return whether the values lean so far to one side that a t interval of their mean would mislead.

    The adjusted Fisher-Pearson skewness G1 is compared with its standard error in normal samples,
    sqrt(6 n (n-1) / ((n-2) (n+1) (n+3))) (Cramer, Mathematical Methods of Statistics, 29.3). Fewer than 8 values
    cannot tell, and equal ones have no shape.
    """
    n = len(values)
    if n < FEWEST:
        return False
    mean = statistics.fmean(values)
    second = math.fsum((v - mean) ** 2 for v in values) / n
    if second <= (1e-12 * abs(mean)) ** 2:
        return False
    third = math.fsum((v - mean) ** 3 for v in values) / n
    g1 = math.sqrt(n * (n - 1)) / (n - 2) * third / second**1.5
    return bool(abs(g1) > SKEWED * math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3))))


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean, bias-corrected and accelerated (BCa).

    Efron and Tibshirani, An Introduction to the Bootstrap, 14.3: 4000 resamples by a generator of fixed seed, so
    that the same values give the same interval; the acceleration is the jackknife's.
    """
    import numpy as np

    data = np.asarray(values, dtype=float)
    n, mean = len(data), float(data.mean())
    means = resampled_means(data)
    normal = statistics.NormalDist()
    below = (float((means < mean).sum()) + float((means == mean).sum()) / 2) / RESAMPLES
    bias = normal.inv_cdf(min(max(below, 1 / RESAMPLES), 1 - 1 / RESAMPLES))
    away = (mean - data) / (n - 1)  # leaving one out moves the mean by so much
    acceleration = float((-(away**3)).sum()) / (6 * float((away**2).sum()) ** 1.5)

    def level(quantile: float) -> float:
        z = bias + normal.inv_cdf(quantile)
        return normal.cdf(bias + z / (1 - acceleration * z))

    low, high = np.quantile(means, [level(0.025), level(0.975)])
    return float(low), float(high)
