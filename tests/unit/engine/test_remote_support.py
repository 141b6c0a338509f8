"""What the engine `remote` refuses of a plan, before anything is sent to a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.dataset.model import MESSAGES
from plait.engine.remote.merge import joined_messages
from plait.engine.remote.spent import Spent
from plait.engine.remote.support import LACKS, features, unsupported_sockets
from plait.engine.support import lacking
from plait.errors import TrialError
from plait.hosts.model import Limits
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

TEXT = """\
title: One line
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms}}}
traffic:
  - transfer: {from: a, to: b, bytes: 1MB}
  - TRAFFIC
transport: tcp
"""
CARRIED = (
    "bulk: {from: a, to: b, duration: 1s}",
    "request: {from: a, to: b, response: 10KB, requests: 3}",
    "page: {from: a, to: b, objects: [10KB, 20KB]}",
    "udp: {from: a, to: b, rate: 1mbit, packet: 1000B, duration: 1s}",
    "stream: {from: a, to: b, message: 10KB, rate: 1mbit, duration: 1s}",
    "on-off: {from: a, to: b, on: 1s, off: 1s, duration: 3s}",
)


def test_a_flow_whose_sockets_need_root_is_refused_in_its_place() -> None:
    text = TEXT.replace("TRAFFIC", "bulk: {from: a, to: b, duration: 1s, mark: 5}")
    plan = resolve(expand(parse(text, "t.yaml"))[0].scenario, 1)
    (refused,) = unsupported_sockets(plan)
    assert (refused.use.part, refused.use.name) == ("traffic", "1")
    assert refused.reason.startswith("cannot set marks")


@pytest.mark.parametrize("traffic", CARRIED)
def test_traffic_that_two_agents_can_send_and_measure_is_not_refused(traffic: str) -> None:
    plan = resolve(expand(parse(TEXT.replace("TRAFFIC", traffic), "t.yaml"))[0].scenario, 1)
    assert list(unsupported_sockets(plan)) == []
    assert lacking(plan, LACKS) == []


STREAM = "stream: {from: a, to: b, message: 1KB, rate: 800kbit, duration: 0.2s}"


def traffic_plan(traffic: str) -> Plan:
    return resolve(expand(parse(TEXT.replace("TRAFFIC", traffic), "t.yaml"))[0].scenario, 1)


def test_a_prototype_is_refused_once_with_the_engine_that_runs_it() -> None:
    plan = traffic_plan("prototype: {from: a, to: b, message: 1KB, every: 10ms, messages: 2}")
    assert {lack.use.feature for lack in lacking(plan, LACKS)} == {"programs"}
    assert features(plan) == []
    (refused,) = unsupported_sockets(plan)
    assert (refused.use.part, refused.use.name) == ("traffic", "1")
    assert "run it with --engine virtual" in refused.reason


def test_messages_of_two_hosts_become_one_row_without_a_delay() -> None:
    rows = [
        (1, 0, 100, None, 1000, 0),
        (1, 1, 200, None, 1000, 0),
        (0, 0, 5, 9, 50, None),
        (1, 0, None, 7_000_000, 1000, 1),
    ]
    joined = joined_messages(traffic_plan(STREAM), pl.DataFrame(rows, schema=MESSAGES, orient="row"))
    assert joined.rows() == [
        (0, 0, 5, 9, 50, None),
        (1, 0, None, 7_000_000, 1000, 1),
        (1, 1, None, None, 1000, 0),
    ]


def test_a_stream_that_sends_more_than_is_left_does_not_start() -> None:
    with pytest.raises(TrialError, match=r"sends at least 1020000 bytes, and 10000 of limits\.bytes"):
        Spent(Limits.model_validate({"rate": "8mbit", "bytes": "10KB", "time": "10s"})).check(
            traffic_plan(STREAM)
        )


def test_a_failed_trial_counts_what_it_sent_or_what_the_rate_allows() -> None:
    plan = traffic_plan(STREAM)
    spent = Spent(Limits.model_validate({"rate": "8mbit", "bytes": "4MB", "time": "10s"}))
    spent.add_failed(1_500_000, 1.0)
    spent.add_failed(None, 1.0)
    assert spent.arguments()[1] == str(4_000_000 - 1_500_000 - 1_000_000)
    assert spent.check(plan) == 8_000_000
    spent.add_failed(None, 1.0)
    with pytest.raises(TrialError, match=r"limits\.bytes"):
        spent.check(plan)


@pytest.mark.parametrize("ended_us", [None, 0, -(1 << 62), 1 << 62])
def test_a_host_that_lies_gives_no_other_one_more_than_the_limits(ended_us: int | None) -> None:
    plan = traffic_plan(STREAM)
    spent = Spent(Limits.model_validate({"rate": "8mbit", "bytes": "40MB", "time": "60s"}))
    spent.add(plan, None, ended_us, 10.0)
    assert spent.arguments()[1] == str(40_000_000 - 10_000_000)
    assert 50_000_000 <= spent.check(plan) <= 52_000_000


def test_a_trial_counts_from_its_start_to_the_end_of_its_flows() -> None:
    plan = traffic_plan(STREAM)
    spent = Spent(Limits.model_validate({"rate": "8mbit", "bytes": "40MB", "time": "60s"}))
    spent.add(plan, 5_000_000, 9_000_000, 9.5)
    assert spent.arguments()[1] == str(35_000_000)
    assert spent.check(plan) == 51_000_000
