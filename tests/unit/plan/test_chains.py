"""Kernels get links as devices or as chains, with lines of netem where these do exactly what a token bucket does."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from plait.plan.links.chain import METHOD, with_chains
from plait.plan.links.changes import link_changes
from plait.plan.model.plan import ChangeQdisc
from plait.plan.model.qdiscs import Netem, Tbf
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
    """Return the kinds of the qdiscs of the direction from a to b, in the order in which packets pass them."""
    plan = resolve(expand(parse(TEXT.replace("LINK", link) + more, "test.yaml"))[0].scenario, 1)
    chain = with_chains(plan)
    leaves, queued = (each.links[0].directions[0].ifname for each in (plan, chain))
    order = [queued] if queued == leaves else [queued, leaves]
    return [qdisc.options.kind for name in order for qdisc in chain.network.qdiscs if qdisc.ifname == name]


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
    ("link", "more", "queue"),
    [
        ("rate: 5mbit", "events: [{at: 2s, set: {a-b: {rate: 2mbit}}}]\n", "pfifo"),  # queued packets follow
        ("rate: 5mbit", "events: [{at: 2s, set: {a-b: {queue: 9pkt}}}]\n", "pfifo"),
        ("rate: 5mbit, queue: 64KiB", "", "bfifo"),  # netem counts packets
        ("rate: 5mbit, duplicate: 1%", "", "pfifo"),  # Linux refuses a second netem on the interface
        ("rate: 5mbit", "events: [{at: 2s, set: {a-b: {duplicate: 1%}}}]\n", "pfifo"),
        ("rate: 5mbit, aqm: codel", "", "codel"),
        ("rate: 5mbit, bucket: {baseline: 1mbit, burst: 1MB}", "", "pfifo"),
    ],
)
def test_a_line_follows_a_bucket_where_netem_cannot_hold_the_queue(link: str, more: str, queue: str) -> None:
    assert kinds_of(link, more) == ["netem", "tbf", queue, "netem"]


def test_the_bucket_in_front_of_a_line_holds_one_frame_and_what_passes_while_a_timer_is_late() -> None:
    plan = plan_with("rate: 400mbit, queue: 64KiB")
    (bucket, _) = (q.options for q in with_chains(plan).network.qdiscs if isinstance(q.options, Tbf))
    assert (bucket.rate_bps, bucket.burst_bytes) == (400_000_000, 1514 + 1000)


def test_the_queue_in_front_of_a_line_is_on_an_ifb_that_returns_frames_to_the_line() -> None:
    plan = plan_with("rate: 5mbit, aqm: codel")
    made = with_chains(plan)
    leave, queued = ([side.ifname for side in each.links[0].directions] for each in (plan, made))
    assert queued == [ifb.ifname for ifb in made.network.ifbs]
    added = made.network.redirects[len(plan.network.redirects) :]
    assert [(each.source, each.target, each.hook) for each in added] == [
        (source, target, "egress") for source, target in zip(leave, queued, strict=True)
    ]


def test_a_change_of_the_rate_changes_the_bucket_and_the_line() -> None:
    made = with_chains(plan_with("rate: 5mbit", "events: [{at: 2s, set: {a-b: {rate: 2mbit}}}]\n"))
    changes = [action.qdisc for action in made.events[0].actions if isinstance(action, ChangeQdisc)]
    rates = [change.options.rate_bps for change in changes if isinstance(change.options, (Tbf, Netem))]
    assert rates == [2_000_000] * 4, "of both directions"


def test_a_direction_with_a_shared_bucket_has_no_line() -> None:
    """Its interface redirects to the ifb of the bucket already."""
    bucket = "bucket: {peak: 9mbit, baseline: 1mbit, burst: 1MB}"
    text = TEXT.replace("LINK", "rate: 5mbit, aqm: codel").replace("[a, b]", f"{{a: {{{bucket}}}, b: {{}}}}")
    plan = resolve(expand(parse(text, "test.yaml"))[0].scenario, 1)
    made = with_chains(plan)
    shared = {name for each in plan.buckets for name in each.directions}
    kept = {side.name: side.ifname for side in plan.links[0].directions}
    for side in made.links[0].directions:
        assert (side.ifname == kept[side.name]) == (side.name in shared)


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


def test_the_number_of_the_method_rises_with_other_chains() -> None:
    """A store would otherwise answer with trials over the chains of an earlier version: change both numbers."""
    links = (
        "rate: 5mbit, delay: 5ms",
        "rate: 5mbit, aqm: codel",
        "rate: 5mbit, queue: 64KiB, loss: 1%",
        "delay: 5ms",
    )
    chains = [with_chains(plan_with(link)).network.model_dump_json() for link in links]
    assert (METHOD, sha256("".join(chains).encode()).hexdigest()[:12]) == (2, "f000951d89ff")
