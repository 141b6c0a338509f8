"""Kernels get links as devices or as chains, with lines of netem where these do exactly what a token bucket does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.plan.links.chain import with_chains
from plait.plan.links.changes import link_changes
from plait.plan.model.qdiscs import Netem
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

TEXT = """\
title: One link
network:
  hosts: [a, b]
  links:
    a-b: {LINK}
traffic:
  - bulk: {from: a, to: b, duration: 5s}
"""


def kinds_of(link: str, more: str = "") -> list[str]:
    """Return the kinds of the qdiscs of the direction from a to b."""
    plan = resolve(expand(parse(TEXT.replace("LINK", link) + more, "test.yaml"))[0].scenario, 1)
    chain = with_chains(plan)
    ifname = plan.links[0].directions[0].ifname
    return [qdisc.options.kind for qdisc in chain.network.qdiscs if qdisc.ifname == ifname]


def test_a_line_sends_at_the_rate_and_holds_the_queue_and_what_it_sends() -> None:
    plan = resolve(expand(parse(TEXT.replace("LINK", "rate: 5mbit, queue: 20pkt"), "t.yaml"))[0].scenario, 1)
    lines = [q for q in with_chains(plan).network.qdiscs if q.handle == "2:"]
    assert lines
    for line in lines:
        assert isinstance(line.options, Netem)
        assert (line.options.rate_bps, line.options.limit_packets) == (5_000_000, 21)
        assert line.parent == "1:1"


@pytest.mark.parametrize(
    "event", ["cut: a-b", "down: a-b", "set: {a-b: {delay: 30ms}}", "set: {a-b: {loss: 2%}}"]
)
def test_events_that_leave_rate_and_queue_alone_leave_the_line(event: str) -> None:
    assert kinds_of("rate: 5mbit", f"events: [{{at: 2s, {event}}}]\n") == ["netem", "netem"]


@pytest.mark.parametrize(
    ("link", "more"),
    [
        ("rate: 5mbit", "events: [{at: 2s, set: {a-b: {rate: 2mbit}}}]\n"),  # packets in the queue follow
        ("rate: 5mbit", "events: [{at: 2s, set: {a-b: {queue: 9pkt}}}]\n"),
        ("rate: 5mbit, queue: 64KiB", ""),  # netem counts packets
        ("rate: 5mbit, duplicate: 1%", ""),  # Linux refuses a second netem
        ("rate: 5mbit", "events: [{at: 2s, set: {a-b: {duplicate: 1%}}}]\n"),
        ("rate: 5mbit, aqm: codel", ""),
        ("rate: 5mbit, bucket: {baseline: 1mbit, burst: 1MB}", ""),
    ],
)
def test_a_chain_keeps_its_token_bucket_where_netem_does_something_else(link: str, more: str) -> None:
    assert kinds_of(link, more)[1] == "tbf"


def test_an_unlimited_link_has_no_line() -> None:
    assert kinds_of("delay: 5ms") == ["netem"]


def plan_with(link: str, more: str = "") -> Plan:
    return resolve(expand(parse(TEXT.replace("LINK", link) + more, "test.yaml"))[0].scenario, 1)


def test_a_link_becomes_a_device_between_its_two_nodes() -> None:
    plan = plan_with("rate: 5mbit", "events: [{at: 2s, set: {a-b: {rate: 2mbit}}}]\n")
    made = with_chains(plan, devices=True)
    assert (made.network.qdiscs, made.network.veths, made.network.redirects) == ((), (), ())
    assert [end.ifname for end in made.links[0].ends or ()] == ["a-eth0", "b-eth0"]
    assert made.links[0].directions == plan.links[0].directions
    assert made.events == plan.events


@pytest.mark.parametrize("link", ["rate: 5mbit, middlebox: {strip: all}", "rate: 5mbit, delay: 5ms"])
def test_only_what_a_device_lacks_stays_a_chain(link: str) -> None:
    made = with_chains(plan_with(link), devices=True, exact=False)
    is_chain = "middlebox" in link
    assert bool(made.network.qdiscs) == (made.links[0].ends is None) == is_chain
    assert len(made.network.veths) == (2 if is_chain else 0)


def test_changes_of_rates_are_read_also_from_plans_that_have_qdiscs() -> None:
    bucket = "rate: 8mbit, bucket: {baseline: 1mbit, burst: 1MB}"
    events = "events: [{at: 1s, set: {a-b: {bucket: {baseline: 2mbit, burst: 2MB}}}}, {at: 2s, cut: a-b}]\n"
    plan = plan_with(bucket, events)
    earlier = with_chains(plan, exact=False)
    assert {action.kind for event in earlier.events for action in event.actions} == {"change_qdisc"}
    known, read = (
        [
            (
                change.event.t_us,
                change.now.name,
                change.now.rate_bps,
                change.now.baseline_bps,
                change.now.burst_bytes,
            )
            for change in link_changes(each)
            if change.moves_rate
        ]
        for each in (plan, earlier)
    )
    assert known == read
    assert [change[2:] for change in read] == [(8_000_000, 2_000_000, 2_000_000)] * 2


def test_a_plan_with_qdiscs_stays_as_it_is() -> None:
    chain = with_chains(plan_with("rate: 5mbit"), exact=False)
    assert with_chains(chain) is chain
