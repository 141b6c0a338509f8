"""Networks of every shape get their addresses, segments, names and routes."""

from __future__ import annotations

import time
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_interface, ip_network
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.plan.routes.tables import _collapsed, _prefix
from plait.plan.traffic.flow_paths import maximum_flow
from scenario_samples import ISLANDS, MESH, TWO, WORK_S, direct, mistakes_as_text, plan_of

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan


def addresses(plan: Plan) -> dict[str, str]:
    return {v.a.ifname: v.a.addresses[0] for v in plan.network.veths if v.a.addresses}


def routes(plan: Plan, node: str, table: int = 254) -> list[tuple[str, str | None, str | None]]:
    return [
        (r.destination, r.via, r.device) for r in plan.network.routes if r.netns == node and r.table == table
    ]


def star(hosts: int, middle: str = "switches") -> str:
    names = [f"h{i}" for i in range(hosts)]
    links = ", ".join(f"{name}-m: {{}}" for name in names)
    return (
        f"title: t\nnetwork: {{hosts: [{', '.join(names)}], {middle}: [m], links: {{{links}}}}}\n"
        "traffic: [bulk: {from: h0, to: h1, duration: 1s}]\n"
    )


def test_a_direct_link_is_a_segment_of_its_own() -> None:
    plan = plan_of(direct("a-b: {}, a-b#2: {}"))
    assert addresses(plan) == {
        "a-eth0": "10.0.0.1/24", "b-eth0": "10.0.0.2/24", "a-eth1": "10.0.1.1/24", "b-eth1": "10.0.1.2/24",
    }  # fmt: skip
    assert [d.name for link in plan.links for d in link.directions] == ["a->b", "b->a", "a->b#2", "b->a#2"]
    assert [path.name for path in plan.flows[0].paths] == ["a-b", "a-b#2"]


def test_hosts_of_a_segment_are_numbered_in_the_order_of_declaration() -> None:
    text = TWO.replace("[h1, h2]", "[h2, h1]")
    assert addresses(plan_of(text))["h2-eth0"] == "10.0.0.1/24"


def test_a_large_segment_gets_a_shorter_prefix_and_nothing_overlaps() -> None:
    plan = plan_of(star(300))
    interfaces = [ip_interface(address) for address in addresses(plan).values()]
    assert {address.network.prefixlen for address in interfaces} == {23}
    assert len({address.ip for address in interfaces}) == 300
    assert plan_of(star(254)).network.veths[0].a.addresses == ("10.0.0.1/24",)
    assert plan_of(star(255)).network.veths[0].a.addresses == ("10.0.0.1/23",)


def test_given_addresses_are_kept_and_the_rest_fits_around_them() -> None:
    plan = plan_of(TWO, "network.hosts.h2.addresses={s1-h2: 10.0.0.77/24, s2-h2: 192.168.5.1/28}")
    assert addresses(plan) == {
        "h1-eth0": "10.0.0.1/24", "h2-eth0": "10.0.0.77/24", "h1-eth1": "192.168.5.2/28", "h2-eth1": "192.168.5.1/28",
    }  # fmt: skip


def test_derived_subnets_keep_clear_of_given_ones() -> None:
    plan = plan_of(TWO, "network.hosts.h2.addresses.s2-h2=10.0.0.5/16")
    networks = {ip_interface(address).network for address in addresses(plan).values()}
    assert networks == {ip_network("10.0.0.0/16"), ip_network("10.1.0.0/24")}


