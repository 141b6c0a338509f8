"""Congestion controls of stock kernels."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import sysctl
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import Situation

_CONTROLS = {"bbr": "modprobe tcp_bbr", "cubic": None, "reno": None}
"""Congestion controls of Debian's kernels, and the command that loads each into the kernel."""


def _controls(situation: Situation) -> Iterator[Candidate]:
    hosts = (situation.client, situation.server)
    current = {host: situation.congestion_control(host) for host in hosts}
    for name, loading in _CONTROLS.items():
        if {value or "cubic" for value in current.values()} == {name}:
            continue
        load = f"{loading} && " if loading else ""
        yield Candidate(
            name,
            f"congestion control {name} on both hosts",
            {f"network.hosts.{host}.congestion_control": name for host in hosts},
            tuple(
                sysctl(host, "net.ipv4.tcp_congestion_control", name, current[host], load) for host in hosts
            ),
        )


CHANGE = ChangeKind(
    "congestion control", "a stock kernel; bbr its module", frozenset({"loss-recovery", "queue-full", "too-short"}),
    _controls,
)  # fmt: skip
