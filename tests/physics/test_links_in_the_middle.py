"""Why links are in the middle: the same qdiscs on the sender's own interface do not do what a link does.

The right answer is arithmetic. TCP fills a drop-tail queue of N packets in front of a rate r until it overflows, so
that its RTT grows to the base RTT and N + 2 frames (two are the rate's bucket) at r, and packets are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from conftest import run_plan
from plait.plan.expand import expand
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from conftest import Ran
    from plait.plan.model import Plan
    from plait.plan.qdiscs import Qdisc
    from plait.run.virtual import VirtualEngine

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
    """The plan with these qdiscs of `h1->h2` on h1's own interface, as emulators often have them."""
    (out, _) = plan.links[0].directions
    (own,) = (veth.a.ifname for veth in plan.network.veths if veth.a.netns == "h1")

    def moved(qdisc: Qdisc) -> Qdisc:
        if qdisc.ifname != out.ifname or qdisc.options.kind not in kinds:
            return qdisc
        root = {"parent": "root"} if qdisc.options.kind == "tbf" and "netem" not in kinds else {}
        return qdisc.model_copy(update={"netns": "h1", "ifname": own, **root})

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
    return {name: run_plan(engine, one, tmp_path_factory.mktemp("trial")) for name, one in plans.items()}


def longest_rtt_us(ran: Ran) -> int:
    """The longest smoothed RTT after the first second."""
    rows = ran.series("subflows", side="client").filter(pl.col("t_us") > 1_000_000)
    return rows["rtt_us"].max()  # type: ignore[return-value]


def retransmits(ran: Ran) -> int:
    return ran.series("subflows", side="client")["retransmitted_segments"].max()  # type: ignore[return-value]


def test_a_link_in_the_middle_is_filled_to_its_last_packet(trials: dict[str, Ran]) -> None:
    ran = trials["link"]
    assert 0.93 * FULL_US < longest_rtt_us(ran) <= FULL_US + 10
    assert 0 < ran.series("links", link="h1->h2")["overflow_packets"].max() == retransmits(ran)  # type: ignore[operator]


def test_a_rate_on_the_sender_is_felt_before_its_queue_fills(trials: dict[str, Ran]) -> None:
    """TCP small queues leave no more than a few frames below TCP: no packet is ever lost, and the queue stays short."""
    ran = trials["rate on the sender"]
    assert retransmits(ran) == 0
    assert longest_rtt_us(ran) < BASE_US + 0.2 * (FULL_US - BASE_US)


def test_a_queue_on_the_sender_holds_more_than_it_says(trials: dict[str, Ran]) -> None:
    """What netem has taken is no longer the sender's, and a packet there is a buffer of several segments."""
    assert longest_rtt_us(trials["all on the sender"]) > 1.3 * FULL_US
