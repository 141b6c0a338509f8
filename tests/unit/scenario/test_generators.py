"""Generators build what arithmetic says, accept a person's own fields on top, and locate mistakes."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import pytest

from plait.plan.resolve import resolve
from plait.scenario import Scenario, parse
from plait.scenario.generators.kinds import KINDS
from plait.scenario.names import read_link_name
from plait.scenario.vary.cases import expand
from scenario_samples import all_plans, mistakes_as_text, plan_of

if TYPE_CHECKING:
    from plait.scenario.fields.network import NetworkSpec

MESH = "generator: fat-tree, k: 4"
BULK = "each: {bulk: {duration: 1s}}"


def network(**fields: Any) -> NetworkSpec:
    return Scenario.model_validate(
        {
            "title": "t",
            "network": fields,
            "traffic": [{"permutation": {"each": {"bulk": {"duration": "1s"}}}}],
        }
    ).network


def text(fields: str, more: str = "") -> str:
    return f"title: t\nnetwork: {{{fields}}}\n{more}"


def link_ends(net: NetworkSpec) -> list[tuple[str, str]]:
    nodes = {**net.hosts, **net.switches, **net.routers}
    names = [read_link_name(key, nodes) for key in net.links]
    return [(name.a, name.b) for name in names]


def neighbours(net: NetworkSpec) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {}
    for a, b in link_ends(net):
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    return near


def shortest_paths(net: NetworkSpec, source: str, target: str) -> tuple[int, int]:
    """(links on the shortest paths, how many there are), parallel links counted apart."""
    near, far, count = neighbours(net), {source: 0}, Counter({source: 1})
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in far:
                far[other] = far[node] + 1
                waiting.append(other)
            if far[other] == far[node] + 1:
                count[other] += count[node]
    return far[target], count[target]


# structure


@pytest.mark.parametrize("name", KINDS)
def test_a_name_alone_gives_a_network_with_traffic_that_can_be_planned(name: str) -> None:
    plan = plan_of(text(f"generator: {name}"))
    assert plan.flows
    assert all(flow.paths for flow in plan.flows)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_a_fat_tree_has_the_sizes_and_path_counts_of_its_definition(k: int) -> None:
    net = network(generator="fat-tree", k=k)
    assert len(net.hosts) == k**3 // 4
    assert len(net.routers) == 5 * k**2 // 4
    assert len(net.links) == 3 * k**3 // 4
    degrees = {node: len(near) for node, near in neighbours(net).items()}
    assert {degrees[router] for router in net.routers} == {k}
    assert {degrees[host] for host in net.hosts} == {1}
    last_pod = f"p{k - 1}e0h0"
    assert shortest_paths(net, "p0e0h0", last_pod) == (6, (k // 2) ** 2)
    if k > 2:
        assert shortest_paths(net, "p0e0h0", "p0e1h0") == (4, k // 2)
        assert shortest_paths(net, "p0e0h0", "p0e0h1") == (2, 1)


def test_two_layers_fill_the_36_ports_of_the_published_switches() -> None:
    net = network(generator="two-layer-tree")
    degrees = {node: len(near) for node, near in neighbours(net).items()}
    assert {degrees[node] for node in degrees if node not in net.hosts} == {36}
    assert len(net.hosts) == 72
    assert Counter(map(frozenset, link_ends(net)))[frozenset(("e1", "c2"))] == 9


def test_two_layers_are_openflow_switches_or_routers_with_ecmp() -> None:
    small = "generator: two-layer-tree, edges: 2, parallel: 2, hosts_per_edge: 1"
    switched, routed = plan_of(text(small)), plan_of(text(f"{small}, forwarding: ecmp"))
    assert {path.netns for path in switched.network.datapaths} == {"c1", "c2", "e1", "e2"}
    assert not any(node.role == "router" for node in switched.network.namespaces)
    assert not routed.network.datapaths
    assert {node.name for node in routed.network.namespaces if node.role == "router"} == {
        "c1",
        "c2",
        "e1",
        "e2",
    }


def test_n_paths_are_disjoint_and_have_their_own_conditions() -> None:
    plan = plan_of(
        text("generator: n-paths, n: 3, rates: [1mbit, 2mbit, 3mbit], delays: [10ms, 21ms, 33ms], losses: 1%")
    )
    paths = plan.flows[0].paths
    assert [path.rate_bps for path in paths] == [1_000_000, 2_000_000, 3_000_000]
    assert [path.base_rtt_us for path in paths] == [20_000, 42_000, 66_000]
    crossed = [name for path in paths for name in path.forward]
    assert len(set(crossed)) == len(crossed) == 6
    losses = {d.name: d.loss_ratio for link in plan.links for d in link.directions}
    assert [losses[name] for name in paths[0].forward] == [0.01, 0]
    assert [losses[name] for name in paths[0].backward] == [0.01, 0]


def test_sigmoid_delays_follow_the_formula() -> None:
    plan = plan_of(text("generator: n-paths, n: 5, delays: {min: 10ms, max: 200ms, half: 3, slope: 0.5}"))
    rtts = [path.base_rtt_us / 2000 for path in plan.flows[0].paths]
    # min + max / (1 + exp((x - half) / slope)) for x = 1, .., 5, by hand
    assert rtts == pytest.approx([206.4027580, 186.1594156, 110, 33.8405844, 13.5972420], abs=1e-5)


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (10, 10), (30, 10)])
def test_khalili_a_has_the_capacities_of_the_paper(n1: int, n2: int) -> None:
    plan = plan_of(text(f"generator: khalili-a, n1: {n1}, n2: {n2}, c1: 1mbit, c2: 2mbit"))
    rates = {d.name: d.rate_bps for link in plan.links for d in link.directions if d.rate_bps}
    assert rates == {
        "server1->core": n1 * 10**6,
        "core->server1": n1 * 10**6,
        "core->ap": n2 * 2 * 10**6,
        "ap->core": n2 * 2 * 10**6,
    }
    multi = [flow for flow in plan.flows if "multi" in flow.name]
    single = [flow for flow in plan.flows if "single" in flow.name]
    assert (len(multi), len(single)) == (n1, n2)
    for flow in multi:
        private, shared = flow.paths
        assert "server1->core" in private.forward
        assert "server1->core" in shared.forward
        assert "core->ap" in shared.forward
        assert "core->ap" not in private.forward
    for flow in single:
        assert flow.transport == "tcp"
        assert [path.forward[1] for path in flow.paths] == ["core->ap"]
    assert {path.base_rtt_us for flow in plan.flows for path in flow.paths} == {80_000}


@pytest.mark.parametrize(("n1", "expected"), [(10, (25, 50, 100)), (30, (75, 150, 300)), (1, (2, 5, 10))])
def test_khalilis_bottlenecks_have_the_published_red_scaled_with_their_rate(
    n1: int, expected: tuple[int, ...]
) -> None:
    plan = plan_of(text(f"generator: khalili-a, n1: {n1}"))
    managed = [side.manager for link in plan.links for side in link.directions if side.aqm == "plait_red"]
    curves = [
        (red.weight_log, tuple((at / 256, round(share / (2**32 - 1), 6)) for at, share in red.points))
        for red in managed
    ]
    scaled = [(0, tuple(zip(counts, (0, 0.1, 1), strict=True))) for counts in (expected, (25, 50, 100))]
    assert sorted(curves) == sorted(scaled * 2), "the server's link and the access point's, both ways"


def test_khalilis_bottlenecks_may_drop_at_the_tail_instead() -> None:
    plan = plan_of(text("generator: khalili-a, aqm: droptail, queue: 33pkt"))
    queues = {d.name: d.queue_packets for link in plan.links for d in link.directions if d.rate_bps}
    assert queues == dict.fromkeys(("server1->core", "core->server1", "core->ap", "ap->core"), 33)


def test_khalili_b_leads_every_path_over_the_bottlenecks_that_its_rates_demand() -> None:
    plan = plan_of(text("generator: khalili-b"))
    crossed = {
        kind: [
            {name for name in path.forward if name in ("xin->xout", "tin->tout")}
            for path in next(flow for flow in plan.flows if kind in flow.name).paths
        ]
        for kind in ("blue", "red")
    }
    assert crossed == {
        "blue": [{"xin->xout"}, {"tin->tout"}],
        "red": [{"tin->tout"}, {"tin->tout", "xin->xout"}],
    }
    for flow in plan.flows:  # acknowledgements come back the same way
        for path in flow.paths:
            assert [set(name.split("->")) for name in path.backward] == [
                set(name.split("->")) for name in reversed(path.forward)
            ]
    rates = {d.name: d.rate_bps for link in plan.links for d in link.directions}
    assert (rates["xin->xout"], rates["tin->tout"]) == (27_000_000, 36_000_000)


def test_topology_a_has_as_many_subflows_as_asked_one_of_them_shared() -> None:
    plan = plan_of(text("generator: topology-a, n1: 2, n2: 1, subflows: 5"))
    flow = plan.flows[0]
    assert len(flow.paths) == 5
    assert ["core->ap" in path.forward for path in flow.paths] == [False] * 4 + [True]
    assert {path.netns for path in plan.network.datapaths} == {"own1", "own2", "own3", "own4", "ap"}


def test_behind_nat_only_what_leaves_for_the_outside_is_translated() -> None:
    plan = plan_of(text("generator: behind-nat"))
    (nat,) = plan.network.nats
    assert nat.netns == "nat"
    assert len(nat.outside) == 1
    assert ["ns1->nat" in path.forward for path in plan.flows[0].paths] == [False, False, True]
    assert mistakes_as_text(
        text("generator: behind-nat", "traffic: [{bulk: {from: tracker, to: ns1, duration: 1s}}]")
    )


def test_a_regions_interfaces_share_a_bucket_where_mptcp_brought_nothing() -> None:
    assert not plan_of(text("generator: regions, region: us-west-2")).buckets
    inward, outward = plan_of(text("generator: regions, region: ap-northeast-1")).buckets
    assert {len(bucket.directions) for bucket in (inward, outward)} == {2}
    assert (inward.peak_bps, inward.baseline_bps, inward.burst_bytes) == (
        116_000_000,
        29_000_000,
        240_000_000,
    )
    (local, _) = plan_of(text("generator: regions, rate: 8mbit, burst: 1MB, baseline: 1mbit")).buckets
    assert (local.peak_bps, local.baseline_bps, local.burst_bytes) == (16_000_000, 1_000_000, 1_000_000)


# a person's own fields


def test_written_nodes_links_and_conditions_extend_generated_ones() -> None:
    plan = plan_of(
        text(
            "generator: n-paths, n: 2, rates: 8mbit, hosts: [h3], "
            "links: {'h1-*': {queue: 33pkt}, h1-s2: {rate: 3mbit}, s1-h3: {rate: 1mbit}}"
        )
    )
    queues = {d.name: (d.rate_bps, d.queue_packets) for link in plan.links for d in link.directions}
    assert queues["h1->s1"] == (8_000_000, 33)
    assert queues["h1->s2"] == (3_000_000, 33)
    assert queues["s1->h2"][1] != 33
    assert queues["s1->h3"][0] == 1_000_000


def test_exact_names_win_over_patterns_whatever_their_order() -> None:
    plan = plan_of(
        text(
            "generator: n-paths, links: {h1-s1: {loss: 2%}, '*': {loss: 1%}, '*-h2': {mtu: 1400}, 'h1-*': {mtu: 1400}}"
        )
    )
    losses = {d.name: d.loss_ratio for link in plan.links for d in link.directions}
    assert losses["h1->s1"] == 0.02
    assert losses["h1->s2"] == 0.01
    assert {veth.mtu for veth in plan.network.veths} == {1400}


def test_parameters_vary_and_can_be_set() -> None:
    plans = all_plans(
        text("generator: n-paths, rates: [1mbit, 2mbit]", "vary: {network.rates.1: [3mbit, 4mbit]}")
    )
    assert [plan.flows[0].paths[1].rate_bps for plan in plans] == [3_000_000, 4_000_000]
    plans = all_plans(text("generator: dumbbell", "vary: {network.n: [1, 3]}"))
    assert [len(plan.flows) for plan in plans] == [1, 3]
    plan = plan_of(text("generator: fat-tree"), "network.k=2")
    assert len(plan.links) == 6


def test_generated_links_can_be_set_and_varied_by_their_names_and_by_patterns() -> None:
    plan = plan_of(
        text("generator: fat-tree, k: 2, links: {p0a0-c0: {rate: 9mbit}}"), "network.links.*-c0.rate=7mbit"
    )
    rates = {link.name: link.directions[0].rate_bps for link in plan.links}
    assert {name for name, rate in rates.items() if rate == 7_000_000} == {"p0a0-c0", "p1a0-c0"}
    plans = all_plans(text("generator: n-paths", "vary: {network.links.h1-s1.delay: [1ms, 2ms]}"))
    assert [plan.links[0].directions[0].delay_ns for plan in plans] == [1_000_000, 2_000_000]


def test_a_dumped_scenario_keeps_its_generator_and_resolves_alike() -> None:
    scenario = parse(text("generator: fat-tree, k: 2, links: {p0a0-c0: {loss: 1%}}", "seed: 3"), "t.yaml")
    dumped = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert dumped["network"] == {"generator": "fat-tree", "k": 2, "links": {"p0a0-c0": {"loss": "1%"}}}
    again = Scenario.model_validate(dumped)
    assert resolve(expand(again)[0].scenario, 1) == resolve(expand(scenario)[0].scenario, 1)


def test_python_takes_quantities_where_a_file_has_text() -> None:
    from plait.units import Rate

    scenario = Scenario.model_validate(
        {"title": "t", "network": {"generator": "n-paths", "rates": [Rate.parse("3mbit")]}, "traffic": None}
        | {"traffic": [{"bulk": {"from": "h1", "to": "h2", "duration": "1s"}}]}
    )
    assert expand(scenario)[0].scenario.network.links["h1-s1"].rate == 3_000_000


# mistakes


@pytest.mark.parametrize(
    ("fields", "more", "expected"),
    [
        ("generator: fat-tree, k: 5", "", "t.yaml:2:32: network.k: 5 is odd"),
        ("generator: fat-tree, k: 0", "", "network.k: 0 is out of range; write at least 2"),
        ("generator: fat-tree, k: 18", "", "network.k: 18 leads to too many links, and a network has at most 4096"),
        ("generator: fat-tree, k: 1000000000", "", "write a smaller value"),
        ("generator: fat-tree, k: four", "", "'four' is not a whole number"),
        ("generator: fat-tree, rate: 5", "", "network.rate: 5 has no unit"),
        ("generator: fattree", "", "t.yaml:2:11: network.generator: no generator is called 'fattree'; did you mean"),
        ("generator: [a]", "", "no generator is called"),
        ("generator: n-paths, n: 0", "", "network.n: 0 is out of range"),
        ("generator: n-paths, n: 10", "", "write at most 9"),
        ("generator: n-paths, nn: 2", "", "network.nn: there is no such field here; did you mean 'n'?"),
        ("generator: n-paths, n: 3, rates: [1mbit, 2mbit]", "", "network.rates: there are 2 values for 3 paths"),
        ("generator: n-paths, rates: [1mbit, fast]", "", "network.rates.1: 'fast' is not a rate"),
        ("generator: n-paths, jitters: 8ms", "", "more than half of path 1's delay (5ms)"),
        ("generator: n-paths, delays: {min: 1ms, slope: 0}", "", "slope"),
        (
            "generator: n-paths, links: {'h3-*': {loss: 1%}}",
            "",
            "network.links.h3-*: nothing that n-paths generates matches",
        ),
        ("generator: n-paths, links: {h1-s1: {lost: 1%}}", "", "network.links.h1-s1.lost: there is no such field here"),
        ("generator: n-paths, links: {h1-x: {}}", "", "network.links.h1-x: no node is called 'x'"),
        ("generator: n-paths, links: 5", "", "network.links: this is not a mapping"),
        ("generator: khalili-a, n1: 0", "", "network.n1: 0 is out of range"),
        ("generator: khalili-a, n1: 100, c1: 1tbit", "", "network.c1: n1 users of 1tbit each"),
        ("generator: khalili-a, n1: 3000", "", "3000 leads to too many links"),
        ("generator: dumbbell, n: 3, access_delays: [1ms, 2ms]", "", "there are 2 values for 3 pairs"),
        ("generator: two-layer-tree, parallel: 1000", "", "a network has at most 4096"),
        ("generator: two-layer-tree, edges: 1, hosts_per_edge: 1", "", "the network has one host, but needs two"),
        ("generator: khalili-a, queue: 33pkt", "", "network.queue: red sets the queue length itself"),
        ("generator: regions, baseline: 1mbit", "", "network.baseline: fixed-10m has no bucket"),
        ("generator: regions, region: us-west-3", "", "did you mean 'us-west-2'?"),
        ("generator: behind-nat, local_delays: [1ms, 2ms, 3ms]", "", "there are 3 values for 2 local paths"),
        ("generator: n-paths", "vary: {network.n: [2, 12]}", "vary.network.n.1: network.n: 12 is out of range"),
        ("generator: n-paths", "vary: {network.m: [2]}", "network.m: there is no such field here"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_where_a_person_can_correct_them(fields: str, more: str, expected: str) -> None:
    assert expected in mistakes_as_text(text(fields, more))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "permutation: {each: {bulk: {durration: 1s}}}",
            "permutation.each.bulk.durration: there is no such field here",
        ),
        (
            "permutation: {}",
            "permutation.each: this field is missing; write for example each: {bulk: {duration: 10s}}",
        ),
        ("permutation: {seed: x, " + BULK + "}", "permutation.seed: 'x' is not a whole number"),
        ("permutation: {each: {bulk: {duration: 1s, to: h1}}}", "the permutation sets 'to' itself"),
        (
            "permutation: {hosts: p0e0h0, " + BULK + "}",
            "a permutation needs two hosts, but p0e0h0 is the only one",
        ),
        ("permutation: {hosts: 'x*', " + BULK + "}", "no host matches 'x*'"),
        ("permutation: {each: {}}", "each must be one entry of the traffic without its ends"),
        (
            "permutation: {" + BULK + "}, bulk: {}",
            "traffic.0.bulk: this entry of the traffic has permutation already",
        ),
        (
            "pairs: {from: 'p0*', to: 'p1e0*', " + BULK + "}",
            "there are 4 sending hosts and 2 receiving hosts",
        ),
        ("pairs: {from: 'p0*', to: p0e0h1, " + BULK + "}", "'p0e0h1' sends to itself"),
    ],
)
def test_mistakes_of_generated_traffic_are_reported_at_its_entry(entry: str, expected: str) -> None:
    report = mistakes_as_text(text(MESH, "traffic: [{" + entry + "}]"))
    assert expected in report
    assert report.startswith("t.yaml:3:")


def test_mistakes_in_an_option_are_reported_at_the_option() -> None:
    assert "--set network.k=7: network.k: 7 is odd" in mistakes_as_text(
        text("generator: fat-tree"), "network.k=7"
    )
    assert "did you mean 'h1-s2'?" in mistakes_as_text(
        text("generator: n-paths"), "network.links.h1-s3.rate=1mbit"
    )


def test_all_mistakes_of_a_generator_are_reported_at_once() -> None:
    report = mistakes_as_text(text("generator: fat-tree, k: 5, rate: 3", "transport: mtcp\nseed: -1"))
    for part in ("network.rate", "transport", "seed"):
        assert part in report


def test_a_mistake_in_generated_traffic_is_reported_once() -> None:
    report = mistakes_as_text(
        text("generator: fat-tree", "traffic: [{permutation: {each: {bulk: {duration: 1}}}}]")
    )
    assert report.count("has no unit") == 1
    assert report.startswith("t.yaml:3:")
