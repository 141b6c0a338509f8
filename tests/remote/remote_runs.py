"""Runs of plait over the hosts that a test makes (`real_hosts`), and what these hosts still hold."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from real_hosts import DEADLINE_S, HOSTS, RealHosts

if TYPE_CHECKING:
    from collections.abc import Callable


def start(hosts: RealHosts, text: str, *options: str, limits: str | None = None) -> subprocess.Popen[str]:
    scenario = hosts.folder / "scenario.yaml"
    scenario.write_text(text, encoding="utf-8")
    given = hosts.hosts_yaml() if limits is None else hosts.hosts_yaml(limits=limits)
    plait = [sys.executable, "-c", "from plait.cli import main; main()"]
    arguments = ["run", str(scenario), "--engine", "remote", "--hosts", str(given)]
    arguments += ["--ssh-config", str(hosts.ssh_config), "--out", str(hosts.folder / "out"), *options]
    return subprocess.Popen(
        ["ip", "netns", "exec", hosts.netns("control"), *plait, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PLAIT_CACHE": str(hosts.folder / "cache")},
    )


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 2 * DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)  # the pace of looking, not a guess of how long it takes


def left(hosts: RealHosts) -> list[str]:
    return [path.name for host in HOSTS for path in hosts.tmp(host).iterdir()]


def agents(hosts: RealHosts) -> list[int]:
    """Return the processes whose program lies in the temporary folder of a host."""
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            program = str((entry / "exe").readlink()) if entry.name.isdigit() else ""
        except OSError:
            continue
        if program.startswith(str(hosts.folder)):
            processes.append(int(entry.name))
    return processes


def trial_runs(hosts: RealHosts) -> bool:
    """Return whether both hosts carry out a trial, not a connection before the first one."""
    lines = [Path(f"/proc/{pid}/cmdline") for pid in agents(hosts)]
    try:
        jobs = [line for line in lines if b"--job" in line.read_bytes().split(b"\0")]
    except OSError:
        return False
    return len(jobs) == len(HOSTS) and any((hosts.folder / "out").glob(".work-*"))
