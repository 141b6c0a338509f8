"""The congestion control rules agree with exact arithmetic over random states of up to nine paths.

The kernel has no floating point; `plait_rules.h` promises a relative error below 2^-24 for every rule and
truncation to its last place. The references below are the formulas of the documents, in exact fractions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st

from .conftest import Num, Path_

if TYPE_CHECKING:
    import ctypes

RELATIVE = Fraction(1, 2**24)
TOTAL_ALPHA = 10


@dataclass(frozen=True)
class State:
    """One path: segments, bytes, microseconds, bytes between losses."""

    cwnd: int
    mss: int
    srtt_us: int
    interloss: int = 0

    @property
    def window(self) -> int:
        return self.cwnd * self.mss

    @property
    def rate(self) -> Fraction:
        return Fraction(self.window, self.srtt_us)

    @property
    def quality(self) -> Fraction:
        return Fraction(self.interloss, self.srtt_us**2)


def _spread(low: int, high: int) -> st.SearchStrategy[int]:
    """Return integers of all magnitudes, not only of the largest."""
    return st.integers(low.bit_length(), high.bit_length()).flatmap(
        lambda bits: st.integers(max(low, 2**bits >> 1), min(high, 2**bits))
    )


STATES = st.lists(
    st.builds(
        State,
        cwnd=_spread(1, 2**24),
        mss=_spread(88, 65_483),
        srtt_us=_spread(1, 2**27),
        interloss=_spread(1, 2**44),
    ),
    min_size=1,
    max_size=9,
)


def _paths(states: list[State]) -> ctypes.Array[Path_]:
    return (Path_ * len(states))(*[Path_(s.cwnd, s.mss, s.srtt_us, s.interloss) for s in states])


def _close(got: int, exact: Fraction, bits: int) -> bool:
    """Return whether both agree within the promised relative error and one unit of the last place."""
    return abs(Fraction(got, 2**bits) - exact) <= abs(exact) * RELATIVE + Fraction(1, 2**bits)


def _value(number: Num) -> Fraction:
    return Fraction(number.m) * Fraction(2) ** number.e


# --- numbers ----------------------------------------------------------------------------------------------------


@given(_spread(1, 2**64 - 1), st.integers(-60, 60), _spread(1, 2**64 - 1), st.integers(-60, 60))
def test_each_operation_truncates_by_less_than_2_to_minus_30(
    rules: ctypes.CDLL, m: int, e: int, k: int, f: int
) -> None:
    a, b = rules.host_num(m, e), rules.host_num(k, f)
    for got, exact in (
        (rules.host_mul(a, b), _value(a) * _value(b)),
        (rules.host_div(a, b), _value(a) / _value(b)),
        (rules.host_add(a, b), _value(a) + _value(b)),
    ):
        assert got.m >= 2**31, "normalised"
        assert exact * (1 - Fraction(1, 2**30)) <= _value(got) <= exact


@given(_spread(0, 2**64 - 1), st.integers(-90, 90), _spread(0, 2**64 - 1), st.integers(-90, 90))
def test_comparison_is_exact(rules: ctypes.CDLL, m: int, e: int, k: int, f: int) -> None:
    a, b = rules.host_num(m, e), rules.host_num(k, f)
    sign = (_value(a) > _value(b)) - (_value(a) < _value(b))
    assert rules.host_cmp(a, b) == sign


@given(_spread(0, 2**64 - 1), st.integers(-90, 90), st.integers(0, 32))
def test_conversion_rounds_down_and_saturates(rules: ctypes.CDLL, m: int, e: int, bits: int) -> None:
    number = rules.host_num(m, e)
    exact = _value(number) * 2**bits
    expected = int(exact) if exact < 2**63 else 2**63 - 1
    assert rules.host_fixed(number, bits) == expected


# --- LIA --------------------------------------------------------------------------------------------------------


@given(STATES)
def test_lia_increase_is_rfc_6356_equation_1(rules: ctypes.CDLL, states: list[State]) -> None:
    total = sum(s.window for s in states)
    alpha = total * max(s.rate / s.srtt_us for s in states) / sum(s.rate for s in states) ** 2
    state = states[0]
    exact = min(alpha * state.mss / total, Fraction(1, state.cwnd))
    assert _close(rules.host_lia_increase(_paths(states), len(states)), exact, 32)


@given(STATES)
def test_lia_is_never_more_aggressive_than_reno_on_its_path(rules: ctypes.CDLL, states: list[State]) -> None:
    assert rules.host_lia_increase(_paths(states), len(states)) <= 2**32 // states[0].cwnd


# --- OLIA -------------------------------------------------------------------------------------------------------


def _olia_alpha(states: list[State]) -> Fraction:
    best = max(s.quality for s in states)
    largest = max(s.window for s in states)
    maximal = [s for s in states if s.window == largest]
    collected = [s for s in states if s.quality == best and s.window != largest]
    if not collected:
        return Fraction(0)
    if states[0].window == largest:
        return Fraction(-1, len(states) * len(maximal))
    return Fraction(1, len(states) * len(collected)) if states[0].quality == best else Fraction(0)


def _distinct(values: list[Fraction]) -> bool:
    """Return whether 32 significant bits distinguish all values."""
    ordered = sorted(set(values))
    return all((b - a) > b / 2**26 for a, b in itertools.pairwise(ordered))


@given(STATES)
def test_olia_alpha_follows_the_draft(rules: ctypes.CDLL, states: list[State]) -> None:
    assume(_distinct([s.quality for s in states]) and _distinct([Fraction(s.window) for s in states]))
    alpha = _olia_alpha(states)
    denominator = rules.host_olia_alpha(_paths(states), len(states))
    assert (Fraction(1, denominator) if denominator else 0) == alpha


@given(STATES)
def test_olia_increase_is_the_drafts_equations_2_to_4(rules: ctypes.CDLL, states: list[State]) -> None:
    assume(_distinct([s.quality for s in states]) and _distinct([Fraction(s.window) for s in states]))
    state = states[0]
    coupled = state.rate / state.srtt_us * state.mss / sum(s.rate for s in states) ** 2
    shift = _olia_alpha(states) / state.cwnd
    got = Fraction(rules.host_olia_increase(_paths(states), len(states)), 2**32)
    assert abs(got - coupled - shift) <= (coupled + abs(shift)) * RELATIVE + Fraction(2, 2**32)


@given(STATES)
def test_olia_alphas_of_a_connection_cancel(rules: ctypes.CDLL, states: list[State]) -> None:
    alphas = []
    for i in range(len(states)):
        turned = states[i:] + states[:i]
        denominator = rules.host_olia_alpha(_paths(turned), len(turned))
        alphas.append(Fraction(1, denominator) if denominator else Fraction(0))
    assert sum(alphas) == 0


# --- BALIA ------------------------------------------------------------------------------------------------------


def _balia_alpha(states: list[State]) -> Fraction:
    return max(s.rate for s in states) / states[0].rate


@given(STATES)
def test_balia_increase_is_the_drafts(rules: ctypes.CDLL, states: list[State]) -> None:
    state, alpha = states[0], _balia_alpha(states)
    exact = state.rate / state.srtt_us * state.mss / sum(s.rate for s in states) ** 2
    exact *= (1 + alpha) / 2 * (4 + alpha) / 5
    assert _close(rules.host_balia_increase(_paths(states), len(states)), exact, 32)


@given(STATES)
def test_balia_decrease_is_the_drafts(rules: ctypes.CDLL, states: list[State]) -> None:
    state = states[0]
    exact = state.cwnd - Fraction(state.cwnd, 2) * min(_balia_alpha(states), Fraction(3, 2))
    got = rules.host_balia_reduced(_paths(states), len(states))
    assert int(exact) <= got <= int(exact + state.cwnd * RELATIVE) + 1


@given(STATES)
def test_one_path_alone_is_reno(rules: ctypes.CDLL, states: list[State]) -> None:
    alone = states[:1]
    cwnd, paths = alone[0].cwnd, _paths(alone)
    assert _close(rules.host_lia_increase(paths, 1), Fraction(1, cwnd), 32)
    assert _close(rules.host_olia_increase(paths, 1), Fraction(1, cwnd), 32)
    assert _close(rules.host_balia_increase(paths, 1), Fraction(1, cwnd), 32)
    assert rules.host_balia_reduced(paths, 1) == cwnd // 2


# --- wVegas -----------------------------------------------------------------------------------------------------


@given(_spread(1, 2**24), _spread(1, 2**27), _spread(1, 2**27))
def test_vegas_backlog_is_the_drafts_diff(rules: ctypes.CDLL, cwnd: int, one_us: int, other_us: int) -> None:
    rtt, base = max(one_us, other_us), min(one_us, other_us)
    exact = (Fraction(cwnd, base) - Fraction(cwnd, rtt)) * base
    assert _close(rules.host_vegas_backlog(cwnd, rtt, base), exact, 16)
    assert rules.host_vegas_backlog(cwnd, base, rtt) == 0


@given(STATES)
def test_wvegas_shares_total_alpha_by_rate(rules: ctypes.CDLL, states: list[State]) -> None:
    exact = TOTAL_ALPHA * states[0].rate / sum(s.rate for s in states)
    assert _close(rules.host_wvegas_alpha(_paths(states), len(states), TOTAL_ALPHA), exact, 16)


@given(_spread(1, 2**24), _spread(1, 2**27), _spread(1, 2**27))
def test_wvegas_drains_to_half_of_what_the_path_holds(
    rules: ctypes.CDLL, cwnd: int, one_us: int, other_us: int
) -> None:
    rtt, base = max(one_us, other_us), min(one_us, other_us)
    assert _close(rules.host_wvegas_drained(cwnd, rtt, base), Fraction(cwnd * base, 2 * rtt), 0)
