"""What a path that had data to send was limited by: a full link and who filled it, or a congestion window and why.

A congestion window remembers: it is small because of the last loss, however long ago. So the slices are gone through
in order, and a loss is the reason from its slice on, until the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plait.explain.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.explain.facts import FlowFacts, PathFacts

Array = np.ndarray
Where = tuple[str, ...]

SATURATED = 0.9
"""A link is full in a slice when it carried so much of its rate; .."""
SATURATED_QUEUE = 0.8
""".. or so much, and packets waited at both ends of the slice."""
LOOK_BACK = 3
"""Slices: a loss is noticed, and sent again, a round trip or more after the drop."""
GROWTH = 1.02
"""A window that grows by less than this in the time of GROWTH_SLICES does not grow."""
GROWTH_SLICES = 10
FEW_COPIES = 0.02
"""Fewer copies than this are those of ordinary recovery."""


def work_causes(
    facts: FlowFacts, path: PathFacts, work: Array, used: Array
) -> Iterator[tuple[Cause, Where, Array]]:
    """Yields the time in which the path had data to send, by cause and place."""
    dt = np.diff(facts.edges)
    copied = copies(facts)
    full, link = _full_link(facts, path)
    empty, buckets = _emptied(facts, path)
    full &= ~empty
    known = np.nan_to_num(used)
    with_copies = known / np.maximum(1 - copied, 0.01)
    carried = np.where(full, work, np.minimum(work, with_copies * dt))
    if path.could_bps:
        yield from _on_full_link(facts, path, np.where(full, work, 0), with_copies, link)
        partly = np.where(full, 0, carried)
        yield Cause.DUPLICATES, (path.name,), partly * copied
        yield Cause.AT_CAPACITY, (path.name,), partly * (1 - copied)
    left = work - carried if path.could_bps else work
    yield Cause.BUCKET_EMPTY, buckets, left * empty
    left = left * ~empty
    for (cause, where), mask in _window_history(facts, path, full).items():
        yield cause, where, left * mask


def copies(facts: FlowFacts) -> Array:
    """The share of what all subflows sent in each slice that were copies, by the scheduler or reinjected."""
    sent = np.sum(
        [np.nan_to_num(track.grown("sent_bytes")) for path in facts.paths for track in path.tracks], axis=0
    )
    if np.ndim(sent) == 0 or facts.view.transport != "mptcp" or facts.row.get("fallback"):
        return np.zeros(facts.slices)
    share = np.clip(np.diff(facts.reinjected) / np.maximum(sent, 1), 0, 0.99)
    return np.where(share >= FEW_COPIES, share, 0.0)


def _full_link(facts: FlowFacts, path: PathFacts) -> tuple[Array, list[str]]:
    """Whether a link of the path was full in each slice, and which one: the fullest."""
    n = facts.slices
    names = path.planned.forward if path.planned is not None else ()
    dt = np.diff(facts.edges)
    best, which, full = np.zeros(n), [""] * n, np.zeros(n, dtype=bool)
    for name in names:
        sent = facts.network.sent(name)
        rate = facts.network.rate(name)
        if sent is None or not np.isfinite(rate).any():
            continue
        load = sent * 8e6 / np.maximum(rate * dt, 1e-9)
        queue = facts.network.counter(name, "queue_packets")
        waits = (queue[:-1] > 0) & (queue[1:] > 0) if queue is not None else np.zeros(n, dtype=bool)
        full |= (load >= SATURATED) | ((load >= SATURATED_QUEUE) & waits)
        for i in np.flatnonzero(load > best):
            best[i], which[i] = load[i], name
    return full, which


def _emptied(facts: FlowFacts, path: PathFacts) -> tuple[Array, tuple[str, ...]]:
    """Whether a token bucket of the path was empty in each slice and let no more pass, and which ones there are."""
    names = path.planned.forward if path.planned is not None else ()
    out = np.zeros(facts.slices, dtype=bool)
    dt = np.diff(facts.edges)
    buckets = facts.network.emptied(names)
    for name, empty in buckets.items():
        members, baseline, _ = facts.network.buckets[name]
        passed = np.zeros(facts.slices)
        for member in members:
            sent = facts.network.sent(member)
            passed += sent if sent is not None else 0
        out |= empty & (passed * 8e6 >= SATURATED_QUEUE * baseline * dt)
    return out, tuple(buckets)


def _on_full_link(
    facts: FlowFacts, path: PathFacts, work: Array, used: Array, link: list[str]
) -> Iterator[tuple[Cause, Where, Array]]:
    """Splits the time on a full link: its own part, what it lost to a lower rate, and what others took."""
    assert path.planned is not None
    assert path.could_bps
    copied = copies(facts)
    own = np.minimum(used, 1)
    lower = np.ones(facts.slices)
    for name in path.planned.forward:
        lower = np.minimum(lower, np.minimum(facts.network.rate(name), path.could_bps) / path.could_bps)
    room = np.maximum(lower - own, 0)
    changed = 1 - lower
    own_part = 1 - np.minimum(room + changed, 1)
    yield Cause.DUPLICATES, (path.name,), work * own_part * copied
    yield Cause.AT_CAPACITY, (path.name,), work * own_part * (1 - copied)
    yield Cause.RATE_CHANGED, (path.name,), work * np.minimum(changed, 1)
    for name in dict.fromkeys(link):
        here = np.array([one == name for one in link])
        siblings, strangers = _others(facts, path, name)
        both = np.maximum(siblings + strangers, 1e-9)
        taken = work * np.minimum(room, 1) * here
        nobody = siblings + strangers <= 0
        yield Cause.SHARED_BOTTLENECK, (name,), taken * siblings / both
        yield Cause.COMPETING_TRAFFIC, (name,), taken * strangers / both
        yield Cause.AT_CAPACITY, (path.name,), taken * nobody


def _others(facts: FlowFacts, path: PathFacts, link: str) -> tuple[Array, Array]:
    """Frame bytes that the flow's own other paths, and that others, put on a link in each slice."""
    siblings, own = np.zeros(facts.slices), np.zeros(facts.slices)
    for other in facts.paths:
        if other.planned is None or link not in other.planned.forward:
            continue
        sent = np.sum([np.nan_to_num(track.grown("sent_bytes")) for track in other.tracks], axis=0)
        if np.ndim(sent):
            target = own if other is path else siblings
            target += sent / facts.payload_ratio
    total = facts.network.sent(link)
    if total is None or not _shared_with_others(facts, link):
        return siblings, np.zeros(facts.slices)
    strangers = np.maximum(total - own - siblings, 0)
    # Headers, retransmissions and acknowledgements of its own are no strangers.
    strangers = np.where(strangers > 0.05 * (own + siblings), strangers, 0)
    return siblings, strangers


