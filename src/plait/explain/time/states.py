"""Attribute the time of each path of a flow, slice by slice: every microsecond has exactly one cause.

The kernel's accounting comes first. For each slice it reports how long a subflow had data (busy), and for how much of
that time it waited for the receive window (rwnd-limited) or had no data left while its application waited for buffer
space (sndbuf-limited). The states at the two ends of the slice classify the rest; each end accounts for one half.

MPTCP keeps the window and the send buffer in the connection, and its subflows cannot see them. Linux counts a subflow
as sndbuf-limited whenever it has no data left while the *connection's* application waits for buffer space, even if the
connection's window or the scheduler holds the data back. So this time is classified like idle time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from plait.analysis.cautions.join_time import patience_us, poor_initial
from plait.explain.capacity import overlap_us
from plait.explain.cause import FILLED, Array, Cause
from plait.explain.facts import FlowFacts, PathFacts, SubflowFacts
from plait.explain.time.history import copies, work_causes
from plait.explain.time.path_time import PathTime, drained

Rule = Callable[[FlowFacts, PathFacts, PathTime], None]


FULL_WINDOW = 0.85
"""The connection's window counts as full when at least this share of it is in flight; the rest is about one burst."""
WAITING_SHARE = 0.25
"""Out-of-order data at the receiver explains a full window from this share of the window on."""
STUCK_SHARE = 0.5
"""A full send buffer is due to head-of-line blocking if at least this share of the data in flight is out of order."""
CWND_USED = 0.9
"""A subflow uses its congestion window when at least this share of it is in flight."""
FAR = 2.0
"""Another path is far when its RTT is at least this many times as long."""
FULL_BUFFER = 0.6
"""A send buffer counts as full from this share on: a blocked writer wakes up when a third of the buffer is free."""


def attribute_time(facts: FlowFacts, path: PathFacts, rules: Sequence[Rule]) -> PathTime:
    """Return the time of one path by cause; the causes add up to the length of each slice.

    `rules` move time from the cause that a path shows to the cause behind it, which another link, path or host shows.
    """
    dt = np.diff(facts.edges)
    path_time = PathTime(path, _utilization(facts, path, dt))
    handshake = overlap_us(facts.edges, facts.start_us, facts.connected_us)
    _add_handshake(facts, handshake, path_time)
    if not path.subflows:
        path_time.add(Cause.SUBFLOW_NEVER, dt - handshake, (path.name,))
        return path_time
    work = np.zeros(len(dt))
    for subflow in path.subflows:
        subflow_time = PathTime(path, path_time.utilization)
        work += _subflow_time(facts, path, subflow, subflow_time, dt - handshake) / len(path.subflows)
        for (cause, places), us in subflow_time.time.items():
            path_time.add(cause, us / len(path.subflows), places)
    for cause, places, us in work_causes(facts, path, work, path_time.utilization):
        path_time.add(cause, us, places)
    _reserve_payload_time(facts, path_time)
    for apply_rule in rules:
        apply_rule(facts, path, path_time)
    _balance(path_time, dt)
    return path_time


def _add_handshake(facts: FlowFacts, handshake: Array, path_time: PathTime) -> None:
    """Attribute the time before the connection: to the initial path if its RTT is far higher, else to the start."""
    initial = facts.flow.paths[0] if facts.flow.paths else None
    if facts.flow.transport == "mptcp" and any(poor_initial(initial, path.planned) for path in facts.paths):
        path_time.add(Cause.INITIAL_PATH_POOR, handshake, (initial.name if initial is not None else "",))
    else:
        path_time.add(Cause.TOO_SHORT, handshake, ("handshake",))


