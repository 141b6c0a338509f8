"""The exported commands are complete, quoted and valid shell; test_shell_host.py checks what they do."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from plait.plan.shell.script import to_shell
from scenario_samples import MESH, TWO, direct, plan_of

SCRIPT = to_shell(plan_of(TWO))


@pytest.mark.parametrize(
    "command",
    [
        "ip netns add h1",
        "ip netns exec h1 sysctl -qw 'net.ipv4.tcp_rmem=4096 131072 6291456'",
        (
            "ip -n h1 link add h1-eth0 address 02:70:00:00:00:00 mtu 1500 type veth"
            " peer name w0a address 02:70:01:00:00:00 mtu 1500 netns wire"
        ),
        "ip netns exec wire ethtool -K w0a tso off gso off gro off",
        "ip -n h1 address add 10.0.0.1/24 dev h1-eth0",
        "ip -n s1 link add br0 address 02:70:02:00:00:00 type bridge stp_state 0 mcast_snooping 0",
        "ip -n s1 link set s1-eth0 master br0",
        "tc -n wire filter add dev w0a ingress matchall action mirred egress redirect dev w0b",
        "tc -n wire qdisc add dev w0b root handle 1: netem limit 1000000 delay 5ms",
        "tc -n wire qdisc add dev w0b parent 1:1 handle 2: netem limit 101 delay 0s rate 5mbit",
        "ip -n h1 route add 10.0.1.0/24 dev h1-eth1 src 10.0.1.1 table 1002",
        "ip -n h1 route add unreachable default table 1002",
        "ip -n h1 rule add from 10.0.1.1/32 lookup 1002 priority 1001",
        "ip -n h1 mptcp limits set subflow 1 add_addr_accepted 1",
        "ip -n h1 mptcp endpoint add 10.0.1.1 id 1 subflow",
        "ip -n h2 mptcp endpoint add 10.0.1.2 id 1 signal",
        "    ip netns delete wire",
    ],
)
def test_each_object_of_the_plan_is_one_command(command: str) -> None:
    assert SCRIPT.splitlines().count(command) == 1


def test_nothing_but_its_own_namespaces_is_changed() -> None:
    for line in SCRIPT.splitlines():
        words = line.split()
        if not words or line.startswith("#") or words[0] not in ("ip", "tc", "sysctl"):
            continue
        inside = words[1] == "-n" or words[:3] in (
            ["ip", "netns", "add"],
            ["ip", "netns", "exec"],
            ["ip", "netns", "delete"],
        )
        assert inside, line


def test_the_shell_form_has_jitter_loss_and_byte_queues() -> None:
    script = to_shell(
        plan_of(direct("a-b: {rate: 1mbit, delay: 10ms, jitter: 2ms, loss: 0.1%, queue: 20KB}"))
    )
    assert "netem limit 1000000 delay 10ms 2ms loss 0.1% rate 8000tbit\n" in script
    assert "bfifo limit 20000\n" in script


def test_traffic_is_shown_and_not_run() -> None:
    script = to_shell(
        plan_of(direct("a-b: {rate: 1mbit}", "transfer: {from: a, to: b, bytes: 3KB, reverse: true}"))
    )
    assert "#   ip netns exec b mptcpize run iperf3 -c 10.0.0.1 -p 5001 -B 10.0.0.2 -n 3000 -R\n" in script
    assert all(line.startswith("#") for line in script.splitlines() if "iperf3" in line)


def test_settings_that_would_change_the_whole_host_are_only_shown() -> None:
    assert "# sysctl -w net.ipv4.tcp_mem='16384 24576 32768'" in SCRIPT
    assert "\nsysctl" not in SCRIPT


def test_values_from_a_scenario_cannot_become_commands() -> None:
    script = to_shell(plan_of(TWO, "sysctls={net.ipv4.tcp_sack: '1; reboot $(id) `id`'}"))
    assert "'net.ipv4.tcp_sack=1; reboot $(id) `id`'" in script


@pytest.mark.parametrize("checker", [("sh", "-n"), ("shellcheck", "-s", "sh")], ids=["sh", "shellcheck"])
def test_the_export_is_valid_shell(checker: tuple[str, ...]) -> None:
    if shutil.which(checker[0]) is None:
        pytest.skip(f"needs {checker[0]}")
    for script in (SCRIPT, to_shell(plan_of(MESH))):
        done = subprocess.run(
            [*checker, "/dev/stdin"], input=script, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
