"""Find what limited a path with data to send: a full link and who filled it, or the congestion window and why.

The congestion window has a history: it is small because of the last loss, however long ago that was. So the slices are
examined in order, and a loss remains the reason until the next loss.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plait.explain.capacity import SATURATED_QUEUE
from plait.explain.cause import Array, Cause, Places
from plait.explain.facts import FlowFacts, PathFacts

LOOK_BACK = 3
"""In slices: TCP detects a loss, and retransmits, a round trip or more after the drop."""
LONG_LOOK_BACK = 20
"""In slices: if there was no drop in LOOK_BACK slices, a timeout may have led to the retransmission."""
GROWTH = 1.02
"""A window that grows by less than this factor over GROWTH_SLICES does not count as growing."""
GROWTH_SLICES = 10
FEW_COPIES = 0.02
"""A smaller share of copies comes from ordinary loss recovery."""


def work_causes(
    facts: FlowFacts, path: PathFacts, work: Array, utilization: Array
) -> Iterator[tuple[str, Places, Array]]:
    """Yield the time in which the path had data to send, by cause and place."""
    dt = np.diff(facts.edges)
    copied = copies(facts)
    full, link = _full_link(facts, path)
    empty, buckets = _empty_buckets(facts, path)
    full &= ~empty
    used = np.nan_to_num(utilization)
    with_copies = used / np.maximum(1 - copied, 0.01)
    carried = np.where(full, work, np.minimum(work, with_copies * dt))
    if path.capacity_bps:
        yield from _on_full_link(facts, path, np.where(full, work, 0), with_copies, link)
        partly = np.where(full, 0, carried)
        yield Cause.DUPLICATES, (path.name,), partly * copied
        yield Cause.AT_CAPACITY, (path.name,), partly * (1 - copied)
    remaining = work - carried if path.capacity_bps else work
    yield Cause.BUCKET_EMPTY, buckets, remaining * empty
    remaining = remaining * ~empty
    for (cause, places), mask in _window_history(facts, path, full).items():
        yield cause, places, remaining * mask


def copies(facts: FlowFacts) -> Array:
    """Return the share of copies in what all subflows sent in each slice: the scheduler's and reinjections."""
    sent = np.sum(
        [np.nan_to_num(subflow.growth("sent_bytes")) for path in facts.paths for subflow in path.subflows],
        axis=0,
    )
    if np.ndim(sent) == 0 or facts.flow.transport != "mptcp" or facts.row.get("fallback"):
        return np.zeros(facts.slices)
    share = np.clip(np.diff(facts.reinjected) / np.maximum(sent, 1), 0, 0.99)
    return np.where(share >= FEW_COPIES, share, 0.0)


def _full_link(facts: FlowFacts, path: PathFacts) -> tuple[Array, list[str]]:
    """Return whether a link of the path was full in each slice, and the name of the fullest link."""
    n = facts.slices
    best, fullest, full = np.zeros(n), [""] * n, np.zeros(n, dtype=bool)
    for name in path.planned.forward if path.planned is not None else ():
        load = facts.network.load(name)
        full |= facts.network.full(name)
        for i in np.flatnonzero(load > best):
            best[i], fullest[i] = load[i], name
    return full, fullest


def _empty_buckets(facts: FlowFacts, path: PathFacts) -> tuple[Array, tuple[str, ...]]:
    """Return whether an empty token bucket limited the path in each slice, and the names of its buckets."""
    names = path.planned.forward if path.planned is not None else ()
    limited = np.zeros(facts.slices, dtype=bool)
    dt = np.diff(facts.edges)
    buckets = facts.network.empty_buckets(names)
    for name, empty in buckets.items():
        baseline = facts.network.baseline(name)
        passed = np.zeros(facts.slices)
        for member in facts.network.buckets[name].members:
            sent = facts.network.sent(member)
            passed += sent if sent is not None else 0
        limited |= empty & (passed * 8e6 >= SATURATED_QUEUE * baseline * dt)
    return limited, tuple(buckets)


def _on_full_link(
    facts: FlowFacts, path: PathFacts, work: Array, utilization: Array, link: list[str]
) -> Iterator[tuple[str, Places, Array]]:
    """Split the time on a full link: used by the path itself, lost to a lower rate, and taken by others."""
    assert path.planned is not None
    assert path.capacity_bps
    copied = copies(facts)
    own_use = np.minimum(utilization, 1)
    lower = np.ones(facts.slices)
    for name in path.planned.forward:
        lower = np.minimum(lower, np.minimum(facts.network.rate(name), path.capacity_bps) / path.capacity_bps)
    room = np.maximum(lower - own_use, 0)
    changed = 1 - lower
    own_share = 1 - np.minimum(room + changed, 1)
    yield Cause.DUPLICATES, (path.name,), work * own_share * copied
    yield Cause.AT_CAPACITY, (path.name,), work * own_share * (1 - copied)
    yield Cause.RATE_CHANGED, (path.name,), work * np.minimum(changed, 1)
    for name in dict.fromkeys(link):
        on_this_link = np.array([link_name == name for link_name in link])
        sibling_bytes, other_bytes = sharers(facts, path, name)
        sharing_bytes = np.maximum(sibling_bytes + other_bytes, 1e-9)
        taken = work * np.minimum(room, 1) * on_this_link
        alone = sibling_bytes + other_bytes <= 0
        yield Cause.SHARED_BOTTLENECK, (name,), taken * sibling_bytes / sharing_bytes
        yield Cause.COMPETING_TRAFFIC, (name,), taken * other_bytes / sharing_bytes
        yield Cause.AT_CAPACITY, (path.name,), taken * alone


