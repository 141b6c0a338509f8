"""Chains of stock kernels have lines of netem wherever these do what a token bucket and its queue do, but exactly."""

from __future__ import annotations

import pytest

from plait.plan.links.chain import with_chains
from plait.plan.model.qdiscs import Netem
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

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
