"""The evidence of each cause in short sentences, and the moments to mark in figures over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plait.analysis.wording import micros, percent, plain, rate, seconds, size
from plait.explain.causes import CAUSES, Cause
from plait.explain.model import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plait.explain.capacity import NetworkTimeline
    from plait.explain.facts import FlowFacts
    from plait.explain.model import Share

    Array = np.ndarray
    Where = tuple[str, ...]

MAX_PLACES = 3
MARKED = (
    Cause.BUCKET_EMPTY,
    Cause.PATH_DOWN,
    Cause.RATE_CHANGED,
    Cause.LOSS_RECOVERY,
    Cause.QUEUE_FULL,
    Cause.REORDERING,
    Cause.HEAD_OF_LINE,
    Cause.RECEIVE_WINDOW,
    Cause.MEMORY_PRESSURE,
    Cause.SUBFLOW_CLOSED,
    Cause.COMPETING_TRAFFIC,
)
"""Causes that begin at a certain time, so that figures over time mark it."""


def for_cause(facts: FlowFacts, cause: Cause, where: Where) -> tuple[str, ...]:
    """Return the evidence of a cause, one sentence each."""
    write = _WRITERS.get(cause)
    return tuple(write(facts, where)) if write is not None else ()


def moments(facts: FlowFacts, shares: Sequence[Share], named: Sequence[Cause]) -> tuple[Moment, ...]:
    """Return when named causes began; if a late subflow is named, also when the subflows were established."""
    marks = [
        Moment(t_us=share.since_us, cause=share.cause, text=CAUSES[share.cause].title)
        for share in shares
        if share.cause in named and share.cause in MARKED and share.since_us is not None
    ]
    for path in facts.paths:
        for subflow in path.subflows:
            if subflow.number and Cause.SUBFLOW_LATE in named:
                text = f"subflow on {path.name} established"
                marks.append(Moment(t_us=round(subflow.established_us), cause=Cause.SUBFLOW_LATE, text=text))
    return tuple(sorted(marks, key=lambda mark: mark.t_us))


def _window(facts: FlowFacts, _: Where) -> list[str]:
    window = float(np.nanmax(facts.window)) if np.isfinite(facts.window).any() else 0.0
    in_flight = float(np.nanmax(facts.in_flight)) if np.isfinite(facts.in_flight).any() else 0.0
    needed = _needed_bytes(facts)
    sentences = [f"At most {size(in_flight)} were in flight, and the window was at most {size(window)}."]
    if needed is not None and needed < in_flight:
        sentences.append(f"Without queues the paths hold {size(needed)}; the rest waited in queues.")
    elif needed is not None:
        sentences.append(
            f"Filling the paths takes {size(needed)} in flight (their total rate times the longest RTT)."
        )
    return sentences


def _needed_bytes(facts: FlowFacts) -> float | None:
    paths = [path for path in facts.paths if path.subflows and path.capacity_bps and path.planned is not None]
    if not paths:
        return None
    longest = max(path.planned.base_rtt_us for path in paths if path.planned is not None)
    return sum(path.capacity_bps or 0 for path in paths) * longest / 8e6


def _out_of_order(facts: FlowFacts, where: Where) -> list[str]:
    largest = float(np.max(facts.out_of_order))
    return [f"Up to {size(largest)} waited out of order at the receiver.", *_window(facts, where)]


def _send_buffer(facts: FlowFacts, _: Where) -> list[str]:
    sampled = np.isfinite(facts.send_buffer)
    if not sampled.any():
        return []
    return [f"The send buffer was {size(float(np.nanmax(facts.send_buffer)))} and held no unsent data."]


def _nothing_unsent(facts: FlowFacts, _: Where) -> list[str]:
    empty = float(np.mean(np.nan_to_num(facts.unsent) == 0))
    return [f"No data waited to be sent in {percent(empty, 2)} of the samples."]


def _receive_memory(facts: FlowFacts, _: Where) -> list[str]:
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


def _memory_pressure(facts: FlowFacts, _: Where) -> list[str]:
    sentences = [
        f"{node} came under memory pressure {'once' if count == 1 else f'{count} times'} (TCPMemoryPressures)."
        for node, count in facts.memory_pressures.items()
    ]
    if facts.pruned_segments:
        sentences.append(
            f"MPTCP dropped {facts.pruned_segments} segments that subflows had acknowledged (MPTcpExtRcvPruned)."
        )
    return sentences


def for_links(network: NetworkTimeline, cause: Cause, where: Where) -> tuple[str, ...]:
    """Return the evidence of a cause from the links alone: their drops, or their jitter."""
    return jitter_sentences(network, where) if cause is Cause.JITTER else drop_sentences(network, where)


def jitter_sentences(network: NetworkTimeline, where: Where) -> tuple[str, ...]:
    """Return the configured delay and jitter of links."""
    links = [network.directions[name] for name in where[:MAX_PLACES] if name in network.directions]
    return tuple(
        f"{link.name} has a delay of {plain(micros(link.delay_ns / 1e3))} with a jitter of "
        f"{plain(micros(link.jitter_ns / 1e3))}."
        for link in links
    )


def drop_sentences(network: NetworkTimeline, where: Where) -> tuple[str, ...]:
    """Return how many packets links dropped, and how many of them by overflow."""
    sentences = []
    for name in where[:MAX_PLACES]:
        if name not in network.directions:
            continue
        dropped = float(network.dropped(name).sum())
        if not dropped:
            continue
        overflowed = float(network.overflowed(name).sum())
        direction = network.directions[name]
        limit = f" ({direction.queue_packets} packets)" if direction.queue_packets else ""
        sentences.append(
            f"{name} dropped {dropped:.0f} packets, {overflowed:.0f} of them because its queue{limit} was full."
        )
    return tuple(sentences)


def _drops(facts: FlowFacts, where: Where) -> list[str]:
    return [*drop_sentences(facts.network, where), _retransmitted(facts)]


def _overtaking(facts: FlowFacts, where: Where) -> list[str]:
    links = [name for name in where[:MAX_PLACES] if facts.network.reorders(name)]
    dropped = sum(float(facts.network.dropped(name).sum()) for name in links)
    drops = f"dropped {dropped:.0f} packets" if dropped else "dropped none"
    return [f"Packets may overtake others on {', '.join(links)}, which {drops}.", _retransmitted(facts)]


def _retransmitted(facts: FlowFacts) -> str:
    resent = sum(subflow.totals["retransmitted_bytes"] for path in facts.paths for subflow in path.subflows)
    return f"TCP retransmitted {size(resent)}."


def _late_subflows(facts: FlowFacts, _: Where) -> list[str]:
    joins = [
        (path.name, subflow.established_us)
        for path in facts.paths
        for subflow in path.subflows
        if subflow.number
    ]
    return [
        f"The subflow on {name} was established {seconds((established_us - facts.connected_us) / 1e6)} after the "
        "connection."
        for name, established_us in joins[:MAX_PLACES]
    ]


def _initial_path(facts: FlowFacts, _: Where) -> list[str]:
    return [
        f"Base RTT: {', '.join(f'{path.name} {plain(micros(path.base_rtt_us))}' for path in facts.view.paths)}.",
        *_late_subflows(facts, _),
    ]


def _duration(facts: FlowFacts, _: Where) -> list[str]:
    longest = max((path.base_rtt_us for path in facts.view.paths), default=0)
    length = facts.end_us - facts.start_us
    sentences = f"The flow lasted {seconds(length / 1e6)}"
    return [
        f"{sentences}, {length / longest:.0f} round trips of its longest path."
        if longest
        else f"{sentences}."
    ]


def _bucket(facts: FlowFacts, where: Where) -> list[str]:
    sentences = []
    for name in where[:MAX_PLACES]:
        bucket = facts.network.buckets[name]
        pairs = zip(bucket.bursts, bucket.rates, strict=True)
        conditions = [
            f"holds {plain(size(burst))} and refills at {plain(rate(fill))}" for burst, fill in pairs
        ]
        later = [
            f"from {seconds(t_us / 1e6)} it {text}"
            for t_us, text in zip(bucket.times[1:], conditions[1:], strict=True)
        ]
        sentences.append(f"The token bucket {name} {'; '.join([conditions[0], *later[:MAX_PLACES]])}.")
        spans = _spans(facts.network.empty_slices(name), facts.edges)
        if spans:
            listed = [f"{seconds(begin / 1e6)} to {seconds(end / 1e6)}" for begin, end in spans[:MAX_PLACES]]
            more = f", and {len(spans) - MAX_PLACES} more times" if len(spans) > MAX_PLACES else ""
            sentences.append(f"It was empty from {', '.join(listed)}{more}.")
    return sentences


def _spans(held: Array | None, edges: Array) -> list[tuple[float, float]]:
    """Return where consecutive slices hold something: (begin, end) in us."""
    if held is None:
        return []
    steps = np.diff(np.concatenate(([0], held.astype(int), [0])))
    begins, ends = np.flatnonzero(steps > 0), np.flatnonzero(steps < 0)
    return [(float(edges[begin]), float(edges[end])) for begin, end in zip(begins, ends, strict=True)]


def _shared_link(facts: FlowFacts, where: Where) -> list[str]:
    sentences = []
    for name in where[:MAX_PLACES]:
        if name not in facts.network.directions:
            continue
        crossing = [path.name for path in facts.paths if path.planned and name in path.planned.forward]
        rate_bps = facts.network.directions[name].rate_bps
        capacity = f" ({plain(rate(rate_bps))})" if rate_bps else ""
        sentences.append(f"{name}{capacity} carries the paths {', '.join(crossing)}.")
    return sentences


def _backup(facts: FlowFacts, _: Where) -> list[str]:
    shares = {
        path.name: float(np.mean([np.mean(subflow.is_backup) for subflow in path.subflows]))
        for path in facts.paths
        if path.subflows
    }
    return [
        f"{name} was a backup in {percent(share, 2)} of the samples."
        for name, share in shares.items()
        if share
    ][:MAX_PLACES]


def _return_path(facts: FlowFacts, where: Where) -> list[str]:
    """Return how full the return path was, and what its queue did to ACKs."""
    sentences = []
    for name in where[:MAX_PLACES]:
        direction, queue = facts.network.directions[name], facts.network.counter(name, "queue_bytes")
        if not direction.rate_bps or queue is None:
            continue
        waits = plain(micros(float(np.max(queue)) * 8e6 / direction.rate_bps))
        full = percent(float(np.mean(facts.network.full(name))), 2)
        sentences.append(
            f"{name} ({plain(rate(direction.rate_bps))}) was full in {full} of the time; packets waited there for up "
            f"to {waits}."
        )
    return [*sentences, *drop_sentences(facts.network, where)]


def _competing(facts: FlowFacts, where: Where) -> list[str]:
    sentences = []
    for name in where[:MAX_PLACES]:
        others = [
            flow.name
            for flow in facts.network.plan.flows
            if flow.id != facts.view.flow_id and any(name in path.forward for path in flow.paths)
        ]
        total = facts.network.sent(name)
        if total is None or total.sum() <= 0 or not others:
            continue
        own_bytes = sum(
            float(np.nansum(subflow.growth("sent_bytes")))
            for path in facts.paths
            if path.planned and name in path.planned.forward
            for subflow in path.subflows
        )
        others_share = max(0.0, 1 - own_bytes / facts.payload_ratio / float(total.sum()))
        more = f" and {len(others) - MAX_PLACES} more" if len(others) > MAX_PLACES else ""
        names = ", ".join(others[:MAX_PLACES])
        sentences.append(
            f"Other flows ({names}{more}) took {percent(others_share, 2)} of what {name} carried."
        )
    return sentences


def _reinjected(facts: FlowFacts, _: Where) -> list[str]:
    return [f"MPTCP sent {size(float(facts.reinjected[-1]))} again over another path."]


def _unsent_data(facts: FlowFacts, _: Where) -> list[str]:
    waits = np.nan_to_num(facts.unsent)
    return [f"Up to {size(float(waits.max()))} waited in the connection, although its window was not full."]


def _partial_segments(facts: FlowFacts, _: Where) -> list[str]:
    parts = [
        float(
            np.mean(
                (subflow.samples["notsent_bytes"] > 0)
                & (subflow.samples["notsent_bytes"] < subflow.samples["mss_bytes"])
            )
        )
        for path in facts.paths
        for subflow in path.subflows
    ]
    return [
        f"In {percent(max(parts, default=0.0), 2)} of the samples, less than one segment waited to be sent."
    ]


def _events(facts: FlowFacts, _: Where) -> list[str]:
    return [
        f"At {seconds(event.t_us / 1e6)}: {event.text}."
        for event in facts.network.plan.events
        if event.text and facts.start_us <= event.t_us <= facts.end_us
    ][:MAX_PLACES]


def _lower_rates(facts: FlowFacts, where: Where) -> list[str]:
    """Return the events, and for links that follow a trace, which has no words, their lowest rate."""
    if sentences := _events(facts, where):
        return sentences
    names = dict.fromkeys(
        name
        for path in facts.paths
        if path.name in where and path.planned is not None
        for name in path.planned.forward
    )
    for name in names:
        rates, first = facts.network.rate(name), facts.network.directions[name].rate_bps
        slowest = int(np.argmin(rates))
        if first and rates[slowest] < first:
            lowest = f"its rate was lowest at {seconds(float(facts.edges[slowest]) / 1e6)}"
            sentences.append(
                f"{name} began with {plain(rate(first))}; {lowest}: {rate(float(rates[slowest]))}."
            )
    return sentences[:MAX_PLACES]


_WRITERS: dict[Cause, Callable[[FlowFacts, tuple[str, ...]], list[str]]] = {
    Cause.RECEIVE_WINDOW: _window,
    Cause.HEAD_OF_LINE: _out_of_order,
    Cause.SEND_BUFFER: _send_buffer,
    Cause.RECEIVE_MEMORY: _receive_memory,
    Cause.MEMORY_PRESSURE: _memory_pressure,
    Cause.SENDER_IDLE: _nothing_unsent,
    Cause.LOSS_RECOVERY: _drops,
    Cause.QUEUE_FULL: _drops,
    Cause.REORDERING: _overtaking,
    Cause.SUBFLOW_LATE: _late_subflows,
    Cause.INITIAL_PATH_POOR: _initial_path,
    Cause.TOO_SHORT: _duration,
    Cause.BUCKET_EMPTY: _bucket,
    Cause.SHARED_BOTTLENECK: _shared_link,
    Cause.COMPETING_TRAFFIC: _competing,
    Cause.BACKUP: _backup,
    Cause.ACK_PATH: _return_path,
    Cause.DUPLICATES: _reinjected,
    Cause.SCHEDULER_IDLE_PATH: _unsent_data,
    Cause.PATH_DOWN: _events,
    Cause.NAGLE: _partial_segments,
    Cause.JITTER: lambda facts, where: list(jitter_sentences(facts.network, where)),
    Cause.RATE_CHANGED: _lower_rates,
}
