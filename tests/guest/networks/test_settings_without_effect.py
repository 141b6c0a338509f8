"""What lint calls a setting without effect has none: the trial's flows and subflows are the same to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.cautions import Code
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint_cases
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from scenario_samples import TWO, direct

if TYPE_CHECKING:
    from conftest import RunTrial

SHORT = TWO.replace("duration: 10s", "duration: 2s")
TCP = SHORT + "transport: tcp\n"
UDP = direct(
    "a-b: {rate: 20mbit, delay: 5ms}", "udp: {from: a, to: b, packet: 1000B, rate: 1mbit, duration: 2s}"
)
UNUSED = [
    (TCP, "mptcp.limits.h1={subflows: 0}", Code.UNREAD),
    (TCP, "mptcp.scheduler=redundant", Code.UNREAD),
    (TCP, "sysctls={net.mptcp.checksum_enabled: 1}", Code.UNREAD),
    (TCP, "network.links.h1-s2.delay=30ms", Code.UNCROSSED),
    (UDP, "tcp.congestion_control=bbr", Code.UNREAD),
    (SHORT, "traffic.0.bulk.dscp=10", Code.UNREAD),
    (TCP, "traffic.0.bulk.nodelay=true", Code.UNREAD),
    (SHORT, "network.links.s2-h2.queue=20pkt", Code.UNREAD),
    (SHORT, "events=[{at: 3s, cut: h1-s1}]", Code.TOO_LATE),
    (SHORT, "events=[{at: 1s, set: {h1-s1: {rate: 5mbit}}}]", Code.NO_CHANGE),
]


@pytest.mark.parametrize(("text", "override", "code"), UNUSED, ids=[case[1] for case in UNUSED])
def test_a_setting_that_lint_calls_unused_changes_no_byte(
    run_trial: RunTrial, text: str, override: str, code: Code
) -> None:
    scenario = parse(text, "t.yaml", (override,))
    assert code in {
        caution.code for caution in lint_cases([resolve_case(case) for case in expand(scenario)], 1)
    }
    without, with_it = run_trial(text), run_trial(text, overrides=(override,))
    for table in {"flows", "subflows", "connections", "messages"} & set(without.tables):
        assert with_it.tables[table].equals(without.tables[table]), table


def test_a_buffer_that_lint_accepts_costs_little_and_one_that_it_does_not_costs_much(
    run_trial: RunTrial,
) -> None:
    """The threshold has a term for the bursts of the scheduler, without which 100 KB cost a third here."""
    longer = SHORT.replace("duration: 2s", "duration: 8s")
    runs = [
        run_trial(longer, overrides=(f"tcp.receive_buffer_max={size}",))
        for size in ("100KB", "320KB", "6MiB")
    ]
    received = [ran.tables["flows"]["received_bytes"][0] for ran in runs]
    assert received[0] < 0.9 * received[2]
    assert received[1] > 0.93 * received[2]