def _balance(path_time: PathTime, dt: Array) -> None:
    """Scale the causes to the length of each slice, and add what is missing to `not-known`; both come from rounding."""
    total = np.sum(list(path_time.time.values()), axis=0) if path_time.time else np.zeros(len(dt))
    scale = np.where(total > dt, dt / np.maximum(total, 1e-9), 1.0)
    for key in path_time.time:
        path_time.time[key] = path_time.time[key] * scale
    path_time.add(Cause.NOT_KNOWN, dt - total * scale)


def _utilization(facts: FlowFacts, path: PathFacts, dt: Array) -> Array:
    """Return the share of the path's rate that new payload left at its slowest link, in each slice; NaN without a rate.

    What a subflow sends faster than that waits in the queue, and leaves while the sender may be idle (a fluid model).
    """
    if not path.capacity_bps:
        return np.full(len(dt), np.nan)
    payload = np.zeros(len(dt))
    for subflow in path.subflows:
        payload += np.nan_to_num(subflow.growth("sent_bytes") - subflow.growth("retransmitted_bytes"))
    payload *= 1 - copies(facts)
    full_rate = path.capacity_bps * facts.payload_ratio / 8e6 * dt
    names = path.planned.forward if path.planned is not None else ()
    lower = [facts.network.rate(name) / path.capacity_bps for name in names]
    room = full_rate * np.minimum.reduce([np.ones(len(dt)), *lower])
    return drained(payload, room) / np.maximum(full_rate, 1e-9)


def _subflow_time(
    facts: FlowFacts, path: PathFacts, subflow: SubflowFacts, path_time: PathTime, rest: Array
) -> Array:
    """Add the time in which one subflow did not exist or was idle; return the time in which it had data to send."""
    edges = facts.edges
    alive = np.minimum(
        overlap_us(edges, max(subflow.established_us, facts.connected_us), min(subflow.closed_us, edges[-1])),
        rest,
    )
    if subflow.number != 0:
        _add_join_time(facts, path, subflow, path_time)
    path_time.add(
        Cause.SUBFLOW_CLOSED, np.minimum(overlap_us(edges, subflow.closed_us, edges[-1]), rest), (path.name,)
    )
    links = (*path.planned.forward, *path.planned.backward) if path.planned is not None else ()
    down = np.minimum(facts.network.down_shares(links) * np.diff(edges), alive)
    path_time.add(Cause.PATH_DOWN, down, (path.name,))
    alive = alive - down
    busy, window, room = _kernel_times(subflow, alive)
    places = (path.name,)
    window_masks = _window_cause(facts, path)
    for half in (0, 1):
        edge = slice(half, facts.slices + half)
        for cause, mask in window_masks.items():
            path_time.add(cause, window / 2 * mask[edge], places)
    idle = alive - busy + room
    work = busy - window - room
    has_work = _has_work(facts, subflow)
    reasons = _idle_reasons(facts, path)
    queued_work = np.zeros(facts.slices)
    for half in (0, 1):
        edge, other_edge = slice(half, facts.slices + half), slice(1 - half, facts.slices + 1 - half)
        queued_work += work / 2 * has_work[edge]
        loose = work / 2 * ~has_work[edge] + idle / 2
        for cause, mask in reasons.items():
            # If only one end of the slice has work for the path, the state at the other end explains the idle time.
            chosen = np.where(has_work[edge] & ~has_work[other_edge], mask[other_edge], mask[edge])
            path_time.add(cause, loose * chosen, places)
    return queued_work


def _kernel_times(subflow: SubflowFacts, alive: Array) -> tuple[Array, Array, Array]:
    """Return the kernel's busy, rwnd-limited and sndbuf-limited time in each slice, clipped to the lifetime."""
    busy = subflow.growth("busy_us")
    busy = np.where(np.isnan(busy), alive, np.clip(busy, 0, alive))
    window = np.clip(np.nan_to_num(subflow.growth("rwnd_limited_us")), 0, busy)
    room = np.clip(np.nan_to_num(subflow.growth("sndbuf_limited_us")), 0, busy - window)
    return busy, window, room


