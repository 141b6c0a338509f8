"""A script of a report, with namespaces and netem, becomes a scenario, and the importer names what it drops."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from plait.importers import netns
from plait.importers.commands import commands
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
if [ -n "$MTU" ]; then ip -n server link set s1 mtu $MTU; fi
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
    assert ("client", "client-server#2", ["subflow", "backup"]) in draft.endpoints


def test_what_is_not_carried_over_is_named() -> None:
    text = netns.draft(SCRIPT, "report.sh").text()
    for remark in (
        "(without: reorder 5%)",
        "burst 15k latency 50ms (its rate is in the scenario; its burst and latency are not)",
        "iperf3 -s -D",
        "(it has a variable that the script does not set by a plain assignment)",
        "addresses and routes: plait assigns its own",
        "conditions, functions and other loops: plait read their commands once",
    ):
        assert remark in text
    assert "rm -rf" not in text, "no command of a network"


def test_the_queue_is_what_netems_limit_leaves_beyond_the_delay() -> None:
    """500 Mbit/s and 50 ms are 2083 packets of 1500 bytes; 40 ms are 1666 of netem's default of 1000."""
    script = SCRIPT.replace("limit 2000", "limit 3000")
    links = resolve(expand(parse(netns.draft(script, "report.sh").text(), "t.yaml"))[1].scenario, 1).links
    assert links[0].directions[0].queue_packets == 3000 - 2083
    remark = next(line for line in netns.draft(script, "x").remarks if line.startswith("netem on s1"))
    assert "packets of 1500 bytes get 300 Mbit/s instead of 500mbit" in remark
    assert "500mbit needs a limit above 1666" in remark


def test_loops_over_words_and_numbers_are_repeated_with_arithmetic() -> None:
    script = """
    for side in client server; do ip netns add $side; done
    for i in $(seq 1 2) {3..4}
    do
        ip link add c$i netns client type veth peer name s$((i + 1)) netns server 2>/dev/null
        ip netns exec client bash -c "ip link set c$i mtu $((1300 + i))"
        tc -n client qdisc add dev c$i root netem rate ${RATE:-5mbit}
    done
    """
    draft = netns.draft(script, "x.sh")
    assert [remark for *_, remark in draft.links] == ["c1, s2", "c2, s3", "c3, s4", "c4, s5"]
    assert [(asked["rate"], asked["mtu"]) for _, _, asked, _ in draft.links] == [
        ("5mbit", str(1300 + number)) for number in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize(
    "script",
    [
        "for a in {1..99999}; do for b in {1..99999}; do for c in {1..99999}; do :; done; done; done",
        "for a in 1 2; do " * 3000,
        "A=x; " + "A=$A$A; " * 5000,
        "for i in $(seq 1 99999); do A=$A$i; ip $A; done",
    ],
)
def test_reading_a_script_has_a_bound(script: str) -> None:
    remarks: list[str] = []
    assert len(commands(script, remarks)) <= 20_000


def test_abbreviations_of_ip_settings_of_hosts_and_flags_of_endpoints_are_read() -> None:
    script = """
    ip netns add h; ip netns add r; ip netns add b; ip netns add s
    ip netns exec h ip l add h1 type veth peer name r1 netns r
    ip netns exec h ip l add h2 type veth peer name r2 netns r
    ip netns exec r ip l add r3 type veth peer name b1 netns b
    ip netns exec b ip l add b2 type veth peer name s1 netns s
    ip netns exec b ip l add br0 type bridge
    ip netns exec b ip l set b1 master br0
    ip netns exec r sysctl -q net.ipv4.ip_forward=1
    ip netns exec h sysctl -qw net.ipv4.tcp_rmem="4096 131072 33554432"
    ip netns exec h ip a add 10.0.1.1/24 dev h1
    ip netns exec h ip a add 10.0.2.1/24 dev h2
    ip netns exec s ip a a 10.0.9.1/24 dev s1
    ip netns exec h ip mp e add 10.0.1.1 subflow fullmesh
    ip netns exec h ip mp e add 10.0.2.1 dev h2 subflow
    ip netns exec h mptcpize run iperf3 -c 10.0.9.1 -t 5 -P 3 -R -C reno
    ip netns exec h iperf3 -c 10.0.9.1 -t 7
    """
    draft = netns.draft(script, "x.sh")
    assert (draft.hosts, draft.routers, draft.switches) == (["h", "s"], ["r"], ["b"])
    assert draft.endpoints == [("h", "h-r", ["subflow", "fullmesh"]), ("h", "h-r#2", ["subflow"])]
    scenario = parse(draft.text(), "t.yaml")
    plan = resolve(expand(scenario)[1].scenario, 1)
    assert len(plan.flows) == 3
    assert {flow.socket.congestion_control for flow in plan.flows} == {"reno"}
    settings = {space.name: dict(space.sysctls) for space in plan.network.namespaces}
    assert settings["h"]["net/ipv4/tcp_rmem"] == "4096 131072 33554432"
    assert any("iperf3 -c 10.0.9.1 -t 7" in remark for remark in draft.remarks)
    assert not any("ip netns exec h ip mp e" in remark for remark in draft.remarks)


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