def test_ipv6_addresses_switch_ipv6_on_and_its_noise_off() -> None:
    plan = plan_of(TWO, "network.hosts.h1.addresses={h1-s1: 'fd00:1::1/64', h1-s2: 'fd00:2::1/64'}")
    assert addresses(plan)["h2-eth1"] == "fd00:2::2/64"
    sysctls = dict(plan.network.namespaces[0].sysctls)
    assert "net/ipv6/conf/all/disable_ipv6" not in sysctls
    assert sysctls["net/ipv6/conf/default/accept_dad"] == "0"
    assert ("net/ipv6/conf/all/disable_ipv6", "1") in plan.network.namespaces[-1].sysctls
    assert routes(plan, "h1", 1002) == [("fd00:2::/64", None, "h1-eth1"), ("::/0", None, None)]
    assert [(p.client_address, p.server_address) for p in plan.flows[0].paths] == [
        ("fd00:1::1", "fd00:1::2"),
        ("fd00:2::1", "fd00:2::2"),
    ]


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(1, 32), st.integers(1, 32))
def test_interface_names_fit_the_kernel_and_are_unique(left: int, right: int) -> None:
    a, b = "a" * left, "a" * (right - 1) + "b"
    links = ", ".join(f"{a}-{b}#{i}: {{}}" for i in range(2, 14))
    text = f"title: t\nnetwork: {{hosts: [{a}, {b}], links: {{{links}}}}}\n"
    plan = plan_of(text + f"traffic: [bulk: {{from: {a}, to: {b}, duration: 1s, transport: tcp}}]\n")
    ends = [end.ifname for veth in plan.network.veths for end in (veth.a, veth.b)]
    assert len(set(ends)) == len(ends)
    assert all(len(ifname) <= 15 for ifname in ends)


def test_hosts_behind_a_router_reach_each_other_through_it() -> None:
    plan = plan_of(star(3, "routers"))
    assert routes(plan, "h0") == [("default", "10.0.0.2", "h0-eth0")]
    assert routes(plan, "h0", 1001) == [("10.0.0.0/24", None, "h0-eth0"), ("default", "10.0.0.2", "h0-eth0")]
    router = next(ns for ns in plan.network.namespaces if ns.name == "m")
    assert ("net/ipv4/ip_forward", "1") in router.sysctls
    assert ("net/ipv4/ip_forward", "0") in plan.network.namespaces[0].sysctls
    assert ("net/ipv4/ip_early_demux", "0") in router.sysctls
    assert "net/ipv4/ip_early_demux" not in dict(plan.network.namespaces[0].sysctls)  # hosts have sockets
    assert plan.flows[0].paths[0].name == "h0-m-h1"


def test_routers_prefer_the_least_delay_then_the_fewest_hops() -> None:
    text = """\
title: t
network:
  hosts: [a, b]
  routers: [r1, r2, r3]
  links:
    a-r1: {}
    r1-r3: {delay: 30ms}
    r1-r2: {delay: 10ms}
    r2-r3: {delay: 10ms}
    r3-b: {}
traffic: [bulk: {from: a, to: b, duration: 1s}]
"""
    assert plan_of(text).flows[0].paths[0].name == "a-r1-r2-r3-b"
    assert plan_of(text, "network.links.r1-r3.delay=20ms").flows[0].paths[0].name == "a-r1-r3-b"
    flow = plan_of(text, "network.links.r1-r3={forward: {delay: 1ms}, backward: {delay: 90ms}}").flows[0]
    assert flow.paths[0].forward == ("a->r1", "r1->r3", "r3->b")
    assert flow.paths[0].backward == ("b->r3", "r3->r2", "r2->r1", "r1->a")
    assert flow.paths[0].base_rtt_us == 21_000


def test_a_table_leads_only_where_its_interface_does() -> None:
    plan = plan_of(ISLANDS)
    assert routes(plan, "n1", 1002) == [
        ("10.0.1.0/24", None, "n1-eth1"),
        ("10.0.3.0/24", "10.0.1.2", "n1-eth1"),
        ("default", None, None),
    ]


def test_switches_of_a_segment_are_crossed_by_the_only_way_there_is() -> None:
    text = """\
title: t
network:
  hosts: [a, b, c]
  switches: [s1, s2, s3, s4]
  links: {a-s2: {}, s2-s1: {}, s1-s3: {}, s3-b: {}, s3-s4: {}, c-s4: {}}
traffic:
- bulk: {from: a, to: b, duration: 1s, transport: tcp}
- bulk: {from: c, to: b, duration: 1s, transport: tcp}
- bulk: {from: c, to: a, duration: 1s, transport: tcp}
"""
    assert [f.paths[0].name for f in plan_of(text).flows] == ["a-s2-s1-s3-b", "c-s4-s3-b", "c-s4-s3-s1-s2-a"]


def chain(routers: int) -> str:
    links = ", ".join(f"r{i}-r{i + 1}: {{}}" for i in range(routers - 1))
    names = ", ".join(f"r{i}" for i in range(routers))
    return (
        f"title: t\nnetwork: {{hosts: [h0, h1], routers: [{names}], "
        f"links: {{h0-r0: {{}}, {links}, h1-r{routers - 1}: {{}}}}}}\n"
        "traffic: [bulk: {from: h0, to: h1, duration: 1s}]\n"
    )