def _has_work(facts: FlowFacts, subflow: SubflowFacts) -> Array:
    """Return, for each edge, whether data in the subflow waits for the congestion window.

    Less than a segment waits for ACKs instead (Nagle), unless the congestion window is full as well. A full window
    alone proves nothing, because the kernel stops growing the window when the application is slow. A prototype's data
    wait in the connection, not in the subflow, until a path has room.
    """
    not_sent = subflow.samples["notsent_bytes"]
    cwnd_full = subflow.samples["unacked_segments"] >= CWND_USED * subflow.samples["cwnd_segments"]
    waits = not_sent > 0
    if facts.flow.transport == "prototype":
        waits = waits | (np.nan_to_num(facts.unsent) > 0)
    return np.asarray((not_sent >= subflow.samples["mss_bytes"]) | (waits & cwnd_full))


def _window_cause(facts: FlowFacts, path: PathFacts) -> dict[str, Array]:
    """Return, for each edge, whether a full receive window is due to head-of-line blocking or to its size.

    It is head-of-line blocking if a large part of the window waits at the receiver for earlier bytes, or if the window
    would suffice for this path alone and another path has a far higher RTT.
    """
    window = np.nan_to_num(facts.window, nan=np.inf)
    head_of_line = facts.out_of_order >= WAITING_SHARE * window
    siblings = [_rtt(sibling) for sibling in facts.paths if sibling is not path and sibling.subflows]
    if siblings and path.capacity_bps and path.planned is not None:
        enough = window >= path.capacity_bps * path.planned.base_rtt_us / 8e6
        far = np.nanmax(np.array(siblings), axis=0) >= FAR * _rtt(path)
        head_of_line |= enough & far & np.isfinite(window)
    return {Cause.HEAD_OF_LINE: head_of_line, Cause.RECEIVE_WINDOW: ~head_of_line}


def _rtt(path: PathFacts) -> Array:
    """Return the smoothed RTT of a path's fastest subflow at each edge; the base RTT before the first sample."""
    base = path.planned.base_rtt_us if path.planned is not None else np.inf
    rtts = np.array([subflow.samples["rtt_us"] for subflow in path.subflows])
    return np.asarray(np.nan_to_num(np.min(rtts, axis=0), nan=base)) if len(rtts) else np.array([base])


def _idle_reasons(facts: FlowFacts, path: PathFacts) -> dict[str, Array]:
    """Return, for each edge, why a subflow has nothing to send; exactly one reason is true."""
    scheduled = facts.flow.transport in {"mptcp", "prototype"} and not facts.row.get("fallback")
    unsent = np.nan_to_num(facts.unsent) > 0
    window_full = facts.in_flight >= FULL_WINDOW * np.nan_to_num(facts.window, nan=np.inf)
    window_masks = _window_cause(facts, path)
    all_written = _all_written(facts)
    blocked = np.nan_to_num(facts.send_memory) >= FULL_BUFFER * np.nan_to_num(facts.send_buffer, nan=np.inf)
    if facts.flow.application.GREEDY:
        blocked = np.ones(len(blocked), dtype=bool)
    blocked &= ~unsent & ~all_written
    # What fills the send buffer has arrived, and waits at the receiver for what a slower path carries.
    stuck = (
        blocked
        & scheduled
        & (facts.out_of_order >= STUCK_SHARE * np.maximum(np.nan_to_num(facts.in_flight), 1))
    )
    reasons = {
        Cause.HEAD_OF_LINE: (unsent & window_full & window_masks[Cause.HEAD_OF_LINE]) | stuck,
        Cause.RECEIVE_WINDOW: unsent & window_full & ~window_masks[Cause.HEAD_OF_LINE],
        Cause.SCHEDULER_IDLE_PATH: unsent & ~window_full & scheduled,
        # Captures do not show what waits in the sender: with data in flight it may be idle or not.
        Cause.NOT_KNOWN: (unsent & ~window_full & (not scheduled))
        | (np.isnan(facts.unsent) & (facts.in_flight > 0) & ~all_written & ~stuck & ~blocked),
        Cause.LAST_BYTES: ~unsent & all_written,
        Cause.SEND_BUFFER: blocked & ~stuck,
    }
    reasons[Cause.SENDER_IDLE] = ~np.logical_or.reduce(list(reasons.values()))
    spare = _is_spare(facts, path) & ~reasons[Cause.SENDER_IDLE] & ~reasons[Cause.LAST_BYTES]
    return {cause: mask & ~spare for cause, mask in reasons.items()} | {Cause.BACKUP: spare}


