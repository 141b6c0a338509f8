"""TCP connections that measure a line without UDP take no more than the line's share of the bytes."""

from __future__ import annotations

import pytest

from plait.measure.over_tcp import Loads


@pytest.mark.parametrize(
    ("rate_bps", "most_bytes", "lasts_s"),
    [(300e6, 1e9, 8), (300e6, 100e6, 2.4), (10e6, 2e6, 1.44), (300e6, 1e6, 1), (20e6, -1e6, 1)],
)
def test_loads_are_as_short_as_their_bytes_demand_but_not_below_a_second(
    rate_bps: float, most_bytes: float, lasts_s: float
) -> None:
    loads = Loads.within(rate_bps, most_bytes)
    assert loads.lasts_us == pytest.approx(lasts_s * 1e6)
    assert lasts_s == 1 or rate_bps * loads.lasts_us / 8e6 <= most_bytes
    assert loads.begins_us(1) + loads.lasts_us < loads.begins_us(2)
    assert loads.begins_us(2) + loads.lasts_us < loads.end_us
