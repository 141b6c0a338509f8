"""Nodes get addresses of the right families and translation rules, and the plan follows from both."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from plait.plan.shell.script import to_shell
from scenario_samples import MESH, TWO, mistakes_as_text, plan_of

NAT = """\
title: t
network:
  hosts: [inside, server]
  routers: {nat: {nat: [nat-isp]}, isp}
  links: {inside-nat: {delay: 1ms}, nat-isp: {delay: 2ms}, isp-server: {delay: 4ms}}
traffic: [bulk: {from: inside, to: server, duration: 1s}]
"""


def test_a_dual_network_has_both_families_on_every_link_and_starts_with_ipv6() -> None:
    plan = plan_of(MESH, "network.addresses=dual")
    assert all(len(v.a.addresses) == 2 for v in plan.network.veths)
    assert plan.network.veths[0].a.addresses == ("10.0.0.1/24", "fd00::1/64")
    assert plan.network.veths[6].a.addresses == ("10.0.3.2/24", "fd00:3::2/64")
    flow = plan.flows[0]
    assert (flow.client.address, flow.server.address) == ("fd00::1", "fd00:2::1")
    assert {":" in path.client_address for path in flow.paths} == {True, False}
    assert flow.ideal_rate_bps == 10_000_000, "two families on one link do not carry more than the link"
    router = [(r.destination, r.via) for r in plan.network.routes if r.netns == "c" and r.table == 254]
    assert {destination for destination, _ in router} == {"default", "::/0"}


def test_the_queue_of_a_link_does_not_depend_on_the_family() -> None:
    queues = [
        [
            d.queue_packets
            for link in plan_of(MESH, f"network.addresses={family}").links
            for d in link.directions
        ]
        for family in ("ipv4", "ipv6", "dual")
    ]
    assert queues[0] == queues[1] == queues[2]


def test_a_list_gives_an_interface_an_address_of_each_family() -> None:
    plan = plan_of(TWO, "network.hosts.h1.addresses={h1-s1: [192.168.1.1/24, 'fd00:9::1/64']}")
    addresses = {v.a.ifname: v.a.addresses for v in plan.network.veths if v.a.addresses}
    assert addresses["h1-eth0"] == ("192.168.1.1/24", "fd00:9::1/64")
    assert addresses["h2-eth0"] == ("192.168.1.2/24", "fd00:9::2/64")
    assert addresses["h1-eth1"] == ("10.0.0.1/24",)


def test_nothing_outside_has_a_way_in_but_answers_find_back() -> None:
    plan = plan_of(NAT)
    (nat,) = plan.network.nats
    assert (nat.netns, nat.outside) == ("nat", ("nat-eth1",))
    inside = "10.0.0.0/24"
    outside = [r.destination for r in plan.network.routes if r.netns in ("isp", "server")]
    assert inside not in outside
    (path,) = plan.flows[0].paths
    assert path.forward == ("inside->nat", "nat->isp", "isp->server")
    assert path.backward == ("server->isp", "isp->nat", "nat->inside")
    assert path.base_rtt_us == 14_000


def test_a_connection_from_outside_to_what_is_hidden_is_refused() -> None:
    text = NAT.replace("from: inside, to: server", "from: server, to: inside")
    with pytest.raises(ScenarioError, match=r"inside is behind nat, which .* only answers"):
        plan_of(text)


CYCLE = """\
title: t
network:
  hosts: [h1, h2]
  switches: {s1: {openflow: KIND}, s2: {openflow: KIND}, s3: {openflow: multipath}}
  links: {h1-s1: {}, s1-s2: {}, s1-s2#2: {delay: 1ms}, s1-s3: {}, s3-s2: {}, s2-h2: {}}
traffic: [bulk: {from: h1, to: h2, duration: 1s}]
"""


def test_frames_between_openflow_switches_take_the_shortest_ways_and_never_circle() -> None:
    plan = plan_of(CYCLE.replace("KIND", "multipath"))
    assert plan.flows[0].paths[0].forward == ("h1->s1", "s1->s2", "s2->h2")
    assert plan.flows[0].paths[0].spread == ()
    by_hops = plan_of(CYCLE.replace("KIND", "multipath"), "network.routing={metric: hops}")
    assert by_hops.flows[0].paths[0].spread == ("s1->s2#2", "s2->s1#2")
    for path in by_hops.network.datapaths:
        floods = {rule.in_port: rule.output for rule in path.rules if rule.in_port is not None}
        # on a tree, everybody's frames leave through every port of it but the one they came from
        assert all(set(output) == set(floods) - {port} for port, output in floods.items())
    assert sum(len(p.rules) for p in by_hops.network.datapaths) < 30


def test_a_learning_switch_on_a_cycle_is_refused() -> None:
    with pytest.raises(ScenarioError, match="closes a cycle of switches"):
        plan_of(CYCLE.replace("KIND", "learning"))


def test_the_shell_form_has_translation_switches_and_nexthops() -> None:
    script = to_shell(plan_of(CYCLE.replace("KIND", "multipath"), "network.routing={metric: hops}"))
    assert "ovs-dpctl add-if br0 s1-eth1,port_no=2" in script
    assert "hash(sym_l4(" in script
    assert "masquerade" in to_shell(plan_of(NAT))


@pytest.mark.parametrize(
    ("override", "where", "message"),
    [
        ("network.routers.nat.nat=[nat-is]", "network.routers.nat.nat.0", "did you mean 'nat-isp'"),
        ("network.routers.nat.nat=[nat-isp, nat-isp]", "network.routers.nat.nat.1", "occurs twice"),
        (
            "network.routers.nat.nat=[nat-isp, inside-nat]",
            "network.routers.nat.nat",
            "all links of nat are outside links",
        ),
        ("network.switches={s: {openflow: hub}}", "network.switches.s.openflow", "learning"),
        ("network.addresses=both", "network.addresses", "ipv4"),
        ("network.routing={ecmp: 2}", "network.routing.ecmp", ""),
        ("network.routing={metric: length}", "network.routing.metric", "delay"),
        (
            "network.hosts.server.addresses={isp-server: [10.0.0.1/24, 10.1.0.1/24]}",
            "isp-server",
            "two addresses of one",
        ),
        ("network.hosts.server.addresses={isp-server: []}", "isp-server", ""),
        ("network.hosts.server.addresses={isp-server: [10.0.0.1]}", "isp-server", "lacks its prefix"),
    ],
)
def test_mistakes_about_nodes_are_located(override: str, where: str, message: str) -> None:
    text = mistakes_as_text(NAT.replace("[inside, server]", "{inside: , server: }"), override)
    assert where in text
    assert message in text
