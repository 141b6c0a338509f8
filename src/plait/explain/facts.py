"""The samples of one flow on one time grid, whose edges are the times at which its sender was sampled.

A quantity at the edges is an array of n + 1 values; a quantity of the slices between them is an array of n. Counters
are interpolated; a state is that of the latest sample. NaN means unknown, or that the subflow did not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from plait.analysis.by_flow import divided, increases, known_samples
from plait.analysis.metrics.ideal import payload_ratio
from plait.analysis.translation import path_name
from plait.dataset.model import Tables
from plait.explain.capacity import LinkSamples, NetworkTimeline, capacity_bps, stretches
from plait.explain.cause import Array
from plait.plan.model.plan import Flow, Path, Plan

Event = Mapping[str, Any]
"""A row of the table `events`, or a sample."""


STANDSTILL_US = 500_000
"""The shortest time in which nothing became in order that counts as a standstill of the receiver."""
COUNTERS = (
    "sent_bytes",
    "retransmitted_bytes",
    "acked_bytes",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
)
STATES = (
    "rtt_us",
    "cwnd_segments",
    "ssthresh_segments",
    "unacked_segments",
    "notsent_bytes",
    "send_window_bytes",
    "mss_bytes",
    "backup",
)


@dataclass(frozen=True)
class SubflowFacts:
    """One subflow as its sender sees it."""

    number: int
    established_us: float
    """The end of its handshake; without such an event, one sample interval before its first sample."""
    closed_us: float
    """When it closed; infinite if it stayed open."""
    samples: Mapping[str, Array]
    """COUNTERS and STATES at the edges."""
    totals: Mapping[str, float]
    """The final values of its COUNTERS."""

    @property
    def is_backup(self) -> Array:
        """Whether it is a backup, at each edge."""
        return np.asarray(self.samples["backup"] == 1)

    def alive(self, edges: Array) -> Array:
        """Return whether it is established and open at each edge."""
        return np.asarray((edges >= self.established_us) & (edges < self.closed_us))

    def growth(self, counter: str) -> Array:
        """Return the growth of a counter in each slice; NaN where it is unknown."""
        return np.diff(self.samples[counter])


@dataclass(frozen=True)
class PathFacts:
    """One path of the flow and the subflows on it."""

    name: str
    planned: Path | None
    """None: the subflows connect addresses between which the plan has no path."""
    capacity_bps: float | None
    """The initial frame rate of its slowest link; None without a rate."""
    subflows: tuple[SubflowFacts, ...] = ()

    def growth(self, counter: str) -> Array:
        """Return the growth of a counter in each slice, over all subflows; zero where it is unknown."""
        return np.asarray(
            np.sum([np.nan_to_num(subflow.growth(counter)) for subflow in self.subflows], axis=0)
        )

    @property
    def is_backup(self) -> bool:
        """Whether the path was a backup from the start, and so is no capacity of the flow."""
        return self.planned is not None and self.planned.backup


@dataclass(frozen=True)
class FlowFacts:
    """One flow."""

    flow: Flow
    row: Mapping[str, object]
    start_us: float
    end_us: float
    connected_us: float
    was_open: bool
    """Whether the connection existed before the first sample, so that its start is unknown."""
    edges: Array
    network: NetworkTimeline
    paths: tuple[PathFacts, ...]
    unsent: Array
    """Bytes in the connection that no subflow has taken yet (TCP: that are not sent yet)."""
    in_flight: Array
    """Bytes at the data level that are sent and not yet acknowledged."""
    window: Array
    """The receive window at the data level, in bytes."""
    send_memory: Array
    send_buffer: Array
    out_of_order: Array
    """Bytes at the receiver that wait for earlier bytes."""
    delivered: Array
    """Bytes that arrived in order at the receiver, a counter."""
    carried: Mapping[str, float]
    """Payload bytes that each path delivered, with copies; without those whose subflows neither side counted."""
    receive_memory: Array
    receive_buffer: Array
    reinjected: Array
    """Bytes that were sent again at the data level, a counter."""
    events: pl.DataFrame = field(repr=False)
    counters: pl.DataFrame = field(repr=False)
    """The kernel's counters at the end nodes of the flow, before and after it."""
    payload_ratio: float = 1.0
    """Payload bytes per frame byte of a full segment."""
    further: tuple[FlowFacts, ...] = ()
    """The facts of the further connections of a page."""
    others: tuple[Flow, ...] = ()
    """The flows that ran meanwhile, without further connections of a page."""
    own_bytes: Mapping[str, Array] = field(default_factory=dict)
    """Frame bytes of all carriers in each slice, by path; empty for a flow that its time explains."""

    @property
    def sender(self) -> str:
        """The node that sends."""
        return self.flow.ends[0].netns

    @property
    def receiver(self) -> str:
        """The node that receives."""
        return self.flow.ends[1].netns

    @property
    def connections(self) -> tuple[FlowFacts, ...]:
        """The facts of each connection that carries the flow: its own, and the further ones of a page."""
        return (self, *self.further)

    @property
    def carriers(self) -> tuple[int, ...]:
        """The flows that carry it: its own connection, and those of a page."""
        return tuple(facts.flow.carrier for facts in self.connections)

    def total(self, counter: str) -> float:
        """Return the final value of a counter over all subflows of all its connections; NaN if one is unknown."""
        return sum(
            subflow.totals[counter]
            for facts in self.connections
            for path in facts.paths
            for subflow in path.subflows
        )

    @property
    def lasted_us(self) -> float:
        """How long the flow took."""
        return self.end_us - self.start_us

    @property
    def slices(self) -> int:
        """The number of slices."""
        return len(self.edges) - 1

    def counted(self, counter: str) -> dict[str, int]:
        """Return the growth of a counter of the kernel, as `TcpExtDelayedACKs`, at each end node where it grew."""
        return increases(self.counters, counter)

    @cached_property
    def memory_full(self) -> Array:
        """The slices in which the receiver of MPTCP had no memory for what it missed, so that nothing became in order.

        Short moments are no standstill: only at least STANDSTILL_US at a stretch count.
        """
        full = (self.receive_memory >= self.receive_buffer) & (self.out_of_order > 0)
        standstill = full[:-1] & full[1:] & (np.diff(self.delivered) == 0)
        for begin, end in stretches(standstill):
            if self.edges[end] - self.edges[begin] < STANDSTILL_US:
                standstill[begin:end] = False
        return np.asarray(standstill & (self.flow.transport == "mptcp"))