def _shared_with_others(facts: FlowFacts, link: str) -> bool:
    """Whether anything but this flow's data may cross a link: another flow, or a program."""
    plan = facts.network.plan
    return bool(plan.programs) or any(
        flow.id != facts.view.flow_id and any(link in (*path.forward, *path.backward) for path in flow.paths)
        for flow in plan.flows
    )


def _window_history(facts: FlowFacts, path: PathFacts, full: Array) -> dict[tuple[Cause, Where], Array]:
    """Why the congestion window was as small as it was, in each slice."""
    names = path.planned.forward if path.planned is not None else ()
    again = np.sum([np.nan_to_num(track.grown("retransmitted_bytes")) for track in path.tracks], axis=0)
    cwnd = np.sum([np.nan_to_num(track.at["cwnd_segments"]) for track in path.tracks], axis=0)
    overflow = {name: facts.network.overflowed(name) for name in names}
    dropped = {name: facts.network.dropped(name) for name in names}
    ways = (*names, *path.planned.backward) if path.planned is not None else ()
    down = facts.network.down(ways) > 0
    state: tuple[Cause, Where] = (Cause.TOO_SHORT, ("window",))
    found: dict[tuple[Cause, Where], Array] = {}
    for i in range(facts.slices):
        if down[i]:
            state = (Cause.PATH_DOWN, (path.name,))
        elif again[i] > 0:
            state = _loss(overflow, dropped, i) or (
                state if state[0] is not Cause.TOO_SHORT else (Cause.LOSS_RECOVERY, ())
            )
        shown = state
        if state[0] is Cause.TOO_SHORT and i >= GROWTH_SLICES and not full[i]:
            grows = cwnd[i + 1] > GROWTH * cwnd[i + 1 - GROWTH_SLICES]
            shown = state if grows else (Cause.NOT_KNOWN, ())
        found.setdefault(shown, np.zeros(facts.slices))[i] = 1.0
    return found


def _loss(overflow: dict[str, Array], dropped: dict[str, Array], i: int) -> tuple[Cause, Where] | None:
    """Which link dropped lately, and whether its queue was full; None when no link of the path dropped anything."""
    recent = slice(max(0, i - LOOK_BACK), i + 1)
    lost = {name: float(drops[recent].sum()) for name, drops in dropped.items()}
    worst = max(lost, key=lambda name: lost[name], default=None)
    if worst is None or lost[worst] <= 0:
        return None
    queue = float(overflow[worst][recent].sum()) >= 0.5 * lost[worst]
    return (Cause.QUEUE_FULL if queue else Cause.LOSS_RECOVERY), (worst,)
