"""A script of a report, with namespaces and netem, becomes a scenario, and the importer names what it drops."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from plait.importers import netns
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

SCRIPT = """\
#!/bin/bash
NS1=client
RATE="75mbit"
ip netns add $NS1 && sudo ip netns add server
ip link add c1 netns $NS1 type veth peer name s1 netns server
ip link add c2 type veth peer name s2
ip link set c2 netns client; ip link set s2 netns server
ip -n client addr add 10.0.2.1/24 dev c2
ip netns exec client ip link set dev c1 up mtu 1400
tc -n client qdisc add dev c1 root netem rate 500mbit \\
    delay 50ms limit 2000
tc -n server qdisc add dev s1 root netem rate 500mbit delay 40ms 5ms loss random 0.1% reorder 5%
ip netns exec client tc qdisc add dev c2 root tbf rate ${RATE} burst 15k latency 50ms
ip -n client mptcp endpoint add 10.0.2.1 subflow backup
ip netns exec server iperf3 -s -D
for i in 1 2; do ip netns exec client ip link set c$i up; done
rm -rf "$HOME"
"""


def test_pairs_become_links_with_the_conditions_of_both_ends() -> None:
    draft = netns.draft(SCRIPT, "report.sh")
    plan = resolve(expand(parse(draft.text(), "t.yaml"))[1].scenario, 1)
    first, second = plan.links
    there, back = first.directions
    assert (there.rate_bps, there.delay_ns, there.loss_ratio) == (500_000_000, 50_000_000, 0)
    assert (back.rate_bps, back.delay_ns, back.loss_ratio) == (500_000_000, 40_000_000, 0.001)
    assert [direction.rate_bps for direction in second.directions] == [75_000_000, None]
    assert {veth.mtu for veth in plan.network.veths} == {1400, 1500}
    assert ("client", "client-server#2") in draft.backups


def test_what_is_not_carried_over_is_named() -> None:
    text = netns.draft(SCRIPT, "report.sh").text()
    for remark in (
        "(without: reorder 5%)",
        "burst 15k latency 50ms (its rate is in the scenario; its burst and latency are not)",
        "iperf3 -s -D",
        "(it has a variable that the script does not set by a plain assignment)",
        "addresses and routes: plait assigns its own",
    ):
        assert remark in text
    assert "rm -rf" not in text, "no command of a network"


def test_a_namespace_that_forwards_is_a_router_and_the_root_is_a_node() -> None:
    draft = netns.draft(
        "ip netns add r\nip netns add h\nip link add a netns h type veth peer name b netns r\n"
        "ip link add c type veth peer name d netns r\nip netns exec r sysctl -qw net.ipv4.ip_forward=1\n"
        "ip link add e type veth peer name f\n",
        "x.sh",
    )
    assert (draft.hosts, draft.routers) == (["h", "root"], ["r"])
    assert any("both ends are in the root namespace" in remark for remark in draft.remarks)


def test_a_script_without_a_pair_between_namespaces_is_refused() -> None:
    assert not netns.looks_like("ip netns add a\n")
    with pytest.raises(ScenarioError, match="joins no two namespaces by a veth pair"):
        netns.draft(
            'ip netns add a; for i in 1 2; do ip link add v$i type veth peer name "w$i"; done', "x.sh"
        )
    netns.looks_like("ip " * 20_000 + "netns type veth")