@dataclass(frozen=True)
class LateMessage:
    """A late message over TCP or MPTCP, which neither links nor what its sender waited for explain."""

    facts: FlowFacts
    excess_us: float
    """How much longer it took than an idle network takes."""
    all_excess_us: Array
    """The same of each late message of the flow."""
    longest_rtt_us: float
    """The longest base RTT of the paths that carried the flow."""


def flow_facts(tables: Tables, links: LinkSamples, flow: Flow) -> FlowFacts | None:
    """Return the facts of one flow; None if its sender was never sampled."""
    plan, parts = links.plan, divided(tables)
    row = next(parts.rows("flows", flow.id).iter_rows(named=True), {})
    sender_samples = parts.rows("connections", flow.carrier, flow.sender).sort("t_us")
    if sender_samples.is_empty():
        return None
    times = sender_samples["t_us"].to_numpy().astype(float)
    start = _number(row.get("start_us"), times[0])
    # An observation may find a connection open: then its start is that of the observation.
    is_open = plan.monitors.connections is not None and row.get("connected_us") is None
    end = min(_number(row.get("end_us"), times[-1]), times[-1] if row.get("end_us") is None else np.inf)
    connected = min(_number(row.get("connected_us"), start), end)
    inside = times[(times > start) & (times < end)]
    edges = np.concatenate(([start], inside, [end]))
    if end <= start:
        return None
    receiver_samples = parts.rows("connections", flow.carrier, flow.receiver).sort("t_us")
    receiver_subflows = parts.rows("subflows", flow.carrier, flow.receiver)
    events = parts.rows("events", flow.carrier)
    sender_subflows = parts.rows("subflows", flow.carrier, flow.sender)
    candidates = plan.flows if flow.kind == "page" else ()
    members = [flow, *(other for other in candidates if other.application.page_flow == flow.id)]
    acked_bytes = _counter(sender_samples, "acked_bytes", edges)
    reinjected = np.nan_to_num(_counter(sender_samples, "retransmitted_bytes", edges))
    paths = _paths(plan, flow, _subflows_by_path(flow, sender_subflows, events, edges, connected))
    further = (flow_facts(parts, links, member) for member in members[1:])
    return FlowFacts(
        flow=flow,
        row=row,
        start_us=start,
        end_us=end,
        connected_us=connected,
        edges=edges,
        network=NetworkTimeline(links, edges),
        was_open=is_open,
        paths=paths,
        unsent=_unsent(sender_samples, edges),
        in_flight=np.maximum(_counter(sender_samples, "sent_bytes", edges) - acked_bytes, 0),
        window=_window(sender_subflows, edges),
        send_memory=_state(sender_samples, "send_memory_bytes", edges),
        send_buffer=_state(sender_samples, "send_buffer_bytes", edges),
        out_of_order=_out_of_order(receiver_samples, receiver_subflows, reinjected, edges),
        delivered=_counter(receiver_samples, "received_bytes", edges),
        carried=_carried(flow, paths, receiver_subflows, edges, is_open=is_open),
        receive_memory=_state(receiver_samples, "receive_memory_bytes", edges),
        receive_buffer=_state(receiver_samples, "receive_buffer_bytes", edges),
        reinjected=reinjected,
        events=events,
        counters=tables["counters"].filter(pl.col("node").is_in([flow.client.netns, flow.server.netns])),
        payload_ratio=payload_ratio(plan, flow, transport=flow.transport),
        further=tuple(facts for facts in further if facts is not None),
        others=_concurrent_flows(plan, tables["flows"], members, edges),
    )


