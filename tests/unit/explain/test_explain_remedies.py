"""The next step that an explanation proposes changes the flow in question: a prototype has fields of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plait.explain import Cause, FlowExplanation, Share
from plait.explain.causes import next_step, remedy
from plait.explain.changes import Suspect
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.traffic.prototype import Prototype

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

TEXT = """\
title: Two lines
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms}, a-b#2: {rate: 10mbit, delay: 20ms}}}
traffic:
  - transfer: {from: a, to: b, bytes: 1MB}
  - prototype: {from: a, to: b, bytes: 1MB, scheduler: CHOSEN}
transport: mptcp
"""


def plan_of(chosen: str, *overrides: str) -> Plan:
    scenario = expand(parse(TEXT.replace("CHOSEN", chosen), "t.yaml", overrides))[0].scenario
    return resolve(scenario, 1)


def changed_plan(chosen: str, flow: int, cause: Cause) -> Plan:
    """Return the plan after the change that plait tries against a cause of a flow."""
    scenario = expand(parse(TEXT.replace("CHOSEN", chosen), "t.yaml"))[0].scenario
    explained = FlowExplanation.model_construct(flow_id=flow, capacity_bps=20e6)
    share = Share.model_construct(cause=cause, where=(), reason=None)
    change = remedy(Suspect(scenario, resolve(scenario, 1), explained, share))
    assert change is not None
    return plan_of(chosen, *[f"{path}={json.dumps(value)}" for path, value in change.fields])


def prototype_of(plan: Plan) -> Prototype:
    (application,) = [flow.application for flow in plan.flows if isinstance(flow.application, Prototype)]
    return application


@pytest.mark.parametrize("chosen", ["minrtt", "ecf", "roundrobin"])
def test_a_prototype_tries_another_scheduler_of_its_own(chosen: str) -> None:
    assert prototype_of(plan_of(chosen)).scheduler == chosen
    assert prototype_of(changed_plan(chosen, 1, Cause.SCHEDULER_IDLE_PATH)).scheduler != chosen


def test_a_transfer_beside_a_prototype_tries_another_scheduler_of_the_kernel() -> None:
    assert prototype_of(changed_plan("minrtt", 0, Cause.SCHEDULER_IDLE_PATH)).scheduler == "minrtt"


def test_no_scheduler_is_tried_against_the_last_bytes_of_tcp() -> None:
    scenario = expand(parse(TEXT.replace("CHOSEN", "minrtt"), "t.yaml", ("transport=tcp",)))[0].scenario
    explained = FlowExplanation.model_construct(flow_id=0, capacity_bps=20e6)
    share = Share.model_construct(cause=Cause.LAST_BYTES, where=(), reason=None)
    assert remedy(Suspect(scenario, resolve(scenario, 1), explained, share)) is None


def test_a_prototype_tries_a_receive_window_that_fills_its_paths() -> None:
    before, after = (
        prototype_of(plan).receive_window_bytes
        for plan in (plan_of("minrtt"), changed_plan("minrtt", 1, Cause.RECEIVE_WINDOW))
    )
    assert after > before
    assert after > 20e6 * 0.04 / 8, "both rates times the longest RTT"


@pytest.mark.parametrize("cause", [Cause.SCHEDULER_IDLE_PATH, Cause.RECEIVE_WINDOW, Cause.LOSS_RECOVERY])
def test_no_step_for_a_prototype_names_a_field_of_the_kernel(cause: Cause) -> None:
    step = next_step(cause, "prototype")
    assert step != next_step(cause, "mptcp")
    assert not [word for word in ("mptcp.", "tcp_", "SO_", "bbr") if word in step]


def test_a_setting_of_one_host_is_removed_there_too() -> None:
    """The sysctls of a host replace those of the scenario."""
    text = TEXT.replace("hosts: [a, b]", "hosts: {a: {sysctls: {net.ipv4.tcp_window_scaling: 0}}, b: {}}")
    scenario = expand(parse(text.replace("CHOSEN", "minrtt"), "t.yaml"))[0].scenario
    explained = FlowExplanation.model_construct(flow_id=0, capacity_bps=20e6)
    share = Share.model_construct(cause=Cause.RECEIVE_WINDOW, where=(), reason="window-scaling")
    change = remedy(Suspect(scenario, resolve(scenario, 1), explained, share))
    assert change is not None
    assert dict(change.fields) == {
        "sysctls": {"net.ipv4.tcp_window_scaling": 1},
        "network.hosts.a.sysctls": {"net.ipv4.tcp_window_scaling": 1},
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("mptcp: {endpoints: {a: [{link: a-b#2, flags: [subflow, backup]}]}}", "no backup path"),
        ("events: [{at: 1s, cut: a-b}]", "no events"),
        (
            "mptcp: {endpoints: {a: [{link: a-b#2, flags: [subflow, backup]}]}}\nevents: [{at: 1s, cut: a-b}]",
            "no backup path and no events",
        ),
    ],
)
def test_the_words_of_a_change_name_all_that_it_removes(settings: str, words: str) -> None:
    scenario = expand(parse(f"{TEXT.replace('CHOSEN', 'minrtt')}{settings}\n", "t.yaml"))[0].scenario
    explained = FlowExplanation.model_construct(flow_id=0, capacity_bps=20e6)
    share = Share.model_construct(cause=Cause.BACKUP, where=(), reason=None)
    change = remedy(Suspect(scenario, resolve(scenario, 1), explained, share))
    assert change is not None
    assert change.description == words