def sharers(facts: FlowFacts, path: PathFacts, link: str) -> tuple[Array, Array]:
    """Return the frame bytes that the flow's other paths, and other traffic, sent over a link in each slice."""
    sibling_bytes, own_bytes = np.zeros(facts.slices), np.zeros(facts.slices)
    for sibling in facts.paths:
        if sibling.planned is None or link not in sibling.planned.forward:
            continue
        sent = sibling.growth("sent_bytes")
        if np.ndim(sent):
            target = own_bytes if sibling is path else sibling_bytes
            target += sent / facts.payload_ratio
    total = facts.network.sent(link)
    if total is None or not _shared_with_others(facts, link):
        return sibling_bytes, np.zeros(facts.slices)
    other_bytes = np.maximum(total - own_bytes - sibling_bytes, 0)
    # The flow's own headers, retransmissions and ACKs are not other traffic.
    other_bytes = np.where(other_bytes > 0.05 * (own_bytes + sibling_bytes), other_bytes, 0)
    return sibling_bytes, other_bytes


def _shared_with_others(facts: FlowFacts, link: str) -> bool:
    """Return whether another flow or a program may use a link."""
    plan = facts.network.plan
    # ACKs of data in the other direction are no competing traffic.
    return bool(plan.programs) or bool(plan.crossing.get(link, set()) - {facts.flow.id})


def _window_history(facts: FlowFacts, path: PathFacts, full: Array) -> dict[tuple[str, Places], Array]:
    """Return what limited the congestion window, as a mask of slices for each cause and place."""
    names = path.planned.forward if path.planned is not None else ()
    retransmitted = path.growth("retransmitted_bytes")
    cwnd = np.sum([np.nan_to_num(subflow.samples["cwnd_segments"]) for subflow in path.subflows], axis=0)
    overflow = {name: facts.network.overflowed(name) for name in names}
    dropped = {name: facts.network.dropped(name) for name in names}
    links = (*names, *path.planned.backward) if path.planned is not None else ()
    interrupted = facts.network.down_shares(links) > 0
    state: tuple[str, Places] = (Cause.NOT_KNOWN, ()) if facts.was_open else (Cause.TOO_SHORT, ("window",))
    # Without a drop, a retransmission belongs to an earlier loss, unless packets may overtake others.
    disordered = any(facts.network.reorders(name) for name in names)
    history: dict[tuple[str, Places], Array] = {}
    for i in range(facts.slices):
        if interrupted[i]:
            state = (Cause.PATH_DOWN, (path.name,))
        elif retransmitted[i] > 0:
            is_new = disordered or state[0] in {Cause.TOO_SHORT, Cause.NOT_KNOWN}
            state = _loss(overflow, dropped, i) or ((Cause.LOSS_RECOVERY, ()) if is_new else state)
        shown = state
        if state[0] == Cause.TOO_SHORT and i >= GROWTH_SLICES and not full[i]:
            grows = cwnd[i + 1] > GROWTH * cwnd[i + 1 - GROWTH_SLICES]
            shown = state if grows else (Cause.NOT_KNOWN, ())
        history.setdefault(shown, np.zeros(facts.slices))[i] = 1.0
    return history


def _loss(overflow: dict[str, Array], dropped: dict[str, Array], i: int) -> tuple[str, Places] | None:
    """Return which link dropped recently and whether its queue was full; None if no link of the path dropped.

    After a timeout TCP retransmits far later than a round trip after the drop.
    """
    near = any(np.any(drops[max(0, i - LOOK_BACK) : i + 1]) for drops in dropped.values())
    recent = slice(max(0, i - (LOOK_BACK if near else LONG_LOOK_BACK)), i + 1)
    lost = {name: float(drops[recent].sum()) for name, drops in dropped.items()}
    worst = max(lost, key=lambda name: lost[name], default=None)
    if worst is None or lost[worst] <= 0:
        return None
    queue = float(overflow[worst][recent].sum()) >= 0.5 * lost[worst]
    return (Cause.QUEUE_FULL if queue else Cause.LOSS_RECOVERY), (worst,)
