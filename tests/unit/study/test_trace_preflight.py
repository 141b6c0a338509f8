"""Trace events of a scenario: their names, the kernels and engines that lack them, and the identity of a trial."""

from __future__ import annotations

import pytest

from plait.engine.host.engine import LACKS as HOST_LACKS
from plait.engine.inventory import Inventory
from plait.engine.remote.support import LACKS as REMOTE_LACKS
from plait.engine.support import lacking
from plait.errors import ScenarioError
from plait.plan.identity import plan_bytes, trial_identity
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.preflight.kernel import refuse_what_is_missing

EVENTS = ("mptcp:ack_update_msk", "mptcp:mptcp_subflow_get_send", "skb:kfree_skb")
TEXT = """\
title: Traced
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit}}}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s}
"""


def kernel(*events: str) -> Inventory:
    return Inventory(
        congestion_controls=("cubic",),
        schedulers=("default",),
        sysctls={},
        shared_sysctls={},
        trace_events=events,
    )


def check(trace: str, has: Inventory) -> None:
    refuse_what_is_missing(
        expand(parse(f"{TEXT}monitors: {{tracepoints: {trace}}}\n", "t.yaml")), lambda _: has
    )


def test_names_and_wildcards_match_the_events_of_the_kernel() -> None:
    for trace in ("'mptcp:*'", "['mptcp:*_get_send', 'skb:kfree_skb']", "[]"):
        check(trace, kernel(*EVENTS))


def test_an_event_that_the_kernel_lacks_is_named_with_its_neighbours() -> None:
    with pytest.raises(ScenarioError, match=r"t.yaml:5:\d+: .*tracepoints.1: this kernel has no trace event 'skb:x'; "
                       "there is: skb:kfree_skb"):  # fmt: skip
        check("['mptcp:*', 'skb:x']", kernel(*EVENTS))
    with pytest.raises(ScenarioError, match="'nothing:at_all'; leave it out"):
        check("'nothing:at_all'", kernel(*EVENTS))


def test_a_kernel_without_trace_events_is_refused_with_the_command_that_builds_one() -> None:
    with pytest.raises(ScenarioError, match="kernel build --tree DIR --tracing"):
        check("'mptcp:*'", kernel())


@pytest.mark.parametrize("name", ["mptcp", "'a:b:c'", "'mptcp:*; rm'", "'$(x):y'", "''"])
def test_what_names_no_events_is_refused(name: str) -> None:
    with pytest.raises(
        ScenarioError, match=r"monitors.tracepoints.0: .*write SYSTEM:EVENT, such as mptcp:\*"
    ):
        parse(f"{TEXT}monitors: {{tracepoints: {name}}}\n", "t.yaml")


def test_the_events_are_part_of_a_trials_identity_and_their_absence_is_not() -> None:
    plain, first, second = (
        resolve(expand(parse(TEXT + monitors, "t.yaml"))[0].scenario, 1)
        for monitors in ("", "monitors: {tracepoints: 'mptcp:*'}\n", "monitors: {tracepoints: 'tcp:*'}\n")
    )
    assert b'"trace"' not in plan_bytes(plain), "older trials keep their identity"
    identities = {trial_identity(plan, "kernel") for plan in (plain, first, second)}
    assert len(identities) == 3


def test_engines_that_share_their_kernel_lack_trace_events() -> None:
    plan = resolve(expand(parse(TEXT + "monitors: {tracepoints: 'mptcp:*'}\n", "t.yaml"))[0].scenario, 1)
    for lacks in (HOST_LACKS, REMOTE_LACKS):
        assert "trace events" in [missing.use.feature for missing in lacking(plan, lacks)]
