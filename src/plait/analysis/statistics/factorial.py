"""Effects of crossed factors on a metric: analysis of variance with repeated measures, in which a seed is a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from plait.analysis.statistics.bootstrap import skewed
from plait.analysis.statistics.resampling import sign_flip_p

Array = NDArray[np.float64]

REPEATED_ANOVA = "repeated-measures ANOVA"
SIGN_FLIP_ANOVA = "sign-flip test of the ANOVA's contrasts"
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class _EffectTest:
    """The test of "this factor (or this interaction) has no effect"."""

    axes: tuple[int, ...]
    """The factors, by their axis; two of an interaction."""
    test: str
    statistic: float
    """F."""
    degrees: tuple[float, float]
    """Degrees of freedom, already multiplied by `epsilon`."""
    epsilon: float
    """The correction by Greenhouse and Geisser; 1 with two levels."""
    p_value: float
    partial_eta2: float
    """Share of the variance of effect and error that is the effect's."""


def effect_tests(values: Array) -> list[_EffectTest]:
    """Return the test of each main effect and of each interaction of two factors; none of those without spread.

    All factors vary within a block, so each effect has its own error: its interaction with the blocks. With D the
    orthonormal contrasts of an effect (blocks x d), F = n |mean(D)|^2 / trace(cov(D)), with d e and d (n-1) e degrees
    of freedom. e = trace(cov)^2 / (d trace(cov^2)) corrects for unequal covariances (Greenhouse and Geisser,
    Psychometrika 24, 1959). If a contrast is skewed, p is the share of the sign flips of whole blocks that give as
    large a |mean(D)|, which assumes only that blocks are independent and contrasts symmetric without the effect.

    Args:
        values: blocks x levels of the first factor x levels of the second x ..

    Raises:
        ValueError: there are fewer than two blocks.
    """
    if values.shape[0] < 2:
        raise ValueError("there are fewer than two blocks")
    axes = range(values.ndim - 1)
    effects = [*((axis,) for axis in axes), *combinations(axes, 2)]
    tests = (_tested(values, effect) for effect in effects)
    return [test for test in tests if test is not None]


def _tested(values: Array, axes: tuple[int, ...]) -> _EffectTest | None:
    from scipy import special  # type: ignore[import-untyped]  # scipy ships no types

    contrasts = _contrasts(values, axes)
    n, d = contrasts.shape
    mean = contrasts.mean(axis=0)
    covariance = np.atleast_2d(np.cov(contrasts, rowvar=False))
    spread = float(np.trace(covariance))
    if spread <= _NO_SPREAD * float((values**2).mean()):
        return None
    statistic = n * float(mean @ mean) / spread
    epsilon = min(1.0, max(1 / d, spread**2 / (d * float((covariance**2).sum()))))
    degrees = (d * epsilon, d * (n - 1) * epsilon)
    leaning = any(skewed(list(map(float, column))) for column in contrasts.T)
    p = sign_flip_p(contrasts) if leaning else float(special.fdtrc(*degrees, statistic))
    share = statistic / (statistic + n - 1)
    return _EffectTest(
        axes, SIGN_FLIP_ANOVA if leaning else REPEATED_ANOVA, statistic, degrees, epsilon, p, share
    )


def _contrasts(values: Array, axes: Sequence[int]) -> Array:
    """Return the orthonormal contrasts of an effect in each block, from means over the levels of the other factors."""
    averaged = tuple(axis + 1 for axis in range(values.ndim - 1) if axis not in axes)
    reduced = values.mean(axis=averaged) if averaged else values
    for _ in axes:  # each turn contracts the first factor that is left, and puts its contrasts last
        reduced = np.tensordot(reduced, _helmert(reduced.shape[1]), axes=([1], [0]))
    return reduced.reshape(values.shape[0], -1)


def _helmert(levels: int) -> Array:
    """Return levels - 1 orthonormal contrasts as columns (Helmert's matrix)."""
    columns = np.zeros((levels, levels - 1))
    for k in range(1, levels):
        columns[:k, k - 1] = 1 / np.sqrt(k * (k + 1))
        columns[k, k - 1] = -k / np.sqrt(k * (k + 1))
    return columns