def _carried(
    flow: Flow, paths: Sequence[PathFacts], receiver_subflows: pl.DataFrame, edges: Array, *, is_open: bool
) -> dict[str, float]:
    """Return the bytes of each path as its receiver counted them, or else those that were acknowledged until the end.

    The acknowledgements of the last bytes are still on their way at the end. Bytes that were sent may wait in a queue.
    """
    carried: dict[str, float] = {}
    for part in receiver_subflows.sort("t_us").partition_by("subflow", maintain_order=True):
        name = path_name(flow.paths, part.row(0, named=True))
        times_us, counts = known_samples(part, "received_bytes")
        if len(counts):
            before = np.interp(edges[0], times_us, counts) if is_open else 0.0
            carried[name] = carried.get(name, 0.0) + float(counts[-1] - before)
    has_samples = any(path.subflows for path in paths)
    for path in paths:
        acked = [subflow.growth("acked_bytes") for subflow in path.subflows]
        if path.name not in carried and np.isfinite(acked).all() and (acked or has_samples):
            carried[path.name] = float(np.sum(acked))
    return carried


def _concurrent_flows(
    plan: Plan, rows: pl.DataFrame, members: Sequence[Flow], edges: Array
) -> tuple[Flow, ...]:
    """Return the flows that ran between the edges and are not `members`."""
    apart = rows.filter(
        (pl.col("start_us") >= edges[-1]) | (pl.col("end_us") <= edges[0]) | pl.col("start_us").is_null()
    )
    excluded = {*apart["flow"], *(member.id for member in members)}
    return tuple(flow for flow in plan.flows if flow.id not in excluded)


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) else float(otherwise)


def _counter(frame: pl.DataFrame, column: str, edges: Array) -> Array:
    times_us, counts = known_samples(frame, column)
    return np.interp(edges, times_us, counts) if len(times_us) else np.full(len(edges), np.nan)


def _state(frame: pl.DataFrame, column: str, edges: Array) -> Array:
    """Return the latest value at each edge; edges before the first sample get its value."""
    times_us, values = known_samples(frame, column)
    if not len(times_us):
        return np.full(len(edges), np.nan)
    latest = np.searchsorted(times_us, edges, side="right") - 1
    return np.asarray(values[np.maximum(latest, 0)])


def _unsent(sender_samples: pl.DataFrame, edges: Array) -> Array:
    """Return the unsent bytes at each edge, without the DATA_FIN, which MPTCP counts as one byte until it leaves."""
    unsent = _state(sender_samples, "unsent_bytes", edges)
    return np.where(unsent == 1, 0.0, unsent)


def _window(sender_subflows: pl.DataFrame, edges: Array) -> Array:
    """Return the largest window that any established subflow shows: each shows the window of the connection."""
    windows = (
        sender_subflows.filter(pl.col("state") == "ESTABLISHED")
        .group_by("t_us")
        .agg(pl.col("send_window_bytes").max())
    )
    return _state(windows.sort("t_us"), "send_window_bytes", edges)


