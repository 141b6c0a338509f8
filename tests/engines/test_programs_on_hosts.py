"""`--configure` loads BPF congestion controls into hosts that lack them, and takes them away at the end."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from namespaces import in_namespaces
from plait.bpf import programs
from plait.errors import MachineError
from plait.janitor import locked_for_all
from real_hosts import SSHD, PlantedLine, RealHosts
from remote_runs import start, trial_runs, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADER = """\
#!/bin/sh
# A kernel that keeps the names of its algorithms in a file.
echo "$*" >>"$0.log"
case $2 in
    register) name=${3##*/}; echo "$(cat "$AVAILABLE") ${name%.bpf.o}" >"$0.new" ;;
    unregister) sed "s/ ${4#plait_}//" "$AVAILABLE" >"$0.new" ;;
esac
cat "$0.new" >"$AVAILABLE"
[ "$2" = register ]  # taking one away also fails for an earlier one that an open connection keeps
"""
# A file in the place of the kernel's shows what the agent does where no program may be loaded.
SESSION = """
import json, os, subprocess, sys
from pathlib import Path
from plait.binaries import AGENT
folder = Path(sys.argv[1])
available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
(folder / "names").write_text("reno cubic\\n")
subprocess.run(["mount", "--bind", folder / "names", available], check=True)
os.environ |= {"PATH": f"{folder}:{os.environ['PATH']}", "AVAILABLE": str(available)}
os.mkfifo(folder / "alive")
session = os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
wanted = {"sysctls": {}, "limits": None, "endpoints": [], "programs": ["lia", "olia"]}
(folder / "wanted.json").write_text(json.dumps(wanted))
for verb in ("configure", "restore", "configure", "undo"):
    if verb == "undo":  # another session finds what a killed one left
        os.close(session)
    done = subprocess.run([AGENT, "--settings", verb, folder], timeout=300)
    print(verb, done.returncode, available.read_text(), end="")
print((folder / "bpftool.log").read_text(), end="")
"""


def test_the_agent_loads_what_the_kernel_lacks_and_takes_it_away_after_any_death(tmp_path: Path) -> None:
    (tmp_path / "bpftool").write_text(LOADER)
    (tmp_path / "bpftool").chmod(0o755)
    both = [f"struct_ops register {tmp_path}/{name}.bpf.o" for name in ("lia", "olia")]
    neither = [f"struct_ops unregister name plait_{name}" for name in ("lia", "olia")]
    assert in_namespaces("-c", SESSION, str(tmp_path)).splitlines() == [
        "configure 0 reno cubic lia olia",
        "restore 0 reno cubic",
        "configure 0 reno cubic lia olia",
        "undo 0 reno cubic",
        *(both + neither) * 2,
    ]


BUCKET = "tbf rate 10mbit burst 5k limit 64k"
SCENARIO = """\
title: A file with a congestion control of BPF
network: {hosts: [h1, h2], links: {h1-h2: {}}}
traffic: [{transfer: {from: h1, to: h2, bytes: BYTES}}]
transport: mptcp
tcp: {congestion_control: wvegas}
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[RealHosts]:
    """Make hosts whose kernel, this machine's, lacks wVegas and takes it as a BPF program."""
    if os.geteuid() != 0 or not Path(SSHD).exists() or shutil.which("ssh") is None:
        pytest.skip("root and openssh-server are needed")
    try:
        programs.object_of("wvegas")
        programs.require_loading()
    except MachineError as error:
        pytest.skip(str(error))
    lock = locked_for_all("host-bpf")
    try:
        if "wvegas" in programs.available():
            pytest.skip("this machine has wVegas already, which the test would take away from its owner")
        tmp_path.chmod(0o755)
        with RealHosts(tmp_path, [PlantedLine("h1-h2", (BUCKET,), (BUCKET,))]) as made:
            yield made
    finally:
        os.close(lock)


@pytest.mark.users
def test_hosts_have_the_program_for_a_trial(hosts: RealHosts) -> None:
    run = start(hosts, SCENARIO.replace("BYTES", "1MB"), "--repeat", "1", "--configure")
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 0, output
    summary = json.loads((hosts.folder / "out" / "summary.json").read_text())
    assert summary["cases"][0]["metrics"]["completion_s"]["mean"] > 0
    assert "wvegas" not in programs.available()


@pytest.mark.users
def test_a_killed_plait_takes_the_program_away(hosts: RealHosts) -> None:
    run = start(hosts, SCENARIO.replace("BYTES", "60MB"), "--repeat", "1", "--configure")
    wait_until(lambda: trial_runs(hosts), "two agents run")
    assert "wvegas" in programs.available()
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=180)
    wait_until(lambda: "wvegas" not in programs.available(), "the hosts take the program away")
