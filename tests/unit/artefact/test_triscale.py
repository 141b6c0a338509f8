"""TriScale's estimates: sizes of series, bounds by order statistics, convergence and independence."""

from __future__ import annotations

import random

import pytest

from plait.analysis.statistics import triscale


@pytest.mark.parametrize(
    ("percentile", "confidence", "number"),
    [(0.5, 0.95, 5), (0.25, 0.75, 5), (0.25, 0.95, 11), (0.05, 0.95, 59)],
)
def test_a_bound_needs_as_many_values_as_the_binomial_distribution_says(
    percentile: float, confidence: float, number: int
) -> None:
    """With n values, all of them miss the percentile with the probability (1 - p) ** n."""
    assert triscale.fewest(percentile, confidence) == number
    assert (1 - percentile) ** number <= 1 - confidence < (1 - percentile) ** (number - 1)


def test_the_kpi_is_the_order_statistic_on_the_careful_side() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert triscale.kpi(values, more_is_better=True) == 1
    assert triscale.kpi(values, more_is_better=False) == 5
    assert triscale.kpi(values[:4], more_is_better=True) is None
    assert triscale.kpi([], more_is_better=True) is None


def test_the_kpi_holds_as_often_as_it_says() -> None:
    source = random.Random(1)
    held = sum(
        (triscale.kpi([source.random() for _ in range(10)], more_is_better=True) or 1) <= 0.5
        for _ in range(2000)
    )
    assert held >= 0.95 * 2000


def test_a_variability_score_needs_five_series_of_five_runs() -> None:
    assert triscale.series_of([1.0] * 24) == []
    series = triscale.series_of([float(number) for number in range(27)])
    assert [len(values) for values in series] == [5] * 5
    assert triscale.variability([3.0, 1.0, 2.0, 5.0, 4.0]) == (1, 5)
    assert triscale.variability([1.0] * 4) is None


def test_a_rate_that_still_changes_has_not_converged() -> None:
    assert triscale.has_converged([0, 5, *[10] * 48])
    assert triscale.has_converged([10.0] * 6)
    assert triscale.has_converged([float(rate) for rate in range(50)]) is False
    assert triscale.has_converged([10.0] * 5) is None
    assert triscale.has_converged([0.0] * 50) is None


def test_runs_with_a_trend_do_not_look_independent() -> None:
    source = random.Random(2)
    assert triscale.looks_independent([source.gauss(100, 1) for _ in range(20)])
    assert triscale.looks_independent([float(value) for value in range(20)]) is False
    assert triscale.looks_independent([100.0, 90.0] * 10) is False
    assert triscale.looks_independent([7.0] * 20)
    assert triscale.looks_independent([1.0] * 4) is None
