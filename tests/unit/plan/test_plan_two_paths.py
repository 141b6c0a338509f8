"""The plan of the shipped two-paths scenario equals what a person works out with a pencil."""

from __future__ import annotations

import pytest

from plait.errors import RequestError
from plait.plan.identity import plan_bytes, trial_identity
from plait.plan.links.chain import with_chains
from plait.plan.model.plan import Plan
from plait.plan.model.qdiscs import Netem, Pfifo, Tbf
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from plait.traffic.bulk import Bulk


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {case.name: resolve(case.scenario, trial_seed(1, 0)) for case in expand(load("two-paths"))}


@pytest.fixture(scope="module")
def plan(plans: dict[str, Plan]) -> Plan:
    return plans["transport=mptcp"]


def test_addresses_are_those_of_the_experiment(plan: Plan) -> None:
    addresses = {
        end.ifname: end.addresses for veth in plan.network.veths for end in (veth.a,) if end.addresses
    }
    assert addresses == {
        "h1-eth0": ("10.0.0.1/24",),
        "h2-eth0": ("10.0.0.2/24",),
        "h1-eth1": ("10.0.1.1/24",),
        "h2-eth1": ("10.0.1.2/24",),
    }


def test_every_link_is_two_veths_into_the_wire(plan: Plan) -> None:
    assert len(plan.network.veths) == 8
    assert all(veth.b.netns == "wire" for veth in plan.network.veths)
    assert {(r.source, r.target) for r in plan.network.redirects} == {
        (f"w{n}{a}", f"w{n}{b}") for n in range(4) for a, b in ("ab", "ba")
    }
    macs = [end.mac for veth in plan.network.veths for end in (veth.a, veth.b)] + [
        b.mac for b in plan.network.bridges
    ]
    assert len(set(macs)) == len(macs) == 18


def test_switches_join_their_links(plan: Plan) -> None:
    assert [(b.netns, b.ports) for b in plan.network.bridges] == [
        ("s1", ("s1-eth0", "s1-eth1")),
        ("s2", ("s2-eth0", "s2-eth1")),
    ]


def test_each_direction_delays_then_limits_then_queues_where_it_leaves_the_wire(plan: Plan) -> None:
    direction = plan.links[0].directions[0]
    assert (direction.name, direction.source, direction.target, direction.ifname) == (
        "h1->s1",
        "h1",
        "s1",
        "w0b",
    )
    delay, rate, queue = (q for q in with_chains(plan, exact=False).network.qdiscs if q.ifname == "w0b")
    assert [(q.parent, q.handle) for q in (delay, rate, queue)] == [
        ("root", "1:"),
        ("1:1", "2:"),
        ("2:1", "3:"),
    ]
    assert isinstance(delay.options, Netem)
    assert delay.options.delay_ns == 5_000_000
    assert delay.options.limit_packets >= 1_000_000
    assert isinstance(rate.options, Tbf)
    assert (rate.options.rate_bps, rate.options.burst_bytes) == (5_000_000, 3028)
    assert isinstance(queue.options, Pfifo)
    assert queue.options.limit_packets == direction.queue_packets == 100


def test_each_interface_has_a_table_that_ends(plan: Plan) -> None:
    assert [(r.source, r.table) for r in plan.network.rules if r.netns == "h1"] == [
        ("10.0.0.1/32", 1001),
        ("10.0.1.1/32", 1002),
    ]
    assert [
        (r.table, r.kind, r.destination, r.device, r.source) for r in plan.network.routes if r.netns == "h1"
    ] == [
        (1001, "unicast", "10.0.0.0/24", "h1-eth0", "10.0.0.1"),
        (1001, "unreachable", "default", None, None),
        (1002, "unicast", "10.0.1.0/24", "h1-eth1", "10.0.1.1"),
        (1002, "unreachable", "default", None, None),
    ]


def test_the_client_has_subflow_and_the_server_signal_on_their_second_interfaces(plan: Plan) -> None:
    client, server = plan.network.mptcp
    assert (client.netns, client.subflows, client.add_addr_accepted) == ("h1", 1, 1)
    assert [(e.address, e.flags, e.id) for e in client.endpoints] == [("10.0.1.1", ("subflow",), 1)]
    assert (server.netns, server.subflows, server.add_addr_accepted) == ("h2", 1, 0)
    assert [(e.address, e.flags, e.id) for e in server.endpoints] == [("10.0.1.2", ("signal",), 1)]


