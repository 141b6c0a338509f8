"""Delay tables for netem: a distribution as equally likely values with mean 0 and deviation 1.

The tables that iproute2 ships end at four deviations, so that heavy tails keep neither their mean nor their
deviation. plait computes its own: 4096 quantiles, shifted and scaled so that mean and deviation are exact to 1e-5.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist, fmean, pstdev

from plait.plan.model.qdiscs import Distribution

VALUES = 4096
NETEM_SCALE = 8192
"""NETEM_DIST_SCALE: netem multiplies its jitter by value / 8192."""
PARETO_SHAPE = 3.0
"""As in iproute2: a shape with a finite variance and a heavy tail."""
NORMAL_SHARE = 0.25
"""The share of the normal distribution in paretonormal, as in iproute2; the rest is a Pareto distribution."""
_LARGEST = 32767


UNIFORM = "uniform"
"""netem's own distribution as a table, for a jitter that had another table before. Its jitter is half the width."""


def table(name: str) -> Distribution:
    """Return the table called `normal`, `pareto`, `paretonormal` or `uniform`."""
    if name == UNIFORM:
        width = [(2 * i + 1) / VALUES - 1 for i in range(VALUES)]
        return Distribution(name=name, values=tuple(round(value * NETEM_SCALE) for value in width))
    return Distribution(name=name, values=_scaled(name)[0])


def netem_jitter_ns(name: str, deviation_ns: int) -> int:
    """Return the jitter of netem with which that table has this standard deviation."""
    return round(deviation_ns * NETEM_SCALE / _scaled(name)[1])


def deviation_ns(name: str, jitter_ns: int) -> float:
    """Return the standard deviation of a table with this jitter of netem; the inverse of `netem_jitter_ns`."""
    if name == UNIFORM:
        return float(jitter_ns / 3**0.5)
    return jitter_ns * _scaled(name)[1] / NETEM_SCALE


def longest_ns(name: str, jitter_ns: int) -> float:
    """Return how far the longest delay of the table is above the mean, with this jitter of netem."""
    return jitter_ns * table(name).values[-1] / NETEM_SCALE


@cache
def _scaled(name: str) -> tuple[tuple[int, ...], int]:
    """Return the values, ascending, and the value of one deviation."""
    quantiles = [(i + 0.5) / VALUES for i in range(VALUES)]
    exact = [_QUANTILE[name](quantile) for quantile in quantiles]
    mean, deviation = fmean(exact), pstdev(exact)
    normed = [(value - mean) / deviation for value in exact]
    scale = min(NETEM_SCALE, int(_LARGEST / max(normed[-1], -normed[0])))
    return tuple(round(value * scale) for value in normed), scale


_normal = NormalDist().inv_cdf


def _pareto(quantile: float) -> float:
    """Return a quantile, normalised to deviation 1 (before the finite number of quantiles truncates the tail)."""
    mean = PARETO_SHAPE / (PARETO_SHAPE - 1)
    deviation = (PARETO_SHAPE / ((PARETO_SHAPE - 1) ** 2 * (PARETO_SHAPE - 2))) ** 0.5
    return float(((1 - quantile) ** (-1 / PARETO_SHAPE) - mean) / deviation)


def _paretonormal(quantile: float) -> float:
    return NORMAL_SHARE * _normal(quantile) + (1 - NORMAL_SHARE) * _pareto(quantile)


_QUANTILE = {"normal": _normal, "pareto": _pareto, "paretonormal": _paretonormal}
