"""What hosts and lines lack for a study is named before its first trial, within seconds, with the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from real_hosts import HOSTS, SSHD, PlantedLine, RealHosts
from remote_runs import left, start

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.users,
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path(SSHD).exists() or shutil.which("ssh") is None,
        reason="needs root for network namespaces, and openssh-server; see docs/limitations.md",
    ),
]

SCENARIO = """\
title: A file over two lines
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit}, h1-h2#2: {rate: 10mbit}}}
traffic:
  - transfer: {from: h1, to: h2, bytes: 1MB}
transport: mptcp
tcp: {congestion_control: reno}
repeat: 1
"""
LINE = "tbf rate 10mbit burst 5k limit 64k"


WAYS = ("from: h1, to: h2", "from: h2, to: h1")
translated = pytest.mark.parametrize("hosts", [True], indirect=True)


@pytest.fixture
def hosts(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RealHosts]:
    """Two hosts with two lines; the parameter tells whether routers translate their addresses."""
    tmp_path.chmod(0o755)
    names, is_translated = ("h1-h2", "h1-h2#2"), getattr(request, "param", False)
    with RealHosts(tmp_path, [PlantedLine(name, (LINE,), (LINE,), is_translated) for name in names]) as made:
        for host in HOSTS:
            made.run(host, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno", "net.mptcp.enabled=1")
        yield made


def refused(hosts: RealHosts, *options: str, text: str = SCENARIO) -> str:
    """Run plait, and return what it printed; it must have run no trial."""
    before = settings(hosts)
    run = start(hosts, text, *options)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 3, output
    assert not (hosts.folder / "out" / "trials").exists()
    assert left(hosts) == []
    assert settings(hosts) == before
    return output


def settings(hosts: RealHosts) -> list[str]:
    shown = (
        ("ip", "mptcp", "endpoint"),
        ("ip", "mptcp", "limits"),
        ("sysctl", "net.mptcp", "net.ipv4.tcp_sack"),
    )
    return [hosts.run(host, *command) for host in HOSTS for command in shown]


def filter_input(hosts: RealHosts, host: str, rule: str) -> None:
    """Apply a rule of nft to what arrives at `host`."""
    chain = "chain inet t c { type filter hook prerouting priority -300; }"
    for command in ("add table inet t", f"add {chain}", f"add rule inet t c {rule}"):
        hosts.run(host, "nft", command)


def test_an_address_that_the_host_lacks_is_named(hosts: RealHosts) -> None:
    hosts.run("h1", "ip", "addr", "del", "10.1.2.1/24", "dev", "l2")
    output = refused(hosts, "--configure")
    assert "h1 has no address 10.1.2.1" in output


def test_packets_that_leave_by_another_line_are_named(hosts: RealHosts) -> None:
    hosts.run("h1", "ip", "route", "add", "10.1.2.2/32", "dev", "l1")
    output = refused(hosts, "--configure")
    assert "h1 sends packets from 10.1.2.1 to 10.1.2.2 through l1" in output


def test_missing_endpoints_are_named_without_configure(hosts: RealHosts) -> None:
    output = refused(hosts)
    assert "h1 has no MPTCP endpoint 10.1.2.1" in output
    assert "--configure" in output


def test_a_port_that_a_firewall_drops_is_found_in_seconds(hosts: RealHosts) -> None:
    filter_input(hosts, "h2", "iifname l2 tcp dport 5001 drop")
    output = refused(hosts, "--configure")
    assert "no connection from h1 (10.1.2.1) to h2 (10.1.2.2, port 5001) within 5 s" in output
    assert "firewall" in output
    assert "10.1.1.1" not in output, "the first line is fine"


def test_answers_that_a_firewall_drops_are_found(hosts: RealHosts) -> None:
    filter_input(hosts, "h1", "iifname l1 tcp sport 5001 drop")
    output = refused(hosts, text=SCENARIO.replace("mptcp", "tcp"))
    assert "no connection from h1 (10.1.1.1) to h2 (10.1.1.2, port 5001) within 5 s" in output


def test_a_line_that_strips_mptcp_is_named(hosts: RealHosts) -> None:
    filter_input(hosts, "h2", "iifname l2 reset tcp option mptcp")
    output = refused(hosts, "--configure")
    assert "MPTCP is not negotiated from h1 (10.1.2.1) to h2 (10.1.2.2, port 5001)" in output
    assert "10.1.1.1" not in output, "the first line is fine"


def test_a_host_without_mptcp_is_named(hosts: RealHosts) -> None:
    hosts.run("h2", "sysctl", "-qw", "net.mptcp.enabled=0")
    output = refused(hosts)
    assert "h2 has MPTCP disabled" in output


def test_a_congestion_control_that_the_host_lacks_is_named(hosts: RealHosts) -> None:
    text = SCENARIO.replace("bytes: 1MB", "bytes: 1MB, congestion_control: hybla")
    output = refused(hosts, "--configure", text=text)
    assert "no congestion control hybla" in output
    assert "guest" not in output


@pytest.mark.parametrize(("size", "what"), [("1m", "No space left on device"), ("16m", "(a trial needs ")])
def test_a_full_disk_is_named(hosts: RealHosts, size: str, what: str) -> None:
    daemon = hosts._daemons[0]  # whose mounts are its own
    mount = ["nsenter", "-t", str(daemon.pid), "-m", "mount", "-t", "tmpfs", "-o", f"size={size}", "none"]
    subprocess.run([*mount, str(hosts.tmp("h1"))], check=True, timeout=300)
    output = refused(hosts, "--configure")
    assert what in output
    assert "h1" in output
    assert "make room there" in output


def test_a_run_over_both_lines_gives_no_caution_and_leaves_all_as_found(hosts: RealHosts) -> None:
    hosts.run("h2", "ip", "mptcp", "endpoint", "add", "10.1.2.2", "id", "200", "subflow")
    hosts.run("h1", "ip", "mptcp", "endpoint", "add", "10.1.2.1", "id", "7", "subflow")
    before = settings(hosts)
    run = start(hosts, SCENARIO, "--configure")
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 0, output
    assert settings(hosts) == before
    (folder,) = (hosts.folder / "out" / "trials").glob("*/000")
    events = pl.read_parquet(folder / "events.parquet")
    for column in ("local_address", "remote_address"):
        shown = [text for text in events[column].drop_nulls() if text.startswith("10.1.")]
        assert shown == [], "these are addresses of the hosts, not of the plan"
    assert "was announced" not in output


@translated
@pytest.mark.parametrize("way", WAYS)
def test_a_firewall_behind_translating_routers_is_named_from_the_side_that_connects(
    hosts: RealHosts, way: str
) -> None:
    filter_input(hosts, "h2", "iifname l2 tcp dport 5001 drop")
    output = refused(hosts, "--configure", text=SCENARIO.replace(WAYS[0], way))
    assert "no connection from h1 (192.168.2.1) to h2 (10.1.2.2, port 5001) within 5 s" in output
    assert "in the firewall of h2" in output
    assert "192.168.1.1" not in output, "the first line is fine"


@translated
@pytest.mark.parametrize("way", WAYS)
def test_what_a_hidden_host_lacks_is_named(hosts: RealHosts, way: str) -> None:
    text = SCENARIO.replace(WAYS[0], way)
    assert "h1 has no MPTCP endpoint 192.168.2.1" in refused(hosts, text=text)
    hosts.run("h1", "ip", "route", "add", "10.1.2.2/32", "via", "192.168.1.254")
    hosts.run("h2", "ip", "addr", "del", "10.2.2.2/24", "dev", "l2")
    output = refused(hosts, "--configure", text=text)
    assert "h1 sends packets from 192.168.2.1 to 10.1.2.2 through l1" in output
    assert "h2 has no address 10.2.2.2" in output


@translated
@pytest.mark.parametrize("way", WAYS)
def test_a_run_over_two_translated_lines_leaves_all_as_found(hosts: RealHosts, way: str) -> None:
    before = settings(hosts)
    run = start(hosts, SCENARIO.replace(WAYS[0], way), "--configure")
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 0, output
    assert (settings(hosts), left(hosts)) == (before, [])
