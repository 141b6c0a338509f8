"""Open vSwitch's kernel datapath forwards by the plan's flows, or by the addresses that it learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.plan.shell.script import ovs_flow

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

# two core and two edge switches, three parallel links between each pair: cycles everywhere
FABRIC = """\
title: Two layers of OpenFlow switches
network:
  hosts: [h1, h2, h3]
  switches: {e1: &own {openflow: multipath}, e2: *own, c1: *own, c2: *own}
  links: {h1-e1: {}, h2-e2: {}, h3-e2: {}, LINKS}
traffic:
  - transfer: {from: h1, to: h2, bytes: 1KB, transport: tcp, count: 96}
""".replace(
    "LINKS", ", ".join(f"{e}-{c}#{n}: {{}}" for e in ("e1", "e2") for c in ("c1", "c2") for n in (1, 2, 3))
)
LEARNING = """\
title: A chain of learning switches
network:
  hosts: [h1, h2, h3]
  switches: {s1: {openflow: learning}, s2: {openflow: learning}}
  links: {h1-s1: {}, s1-s2: {rate: 20mbit, delay: 1ms}, s2-h2: {}, s2-h3: {}}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s, transport: tcp}
"""


def dumped(ran: Ran, switch: str) -> dict[str, int]:
    """Return the flows that the kernel had at the end, as text, and the packets that each has matched."""
    rows = ran.tables["counters"].filter(
        (pl.col("node") == switch) & pl.col("counter").str.starts_with("flow ")
    )
    return {
        text.removeprefix("flow "): packets for text, packets in rows.select("counter", "after").iter_rows()
    }


def carried(ran: Ran) -> dict[str, int]:
    return dict(ran.tables["links"].group_by("link").agg(pl.col("sent_packets").max()).iter_rows())


def test_the_kernel_has_the_plans_flows_and_uses_every_parallel_link(run_trial: RunTrial) -> None:
    ran = run_trial(FABRIC)
    assert len(ran.plan.network.datapaths) == 4
    for path in ran.plan.network.datapaths:
        planned = [",actions:".join(ovs_flow(path, rule)) for rule in path.rules]
        assert len(set(planned)) == len(planned)
        assert set(dumped(ran, path.netns)) == set(planned)
    packets = carried(ran)
    between = {name: n for name, n in packets.items() if name[0] in "ec" and name[4] in "ec"}
    assert len(between) == 24
    used = {name: n for name, n in between.items() if name[:2] in ("e1", "c1", "c2") and name[4:6] != "e1"}
    assert len(used) == 12
    # 96 connections of 5 packets over 6 ways, twice: one that stays empty has a chance of 12 * (5/6)^96 < 1e-6
    assert min(used.values()) >= 5, used
    assert sum(n for name, n in used.items() if name.startswith("e1")) == pytest.approx(
        packets["h1->e1"], abs=8
    )
    assert packets["e2->h3"] <= 4, "what is for h2 does not go to h3, but for an ARP request"


def test_the_hash_of_each_switch_is_its_own_and_follows_from_the_seed(run_trial: RunTrial) -> None:
    first, again, other = (run_trial(FABRIC, repeat=repeat) for repeat in (0, 0, 1))
    assert first.digest == again.digest != other.digest
    bases = {
        rule.hash_basis
        for path in first.plan.network.datapaths
        for rule in path.rules
        if rule.hash_basis is not None
    }
    assert len(bases) == 4


def test_a_learning_switch_floods_once_and_then_knows(run_trial: RunTrial) -> None:
    ran = run_trial(LEARNING)
    packets = carried(ran)
    assert packets["s2->h3"] <= 2, "only what is for everybody, or for nobody known"
    flows = dumped(ran, "s1")
    h1, h2 = "02:70:00:00:00:00", "02:70:00:00:00:05"
    assert set(flows) == {
        f"recirc_id(0),in_port(1),eth(src={h1},dst={h2}),actions:2",
        f"recirc_id(0),in_port(2),eth(src={h2},dst={h1}),actions:1",
    }
    assert min(flows.values()) > 500, "packets stay in the kernel"
    goodput = ran.tables["flows"]["received_bytes"].item() * 8
    as_bridge = run_trial(LEARNING.replace("{openflow: learning}", ""))
    assert goodput == pytest.approx(as_bridge.tables["flows"]["received_bytes"].item() * 8, rel=0.01)
