"""The figures behind each cause in short sentences, and the moments worth a mark in a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plait.analysis.wording import micros, percent, rate, seconds, size
from plait.explain.causes import CAUSES, Cause
from plait.explain.model import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plait.explain.capacity import Network
    from plait.explain.facts import FlowFacts
    from plait.explain.model import Share

    Where = tuple[str, ...]

MOST_PLACES = 3
MARKED = (
    Cause.BUCKET_EMPTY,
    Cause.PATH_DOWN,
    Cause.RATE_CHANGED,
    Cause.LOSS_RECOVERY,
    Cause.QUEUE_FULL,
    Cause.HEAD_OF_LINE,
    Cause.RECEIVE_WINDOW,
    Cause.MEMORY_PRESSURE,
    Cause.SUBFLOW_CLOSED,
    Cause.COMPETING_TRAFFIC,
)
"""Causes that begin at some moment, so that a mark in a figure over time helps."""


def of(facts: FlowFacts, cause: Cause, where: Where) -> tuple[str, ...]:
    """Returns what the data say in support of a cause, a sentence each."""
    tell = _TELLERS.get(cause)
    return tuple(tell(facts, where)) if tell is not None else ()


def moments(facts: FlowFacts, shares: Sequence[Share], named: Sequence[Cause]) -> tuple[Moment, ...]:
    """Returns when named causes began, and when subflows came."""
    found = [
        Moment(t_us=share.since_us, cause=share.cause, text=CAUSES[share.cause].title)
        for share in shares
        if share.cause in named and share.cause in MARKED and share.since_us is not None
    ]
    for path in facts.paths:
        for track in path.tracks:
            if track.number and Cause.SUBFLOW_LATE in named:
                text = f"subflow on {path.name} comes"
                found.append(Moment(t_us=round(track.born_us), cause=Cause.SUBFLOW_LATE, text=text))
    return tuple(sorted(found, key=lambda one: one.t_us))


def _window(facts: FlowFacts, _: Where) -> list[str]:
    top = float(np.nanmax(facts.window)) if np.isfinite(facts.window).any() else 0.0
    flight = float(np.nanmax(facts.in_flight)) if np.isfinite(facts.in_flight).any() else 0.0
    need = _needed_bytes(facts)
    said = [f"At most {size(flight)} were in flight, in a window of {size(top)}."]
    if need is not None:
        said.append(f"To fill the paths takes {size(need)} (their rates together times the longest RTT).")
    return said


def _needed_bytes(facts: FlowFacts) -> float | None:
    paths = [path for path in facts.paths if path.tracks and path.could_bps and path.planned is not None]
    if not paths:
        return None
    longest = max(path.planned.base_rtt_us for path in paths if path.planned is not None)
    return sum(path.could_bps or 0 for path in paths) * longest / 8e6


def _waiting(facts: FlowFacts, where: Where) -> list[str]:
    most = float(np.max(facts.out_of_order))
    return [f"Up to {size(most)} waited out of order at the receiver.", *_window(facts, where)]


def _buffer(facts: FlowFacts, _: Where) -> list[str]:
    known = np.isfinite(facts.send_buffer)
    if not known.any():
        return []
    return [f"The send buffer was {size(float(np.nanmax(facts.send_buffer)))}; nothing waited unsent in it."]


def _idle(facts: FlowFacts, _: Where) -> list[str]:
    empty = float(np.mean(np.nan_to_num(facts.unsent) == 0))
    return [f"Nothing waited to be sent at {percent(empty, 2)} of the samples."]


def _pressure(facts: FlowFacts, _: Where) -> list[str]:
    said = [
        f"{node} came under memory pressure {often} times (TCPMemoryPressures)."
        for node, often in facts.pressed.items()
    ]
    if facts.pruned:
        said.append(
            f"It dropped {facts.pruned} segments that its subflows had acknowledged (MPTcpExtRcvPruned)."
        )
    return said


def of_links(network: Network, cause: Cause, where: Where) -> tuple[str, ...]:
    """Returns what links alone say in support of a cause."""
    return varied(network, where) if cause is Cause.JITTER else drops(network, where)


def varied(network: Network, where: Where) -> tuple[str, ...]:
    """Returns by how much the delay of links varies."""
    known = [network.directions[name] for name in where[:MOST_PLACES] if name in network.directions]
    return tuple(
        f"{one.name} delays by {micros(one.delay_ns / 1e3)}, with a jitter of {micros(one.jitter_ns / 1e3)}."
        for one in known
    )


def drops(network: Network, where: Where) -> tuple[str, ...]:
    """Returns what links dropped."""
    said = []
    for name in where[:MOST_PLACES]:
        if name not in network.directions:
            continue
        lost = float(network.dropped(name).sum())
        if not lost:
            continue
        full = float(network.overflowed(name).sum())
        about = network.directions[name]
        limit = f" of {about.queue_packets} packets" if about.queue_packets else ""
        said.append(f"{name} dropped {lost:.0f} packets, {full:.0f} of them from its full queue{limit}.")
    return tuple(said)


def _drops(facts: FlowFacts, where: Where) -> list[str]:
    again = sum(track.last["retransmitted_bytes"] for path in facts.paths for track in path.tracks)
    return [*drops(facts.network, where), f"{size(again)} were sent again by TCP."]


def _late(facts: FlowFacts, _: Where) -> list[str]:
    return [
        f"The subflow on {path.name} came {seconds((track.born_us - facts.connected_us) / 1e6)} after the connection."
        for path in facts.paths
        for track in path.tracks
        if track.number
    ][:MOST_PLACES]


def _poor(facts: FlowFacts, _: Where) -> list[str]:
    return [
        f"Base RTT: {', '.join(f'{path.name} {micros(path.base_rtt_us)}' for path in facts.view.paths)}.",
        *_late(facts, _),
    ]


def _beginning(facts: FlowFacts, _: Where) -> list[str]:
    longest = max((path.base_rtt_us for path in facts.view.paths), default=0)
    length = facts.end_us - facts.start_us
    said = f"It lasted {seconds(length / 1e6)}"
    return [f"{said}, {length / longest:.0f} round trips of its longest path." if longest else f"{said}."]


def _bucket(facts: FlowFacts, where: Where) -> list[str]:
    said = []
    for name in where[:MOST_PLACES]:
        _, baseline, burst = facts.network.buckets[name]
        said.append(f"The bucket {name} holds {size(burst)} and fills at {rate(baseline)}.")
    return said


def _on_link(facts: FlowFacts, where: Where) -> list[str]:
    said = []
    for name in where[:MOST_PLACES]:
        if name not in facts.network.directions:
            continue
        crossing = [path.name for path in facts.paths if path.planned and name in path.planned.forward]
        limit = facts.network.directions[name].rate_bps
        what = f" ({rate(limit)})" if limit else ""
        said.append(f"{name}{what} is crossed by {', '.join(crossing)}.")
    return said


def _competing(facts: FlowFacts, where: Where) -> list[str]:
    said = []
    for name in where[:MOST_PLACES]:
        others = [
            flow.name
            for flow in facts.network.plan.flows
            if flow.id != facts.view.flow_id and any(name in path.forward for path in flow.paths)
        ]
        total = facts.network.sent(name)
        if total is None or total.sum() <= 0 or not others:
            continue
        own = sum(
            float(np.nansum(track.grown("sent_bytes")))
            for path in facts.paths
            if path.planned and name in path.planned.forward
            for track in path.tracks
        )
        taken = max(0.0, 1 - own / facts.payload_ratio / float(total.sum()))
        more = f" and {len(others) - MOST_PLACES} more" if len(others) > MOST_PLACES else ""
        who = ", ".join(others[:MOST_PLACES])
        said.append(f"Of what {name} carried, {percent(taken, 2)} was others' ({who}{more}).")
    return said


def _copied(facts: FlowFacts, _: Where) -> list[str]:
    return [f"{size(float(facts.reinjected[-1]))} were sent a second time over another path."]


def _left_idle(facts: FlowFacts, _: Where) -> list[str]:
    waits = np.nan_to_num(facts.unsent)
    return [f"Up to {size(float(waits.max()))} waited in the connection, and its window was not full."]


def _gathered(facts: FlowFacts, _: Where) -> list[str]:
    parts = [
        float(np.mean((track.at["notsent_bytes"] > 0) & (track.at["notsent_bytes"] < track.at["mss_bytes"])))
        for path in facts.paths
        for track in path.tracks
    ]
    return [f"At {percent(max(parts, default=0.0), 2)} of the samples less than a segment waited to be sent."]


def _went_down(facts: FlowFacts, _: Where) -> list[str]:
    return [
        f"At {seconds(event.t_us / 1e6)}: {event.text}."
        for event in facts.network.plan.events
        if event.text and facts.start_us <= event.t_us <= facts.end_us
    ][:MOST_PLACES]


_TELLERS: dict[Cause, Callable[[FlowFacts, tuple[str, ...]], list[str]]] = {
    Cause.RECEIVE_WINDOW: _window,
    Cause.HEAD_OF_LINE: _waiting,
    Cause.SEND_BUFFER: _buffer,
    Cause.MEMORY_PRESSURE: _pressure,
    Cause.SENDER_IDLE: _idle,
    Cause.LOSS_RECOVERY: _drops,
    Cause.QUEUE_FULL: _drops,
    Cause.SUBFLOW_LATE: _late,
    Cause.INITIAL_PATH_POOR: _poor,
    Cause.TOO_SHORT: _beginning,
    Cause.BUCKET_EMPTY: _bucket,
    Cause.SHARED_BOTTLENECK: _on_link,
    Cause.COMPETING_TRAFFIC: _competing,
    Cause.DUPLICATES: _copied,
    Cause.SCHEDULER_IDLE_PATH: _left_idle,
    Cause.PATH_DOWN: _went_down,
    Cause.NAGLE: _gathered,
    Cause.JITTER: lambda facts, where: list(varied(facts.network, where)),
    Cause.RATE_CHANGED: _went_down,
}
