"""The guard of fidelity names each bound that a trial in real time exceeds; counters that are missing say nothing."""

from __future__ import annotations

import pytest

from plait.engine.host.fidelity import Burst, Fidelity, disturbances

QUIET = Fidelity(
    span_us=10_000_000,
    timers=10_000,
    lateness_median_us=60,
    lateness_p99_us=300,
    lateness_max_us=4000,
    cpu_pressure_us=1_000_000,
    memory_pressure_us=0,
    io_pressure_us=0,
    backlog_drops=0,
    time_squeezes=20,
    steal_ticks=0,
    load_before=0.1,
    load_after=0.4,
)
FAST = Burst(10e9, 80)
RATE_BPS = 10_000_000


def test_a_quiet_machine_disturbs_nothing() -> None:
    assert disturbances(QUIET, FAST, FAST, RATE_BPS) == []


def test_missing_counters_are_no_disturbance() -> None:
    unknown = dict.fromkeys(("cpu_pressure_us", "backlog_drops", "time_squeezes", "steal_ticks"))
    assert disturbances(QUIET.model_copy(update=unknown), FAST, FAST, None) == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"lateness_p99_us": 1001}, "1 of 100 timers fired 1 ms late or more (bound: 1 ms)"),
        ({"lateness_max_us": 30_000}, "a timer fired 30 ms late (bound: 20 ms)"),
        ({"lateness_p99_us": None}, "no timer of the agent fired"),
        ({"cpu_pressure_us": 3_000_000}, "tasks waited for a processor 30% of the time (bound: 25%)"),
        ({"time_squeezes": 200}, "cut packet processing short 20 times a second (bound: 10)"),
        ({"backlog_drops": 1}, "dropped 1 packets, which no link lost"),
        ({"steal_ticks": 100_000}, "the hypervisor took"),
    ],
)
def test_each_bound_is_named_with_what_was_measured(changed: dict[str, int | None], reason: str) -> None:
    reasons = disturbances(QUIET.model_copy(update=changed), FAST, FAST, RATE_BPS)
    assert len(reasons) == 1
    assert reason in reasons[0]


def test_a_machine_that_carries_too_little_or_slows_down_is_named() -> None:
    assert "less than 3 times" in disturbances(QUIET, Burst(29e6, 80), Burst(29e6, 80), RATE_BPS)[0]
    assert "and 1e+04 Mbit/s before it" in disturbances(QUIET, FAST, Burst(4e9, 80), RATE_BPS)[0]