def _is_spare(facts: FlowFacts, path: PathFacts) -> Array:
    """Return, for each edge, whether the path is a backup while a path that is none works."""
    siblings = [sibling for sibling in facts.paths if sibling is not path]
    regular = [
        subflow.alive(facts.edges) & ~subflow.is_backup
        for sibling in siblings
        for subflow in sibling.subflows
    ]
    own_event = [subflow.is_backup for subflow in path.subflows]
    if not own_event or not regular:
        return np.zeros(len(facts.edges), dtype=bool)
    return np.asarray(np.logical_or.reduce(own_event) & np.logical_or.reduce(regular))


def _all_written(facts: FlowFacts) -> Array:
    """Return, for each edge, whether subflows have sent every byte of a flow that completes, or has it to send."""
    flow = facts.flow
    size = facts.row.get("sent_bytes")
    none = np.zeros(len(facts.edges), dtype=bool)
    if not flow.application.COMPLETES or not isinstance(size, int):
        return none
    sent = np.sum(
        [
            np.nan_to_num(subflow.samples["sent_bytes"] - subflow.samples["retransmitted_bytes"])
            + np.nan_to_num(subflow.samples["notsent_bytes"])
            for path in facts.paths
            for subflow in path.subflows
        ],
        axis=0,
    )
    return np.asarray(sent - np.nan_to_num(facts.reinjected) >= size) if np.ndim(sent) else none


def _add_join_time(facts: FlowFacts, path: PathFacts, subflow: SubflowFacts, path_time: PathTime) -> None:
    """Attribute the time between the handshakes of connection and subflow: the usual part, and what exceeds it."""
    initial = facts.flow.paths[0] if facts.flow.paths else None
    usual = facts.connected_us + patience_us(initial, path.planned)
    poor = poor_initial(initial, path.planned)
    early = overlap_us(facts.edges, facts.connected_us, min(subflow.established_us, usual))
    cause = Cause.INITIAL_PATH_POOR if poor else Cause.TOO_SHORT
    path_time.add(cause, early, (initial.name,) if poor and initial is not None else ("handshake",))
    late = overlap_us(facts.edges, usual, subflow.established_us)
    path_time.add(Cause.SUBFLOW_LATE, late, (path.name,))


def _reserve_payload_time(facts: FlowFacts, path_time: PathTime) -> None:
    """Give at-capacity the part of each slice that the payload takes at the path's rate.

    The kernel counts a path as limited by a window also while the link carries what the window allows.
    """
    if not path_time.facts.capacity_bps:
        return
    dt = np.diff(facts.edges)
    carried = np.minimum(path_time.utilization / np.maximum(1 - copies(facts), 0.01), 1) * dt
    kept = sum(
        us for (cause, _), us in path_time.time.items() if cause in (Cause.AT_CAPACITY, Cause.DUPLICATES)
    )
    movable = {key: us for key, us in path_time.time.items() if key[0] in FILLED}
    total = np.sum(list(movable.values()), axis=0) if movable else np.zeros(len(dt))
    share = np.clip((np.nan_to_num(carried) - kept) / np.maximum(total, 1e-9), 0, 1)
    for key in movable:
        path_time.move(key, share, Cause.AT_CAPACITY, (path_time.facts.name,))
