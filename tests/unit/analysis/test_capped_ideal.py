"""The ideal under a cap on every path's share agrees with its formula and with an exhaustive search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.analysis.metrics.ideal import best_rate, capped_goodput_bps
from scenario_samples import plan_of

TEXT = """\
title: t
network: {generator: n-paths, rates: [20mbit, 10mbit]}
mptcp: {scheduler: SCHEDULER, capped: {extra: 5%}}
"""


@pytest.mark.parametrize(
    ("rates", "share", "expected"),
    [
        ((10, 10), 0.5, 20),
        ((20, 10), 0.5, 20),
        ((20, 10), 0.55, 10 / 0.45),
        ((20, 10), 0.7, 30),
        ((50, 10), 0.7, 10 / 0.3),
        ((30, 20, 10), 1 / 3, 30),
        ((30, 20, 10), 0.4, 30 / 0.6),
    ],
)
def test_the_best_under_a_cap_is_what_the_formula_says(
    rates: tuple[float, ...], share: float, expected: float
) -> None:
    assert best_rate(rates, share) == pytest.approx(expected)


@given(st.lists(st.integers(1, 100), min_size=2, max_size=6), st.floats(0, 1))
def test_the_capped_ideal_is_feasible_and_nothing_above_it_is(rates: list[int], more: float) -> None:
    share = 1 / len(rates) + more * (1 - 1 / len(rates)) + 1e-6
    best = best_rate([float(rate) for rate in rates], share)

    def possible(total: float) -> bool:
        return sum(min(rate, share * total) for rate in rates) >= total * (1 - 1e-9)

    assert possible(best)
    assert not possible(best * 1.001)


def test_only_a_flow_under_a_cap_has_a_capped_ideal() -> None:
    capped, free = (plan_of(TEXT.replace("SCHEDULER", name)) for name in ("capped", "minrtt"))
    assert capped_goodput_bps(capped, capped.flows[0]) == pytest.approx(10e6 / 0.45 * 1424 / 1514)
    assert capped_goodput_bps(free, free.flows[0]) is None
