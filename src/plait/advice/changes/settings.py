"""Settings of kernels: congestion controls, socket buffers, the bound of unsent data, and MPTCP itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plait.advice.changes.commands import controls, sysctls
from plait.advice.changes.model import Candidate, HostCommand
from plait.advice.situation import LARGEST_BUFFERS, Situation
from plait.engine.remote.lasting import LastingSysctl
from plait.errors import shell_command

COUPLED = ("lia", "olia", "balia")
"""The coupled congestion controls that plait loads into a stock kernel as BPF programs."""
LARGE_BYTES = 16 * 2**20
_CONTROLS = {"bbr": "modprobe tcp_bbr", "cubic": "", "reno": ""}
"""Congestion controls of Debian's kernels, and the command that loads each into the kernel."""
_UNSENT_BYTES = 131_072


def stock_controls(situation: Situation) -> Iterator[Candidate]:
    """Yield the congestion controls of stock kernels."""
    for name, load in _CONTROLS.items():
        yield from controls(situation, name, f"congestion control {name} on both hosts", load)


def coupled_controls(situation: Situation) -> Iterator[Candidate]:
    """Yield the coupled congestion controls."""
    for name in COUPLED:
        words = f"coupled congestion control {name} on both hosts, by BPF"
        loading = (shell_command("plait", "bpf", verb, name) for verb in ("load", "unload"))
        yield from controls(situation, name, words, *loading)


def larger_buffers(situation: Situation) -> Iterator[Candidate]:
    """Yield larger socket buffers."""
    hosts = (situation.client, situation.server)
    values = {}
    for key in LARGEST_BUFFERS:
        first = "131072" if key.endswith("rmem") else "16384"
        if min(situation.largest_buffer(host, key) for host in hosts) < LARGE_BYTES:
            values[key] = f"4096 {first} {LARGE_BYTES}"
    general = {"receive_buffer_max", "send_buffer_max"} & set(situation.raw.get("tcp", {}))
    if not values:
        return
    change = sysctls(situation, "buffers", "socket buffers of up to 16 MiB on both hosts", values)
    if general:  # the scenario sets them for all hosts
        change = replace(change, settings={f"tcp.{name}": "16MiB" for name in sorted(general)})
    yield change


def unsent_bound(situation: Situation) -> Iterator[Candidate]:
    """Yield a bound of the unsent data in a socket."""
    key = "net.ipv4.tcp_notsent_lowat"
    if situation.sysctl(situation.server, key) is None:
        value = {key: str(_UNSENT_BYTES)}
        yield sysctls(situation, "notsent-lowat", "at most 128 KiB unsent in a socket", value)


def one_line(situation: Situation) -> Iterator[Candidate]:
    """Yield one line alone."""
    key = "net.mptcp.enabled"
    disabling = HostCommand(
        situation.client, f"sysctl -w {key}=0", f"sysctl -w {key}=1", LastingSysctl(key, "0")
    )
    words = f"{situation.lines[0].title} alone, without MPTCP"
    yield Candidate("tcp", words, {"transport": "tcp"}, (disabling,))
