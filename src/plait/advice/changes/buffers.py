"""Larger socket buffers."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import sysctls
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import LARGEST_BUFFERS, Situation

LARGE_BYTES = 16 * 2**20


def _buffers(situation: Situation) -> Iterator[Candidate]:
    hosts = (situation.client, situation.server)
    values = {}
    for key in LARGEST_BUFFERS:
        first = "131072" if key.endswith("rmem") else "16384"
        if min(situation.largest_buffer(host, key) for host in hosts) < LARGE_BYTES:
            values[key] = f"4096 {first} {LARGE_BYTES}"
    general = {"receive_buffer_max", "send_buffer_max"} & set(situation.raw.get("tcp", {}))
    if not values:
        return
    if general:  # the scenario sets them for all hosts
        settings = {f"tcp.{name}": "16MiB" for name in sorted(general)}
        yield Candidate("buffers", "socket buffers of up to 16 MiB on both hosts", settings,
                        sysctls(situation, "", "", values).commands)  # fmt: skip
        return
    yield sysctls(situation, "buffers", "socket buffers of up to 16 MiB on both hosts", values)


CHANGE = ChangeKind(
    "buffers",
    "a stock kernel",
    frozenset({"receive-window", "receive-memory", "send-buffer", "head-of-line"}),
    _buffers,
)
