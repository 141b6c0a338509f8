"""The kernel has no memory for data: of a receiver, of TCP on a host, or of a socket of UDP."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import seconds, size
from plait.explain.cause import WINDOWS, Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import LEAST_BUFFER, Remedy, Suspect
from plait.explain.facts import FlowFacts, PathFacts
from plait.explain.time.path_time import PathTime

PRESSURES = "TcpExtTCPMemoryPressures"
STALLED = 0.1
"""A flow is stalled in a slice when less than this share of its capacity arrived in order."""


def _stand_still(facts: FlowFacts, _: PathFacts, path_time: PathTime) -> None:
    """Attribute standstills of a receiver that has no memory left to it, instead of to what the sender sees of it."""
    full = facts.memory_full
    if not np.any(full):
        return
    for cause, places in list(path_time.time):
        if cause in WINDOWS:
            path_time.move((cause, places), full, Cause.RECEIVE_MEMORY, (facts.receiver,))


def _receive_memory(facts: FlowFacts, _: Places) -> list[str]:
    slices = np.flatnonzero(facts.memory_full)
    if not len(slices):
        return []
    last = slices[-1]
    stood_us = float(np.diff(facts.edges)[slices].sum())
    waiting, memory, buffer = (
        size(float(values[last]))
        for values in (facts.out_of_order, facts.receive_memory, facts.receive_buffer)
    )
    stood = f"For {seconds(stood_us / 1e6)}, {waiting} waited out of order"
    return [f"{stood}; their {memory} of memory exceeded the receive buffer of {buffer}."]


def _buffer_at_once(suspect: Suspect) -> Remedy | None:
    """Return a buffer that is large from the start, where the automatic one has not grown yet."""
    return suspect.setting("a receive buffer of 2 MiB at once", "receive_buffer", "2MiB")


def _stalled(facts: FlowFacts, _: PathFacts, path_time: PathTime) -> None:
    """Attribute the stalls of a flow to memory pressure if TCP used up its memory on one of the flow's hosts.

    The receiver then keeps the window small and drops data that has arrived (RcvPruned), so that windows are full and
    paths idle.
    """
    capacity = sum(path.capacity_bps or 0 for path in facts.paths) * facts.payload_ratio
    hosts = tuple(facts.counted(PRESSURES))
    if not hosts or not capacity:
        return
    delivered = np.nan_to_num(np.diff(facts.delivered)) * 8e6
    stalled = delivered < STALLED * capacity * np.diff(facts.edges)
    for cause, places in list(path_time.time):
        if cause in WINDOWS:
            path_time.move((cause, places), stalled, Cause.MEMORY_PRESSURE, hosts)


def _memory_pressure(facts: FlowFacts, _: Places) -> list[str]:
    sentences = [
        f"{node} came under memory pressure {'once' if count == 1 else f'{count} times'} (TCPMemoryPressures)."
        for node, count in facts.counted(PRESSURES).items()
    ]
    if pruned := sum(facts.counted("MPTcpExtRcvPruned").values()):
        sentences.append(
            f"MPTCP dropped {pruned} segments that subflows had acknowledged (MPTcpExtRcvPruned)."
        )
    return sentences


def _smaller_buffers(suspect: Suspect) -> Remedy:
    size = max(suspect.fill_bytes(), LEAST_BUFFER)
    fields = (("tcp.receive_buffer_max", f"{size}B"), ("tcp.send_buffer_max", f"{size}B"))
    return Remedy(f"buffers of at most {size / 1e6:.1f} MB", fields)


KINDS = (
    Kind(
        Cause.RECEIVE_MEMORY,
        title="receiver's memory full",
        clause="data out of order used up the receive buffer, in memory, so MPTCP left the data that was missing in a "
        "subflow",
        next_step="ask for a larger buffer at once (receive_buffer; SO_RCVBUF); see docs/explanation/small-messages.md",
        evidence=_receive_memory,
        change=_buffer_at_once,
        rule=_stand_still,
        precedence=1,
        keeps_messages="whole segments",
    ),
    Kind(
        Cause.MEMORY_PRESSURE,
        title="memory pressure",
        clause="TCP used up its memory on a host, so the kernel kept windows small and dropped received data",
        next_step="reduce the buffers, or give TCP more memory (net.ipv4.tcp_mem); see "
        "docs/explanation/large-buffers.md",
        evidence=_memory_pressure,
        change=_smaller_buffers,
        rule=_stalled,
        precedence=2,
        is_marked=True,
        keeps_messages="whole segments",
    ),
    Kind(
        Cause.SOCKET_BUFFER,
        title="socket buffer full",
        clause="the buffer of the receiving socket was full",
        next_step="let the program read faster, or ask for a larger buffer (SO_RCVBUF; iperf3 -w)",
    ),
)
