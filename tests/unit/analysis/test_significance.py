"""Tests of differences agree with scipy and with pencil arithmetic, also after the correction for many."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats

from plait.analysis.statistics.bootstrap import bootstrap_interval, skewed
from plait.analysis.statistics.resampling import FLIPS, SEED, sign_flip_p
from plait.analysis.statistics.student import t_two_sided
from plait.analysis.statistics.tests import (
    PAIRED_T,
    SIGN_FLIP,
    STUDENT,
    holm,
    paired_test,
    unpaired_spread,
    unpaired_test,
)


@pytest.mark.parametrize("t", [0.0, 1e-6, 0.1, 0.7, 1.96, 4.3, 12.7, 60.0])
def test_tails_of_t_are_those_of_the_closed_forms(t: float) -> None:
    assert t_two_sided(t, 1) == t_two_sided(-t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t))
    assert t_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-15)


def test_nothing_is_beyond_infinity() -> None:
    assert [t_two_sided(math.inf, degrees) for degrees in (1, 2.5, 9999)] == [0, 0, 0]


def test_paired_and_unpaired_tests_are_those_of_scipy() -> None:
    rng = random.Random(1)
    xs = [rng.gauss(10, 1) for _ in range(15)]
    ys = [x + rng.gauss(0.5, 0.3) for x in xs]
    paired = paired_test(xs, ys)
    assert paired is not None
    assert paired.test == PAIRED_T
    assert paired.p_value == pytest.approx(stats.ttest_rel(ys, xs).pvalue, rel=1e-9)
    apart, spread = unpaired_test(xs, ys[:9]), unpaired_spread(xs, ys[:9])
    assert apart is not None
    assert spread is not None
    expected = stats.ttest_ind(ys[:9], xs, equal_var=False)
    assert (apart.p_value, spread.degrees) == pytest.approx((expected.pvalue, expected.df), rel=1e-9)


def test_effect_size_is_the_difference_in_standard_deviations() -> None:
    result = paired_test([0, 0, 0], [1, 2, 3])
    assert result is not None
    assert result.effect_size == 2
    apart = unpaired_test([0, 2], [3, 5])
    assert apart is not None
    assert apart.effect_size == pytest.approx(3 / 2**0.5)


def test_without_a_spread_there_is_no_test() -> None:
    assert paired_test([1], [2]) is None
    assert paired_test([1, 2, 3], [2, 3, 4]) is None
    assert unpaired_test([1, 1], [2, 2]) is None
    assert unpaired_test([1], [2]) is None
    assert unpaired_test([1], [2, 2]) is None


def test_a_single_trial_has_the_spread_of_the_other_side() -> None:
    several, single = [10.0, 11.0, 12.0, 12.5], [14.0]
    expected = stats.ttest_ind(single, several, equal_var=True)
    result = unpaired_test(several, single)
    assert result is not None
    assert (result.test, result.p_value) == (STUDENT, pytest.approx(expected.pvalue, rel=1e-9))
    mirrored = unpaired_test(single, several)
    assert mirrored is not None
    assert (mirrored.p_value, mirrored.effect_size) == (result.p_value, -result.effect_size)


def test_skewed_differences_are_judged_by_flipping_signs() -> None:
    xs = [0.0] * 9
    ys = [1.0] * 8 + [200.0]
    result = paired_test(xs, ys)
    assert result is not None
    assert result.test == SIGN_FLIP
    # All differences point the same way: of 2^9 patterns only the one that is there and its mirror go as far.
    assert result.p_value == 2 / 2**9
    many = paired_test([0.0] * 40, [1.0] * 39 + [200.0])
    assert many is not None
    assert many.p_value == 1 / 10_000, "none of 9999 random patterns goes as far"


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
    low, high = bootstrap_interval(values)
    assert bootstrap_interval(values) == (low, high)
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