def islands(pairs: int) -> str:
    names = ", ".join(f"h{i}" for i in range(2 * pairs))
    links = ", ".join(f"h{2 * i}-h{2 * i + 1}: {{}}" for i in range(pairs))
    return (
        f"title: t\nnetwork: {{hosts: [{names}], links: {{{links}}}}}\n"
        "traffic: [bulk: {from: h0, to: h1, duration: 1s}]\n"
    )


@pytest.mark.parametrize(
    "text",
    [star(1000), star(1000, "routers"), chain(1000), islands(1000)],
    ids=["star", "hub", "chain", "islands"],
)
def test_large_networks_are_resolved_in_little_time(text: str) -> None:
    began = time.process_time()
    plan_of(text)
    assert time.process_time() - began < WORK_S


@pytest.mark.slow
def test_networks_that_need_too_many_routes_are_refused() -> None:
    names = [f"h{i}" for i in range(300)]
    links = ", ".join(f"{name}-{r}: {{}}" for r in ("r1", "r2") for name in names)
    text = f"title: t\nnetwork: {{hosts: [{', '.join(names)}], routers: [r1, r2], links: {{{links}}}}}\n"
    assert "more than 65536 routes" in mistakes_as_text(
        text + "traffic: [bulk: {from: h0, to: h1, duration: 1s}]\n"
    )


@pytest.mark.slow
def test_a_fat_tree_of_1024_hosts_is_planned() -> None:
    each = "hosts: ['*'], each: {bulk: {duration: 1s}}"
    plan = plan_of(f"title: t\nnetwork: {{generator: fat-tree, k: 16}}\ntraffic: [permutation: {{{each}}}]\n")
    assert (len(plan.flows), len(plan.network.routes)) == (1024, 6528)


@pytest.mark.slow
def test_more_lookups_of_gates_than_planning_has_time_for_are_refused() -> None:
    hosts, routers = [f"h{i}" for i in range(400)], [f"r{i}" for i in range(900)]
    ends = [*(f"{host}-r0" for host in hosts), *(f"r0-{router}" for router in routers[1:])]
    links = ", ".join(f"{name}: {{}}" for name in ends)
    nodes = f"hosts: [{', '.join(hosts)}], routers: [{', '.join(routers)}]"
    text = f"title: t\nnetwork: {{{nodes}, links: {{{links}}}}}\n"
    message = mistakes_as_text(text + "traffic: [bulk: {from: h0, to: h1, duration: 1s}]\n")
    assert "900 routers with 400 destinations are 360000 lookups" in message


def test_joined_prefixes_are_those_of_the_standard_library() -> None:
    draw = Random(1)
    for width, kind in ((32, IPv4Network), (128, IPv6Network)):
        for _ in range(500):
            lengths = [draw.randint(1, 7) for _ in range(draw.randint(1, 20))]
            nets = [kind((draw.getrandbits(n) << (width - n), n)) for n in lengths]
            assert list(_collapsed([_prefix(net) for net in nets])) == list(collapse_addresses(nets))


@pytest.mark.slow
def test_a_bridge_of_more_ports_than_linux_numbers_is_refused() -> None:
    assert len(plan_of(star(1023)).network.bridges[0].ports) == 1023
    assert "'m' has 1024 links, and a Linux bridge has at most 1023 ports" in mistakes_as_text(star(1024))
    assert plan_of(star(1024), "network.switches.m.openflow=learning").network.datapaths


def test_ends_with_more_pairs_of_addresses_than_can_be_looked_at_are_refused() -> None:
    links = ", ".join(f"a-b#{i}: {{}}" for i in range(2, 258))
    assert "257 interfaces and b has 257: 66049 pairs" in mistakes_as_text(direct(f"a-b: {{}}, {links}"))


def test_all_nodes_have_an_own_namespace_and_the_wire_comes_last() -> None:
    plan = plan_of(MESH)
    assert [(ns.name, ns.role) for ns in plan.network.namespaces] == [
        ("c", "host"), ("s", "host"), ("r", "router"), ("wire", "wire"),
    ]  # fmt: skip


