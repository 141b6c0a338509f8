"""Small generated networks show their characteristic behaviour on the real kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.analysis.metrics.trial import trial_metrics
from plait.plan.shell.script import ovs_flow

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

KHALILI = """\
title: Scenario A in short
network: {generator: khalili-a, n1: 20}
mptcp: {scheduler: minrtt}
traffic:
  - pairs: {from: server1, to: multi*, each: {bulk: {duration: 45s, reverse: true, start_jitter: 3s, group: type1}}}
  - pairs:
      from: server2
      to: single*
      each:
        bulk: {duration: 45s, reverse: true, start_jitter: 3s, transport: tcp, congestion_control: reno, group: type2}
measure: {from: 15s, to: 42s}
tcp: {congestion_control: CC}
sample: 1s
"""
TREE = """\
title: Two layers of OpenFlow switches
network: {generator: two-layer-tree, edges: 2, parallel: 3, hosts_per_edge: 4, rate: 20mbit}
mptcp: {subflows_per_path: 8}
traffic: [{pairs: {from: "e1h*", to: "e2h*", each: {bulk: {duration: 2s}}}}]
"""
TOPOLOGY_A = """\
title: Access points that are OpenFlow switches
network: {generator: topology-a, n1: 2, n2: 2, c1: 5mbit, c2: 5mbit, subflows: 4}
traffic:
  - pairs: {from: server1, to: multi*, each: {bulk: {duration: 5s, reverse: true}}}
  - pairs: {from: server2, to: single*, each: {bulk: {duration: 5s, reverse: true, transport: tcp}}}
"""
NAT = """\
title: A tracker outside, and a transfer over each kind of path
network: {generator: behind-nat}
traffic:
  - request: {name: ask, from: ns2, to: tracker, response: 1KB, requests: 1, transport: tcp, background: true}
  - transfer: {name: local, from: ns1, to: ns2, bytes: 2MB, via: ns1-r1, after: ask}
  - transfer: {name: global, from: ns1, to: ns2, bytes: 200KB, via: ns1-nat, transport: tcp, after: local}
"""
REGION = """\
title: A burst allowance that is spent
network: {generator: regions, rate: 10mbit, delay: 2ms, burst: 9MB, baseline: 4mbit}
traffic: [{transfer: {from: client, to: server, bytes: 3MB, rounds: 5}}]
transport: CC
"""


def type2_mbps(run_trial: RunTrial, congestion_control: str) -> float:
    ran = run_trial(KHALILI.replace("CC", congestion_control))
    metrics = trial_metrics(ran.plan, ran.tables)
    type1, type2 = (metrics[f"{group}.mean_steady_goodput_bps"] for group in ("type1", "type2"))
    assert type1 is not None
    assert type2 is not None
    assert 0.85e6 < type1 < 1e6 * 1428 / 1514, "the server's link is full, and nothing is gained"
    return type2 / 1e6


def test_in_khalilis_scenario_a_olia_leaves_tcp_users_more_than_lia_and_lia_more_than_reno_and_cubic(
    run_trial: RunTrial,
) -> None:
    left = {name: type2_mbps(run_trial, name) for name in ("olia", "lia", "reno", "cubic")}
    assert left["olia"] > 1.15 * left["lia"], left
    assert left["lia"] > 1.1 * max(left["reno"], left["cubic"]), left


def used_links(ran: Ran) -> dict[str, int]:
    return dict(ran.tables["links"].group_by("link").agg(pl.col("sent_packets").max()).iter_rows())


def test_the_two_layer_tree_uses_every_parallel_link_by_the_plans_flows(run_trial: RunTrial) -> None:
    ran = run_trial(TREE)
    packets = used_links(ran)
    up = [f"e1->c{core}{number}" for core in (1, 2) for number in ("", "#2", "#3")]
    assert all(packets[link] > 200 for link in up), {link: packets[link] for link in up}
    for path in ran.plan.network.datapaths:
        planned = {",actions:".join(ovs_flow(path, rule)) for rule in path.rules}
        rows = ran.tables["counters"].filter(
            (pl.col("node") == path.netns) & pl.col("counter").str.starts_with("flow ")
        )
        assert {text.removeprefix("flow ") for text in rows["counter"]} == planned
    goodput = ran.tables["flows"]["received_bytes"].sum() * 8 / 2
    assert goodput > 0.5 * 4 * 20e6, "four hosts at 20 Mbit/s each, over six links of as much"


def test_in_topology_a_every_subflow_carries_data_through_its_own_access_point(run_trial: RunTrial) -> None:
    ran = run_trial(TOPOLOGY_A)
    last = ran.series("subflows", side="server", flow=0).group_by("subflow").last()
    assert len(last) == 4
    assert last["sent_bytes"].min() > 100_000
    packets = used_links(ran)
    assert all(packets[f"core->{access}"] > 100 for access in ("own1", "own2", "own3", "ap"))


def test_behind_nat_the_tracker_sees_the_gateway_and_hosts_inside_see_each_other(run_trial: RunTrial) -> None:
    ran = run_trial(NAT)
    assert ran.tables["flows"]["completed"].all()
    outside = next(
        address.split("/")[0]
        for veth in ran.plan.network.veths
        if veth.a.ifname == ran.plan.network.nats[0].outside[0]
        for address in veth.a.addresses
    )
    seen = ran.series("subflows", flow=0, side="server")["remote_address"].unique().to_list()
    assert seen == [outside], "ns2 asked, and the tracker knows the gateway's address only"
    asked = ran.plan.flows[0].client.address
    assert asked != outside
    inside = ran.series("subflows", flow=2, side="server")["remote_address"].unique().to_list()
    assert inside == [ran.plan.flows[2].client.address], "between hosts inside nothing is translated"
    rows = {row["name"]: row for row in ran.tables["flows"].iter_rows(named=True)}
    took = rows["global"]["end_us"] - rows["global"]["start_us"]
    assert took > 200_000 * 8 / 5 + 100_000, "5 Mbit/s, and a round trip of 100 ms"


def test_a_regions_bucket_makes_two_paths_twice_as_fast_until_it_is_spent(run_trial: RunTrial) -> None:
    took = {}
    for transport in ("tcp", "mptcp"):
        rows = run_trial(REGION.replace("CC", transport)).tables["flows"].sort("flow")
        took[transport] = ((rows["end_us"] - rows["start_us"]) / 1e6).to_list()
    first, last = (took["tcp"][n] / took["mptcp"][n] for n in (0, 4))
    assert 1.8 < first < 2.05, took
    # Both directions of a path have buckets of their own; 3 MB of 4 Mbit/s take 6.3 s with headers.
    assert took["mptcp"][4] == pytest.approx(3e6 * 8 / 4e6 * 1514 / 1424, rel=0.05)
    assert took["mptcp"][4] > 2 * took["tcp"][0]
    assert last < 1.05, took
