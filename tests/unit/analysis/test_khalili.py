"""LIA's fixed point in Khalili's scenario A is the published one."""

from __future__ import annotations

import pytest
from lia_fixed_point import lia_scenario_a


@pytest.mark.parametrize(("n1", "type2"), [(10, 0.739), (30, 0.500)])
def test_the_fixed_point_is_the_published_one(n1: int, type2: float) -> None:
    shares = lia_scenario_a(n1, 10, 1.0, 1.0)
    assert shares.type1 == 1.0
    assert shares.type2 == pytest.approx(type2, abs=5e-4)


def test_more_users_of_type_1_leave_less_to_type_2() -> None:
    rates = [lia_scenario_a(n1, 10, 1.0, 1.0).type2 for n1 in (1, 10, 20, 30, 100)]
    assert rates == sorted(rates, reverse=True)


def test_capacities_scale() -> None:
    assert lia_scenario_a(10, 10, 5.0, 5.0).type2 == pytest.approx(5 * lia_scenario_a(10, 10, 1.0, 1.0).type2)


def test_what_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        lia_scenario_a(0, 10, 1.0, 1.0)
