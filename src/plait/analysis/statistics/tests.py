"""Tests of differences, each named with what it assumes; effect sizes; the correction for many tests at once."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.statistics.bootstrap import skewed
from plait.analysis.statistics.resampling import sign_flip_p
from plait.analysis.statistics.student import t_two_sided

if TYPE_CHECKING:
    from collections.abc import Sequence

ALPHA = 0.05
PAIRED_T = "paired t test"
SIGN_FLIP = "sign-flip permutation test"
WELCH = "Welch's t test"
STUDENT = "Student's t test"
ASSUMES = {
    PAIRED_T: "pairs (of one seed) are independent of each other, and the mean of their differences is normal",
    SIGN_FLIP: "pairs (of one seed) are independent of each other, and without a difference either trial of a pair "
    "could as well have been the other",
    WELCH: "trials are independent, and the mean of each side is normal; spreads may differ",
    STUDENT: "trials are independent and normal, and the single trial's side has the other's spread",
}
"""What each test takes for granted."""


@dataclass(frozen=True)
class TestResult:
    """What a test of "there is no difference" found."""

    test: str
    p_value: float
    """How often chance alone would give a mean difference as large, two-sided."""
    effect_size: float
    """Cohen's d: the mean difference in standard deviations (of pairs' differences, or else of the trials, pooled)."""


def paired_test(baseline: Sequence[float], case: Sequence[float]) -> TestResult | None:
    """Return the test of case - baseline over pairs; None with fewer than two, and when all differ by the same.

    Skewed differences are judged by flipping signs (Fisher, The Design of Experiments, 21), others by Student's t.
    """
    differences = [y - x for x, y in zip(baseline, case, strict=True)]
    if len(differences) < 2:
        return None
    mean, stdev = statistics.fmean(differences), statistics.stdev(differences)
    if stdev == 0:
        return None
    if skewed(differences):
        import numpy as np

        return TestResult(SIGN_FLIP, sign_flip_p(np.array(differences)[:, None]), mean / stdev)
    t = mean / stdev * math.sqrt(len(differences))
    return TestResult(PAIRED_T, t_two_sided(t, len(differences) - 1), mean / stdev)


@dataclass(frozen=True)
class Spread:
    """How sure the difference of two means is."""

    test: str
    error: float
    """Its standard error."""
    degrees: float
    """Degrees of freedom of t."""
    pooled: float
    """Standard deviation of a trial, pooled over both sides."""


def unpaired_test(baseline: Sequence[float], case: Sequence[float]) -> TestResult | None:
    """Return the test of mean(case) - mean(baseline) for trials that are no pairs; None without any spread."""
    spread = unpaired_spread(baseline, case)
    if spread is None:
        return None
    difference = statistics.fmean(case) - statistics.fmean(baseline)
    p_value = t_two_sided(difference / spread.error, spread.degrees)
    return TestResult(spread.test, p_value, difference / spread.pooled)


def unpaired_spread(baseline: Sequence[float], case: Sequence[float]) -> Spread | None:
    """Return the spread of the difference of two means (Welch, Biometrika 34, 1947).

    The spread of a single trial is unknown: it has that of the other side (Student, Biometrika 6, 1908; pooled for
    two samples: Fisher, Statistical Methods for Research Workers, 24.1). None when neither side has any spread.
    """
    several = [side for side in (baseline, case) if len(side) > 1]
    if not baseline or not case or not any(statistics.variance(side) for side in several):
        return None
    pooled = math.sqrt(statistics.fmean(map(statistics.variance, several)))
    if len(several) == 1:
        n = len(several[0])
        return Spread(STUDENT, pooled * math.sqrt(1 + 1 / n), n - 1, pooled)
    a, b = statistics.variance(baseline) / len(baseline), statistics.variance(case) / len(case)
    degrees = (a + b) ** 2 / (a**2 / (len(baseline) - 1) + b**2 / (len(case) - 1))
    return Spread(WELCH, math.sqrt(a + b), degrees, pooled)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return each p value corrected for their number, in the same order (Holm, Scand. J. Statist. 6, 1979).

    The k-th least of m is multiplied by m - k + 1 and is no less than the one before it. Missing ones do not count.
    """
    ranked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, i) in enumerate(ranked):
        least = max(least, min(1.0, p * (len(ranked) - rank)))
        corrected[i] = least
    return corrected
