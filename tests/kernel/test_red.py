"""The arithmetic of plait_red agrees with exact fractions within the bounds that plait_red_rules.h states."""

from __future__ import annotations

import ctypes
import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Point

ONE = 2**32 - 1
WEIGHTS = st.integers(0, 16)
QUEUES = st.integers(0, 20_000)
AVERAGES = st.integers(0, 20_000 * 2**32)
CURVES = st.lists(
    st.tuples(st.integers(0, 2**24), st.integers(0, ONE)),
    min_size=1,
    max_size=8,
    unique_by=lambda point: point[0],
).map(sorted)


def _probability(red: ctypes.CDLL, curve: list[tuple[int, int]], average: int) -> tuple[int, bool]:
    beyond = ctypes.c_bool()
    points = (Point * len(curve))(*curve)
    return red.host_red_probability(points, len(curve), average, ctypes.byref(beyond)), beyond.value


def _exact(curve: list[tuple[int, int]], average: Fraction) -> Fraction | None:
    """Return the curve's probability at an average in packets, 0 .. ONE; None beyond its last point."""
    points = [(Fraction(x, 256), p) for x, p in curve]
    if average < points[0][0]:
        return Fraction(0)
    for (x, p), (y, q) in itertools.pairwise(points):
        if x <= average < y:
            return p + (q - p) * (average - x) / (y - x)
    return Fraction(points[-1][1]) if average == points[-1][0] else None


@given(AVERAGES, QUEUES, WEIGHTS)
def test_an_arrival_moves_the_average_by_its_weight(
    red: ctypes.CDLL, average: int, queue: int, weight: int
) -> None:
    exact = average + Fraction(queue * 2**32 - average, 2**weight)
    assert 0 <= exact - red.host_red_average(average, queue, weight) < 1


@pytest.mark.parametrize("weight", [0, 9, 16])
def test_the_average_of_a_constant_queue_stays_within_the_stated_bound(red: ctypes.CDLL, weight: int) -> None:
    average = 50 * 2**32
    for _ in range(1000):
        average = red.host_red_average(average, 49, weight)
    settled = 49 * 2**32
    assert red.host_red_average(settled, 49, weight) == settled
    assert settled - 2**weight <= average or average > settled


@given(AVERAGES, st.integers(0, 100_000), WEIGHTS)
def test_idle_time_decays_the_average_like_departing_packets(
    red: ctypes.CDLL, average: int, packets: int, weight: int
) -> None:
    got = red.host_red_idle(average, packets, weight)
    factor = 1 - 2.0**-weight
    assert got == pytest.approx(average * factor**packets, rel=1e-9, abs=1)


def test_a_long_idle_time_leaves_nothing(red: ctypes.CDLL) -> None:
    assert red.host_red_idle(20_000 * 2**32, ONE, 16) == 0


@given(CURVES, AVERAGES)
def test_the_probability_is_linear_between_points(
    red: ctypes.CDLL, curve: list[tuple[int, int]], average: int
) -> None:
    got, beyond = _probability(red, curve, average)
    exact = _exact(curve, Fraction(average >> 16, 2**16))
    if exact is None:
        assert (got, beyond) == (ONE, True)
    else:
        assert not beyond
        assert abs(got - exact) <= 1


def test_the_points_of_a_published_curve_are_met(red: ctypes.CDLL) -> None:
    curve = [(25 * 256, 0), (50 * 256, ONE // 10), (100 * 256, ONE)]
    packets = {10: 0, 25: 0, 37.5: 0.05, 50: 0.1, 75: 0.55, 100: 1}
    for average, probability in packets.items():
        got, beyond = _probability(red, curve, int(average * 2**32))
        assert got / ONE == pytest.approx(probability, abs=1e-9)
        assert not beyond
    assert _probability(red, curve, int(100.01 * 2**32)) == (ONE, True)


def test_certain_and_impossible_are_exact(red: ctypes.CDLL) -> None:
    for draw in (0, 1, ONE):
        assert red.host_red_happens(ONE, draw)
        assert not red.host_red_happens(0, draw)
    assert red.host_red_happens(ONE // 2, ONE // 2)
    assert not red.host_red_happens(ONE // 2, ONE // 2 + 1)
