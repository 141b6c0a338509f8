"""TCP connections that measure a line without UDP take no more than the line's share of the bytes."""

from __future__ import annotations

import pytest

from plait.errors import RequestError
from plait.measure.over_tcp import Loads


@pytest.mark.parametrize(
    ("rate_bps", "share_bytes", "lasts_s"), [(300e6, 1e9, 8), (300e6, 100e6, 2.4), (10e6, 2e6, 1.44)]
)
def test_loads_are_as_short_as_the_share_of_a_line_demands(
    rate_bps: float, share_bytes: float, lasts_s: float
) -> None:
    loads = Loads.within("dsl", rate_bps, share_bytes)
    assert loads.lasts_us == pytest.approx(lasts_s * 1e6)
    assert rate_bps * loads.lasts_us / 8e6 <= share_bytes
    assert loads.begins_us(1) + loads.lasts_us < loads.begins_us(2)
    assert loads.begins_us(2) + loads.lasts_us < loads.end_us


def test_a_share_that_lasts_no_second_is_refused_with_what_is_needed() -> None:
    with pytest.raises(RequestError, match=r"^dsl: .* may take 40 MB .* and need 41\.7 MB .*--bytes"):
        Loads.within("dsl", 300e6, 40e6)
    assert Loads.within("dsl", 300e6, 41.7e6)
