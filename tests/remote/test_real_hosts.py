"""The engine `remote` over a real sshd: hosts are namespaces that the test makes as root."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from real_hosts import HOSTS, SSHD, PlantedLine, RealHosts
from remote_runs import agents, left, start, trial_runs, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.users,  # the guest's tests show the same to everybody
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path(SSHD).exists() or shutil.which("ssh") is None,
        reason="needs root for network namespaces, and openssh-server; see docs/limitations.md",
    ),
]

BUCKET = "tbf rate 10mbit burst 5k limit 64k"
SCENARIO = """\
title: A file over a line with a token bucket
network:
  hosts: [h1, h2]
  links: {h1-h2: {rate: 10mbit}}
traffic:
  - transfer: {from: h1, to: h2, bytes: 6MB}
transport: tcp
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[RealHosts]:
    tmp_path.chmod(0o755)
    with RealHosts(tmp_path, [PlantedLine("h1-h2", (BUCKET,), (BUCKET,))]) as made:
        yield made


def test_a_transfer_gets_what_the_token_bucket_allows_and_leaves_nothing_behind(hosts: RealHosts) -> None:
    run = start(hosts, SCENARIO, "--repeat", "1")
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 0, output
    summary = json.loads((hosts.folder / "out" / "summary.json").read_text())
    completion_s = summary["cases"][0]["metrics"]["completion_s"]["mean"]
    (path,) = (hosts.folder / "out" / "trials").glob("*/000/provenance.json")
    facts = json.loads(path.read_text())["host"]
    error_s = (facts["h1.clock_error_us"] + facts["h2.clock_error_us"]) / 1e6
    assert facts["h2.clock_error_us"] > 0
    # 1448 of the 1514 bytes of a frame are payload. The full bucket of 5 kB passes at once, and no load of this machine
    # makes the rest faster than its rate; that it is not slower shows test_in_guest, whose clock is virtual.
    assert completion_s + error_s > (6e6 * 1514 / 1448 - 5000) * 8 / 10e6, output
    assert left(hosts) == []
    assert agents(hosts) == []


def test_a_cut_connection_leaves_nothing_behind(hosts: RealHosts) -> None:
    run = start(hosts, SCENARIO.replace("6MB", "60MB"), "--repeat", "1")
    wait_until(lambda: trial_runs(hosts), "two agents run")
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    clients = [int(pid) for pid in children if "ssh" in Path(f"/proc/{pid}/comm").read_text()]
    assert len(clients) == len(HOSTS)
    os.kill(clients[0], signal.SIGKILL)
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 1
    assert "the connection to" in output
    wait_until(lambda: not agents(hosts) and not left(hosts), "the hosts clean up alone")


def test_a_killed_plait_and_a_dead_link_leave_nothing_behind(hosts: RealHosts) -> None:
    run = start(hosts, SCENARIO.replace("6MB", "60MB"), "--repeat", "1")
    wait_until(lambda: trial_runs(hosts), "two agents run")
    # The hosts hear nothing of the end: their side of the connection stays open.
    subprocess.run(["ip", "-n", hosts.netns("control"), "link", "set", "m1", "down"], check=True, timeout=300)
    subprocess.run(["ip", "-n", hosts.netns("control"), "link", "set", "m2", "down"], check=True, timeout=300)
    run.kill()
    run.communicate(timeout=300)
    wait_until(lambda: not agents(hosts), "the agents end after a missed heartbeat")
    deadline = time.monotonic() + 300
    while left(hosts):
        assert time.monotonic() < deadline, "the keepers end when no order comes"
        time.sleep(0.2)


def test_what_the_limits_of_the_file_forbid_ends_the_trial(hosts: RealHosts) -> None:
    run = start(hosts, SCENARIO, "--repeat", "1", limits="rate: 2mbit, bytes: 1GB, time: 60s")
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 1
    assert "bit/s over a second, and the limit was 2000000" in output
    assert left(hosts) == []


def test_settings_are_restored_after_the_trial_and_after_a_cut(hosts: RealHosts) -> None:
    text = SCENARIO.replace("transport: tcp", "transport: mptcp\ntcp: {congestion_control: reno}")
    text = text.replace("6MB", "60MB")
    for host in HOSTS:
        hosts.run(host, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno", "net.mptcp.enabled=1")
    before = [hosts.run(host, "ip", "mptcp", "limits", "show") for host in HOSTS]
    memory = hosts.run("h1", "sysctl", "-n", "net.ipv4.tcp_rmem")
    hosts.run("h1", "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=0")
    run = start(hosts, text, "--repeat", "1", "--configure")
    wait_until(lambda: trial_runs(hosts), "two agents run")
    assert hosts.run("h1", "sysctl", "-n", "net.ipv4.tcp_no_metrics_save").strip() == "1"
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=300)
    wait_until(lambda: not agents(hosts) and not left(hosts), "the hosts clean up alone")
    assert hosts.run("h1", "sysctl", "-n", "net.ipv4.tcp_no_metrics_save").strip() == "0"
    assert hosts.run("h1", "sysctl", "-n", "net.ipv4.tcp_rmem") == memory
    assert [hosts.run(host, "ip", "mptcp", "limits", "show") for host in HOSTS] == before
    assert [hosts.run(host, "ip", "mptcp", "endpoint", "show") for host in HOSTS] == ["", ""]
