"""Goodput over a window of a flow (`measure`) leaves out warm-up and end, by arithmetic."""

from __future__ import annotations

import pytest

from fake_plans import FakeFlow, fake_plan
from fake_tables import make_tables
from plait.analysis.metrics.trial import trial_metrics
from plait.plan.model.plan import Measure

S = 1_000_000
START = 3 * S
MEGA = 125_000
"""Bytes that 1 Mbit/s moves in a second."""
# 1 Mbit/s for 2 s, then 10 Mbit/s for 5 s, then 4 Mbit/s for 1 s; a sample each second.
LEVELS = [0, 1, 2, 12, 22, 32, 42, 52, 56]


def steady(
    measure: Measure | None, *, completed: bool = True, start_us: int = START, odd_us: int = 0
) -> float | None:
    """Return the steady goodput of a flow from 3 s to 11 s whose samples lie `odd_us` after full seconds."""
    plan = fake_plan(FakeFlow(transport="tcp", start_us=start_us)).model_copy(update={"measure": measure})
    flow = {
        "flow": 0,
        "start_us": START,
        "end_us": START + 8 * S,
        "completed": completed,
        "received_bytes": 56 * MEGA,
    }
    samples = [
        {"t_us": START + second * S + odd_us * (second < 8), "flow": 0, "side": "server",
         "received_bytes": MEGA * level + (odd_us * MEGA * 10 // S if 2 <= second < 7 else 0)}
        for second, level in enumerate(LEVELS)
    ]  # fmt: skip
    return trial_metrics(plan, make_tables({"flows": [flow], "connections": samples})).get(
        "steady_goodput_bps"
    )


@pytest.mark.parametrize(
    ("from_s", "to_s", "mbit"),
    [
        (0, None, 56 / 8),
        (2, None, 54 / 6),
        (2, -1, 10.0),  # the warm-up and the end are left out
        (0, 2, 1.0),
        (-1, None, 4.0),
        (-3, -1, 10.0),
        (1.5, 2.5, (0.5 + 5) / 1),  # between samples
        (0, 100, 56 / 8),  # no longer than the flow
    ],
)
def test_a_window_counts_from_the_flows_start_and_from_its_end(
    from_s: float, to_s: float | None, mbit: float
) -> None:
    window = Measure(from_us=round(from_s * S), to_us=None if to_s is None else round(to_s * S))
    assert steady(window) == pytest.approx(mbit * 1e6, rel=1e-12)


def test_samples_need_not_fall_on_its_ends() -> None:
    window = Measure(from_us=3 * S, to_us=-2 * S)
    assert steady(window, odd_us=123_456) == pytest.approx(10e6, rel=1e-5)


def test_steady_goodput_is_null_without_a_window_or_a_completed_flow_or_time_in_it() -> None:
    assert steady(None) is None
    assert steady(Measure(from_us=2 * S, to_us=-S), completed=False) is None
    assert steady(Measure(from_us=5 * S, to_us=-4 * S)) is None