def test_the_flow_has_both_paths_and_the_ideal_is_their_sum(plan: Plan) -> None:
    (flow,) = plan.flows
    assert (flow.kind, flow.transport, flow.sender, flow.application) == (
        "bulk",
        "mptcp",
        "client",
        Bulk(duration_us=10_000_000),
    )
    assert [(p.name, p.client_address, p.server_address, p.rate_bps, p.base_rtt_us) for p in flow.paths] == [
        ("h1-s1-h2", "10.0.0.1", "10.0.0.2", 5_000_000, 20_000),
        ("h1-s2-h2", "10.0.1.1", "10.0.1.2", 5_000_000, 20_000),
    ]
    assert flow.paths[1].forward == ("h1->s2", "s2->h2")
    assert flow.paths[1].backward == ("h2->s2", "s2->h1")
    assert flow.ideal_rate_bps == 10_000_000


def test_tcp_differs_from_mptcp_in_nothing_but_the_flow_and_its_endpoints(plans: dict[str, Plan]) -> None:
    tcp, mptcp = (plans[f"transport={name}"] for name in ("tcp", "mptcp"))
    assert [p.name for p in tcp.flows[0].paths] == ["h1-s1-h2"]
    assert tcp.flows[0].ideal_rate_bps == 5_000_000
    assert tcp.flows[0].start_us == mptcp.flows[0].start_us
    assert tcp.links == mptcp.links
    assert tcp.network.model_copy(update={"mptcp": mptcp.network.mptcp}) == mptcp.network
    assert tcp.network.mptcp == ()


def test_kernel_settings_are_pinned_for_every_host(plan: Plan) -> None:
    for name in ("h1", "h2"):
        sysctls = dict(next(ns.sysctls for ns in plan.network.namespaces if ns.name == name))
        assert sysctls["net/ipv4/tcp_rmem"] == "4096 131072 6291456"
        assert sysctls["net/ipv4/tcp_wmem"] == "4096 16384 4194304"
        assert sysctls["net/ipv4/tcp_congestion_control"] == "cubic"
        assert sysctls["net/mptcp/enabled"] == "1"
    assert all(("net/ipv6/conf/all/disable_ipv6", "1") in ns.sysctls for ns in plan.network.namespaces)
    assert [ns.name for ns in plan.network.namespaces] == ["h1", "h2", "s1", "s2", "wire"]


def test_repeats_differ_in_seeds_and_start_only(plan: Plan) -> None:
    case = expand(load("two-paths"))[1]
    other = resolve(case.scenario, trial_seed(1, 1))
    assert other.flows[0].start_us != plan.flows[0].start_us
    assert 0 <= other.flows[0].start_us <= 10_000
    seeds = {side.seed for p in (plan, other) for link in p.links for side in link.directions}
    assert len(seeds) == 16
    assert max(seeds) < 2**53
    assert [link.name for link in other.links] == [link.name for link in plan.links]


def test_the_same_scenario_and_seed_give_the_same_bytes(plan: Plan) -> None:
    again = resolve(expand(load("two-paths"))[1].scenario, trial_seed(1, 0))
    assert plan_bytes(again) == plan_bytes(plan)
    assert Plan.model_validate_json(plan_bytes(plan)) == plan


@pytest.mark.parametrize("seed", [-1, 2**53])
def test_a_seed_that_json_cannot_hold_is_refused(seed: int) -> None:
    with pytest.raises(RequestError, match="is out of range; use a whole number from 0"):
        resolve(expand(load("two-paths"))[0].scenario, seed)


def test_the_identity_hangs_on_plan_kernel_and_agent(plans: dict[str, Plan]) -> None:
    tcp, mptcp = plans.values()
    identities = {trial_identity(p, k, a) for p in (tcp, mptcp) for k in ("k1", "k2") for a in ("a1", "a2")}
    assert len(identities) == 8
    assert trial_identity(tcp, "k1", "a1") == trial_identity(tcp, "k1", "a1")
    assert all(len(identity) == 64 for identity in identities)
    assert plan_bytes(tcp).startswith(b'{"buckets":')
    assert b" " not in plan_bytes(tcp).replace(b"4096 131072 6291456", b"").split(b'"machine"')[0]
