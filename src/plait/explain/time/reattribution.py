"""Move time from the cause that a path shows to the cause behind it, which another link, path or host shows.

A slice never has more time for causes than its payload leaves at the path's rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plait.explain.causes import Cause
from plait.explain.time.history import LOOK_BACK, copies, sharers

if TYPE_CHECKING:
    from plait.explain.facts import FlowFacts, PathFacts
    from plait.explain.time.path_time import PathTime

Array = np.ndarray

STALLED = 0.1
"""A flow is stalled in a slice when less than this share of its capacity arrived in order."""
FOLLOW_FROM_MEMORY = frozenset(
    {Cause.RECEIVE_WINDOW, Cause.HEAD_OF_LINE, Cause.SCHEDULER_IDLE_PATH, Cause.SEND_BUFFER, Cause.NOT_KNOWN}
)
"""The causes that a receiver without memory seems to have from the sender's side."""
WINDOWS = frozenset(
    {Cause.RECEIVE_WINDOW, Cause.HEAD_OF_LINE, Cause.SCHEDULER_IDLE_PATH, Cause.SEND_BUFFER, Cause.NOT_KNOWN}
)
"""The causes that a longer RTT makes worse, or that a sender shows while its data cannot leave anyway."""
SLOWED = frozenset({*WINDOWS, Cause.TOO_SHORT, Cause.LOSS_RECOVERY, Cause.REORDERING})
"""The causes that a path may show while its ACKs come late."""
FILLED = frozenset({*SLOWED, Cause.QUEUE_FULL})
"""The causes that a path may show while a link of it is full."""
LONG_WAIT = 0.5
"""ACKs that wait for this share of the base RTT at a link slow the path down."""


def reattribute(facts: FlowFacts, path: PathFacts, out: PathTime) -> None:
    """Move the time of one path that has a cause elsewhere."""
    _reserve_payload_time(facts, out)
    _attribute_to_receive_memory(facts, out)
    _attribute_to_memory_pressure(facts, out)
    _attribute_to_shared_links(facts, path, out)
    _attribute_to_return_path(facts, path, out)


def _reserve_payload_time(facts: FlowFacts, out: PathTime) -> None:
    """Give at-capacity the part of each slice that the payload takes at the path's rate.

    The kernel counts a path as limited by a window also while the link carries what the window allows.
    """
    if not out.facts.capacity_bps:
        return
    dt = np.diff(facts.edges)
    carried = np.minimum(out.utilization / np.maximum(1 - copies(facts), 0.01), 1) * dt
    kept = sum(us for (cause, _), us in out.time.items() if cause in (Cause.AT_CAPACITY, Cause.DUPLICATES))
    movable = {key: us for key, us in out.time.items() if key[0] in FILLED}
    total = np.sum(list(movable.values()), axis=0) if movable else np.zeros(len(dt))
    share = np.clip((np.nan_to_num(carried) - kept) / np.maximum(total, 1e-9), 0, 1)
    for key in movable:
        out.move(key, share, Cause.AT_CAPACITY, (out.facts.name,))


def _attribute_to_receive_memory(facts: FlowFacts, out: PathTime) -> None:
    """Attribute standstills of a receiver that has no memory left to it, instead of to what the sender sees of it."""
    full = facts.memory_full
    if not np.any(full):
        return
    for cause, where in list(out.time):
        if cause in FOLLOW_FROM_MEMORY:
            out.move((cause, where), full, Cause.RECEIVE_MEMORY, (facts.view.receiver,))


def _attribute_to_memory_pressure(facts: FlowFacts, out: PathTime) -> None:
    """Attribute the stalls of a flow to memory pressure if TCP used up its memory on one of the flow's hosts.

    The receiver then keeps the window small and drops data that has arrived (RcvPruned), so that windows are full and
    paths idle.
    """
    capacity = sum(path.capacity_bps or 0 for path in facts.paths) * facts.payload_ratio
    if not facts.memory_pressures or not capacity:
        return
    delivered = np.nan_to_num(np.diff(facts.delivered)) * 8e6
    stalled = delivered < STALLED * capacity * np.diff(facts.edges)
    for cause, where in list(out.time):
        if cause in FOLLOW_FROM_MEMORY:
            out.move((cause, where), stalled, Cause.MEMORY_PRESSURE, tuple(facts.memory_pressures))


def _attribute_to_shared_links(facts: FlowFacts, path: PathFacts, out: PathTime) -> None:
    """Attribute what a path lacks while a link is full to the flow's other paths, as far as they fill the link."""
    for name in path.planned.forward if path.planned is not None else ():
        full = facts.network.full(name)
        sibling_bytes, other_bytes = sharers(facts, path, name)
        if not np.any(full & (sibling_bytes > 0)):
            continue
        share = full * sibling_bytes / np.maximum(sibling_bytes + other_bytes, 1e-9)
        for key in [key for key in out.time if key[0] in FILLED]:
            out.move(key, share, Cause.SHARED_BOTTLENECK, (name,))


def _attribute_to_return_path(facts: FlowFacts, path: PathFacts, out: PathTime) -> None:
    """Attribute what a path lacks to its return path, or to that of a path for whose data it waits."""
    for other in facts.paths:
        if other.planned is None or not other.subflows:
            continue
        causes = SLOWED if other is path else WINDOWS - {Cause.NOT_KNOWN}
        for name in other.planned.backward:
            slowed = _slowed_acks(facts, other, name)
            if not np.any(slowed):
                continue
            for cause, where in [key for key in out.time if key[0] in causes]:
                if not (cause is Cause.LOSS_RECOVERY and where) and where != ("handshake",):
                    out.move((cause, where), slowed, Cause.ACK_PATH, (name,))


def _slowed_acks(facts: FlowFacts, path: PathFacts, name: str) -> Array:
    """Return the slices in which a link of the return path was busy, and made ACKs wait long or dropped packets."""
    network = facts.network
    busy = network.full(name) | network.queued(name)
    queue, rate = network.counter(name, "queue_bytes"), network.rate(name)
    if path.planned is None or queue is None or not np.any(busy):
        return np.zeros(facts.slices, dtype=bool)
    waits_us = np.minimum(queue[:-1], queue[1:]) * 8e6 / rate
    dropped = np.convolve(network.dropped(name), np.ones(LOOK_BACK))[: facts.slices] > 0
    return np.asarray(busy & ((waits_us >= LONG_WAIT * path.planned.base_rtt_us) | dropped))