def _out_of_order(
    receiver_samples: pl.DataFrame, receiver_subflows: pl.DataFrame, reinjected: Array, edges: Array
) -> Array:
    """Return the bytes that arrived on subflows and are not yet in order at the data level, without copies.

    Copies are at most the bytes that the sender has reinjected, and at most the least excess of any later sample. The
    metric `out_of_order_max_bytes` uses the same bound.
    """
    parts = receiver_subflows.sort("t_us").partition_by("subflow")
    if receiver_samples.is_empty() or len(parts) < 2:
        return np.zeros(len(edges))
    received = np.sum([np.nan_to_num(_counter(part, "received_bytes", edges)) for part in parts], axis=0)
    ahead = received - np.nan_to_num(_counter(receiver_samples, "received_bytes", edges))
    later = np.minimum.accumulate(ahead[::-1])[::-1]
    return np.asarray(np.maximum(ahead - np.minimum(later, reinjected), 0))


def _paths(plan: Plan, flow: Flow, subflows: Mapping[str, Sequence[SubflowFacts]]) -> tuple[PathFacts, ...]:
    """Return the flow's paths in the order of the plan, then those that only subflows show."""
    planned = {path.name: path for path in flow.paths}
    usable = flow.paths if flow.transport in {"mptcp", "prototype"} else flow.paths[:1]
    # An unused backup path does not count as capacity.
    names = [path.name for path in usable if not path.backup or path.name in subflows]
    paths = []
    for name in dict.fromkeys([*names, *subflows]):
        path = planned.get(name)
        rate = capacity_bps(plan, path) if path is not None else None
        paths.append(PathFacts(name, path, rate, tuple(subflows.get(name, ()))))
    return tuple(paths)


def _subflows_by_path(
    flow: Flow, sender_subflows: pl.DataFrame, events: pl.DataFrame, edges: Array, connected: float
) -> dict[str, list[SubflowFacts]]:
    """Return the subflows by the name of their path."""
    by_path: dict[str, list[SubflowFacts]] = {}
    happened = events.rows(named=True)
    for part in sender_subflows.sort("t_us").partition_by("subflow", maintain_order=True):
        first = part.row(0, named=True)
        own_events = [event for event in happened if _has_ends_of(event, first)]
        if _was_never_established(part, first, own_events):
            continue
        name = path_name(flow.paths, first)
        by_path.setdefault(name, []).append(_subflow_facts(part, first, own_events, edges, connected))
    return by_path


def _was_never_established(part: pl.DataFrame, first: Event, own_events: Sequence[Event]) -> bool:
    """Return whether the subflow never carried data and has no event that it was established."""
    if first["subflow"] == 0 or (part["sent_bytes"].max() or 0) or (part["received_bytes"].max() or 0):
        return False
    return not any(event["event"] == "sub_established" for event in own_events)


def _has_ends_of(event: Event, first: Event) -> bool:
    """Return whether an event is about the ends of a subflow, as far as its first sample shows them."""
    names = ("local_address", "local_port", "remote_address", "remote_port")
    return all(event[name] == first[name] for name in names if first[name] is not None)


def _times_us(own_events: Sequence[Event], event: str) -> list[int]:
    """Return the times of the events of one kind."""
    return [
        own_event["t_us"]
        for own_event in own_events
        if own_event["event"] == event and own_event["t_us"] is not None
    ]


def _subflow_facts(
    part: pl.DataFrame, first: Event, own_events: Sequence[Event], edges: Array, connected: float
) -> SubflowFacts:
    first_sample_us = float(part["t_us"][0])
    number = int(str(first["subflow"]))
    established = _times_us(own_events, "sub_established")
    closed = _times_us(own_events, "sub_closed")
    step = float(np.median(np.diff(edges))) if len(edges) > 2 else 0.0
    established_us = (
        connected
        if number == 0
        else float(established[0])
        if established
        else max(connected, first_sample_us - step)
    )
    closed_us = float(closed[0]) if closed and closed[0] < edges[-1] else np.inf
    values: dict[str, Array] = {}
    for name in COUNTERS:
        times_us, counts = known_samples(part, name)
        if len(times_us) and times_us[0] > established_us:
            # The counter is 0 when the subflow is established.
            times_us, counts = np.concatenate(([established_us], times_us)), np.concatenate(([0.0], counts))
        values[name] = np.interp(edges, times_us, counts) if len(times_us) else np.full(len(edges), np.nan)
    for name in STATES:
        values[name] = _state(part, name, edges)
    # Counters of a subflow that was open before the flow began have counted since then.
    counted_before = first_sample_us <= established_us
    totals = {
        name: float(values[name][-1]) - (float(values[name][0]) if counted_before else 0.0)
        for name in COUNTERS
    }
    return SubflowFacts(number, established_us, closed_us, values, totals)
