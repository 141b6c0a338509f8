"""Tests of differences agree with scipy and with pencil arithmetic, also after the correction for many."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats

from plait.analysis.statistics.bootstrap import bootstrap_of_means, bootstrap_of_ratio, skewed
from plait.analysis.statistics.differences import Compared, direction, paired, unpaired
from plait.analysis.statistics.resampling import FLIPS, SEED, sign_flip_p
from plait.analysis.statistics.tests import BOOTSTRAP, PAIRED_T, STUDENT, holm, t_quantile, t_two_sided


@pytest.mark.parametrize("t", [0.0, 1e-6, 0.1, 0.7, 1.96, 4.3, 12.7, 60.0])
def test_tails_of_t_are_those_of_the_closed_forms(t: float) -> None:
    assert t_two_sided(t, 1) == t_two_sided(-t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t))
    assert t_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-15)


def test_nothing_is_beyond_infinity() -> None:
    assert [t_two_sided(math.inf, degrees) for degrees in (1, 2.5, 9999)] == [0, 0, 0]


def test_paired_and_unpaired_tests_and_intervals_are_those_of_scipy() -> None:
    rng = random.Random(1)
    xs = [rng.gauss(10, 1) for _ in range(15)]
    ys = [x + rng.gauss(0.5, 0.3) for x in xs]
    pairs, expected = paired(xs, ys), stats.ttest_rel(ys, xs)
    assert (pairs.test, pairs.p_value) == (PAIRED_T, pytest.approx(expected.pvalue, rel=1e-9))
    assert pairs.difference.ci95 == pytest.approx(expected.confidence_interval(), rel=1e-9)
    apart, welch = unpaired(xs, ys[:9]), stats.ttest_ind(ys[:9], xs, equal_var=False)
    assert apart.p_value == pytest.approx(welch.pvalue, rel=1e-9)
    assert apart.difference.ci95 == pytest.approx(welch.confidence_interval(), rel=1e-9)


def residual_t(xs: list[float], ys: list[float], ratio: float) -> float:
    residuals = [y - ratio * x for x, y in zip(xs, ys, strict=True)]
    return float(stats.ttest_1samp(residuals, 0).statistic)


def test_the_ends_of_fiellers_interval_are_the_ratios_that_the_t_test_just_does_not_reject() -> None:
    rng = random.Random(5)
    for _ in range(30):
        xs = [rng.uniform(5, 15) for _ in range(6)]
        ys = [x * rng.uniform(0.5, 2) for x in xs]
        ratio = paired(xs, ys).ratio
        assert ratio is not None
        if ratio.ci95 is not None and ratio.ci95[0] > 0:
            assert [abs(residual_t(xs, ys, end)) for end in ratio.ci95] == pytest.approx([t_quantile(5)] * 2)


def test_an_interval_of_a_ratio_excludes_one_exactly_where_its_test_is_significant() -> None:
    rng = random.Random(7)
    seen = set()
    for number in range(300):
        n, spread = rng.choice((3, 5, 12)), rng.choice((0.1, 0.5, 1.5))
        xs = [rng.lognormvariate(0, spread) for _ in range(n)]
        ys = [x * rng.lognormvariate(0.3, spread) for x in xs]
        tested = paired(xs, ys) if number % 2 else unpaired(xs, ys)
        if tested.ratio is not None and tested.ratio.ci95 is not None and tested.p_value is not None:
            low, high = tested.ratio.ci95
            assert low >= 0, "times and rates are never negative"
            assert (tested.p_value <= 0.05) == (not low <= 1 <= high) or abs(tested.p_value - 0.05) < 2e-3
            seen.add((tested.test, tested.p_value <= 0.05))
    assert {test for test, _ in seen} >= {PAIRED_T, BOOTSTRAP}


def test_a_ratio_over_a_mean_that_may_be_zero_has_no_interval() -> None:
    tested = paired([0.1, 9.0, 0.2], [5.0, 6.0, 8.0])
    assert tested.ratio is not None
    assert tested.ratio.ci95 is None
    assert tested.p_value is not None
    assert direction(tested, None, 0.5) == "unclear", (
        "no equivalence follows from a ratio without an interval"
    )


def test_effect_size_is_the_difference_in_standard_deviations() -> None:
    assert paired([0, 0, 0], [1, 2, 3]).effect_size == 2
    assert unpaired([0, 2], [3, 5]).effect_size == pytest.approx(3 / 2**0.5)


def test_without_a_spread_there_is_no_test() -> None:
    tested = [paired([1], [2]), paired([1, 2, 3], [2, 3, 4]), paired([0.1, 0.7], [0.3, 0.9])]
    tested += [unpaired([1, 1], [2, 2]), unpaired([1], [2]), unpaired([1], [2, 2])]
    assert {(result.test, result.p_value, result.difference.ci95) for result in tested} == {
        (None, None, None)
    }
    assert {direction(result, None, 0.01) for result in tested} == {"more"}


def test_a_single_trial_has_the_spread_of_the_other_side() -> None:
    several, single = [10.0, 11.0, 12.0, 12.5], [14.0]
    expected = stats.ttest_ind(single, several, equal_var=True)
    result, mirrored = unpaired(several, single), unpaired(single, several)
    assert (result.test, result.p_value) == (STUDENT, pytest.approx(expected.pvalue, rel=1e-9))
    assert result.effect_size is not None
    assert (mirrored.p_value, mirrored.effect_size) == (result.p_value, -result.effect_size)


def test_skewed_pairs_have_the_bootstraps_interval_and_test() -> None:
    xs, ys = [10.0] * 12, [10.0 + n / 10 for n in range(11)] + [60.0]
    result = paired(xs, ys)
    assert result.test == BOOTSTRAP
    assert result.ratio is not None
    assert result.ratio.ci95 is not None
    low, high = result.ratio.ci95
    assert low > 1, "no trial fell"
    assert high - result.ratio.value > result.ratio.value - low, "the long tail is on the right"
    assert result.p_value is not None
    assert result.p_value < 0.05


def test_the_p_value_of_the_bootstrap_is_that_of_the_interval_that_ends_there() -> None:
    rng = random.Random(4)
    xs = [rng.lognormvariate(0, 1) for _ in range(25)]
    ratio = bootstrap_of_ratio(xs, [x * rng.lognormvariate(0.1, 0.4) for x in xs])
    assert ratio is not None
    assert [ratio.p_value(end) for end in ratio.interval()] == pytest.approx([0.05, 0.05], abs=1e-3)
    assert bootstrap_of_ratio([0.0] * 12, [1.0] * 12) is None


def sides(ratio: float, spread: float, n: int = 10) -> Compared:
    rng = random.Random(n)
    xs = [rng.gauss(100, 5) for _ in range(n)]
    return paired(xs, [x * ratio * (1 + rng.gauss(0, spread)) for x in xs])


def test_two_sides_are_the_same_where_the_whole_interval_is_within_the_smallest_difference_of_interest() -> (
    None
):
    slight = sides(0.998, 0.0005)
    assert slight.p_value is not None
    assert slight.p_value < 0.0001
    assert direction(slight, None, 0.01) == "same", "however sure the test is of a difference"
    assert direction(slight, None, 0.001) == "less"
    assert direction(sides(1.0, 0.05), None, 0.01) == "unclear", "what a test does not see is no equality"
    assert direction(sides(1.2, 0.05), None, 0.01) == "more"
    assert direction(sides(1.2, 0.05), 0.2, 0.01) == "unclear", "after Holm's correction"


def test_a_shape_is_judged_from_eight_values_on() -> None:
    assert not skewed([1, 1, 1, 1, 1, 1, 100])
    assert skewed([1, 1, 1, 1, 1, 1, 1, 100])
    assert not skewed([5.0] * 20)
    assert not skewed(list(range(20)))
    normal = random.Random(3)
    often = sum(skewed([normal.gauss(0, 1) for _ in range(20)]) for _ in range(500))
    assert often < 25, "normal samples are seldom taken for skewed"


def test_the_bootstrap_leans_with_the_values_is_repeatable_and_near_scipys() -> None:
    rng = random.Random(2)
    values = [rng.lognormvariate(0, 1) for _ in range(30)]
    low, high = bootstrap_of_means(values).interval()
    assert bootstrap_of_means(values).interval() == (low, high)
    mean = sum(values) / 30
    assert high - mean > mean - low, "the long tail is on the right"
    expected = stats.bootstrap(
        (values,), lambda sample, axis: sample.mean(axis=axis), n_resamples=20_000, method="BCa", rng=1
    ).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=0.05)


def test_holms_correction_agrees_with_pencil_arithmetic() -> None:
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


@pytest.mark.parametrize("blocks", [13, 40, 150])
def test_signs_drawn_in_pieces_give_the_p_value_of_signs_drawn_one_block_at_a_time(blocks: int) -> None:
    values = np.random.default_rng(blocks).exponential(size=(blocks, 2)) - 0.8
    generator = np.random.RandomState(SEED)
    seen = (values.sum(axis=0) ** 2).sum()
    extreme = sum(
        float((((2 * generator.randint(0, 2, size=blocks) - 1) @ values) ** 2).sum()) >= seen
        for _ in range(FLIPS)
    )
    assert 0 < extreme < FLIPS
    assert sign_flip_p(values) == (extreme + 1) / (FLIPS + 1)