@settings(max_examples=200)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("sabcdt"), st.sampled_from("sabcdt")).filter(lambda arc: arc[0] != arc[1]),
        st.integers(0, 20),
        max_size=15,
    )
)
def test_maximum_flow_is_the_minimum_cut(capacities: dict[tuple[str, str], int]) -> None:
    inner = "abcd"
    cuts = []
    for chosen in range(2 ** len(inner)):
        side = {"s"} | {node for i, node in enumerate(inner) if chosen >> i & 1}
        cuts.append(sum(c for (a, b), c in capacities.items() if a in side and b not in side))
    assert maximum_flow(capacities, "s", "t") == min(cuts)


EQUAL = """\
title: t
network:
  hosts: [a, b]
  routers: [r1, r2, r3, r4]
  routing: {ecmp: true}
  links: {a-r1: {}, r1-r2: {delay: 2ms}, r1-r3: {delay: 1ms}, r2-r4: {delay: 1ms}, r3-r4: {delay: 2ms}, r4-b: {}}
traffic: [bulk: {from: a, to: b, duration: 1s}]
"""


def test_ecmp_keeps_every_way_of_the_least_cost() -> None:
    plan = plan_of(EQUAL)
    (route,) = (r for r in plan.network.routes if r.netns == "r1" and r.nexthops)
    assert (route.destination, route.device, route.via) == ("10.0.5.0/24", None, None)
    assert [(hop.device, hop.via) for hop in route.nexthops] == [
        ("r1-eth1", "10.0.1.2"),
        ("r1-eth2", "10.0.2.2"),
    ]
    (path,) = plan.flows[0].paths
    assert path.forward == ("a->r1", "r1->r2", "r2->r4", "r4->b")
    assert set(path.spread) == {"r1->r3", "r3->r4", "r4->r3", "r3->r1"}
    unequal = plan_of(EQUAL, "network.links.r1-r2.delay=3ms")
    assert not any(r.nexthops for r in unequal.network.routes)
    assert unequal.flows[0].paths[0].spread == ()
    by_hops = plan_of(EQUAL, "network.links.r1-r2.delay=3ms", "network.routing.metric=hops")
    assert sum(bool(r.nexthops) for r in by_hops.network.routes) == 2


def test_a_routers_routes_cover_the_hosts_subnets_and_nothing_else() -> None:
    plan = plan_of("title: t\nnetwork: {generator: fat-tree, k: 4}\n")
    hosts = {ns.name for ns in plan.network.namespaces if ns.role == "host"}
    ends = [(veth.a, veth.b) for veth in plan.network.veths]
    subnets = {
        ip_interface(a).network for pair in ends for end in pair if end.netns in hosts for a in end.addresses
    }
    for router in {ns.name for ns in plan.network.namespaces if ns.role == "router"}:
        connected = {
            ip_interface(a).network
            for pair in ends
            for end in pair
            if end.netns == router
            for a in end.addresses
        }
        to = [ip_network(destination) for destination, *_ in routes(plan, router)]
        assert sum(network.num_addresses for network in to) == 256 * len(subnets - connected)
        assert all(any(subnet.subnet_of(network) for network in to) for subnet in subnets - connected)
        assert len(to) <= len(subnets - connected) / 2 + 1


def test_the_metric_hops_prefers_few_routers_to_little_delay() -> None:
    text = EQUAL.replace("{ecmp: true}", "{metric: METRIC}").replace(
        "r4-b: {}", "r4-b: {}, r1-r4: {delay: 9ms}"
    )
    assert plan_of(text.replace("METRIC", "delay")).flows[0].paths[0].name == "a-r1-r2-r4-b"
    assert plan_of(text.replace("METRIC", "hops")).flows[0].paths[0].name == "a-r1-r4-b"


def test_every_router_hashes_with_a_seed_of_its_own_unless_given() -> None:
    name = "net/ipv4/fib_multipath_hash_seed"
    plan = plan_of(
        EQUAL, "network.routers={r1: {sysctls: {net.ipv4.fib_multipath_hash_seed: 7}}, r2, r3, r4}"
    )
    seeds = {s.name: dict(s.sysctls)[name] for s in plan.network.namespaces if s.role == "router"}
    assert seeds["r1"] == "7"
    assert len(set(seeds.values())) == 4
    assert all(0 < int(seed) < 2**32 for seed in seeds.values())
