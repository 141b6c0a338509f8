"""Flows get their connections, paths, ideal, queues, buffers, ends and cautions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.plan.links.chain import with_chains
from plait.traffic.transfer import Transfer
from scenario_samples import ISLANDS, MESH, TWO, direct, mistakes_as_text, plan_of

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan


def pairs(plan: Plan, flow: int = 0) -> list[tuple[str, str]]:
    return [(p.client_address, p.server_address) for p in plan.flows[flow].paths]


# The pairs below are what Linux 6.18 opened in these networks (see test_shell_host.py for the check itself).


def test_a_mesh_brings_up_what_the_path_manager_opens() -> None:
    plan = plan_of(MESH)
    assert pairs(plan) == [("10.0.0.1", "10.0.2.1"), ("10.0.1.1", "10.0.2.1"), ("10.0.0.1", "10.0.3.1")]
    assert plan.flows[0].ideal_rate_bps == 10_000_000
    assert [(m.netns, m.subflows, m.add_addr_accepted) for m in plan.network.mptcp] == [
        ("c", 2, 1),
        ("s", 2, 0),
    ]


def test_fullmesh_endpoints_bring_up_every_pair() -> None:
    flags = "flags: [subflow, fullmesh]"
    mesh = f"mptcp.endpoints.c=[{{link: c-r, {flags}}}, {{link: 'c-r#2', {flags}}}]"
    assert sorted(pairs(plan_of(MESH, mesh))) == [
        ("10.0.0.1", "10.0.2.1"), ("10.0.0.1", "10.0.3.1"), ("10.0.1.1", "10.0.2.1"), ("10.0.1.1", "10.0.3.1"),
    ]  # fmt: skip


def test_pairs_that_no_route_joins_do_not_count() -> None:
    plan = plan_of(ISLANDS)
    assert [p.name for p in plan.flows[0].paths] == ["n1-g1-g3-g2-n2", "n1-r1-n2", "n1-r2-n2"]
    assert plan.flows[0].ideal_rate_bps == 21_000_000
    assert {(m.subflows, m.add_addr_accepted) for m in plan.network.mptcp} == {(2, 2), (2, 0)}


@pytest.mark.parametrize("sender", ["a", "b"])
def test_a_path_over_one_link_has_the_links_name_in_both_directions(sender: str) -> None:
    receiver = "b" if sender == "a" else "a"
    links = "a-b: {rate: 5mbit}, b-a#2: {rate: 5mbit}"
    plan = plan_of(direct(links, f"bulk: {{from: {sender}, to: {receiver}, duration: 1s}}"))
    assert [path.name for path in plan.flows[0].paths] == ["a-b", "b-a#2"]


def test_sampled_flows_are_evenly_spread_and_a_page_counts_as_one() -> None:
    page = "page: {from: a, to: b, objects: [1KB, 9x 2KB], connections: 3}"
    bulk = "bulk: {from: a, to: b, duration: 1s, count: 4}"
    text = direct(
        "a-b: {rate: 5mbit}",
        f"{page}, {bulk}, udp: {{from: a, to: b, rate: 1mbit, packet: 1KB, duration: 1s}}",
    )

    def unsampled(*settings: str) -> list[bool]:
        return [flow.unsampled for flow in plan_of(text, *settings).flows]

    assert not any(unsampled())
    assert unsampled("sample={flows: 2}") == [False] * 3 + [True, True, False, True, False]
    assert unsampled("sample={flows: 1}") == [False] * 3 + [True] * 4 + [False]
    assert unsampled("sample={flows: 0}") == [True] * 7 + [False]
    assert plan_of(text, "sample={flows: 9}") == plan_of(text, "sample={every: 100ms}") == plan_of(text)
    assert plan_of(text, "sample={flows: 2}").sampled_flows == (4, 7)


def test_paths_between_programs_have_the_names_of_links_in_both_directions() -> None:
    programs = "programs: [{node: a, run: [x], wait: true}, {node: b, run: [x]}]"
    plan = plan_of(f"title: t\nnetwork: {{hosts: [a, b], links: {{a-b: , a-b#2: }}}}\n{programs}")
    assert [[path.name for path in peers.paths] for peers in plan.peers] == [["a-b", "a-b#2"]] * 2


def test_given_limits_bound_the_paths() -> None:
    plan = plan_of(ISLANDS, "mptcp.limits={n1: {add_addr_accepted: 1}}")
    assert len(plan.flows[0].paths) == 2
    plan = plan_of(ISLANDS, "mptcp.limits={n1: {subflows: 0}}")
    assert len(plan.flows[0].paths) == 1
    plan = plan_of(ISLANDS, "mptcp.limits={n2: {subflows: 1}}")
    assert len(plan.flows[0].paths) == 2


def test_given_endpoints_replace_the_derived_ones() -> None:
    plan = plan_of(
        TWO, "mptcp.endpoints={h2: [{address: 10.0.1.2, flags: [signal, backup], id: 9, port: 7000}], h1: []}"
    )
    (manager,) = (m for m in plan.network.mptcp if m.netns == "h2")
    (endpoint,) = manager.endpoints
    assert (endpoint.address, endpoint.flags, endpoint.id, endpoint.port) == (
        "10.0.1.2",
        ("signal", "backup"),
        9,
        7000,
    )
    assert len(plan.flows[0].paths) == 2


@pytest.mark.parametrize(
    ("via", "initial"),
    [
        ("h1-s2", ("10.0.1.1", "10.0.1.2")),
        ("10.0.1.2", ("10.0.1.1", "10.0.1.2")),
        ("h1-s1", ("10.0.0.1", "10.0.0.2")),
    ],
)
def test_via_chooses_the_initial_path(via: str, initial: tuple[str, str]) -> None:
    plan = plan_of(TWO, f"traffic.0.bulk.via={via}")
    assert pairs(plan)[0] == initial
    assert len(pairs(plan)) == 2
    assert (plan.flows[0].client.address, plan.flows[0].server.address) == initial
    assert plan.network.mptcp[0].endpoints[0].address != initial[0]


def test_in_reverse_the_receiver_connects_and_paths_still_lead_from_the_sender() -> None:
    plan = plan_of(TWO, "traffic.0.bulk.reverse=true", "network.links.h1-s1.forward={rate: 1mbit}")
    (flow,) = plan.flows
    assert (flow.client.netns, flow.server.netns, flow.sender) == ("h2", "h1", "server")
    assert flow.paths[0].forward == ("h1->s1", "s1->h2")
    assert flow.paths[0].rate_bps == 1_000_000
    assert flow.ideal_rate_bps == 6_000_000
    assert [m.endpoints[0].flags for m in plan.network.mptcp] == [("signal",), ("subflow",)]


def test_a_host_that_is_client_and_server_has_both_flags() -> None:
    text = TWO + "  - bulk: {from: h2, to: h1, duration: 1s}\n"
    assert [m.endpoints[0].flags for m in plan_of(text).network.mptcp] == [("signal", "subflow")] * 2


def test_a_count_gives_flows_alike_with_ports_and_starts_of_their_own() -> None:
    flows = plan_of(TWO, "traffic.0.bulk.count=20", "traffic.0.bulk.start=1s").flows
    assert [flow.name for flow in flows][:2] == ["bulk1.1", "bulk1.2"]
    assert [flow.id for flow in flows] == list(range(20))
    assert len({flow.server.port for flow in flows}) == 20
    assert len({flow.start_us for flow in flows}) > 15
    assert all(1_000_000 <= flow.start_us <= 1_010_000 for flow in flows)
    flows = plan_of(TWO, "traffic.0.bulk.count=3", "traffic.0.bulk.start_jitter=0s").flows
    assert {flow.start_us for flow in flows} == {0}


def test_more_than_eight_further_paths_are_refused_for_want_of_endpoints() -> None:
    links = ", ".join(f"a-b#{i}: {{}}" for i in range(2, 12))
    assert "would need 9 MPTCP endpoints, and the kernel takes 8" in mistakes_as_text(direct(links))
    nine = direct(", ".join(f"a-b#{i}: {{}}" for i in range(2, 11)))
    assert len(plan_of(nine).flows[0].paths) == 9


def test_too_many_flows_are_refused() -> None:
    traffic = ", ".join(["{bulk: {from: a, to: b, duration: 1s, count: 256}}"] * 17)
    assert "have 4352 flows" in mistakes_as_text(direct("a-b: {}", traffic))


def test_the_default_queue_is_a_product_of_rate_and_rtt_but_at_least_100_packets() -> None:
    plan = plan_of(direct("a-b: {rate: 100mbit, delay: 20ms}, a-b#2: {rate: 100mbit, delay: 1ms}, a-b#3: {}"))
    queues = [link.directions[0].queue_packets for link in plan.links]
    # 100 Mbit/s * 40 ms = 500 000 bytes, in frames of 1514
    assert queues == [331, 100, None]


def test_the_default_queue_does_not_depend_on_the_transport() -> None:
    text = TWO.replace("delay: 5ms}\n    s1", "delay: 400ms}\n    s1")
    assert plan_of(text, "transport=tcp").links == plan_of(text, "transport=mptcp").links


@pytest.mark.parametrize(
    ("queue", "packets", "size"),
    [("7pkt", 7, None), ("64KiB", None, 65_536), ("2bdp", 661, None), ("0.001bdp", 1, None)],
)
def test_a_queue_is_as_given(queue: str, packets: int | None, size: int | None) -> None:
    plan = plan_of(direct(f"a-b: {{rate: 100mbit, delay: 20ms, queue: {queue}}}"))
    direction = plan.links[0].directions[0]
    assert (direction.queue_packets, direction.queue_bytes) == (packets, size)
    last = with_chains(plan, exact=False).network.qdiscs[2].options
    assert last.kind == ("pfifo" if packets is not None else "bfifo")


def test_an_unlimited_link_has_a_delay_and_nothing_else() -> None:
    plan = plan_of(direct("a-b: {}"))
    qdiscs = with_chains(plan).network.qdiscs
    assert [q.options.kind for q in qdiscs] == ["netem", "netem"]
    assert qdiscs[0].options.delay_ns == 1000
    assert plan.links[0].directions[0].delay_ns == 0
    assert plan.flows[0].ideal_rate_bps is None
    assert plan.flows[0].paths[0].rate_bps is None


@pytest.mark.parametrize(("rate", "burst"), [("1mbit", 3028), ("1gbit", 3028), ("10gbit", 25_000)])
def test_the_bucket_holds_two_frames_or_20_us(rate: str, burst: int) -> None:
    plan = plan_of(direct(f"a-b: {{rate: {rate}}}"))
    qdiscs = with_chains(plan, exact=False).network.qdiscs
    assert qdiscs[1].options.burst_bytes == burst


def test_links_that_paths_share_count_once_in_the_ideal() -> None:
    text = TWO.replace("    h1-s2: {rate: 5mbit, delay: 5ms}\n", "    h1-s1#2: {rate: 5mbit}\n").replace(
        "    s2-h2: {rate: 5mbit, delay: 5ms}\n", ""
    )
    plan = plan_of(text.replace("[s1, s2]", "[s1]"))
    assert len(plan.flows[0].paths) == 2
    assert plan.flows[0].ideal_rate_bps == 5_000_000


def test_asked_for_buffers_and_congestion_controls_are_allowed_by_the_kernel_as_a_whole() -> None:
    plan = plan_of(TWO, "traffic.0.bulk.receive_buffer=64MiB", "traffic.0.bulk.congestion_control=bbr")
    sysctls = dict(plan.machine.sysctls)
    assert sysctls["net/core/rmem_max"] == str(64 * 2**20)
    assert sysctls["net/ipv4/tcp_allowed_congestion_control"] == "bbr cubic reno"
    assert plan.flows[0].socket.receive_buffer == 64 * 2**20
    assert dict(plan_of(TWO).machine.sysctls)["net/core/rmem_max"] == "212992"
    assert plan.machine.memory_mib % 64 == 0
    assert plan.machine.memory_mib >= 256


def test_later_settings_replace_earlier_ones_in_their_place() -> None:
    plan = plan_of(
        TWO,
        "sysctls={net.ipv4.tcp_rmem: [1, 2, 3], net.ipv4.tcp_sack: true}",
        "network.hosts.h2.sysctls={net/ipv4/tcp_rmem: 4 5 6}",
    )
    h1, h2 = (dict(ns.sysctls) for ns in plan.network.namespaces[:2])
    assert (h1["net/ipv4/tcp_rmem"], h1["net/ipv4/tcp_sack"]) == ("1 2 3", "1")
    assert h2["net/ipv4/tcp_rmem"] == "4 5 6"
    assert "net/ipv4/tcp_sack" not in dict(plan.network.namespaces[2].sysctls)


def test_trials_end_when_their_flows_should_have() -> None:
    plan = plan_of(TWO)
    assert plan.end_us == plan.flows[0].start_us + 15_000_000
    transfer = plan_of(direct("a-b: {rate: 10mbit}", "transfer: {from: a, to: b, bytes: 45MB}"))
    assert transfer.flows[0].application == Transfer(bytes=45_000_000)
    assert transfer.end_us == transfer.flows[0].start_us + 60_000_000 + 360_000_000 + 5_000_000
    assert plan_of(TWO, "until=3s").end_us == 3_000_000
