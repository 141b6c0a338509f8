"""`plait lines --server` at a home in a guest: two lines to a server, one behind a router that translates addresses."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from guest_runs import NEEDS_SSHD, lines_from_home, netem, tbf
from plait.scenario import load

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.guest, NEEDS_SSHD]

CABLE = ["cable", [netem(7), tbf(3)], [netem(7), tbf(12)], True]
LTE = ["lte", [netem(20), tbf(4)], [netem(20), tbf(6)], False]
LINES: list[Any] = [CABLE, LTE]
FEW = ("--rate", "15mbit", "--bytes", "12MB")
"""Bytes enough for the rates of lines alone."""


def twin_run(folder: Path) -> str:
    """Run the scenario of measured lines, and return what plait prints."""
    words = ["run", str(folder / "lines.yaml"), "--out", str(folder / "twin"), "--repeat", "2"]
    program = [sys.executable, "-c", "from plait.cli import main; main()", *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


SETTINGS = [
    [
        "home",
        "sysctl",
        "-qw",
        "net.ipv4.tcp_rmem=4096 131072 3000000",
        "net.ipv4.tcp_congestion_control=reno",
    ],
    ["home", "ip", "mptcp", "endpoint", "add", "192.168.2.2", "dev", "w2", "subflow"],
    ["home", "ip", "mptcp", "limits", "set", "subflows", "3"],
    ["vps", "ip", "mptcp", "limits", "set", "subflows", "4"],
    ["vps", "sysctl", "-qw", "net.ipv4.tcp_slow_start_after_idle=0"],
]


NO_PYTHON = """
import subprocess, sys
config, *arguments = sys.argv[1:]
ran = [
    subprocess.run(["ssh", "-F", config, "vps", name, "--version"], capture_output=True).returncode
    for name in ("sh -c true", "python3", sys.executable, "tshark")
]
assert ran[0] == 0 and {126, 127} >= set(ran[1:]), ran
sys.argv[1:] = arguments
from plait.cli import main
main()
"""
"""`plait lines`, after a look at the server: it runs `sh`, and neither Python nor tshark."""


def test_two_lines_of_a_home_are_measured_without_a_hosts_file_to_a_server_without_python(
    tmp_path: Path,
) -> None:
    words = ("--server", "vps", "--ssh-config", "{ssh_config}", "--rate", "15mbit")
    command = [NO_PYTHON, "{ssh_config}", "lines", *words, "--out", "{folder}/lines.yaml"]
    output = lines_from_home(tmp_path, LINES, before=SETTINGS, program="-c", command=command)
    assert "leaves it idle" not in output
    assert "so they share no bottleneck" in output
    rows = [line.split() for line in output.splitlines() if line.startswith(("w1 ", "w2 "))]
    assert [row[:7] for row in rows] == [
        ["w1", "12", "down", "/", "3.0", "up", "Mbit/s"],
        ["w2", "6.0", "down", "/", "4.0", "up", "Mbit/s"],
    ]
    scenario = load(tmp_path / "lines.yaml")
    links = list(scenario.network.links.values())
    assert [link.label for link in links] == ["w1", "w2"]
    measured = [float(link.conditions(forward=way).rate or 0) for link in links for way in (True, False)]
    assert measured == pytest.approx([3e6, 12e6, 4e6, 6e6], rel=0.01)
    client, server = (node for node in scenario.network.hosts.values())
    assert client.congestion_control == "reno"
    assert client.sysctls["net.ipv4.tcp_rmem"] == "4096 131072 3000000"
    assert server.sysctls["net.ipv4.tcp_slow_start_after_idle"] == "0"
    limits = {
        name: (limit.subflows, limit.add_addr_accepted) for name, limit in scenario.mptcp.limits.items()
    }
    assert list(limits.values()) == [(3, 1), (4, 0)]
    flags = [endpoint.flags for endpoints in scenario.mptcp.endpoints.values() for endpoint in endpoints]
    assert flags == [["subflow"], ["signal"]]
    assert "Caution" not in twin_run(tmp_path)


def test_a_line_whose_packets_leave_through_another_one_is_refused_with_the_commands(tmp_path: Path) -> None:
    output = lines_from_home(
        tmp_path, LINES, code=2, before=[["home", "ip", "rule", "del", "from", "192.168.2.2", "table", "102"]]
    )
    assert "w2: packets from its address 192.168.2.2 to 198.51.100.2 leave through w1" in output
    assert "sudo ip rule add from 192.168.2.2 table 102" in output
    assert "sudo ip route add default via 192.168.2.1 dev w2 table 102" in output


def chain(isp: str, rule: str) -> list[list[str]]:
    """Return commands that let a provider treat packets by a rule before it routes them."""
    made = "chain inet t c { type filter hook prerouting priority -300; }"
    return [[isp, "nft", f"add {words}"] for words in ("table inet t", made, f"rule inet t c {rule}")]


def test_what_a_line_does_to_mptcp_and_to_full_packets_is_named(tmp_path: Path) -> None:
    """Announcements of a round trip of a second arrived while the next line had its connection, and counted as lost."""
    satellite = ["satellite", [netem(500), tbf(3)], [netem(500), tbf(6)], False]
    before = [
        ["home", "ip", "link", "set", "w3", "mtu", "1400"],
        ["isp1", "ip", "link", "set", "core", "mtu", "1480"],
        ["core", "ip", "link", "set", "isp1", "mtu", "1480"],
        *chain("isp1", "iifname home reset tcp option mptcp"),
        ["vps", "ip", "address", "add", "198.51.100.3/24", "dev", "eth0"],
        ["vps", "ip", "mptcp", "endpoint", "add", "198.51.100.3", "dev", "eth0", "signal"],
        *chain("isp3", "iifname core tcp option mptcp subtype 3 drop"),
    ]
    output = lines_from_home(tmp_path, [CABLE, satellite, LTE], *FEW, before=before)
    assert "w1 removes MPTCP's options" in output
    assert "sudo ip mptcp endpoint add 192.168.3.2 dev w3 subflow" in output
    assert "w3 loses the announcements (ADD_ADDR) of vps" in output
    assert output.count(" loses ") == 1, output
    first, second, third = load(tmp_path / "lines.yaml").network.links.values()
    assert (first.mtu, second.mtu, third.mtu) == (1480, 1500, 1400)
    assert first.middlebox is not None
    assert second.middlebox is None
    assert third.middlebox is None
    assert [float(third.conditions(forward=way).rate or 0) for way in (True, False)] == pytest.approx(
        [4e6, 6e6], rel=0.01
    )


def test_a_shared_bottleneck_has_its_direction_and_a_closed_port_its_command(tmp_path: Path) -> None:
    shared = ["core", "tc", "qdisc", "add", "dev", "vps", "root", *tbf(5).split()]
    drop = ["vps", "iptables", "-A", "INPUT", "-p", "tcp", "--dport", "5001:5010", "-j", "DROP"]
    output = lines_from_home(tmp_path, LINES, "--rate", "15mbit", before=[shared, drop])
    assert "vps: TCP port 5001 is closed: `sudo ufw allow 5001:5010/tcp`" in output
    down, up = (line for line in output.splitlines() if line.startswith(("down: ", "up: ")))
    assert down.endswith("so they share no bottleneck")
    carried, alone = map(float, re.findall(r"carry (\S+) of (\S+) Mbit/s", up)[0])
    assert (carried, alone) == pytest.approx((5, 7), rel=0.01)
    assert up.endswith("so they share a bottleneck")


def test_a_server_that_lets_nothing_in_ends_the_command_with_what_opens_its_ports(tmp_path: Path) -> None:
    drop = [
        "vps",
        "iptables",
        "-A",
        "INPUT",
        "-p",
        "all",
        "-m",
        "multiport",
        "!",
        "--dports",
        "22",
        "-j",
        "DROP",
    ]
    rules = [[word if word != "all" else protocol for word in drop] for protocol in ("tcp", "udp")]
    output = lines_from_home(tmp_path, LINES, "--rate", "15mbit", before=rules, code=3)
    assert (
        "neither a UDP packet nor a TCP connection from 192.168.1.2 reaches vps (198.51.100.2, port 5001)"
        in output
    )
    assert "`sudo ufw allow 5001:5010/tcp`" in output
    assert "`sudo ufw allow 5001:5010/udp`" in output
    assert not (tmp_path / "lines.yaml").exists()


def test_lines_of_ipv6_alone_are_measured(tmp_path: Path) -> None:
    endpoint = ["home", "ip", "mptcp", "endpoint", "add", "2001:db8:2::2", "dev", "w2", "subflow"]
    output = lines_from_home(tmp_path, LINES, *FEW, before=[endpoint], ipv6=True)
    assert "leaves it idle" not in output
    scenario = load(tmp_path / "lines.yaml")
    links = list(scenario.network.links.values())
    measured = [float(link.conditions(forward=way).rate or 0) for link in links for way in (True, False)]
    assert measured == pytest.approx([3e6, 12e6, 4e6, 6e6], rel=0.01)
    assert [link.mtu for link in links] == [1500, 1500]
    assert scenario.mptcp.scheduler == "default"


def test_a_line_that_blocks_udp_and_mptcp_is_measured_by_tcp_and_one_that_blocks_the_port_by_udp(
    tmp_path: Path,
) -> None:
    before = [
        ["isp1", "iptables", "-A", "FORWARD", "-p", "udp", "-j", "DROP"],
        *chain("isp1", "iifname home tcp flags syn tcp option mptcp exists drop"),
        ["isp2", "iptables", "-A", "FORWARD", "-p", "tcp", "--dport", "5001:5010", "-j", "DROP"],
    ]
    output = lines_from_home(tmp_path, LINES, "--rate", "100mbit", "--bytes", "60MB", before=before)
    assert "w1 drops handshakes with MPTCP's options" in output
    assert "w2: no TCP connection to port 5001 of vps, which other lines reach" in output
    (row,) = (line for line in output.splitlines() if line.startswith("w1 ") and "Mbit/s" in line)
    assert " ".join(row.split()).startswith("w1 12 down / 3.0 up Mbit/s 14 ms")
    assert "(by TCP: UDP is blocked)" in output
    first, second = load(tmp_path / "lines.yaml").network.links.values()
    assert [float(first.conditions(forward=way).rate or 0) for way in (True, False)] == pytest.approx(
        [3e6, 12e6], rel=0.03
    )
    assert float(second.conditions(forward=True).rate or 0) == pytest.approx(4e6, rel=0.01)
