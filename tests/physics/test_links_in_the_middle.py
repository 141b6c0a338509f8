"""Links belong in the middle: the same qdiscs on the sender's own interface do not act like a link.

The right answer is arithmetic. TCP fills a drop-tail queue of N packets in front of a rate r until it overflows, so
that its RTT grows to the base RTT and N + 2 frames at r, and packets are dropped. Of the two, one is on the line, and
an acknowledgement waits for the other; in a chain, two are in the rate's bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from conftest import run_plan
from plait.plan.links.chain import with_chains
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from conftest import Ran
    from plait.engine.virtual.trial import VirtualEngine
    from plait.plan.model.plan import Plan
    from plait.plan.model.qdiscs import Qdisc

pytestmark = pytest.mark.guest

BASE_US = 10_000
QUEUE = 50
FULL_US = BASE_US + (QUEUE + 2) * 1514 * 8 / 10
LINK = f"""
title: One link
network:
  hosts: [h1, h2]
  links:
    h1-h2: {{rate: 10mbit, delay: {BASE_US // 2}us, queue: {QUEUE}pkt}}
transport: tcp
traffic:
  - bulk: {{from: h1, to: h2, duration: 10s}}
sample: 20ms
"""


def on_the_sender(plan: Plan, kinds: set[str]) -> Plan:
    """Return the plan with these qdiscs of all that leaves h1 on h1's own interfaces, as emulators often have them."""
    directions = [
        direction for link in plan.links for direction in link.directions if direction.source == "h1"
    ]
    interfaces = {direction.ifname: direction.interface for direction in directions}

    def moved(qdisc: Qdisc) -> Qdisc:
        if qdisc.ifname not in interfaces or qdisc.options.kind not in kinds:
            return qdisc
        root = {"parent": "root"} if qdisc.options.kind == "tbf" and "netem" not in kinds else {}
        return qdisc.model_copy(update={"netns": "h1", "ifname": interfaces[qdisc.ifname], **root})

    plan = with_chains(plan, exact=False)
    qdiscs = tuple(map(moved, plan.network.qdiscs))
    return plan.model_copy(update={"network": plan.network.model_copy(update={"qdiscs": qdiscs})})


@pytest.fixture(scope="module")
def trials(engine: VirtualEngine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    plan = resolve(expand(parse(LINK, "test.yaml"))[0].scenario, 1)
    plans = {
        "link": plan,
        "rate on the sender": on_the_sender(plan, {"tbf", "pfifo"}),
        "all on the sender": on_the_sender(plan, {"netem", "tbf", "pfifo"}),
    }
    return {
        name: run_plan(engine, trial_plan, tmp_path_factory.mktemp("trial"))
        for name, trial_plan in plans.items()
    }


def longest_rtt_us(ran: Ran) -> int:
    """Return the longest smoothed RTT after the first second."""
    rows = ran.series("subflows", side="client").filter(pl.col("t_us") > 1_000_000)
    return rows["rtt_us"].max()


def retransmits(ran: Ran) -> int:
    return ran.series("subflows", side="client")["retransmitted_segments"].max()


def test_a_link_in_the_middle_is_filled_to_its_last_packet(trials: dict[str, Ran]) -> None:
    ran = trials["link"]
    assert 0.93 * FULL_US < longest_rtt_us(ran) <= FULL_US + 10
    assert 0 < ran.series("links", link="h1->h2")["overflow_packets"].max() == retransmits(ran)


def test_a_rate_on_the_sender_is_felt_before_its_queue_fills(trials: dict[str, Ran]) -> None:
    """TCP small queues leave no more than a few frames below TCP: no packet is ever lost, and the queue stays short."""
    ran = trials["rate on the sender"]
    assert retransmits(ran) == 0
    assert longest_rtt_us(ran) < BASE_US + 0.2 * (FULL_US - BASE_US)


def test_a_queue_on_the_sender_holds_more_than_it_says(trials: dict[str, Ran]) -> None:
    """What netem has taken is no longer the sender's, and a packet there is a buffer of several segments."""
    assert longest_rtt_us(trials["all on the sender"]) > 1.3 * FULL_US


TWO_PATHS = f"""
title: Two paths of 10 and 50 ms
network:
  hosts: [h1, h2]
  links:
    h1-h2: {{rate: 10mbit, delay: 5ms, queue: {QUEUE}pkt}}
    h1-h2#2: {{rate: 10mbit, delay: 25ms, queue: {QUEUE}pkt}}
transport: mptcp
traffic:
  - bulk: {{from: h1, to: h2, duration: 10s}}
sample: 20ms
"""


def of_the_longer_path(ran: Ran) -> tuple[int, int]:
    """Return its longest smoothed RTT after the first second, and its retransmissions."""
    second = ran.series("subflows", side="client", local_address="10.0.1.1")
    late = second.filter(pl.col("t_us") > 1_000_000)
    return late["rtt_us"].max(), second["retransmitted_segments"].max()


def test_mptcp_schedules_over_the_plans_queues_only_where_the_sender_does_not_hold_them(
    engine: VirtualEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The scheduler goes by what each subflow has queued and how fast that drains.

    In the middle no RTT exceeds what the plan's queue can hold, and what is sent again is what the link has dropped.
    With the same qdiscs on the sender's own interfaces a queue holds buffers of several segments, and neither is so.
    """
    plan = resolve(expand(parse(TWO_PATHS, "test.yaml"))[0].scenario, 1)
    middle = run_plan(engine, plan, tmp_path_factory.mktemp("trial"))
    moved = on_the_sender(plan, {"netem", "tbf", "pfifo"})
    sender = run_plan(engine, moved, tmp_path_factory.mktemp("trial"))
    most_us = 50_000 + (QUEUE + 2) * 1514 * 8 / 10
    rtt_us, again = of_the_longer_path(middle)
    assert rtt_us <= most_us + 10
    assert again == middle.series("links", link="h1->h2#2")["overflow_packets"].max()
    rtt_there_us, again_there = of_the_longer_path(sender)
    assert rtt_there_us > 1.2 * most_us
    assert again_there > 3 * max(again, 1)
