"""The shape of a few values: whether they are skewed, and the bootstrap interval for those that are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.analysis.statistics.resampling import RESAMPLES, resampled_means

FEWEST = 8
"""Values from which on a shape can be judged at all."""
SKEWED = 2.576
"""Standard errors (1 % of normal samples have more) from which on values count as skewed."""


_NORMAL = statistics.NormalDist()


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


@dataclass(frozen=True)
class _Bootstrap:
    """The bias-corrected and accelerated bootstrap (BCa; Efron and Tibshirani, An Introduction to the Bootstrap, 14.3).

    4000 resamples by a generator of fixed seed, so that the same values give the same interval; the acceleration is
    the jackknife's.
    """

    resampled: NDArray[np.float64]
    """The statistic of each resample."""
    bias: float
    acceleration: float

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval."""
        low, high = np.quantile(self.resampled, [self._level(0.025), self._level(0.975)])
        return float(low), float(high)

    def p_value(self, null: float) -> float:
        """Return the two-sided p value of a value: 1 less the level of the interval that has it at an end."""
        w = _NORMAL.inv_cdf(_share_below(self.resampled, null)) - self.bias
        z = w / (1 + self.acceleration * w) - self.bias
        return 2 * _NORMAL.cdf(-abs(z))

    def _level(self, quantile: float) -> float:
        z = self.bias + _NORMAL.inv_cdf(quantile)
        return _NORMAL.cdf(self.bias + z / (1 - self.acceleration * z))


def bootstrap_of_means(values: Sequence[float]) -> _Bootstrap:
    """Return the bootstrap of the mean."""
    data = np.asarray(values, dtype=float)
    mean = float(data.mean())
    jackknifed = (data.sum() - data) / (len(data) - 1)
    return _bootstrap(resampled_means(data), mean, jackknifed)


def bootstrap_of_ratio(first: Sequence[float], second: Sequence[float]) -> _Bootstrap | None:
    """Return the bootstrap over pairs of mean(second) / mean(first); None where a resample's first mean is zero."""
    data = np.stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)], axis=1)
    means = resampled_means(data)
    jackknifed = (data.sum(axis=0) - data) / (len(data) - 1)
    if not (means[:, 0].all() and jackknifed[:, 0].all()):
        return None
    x, y = data.mean(axis=0)
    return _bootstrap(means[:, 1] / means[:, 0], float(y / x), jackknifed[:, 1] / jackknifed[:, 0])


def _bootstrap(
    resampled: NDArray[np.float64], observed: float, jackknifed: NDArray[np.float64]
) -> _Bootstrap:
    away = jackknifed.mean() - jackknifed
    spread = float((away**2).sum())
    acceleration = float((away**3).sum()) / (6 * spread**1.5) if spread else 0.0
    return _Bootstrap(resampled, _NORMAL.inv_cdf(_share_below(resampled, observed)), acceleration)


def _share_below(resampled: NDArray[np.float64], value: float) -> float:
    """Return the share of resamples below a value, and of half of those at it; neither 0 nor 1."""
    share = (float((resampled < value).sum()) + float((resampled == value).sum()) / 2) / len(resampled)
    return min(max(share, 1 / RESAMPLES), 1 - 1 / RESAMPLES)
