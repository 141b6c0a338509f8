"""What the samples say of one flow, brought to one grid of times: the moments at which its sender was sampled.

A quantity at the grid's edges is an array of n + 1, one of a slice between two edges is an array of n. Counters are
interpolated, states are those of the latest sample. NaN: not known, or the subflow was not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plait.analysis.metrics.paths import path_name
from plait.explain.capacity import Network, could_bps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.explain.flow_view import View
    from plait.plan.model.plan import Path, Plan

    Tables = Mapping[str, pl.DataFrame]

Array = np.ndarray
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
)


@dataclass(frozen=True)
class Track:
    """One subflow at its sender."""

    number: int
    born_us: float
    """When its handshake was done, or the time before its first sample."""
    gone_us: float
    """When it closed; infinite while it lived."""
    at: Mapping[str, Array]
    """COUNTERS and STATES at the edges."""
    last: Mapping[str, float]
    """Its last counters."""

    def grown(self, counter: str) -> Array:
        """By how much a counter grew in each slice; NaN where it is not known."""
        return np.diff(self.at[counter])


@dataclass(frozen=True)
class PathFacts:
    """One path of the flow, and the subflows on it."""

    name: str
    planned: Path | None
    """None: subflows between addresses that the plan joins by no path."""
    could_bps: float | None
    """Frame rate of its links alone, at first."""
    tracks: tuple[Track, ...] = ()
    absent: str | None = None
    """Why the plan has no such path although the network has; see `missing`."""


@dataclass(frozen=True)
class FlowFacts:
    """One flow."""

    view: View
    row: Mapping[str, object]
    start_us: float
    end_us: float
    connected_us: float
    edges: Array
    network: Network
    paths: tuple[PathFacts, ...]
    unsent: Array
    """Bytes that wait in the connection for a subflow (TCP: to be sent)."""
    in_flight: Array
    """Bytes at the data level that were sent and not acknowledged."""
    window: Array
    """Bytes that the receiver lets be in flight at the data level."""
    send_memory: Array
    send_buffer: Array
    out_of_order: Array
    """Bytes at the receiver that wait for bytes before them."""
    delivered: Array
    """Bytes in order at the receiver, a counter."""
    receive_memory: Array
    receive_buffer: Array
    reinjected: Array
    """Bytes sent again at the data level, a counter."""
    events: pl.DataFrame = field(repr=False)
    pressed: Mapping[str, int]
    """By node, how often TCP of an end of the flow came to use more memory than it should (TCPMemoryPressures)."""
    pruned: int = 0
    """Segments that the receiver's MPTCP dropped for want of memory (RcvPruned)."""
    payload_ratio: float = 1.0
    """Payload per frame byte of a full segment."""

    @property
    def slices(self) -> int:
        """How many there are."""
        return len(self.edges) - 1


def flow_facts(plan: Plan, tables: Tables, view: View, payload_ratio: float) -> FlowFacts | None:
    """Returns the facts of one flow; None when it was never sampled at its sender."""
    row = next((one for one in tables["flows"].iter_rows(named=True) if one["flow"] == view.flow_id), {})
    mine = pl.col("flow") == view.carrier
    connections = tables["connections"].filter(mine)
    subflows = tables["subflows"].filter(mine)
    own = connections.filter(pl.col("side") == view.sender).sort("t_us")
    if own.is_empty():
        return None
    times = own["t_us"].to_numpy().astype(float)
    start = _number(row.get("start_us"), times[0])
    end = min(_number(row.get("end_us"), times[-1]), times[-1] if row.get("end_us") is None else np.inf)
    connected = min(_number(row.get("connected_us"), start), end)
    inner = times[(times > start) & (times < end)]
    edges = np.concatenate(([start], inner, [end]))
    if end <= start:
        return None
    other = connections.filter(pl.col("side") != view.sender).sort("t_us")
    receiving = subflows.filter(pl.col("side") != view.sender)
    events = tables["events"].filter(mine)
    sending = subflows.filter(pl.col("side") == view.sender)
    acked = _counter(own, "acked_bytes", edges)
    reinjected = np.nan_to_num(_counter(own, "retransmitted_bytes", edges))
    return FlowFacts(
        view=view,
        row=row,
        start_us=start,
        end_us=end,
        connected_us=connected,
        edges=edges,
        network=Network(plan, tables["links"], edges),
        paths=_paths(plan, view, _tracks(view, sending, events, edges, connected)),
        unsent=_state(own, "unsent_bytes", edges),
        in_flight=np.maximum(_counter(own, "sent_bytes", edges) - acked, 0),
        window=_window(sending, edges),
        send_memory=_state(own, "send_memory_bytes", edges),
        send_buffer=_state(own, "send_buffer_bytes", edges),
        out_of_order=_out_of_order(other, receiving, reinjected, edges),
        delivered=_counter(other, "received_bytes", edges),
        receive_memory=_state(other, "receive_memory_bytes", edges),
        receive_buffer=_state(other, "receive_buffer_bytes", edges),
        reinjected=reinjected,
        events=events,
        pressed=_grown(tables["counters"], view, "TcpExtTCPMemoryPressures"),
        pruned=sum(_grown(tables["counters"], view, "MPTcpExtRcvPruned").values()),
        payload_ratio=payload_ratio,
    )


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) else float(otherwise)


def _counter(frame: pl.DataFrame, column: str, edges: Array) -> Array:
    known = frame.select("t_us", column).drop_nulls()
    if known.is_empty():
        return np.full(len(edges), np.nan)
    return np.asarray(np.interp(edges, known["t_us"].to_numpy(), known[column].to_numpy().astype(float)))


def _state(frame: pl.DataFrame, column: str, edges: Array) -> Array:
    """The latest value at each edge; the first one before it is known, so that a flow's beginning has one."""
    known = frame.select("t_us", column).drop_nulls()
    if known.is_empty():
        return np.full(len(edges), np.nan)
    place = np.searchsorted(known["t_us"].to_numpy(), edges, side="right") - 1
    values = known[column].to_numpy().astype(float)
    return np.asarray(values[np.maximum(place, 0)])


def _grown(counters: pl.DataFrame, view: View, name: str) -> dict[str, int]:
    """By how much a counter of the flow's two ends grew, by node; only those that did."""
    found = counters.filter((pl.col("counter") == name) & pl.col("node").is_in([view.client, view.server]))
    return {
        node: after - before
        for node, before, after in found.select("node", "before", "after").iter_rows()
        if after > before
    }


def _window(sending: pl.DataFrame, edges: Array) -> Array:
    """The widest window that any live subflow shows: it is the connection's, told on each of them."""
    known = (
        sending.filter(pl.col("state") == "ESTABLISHED")
        .group_by("t_us")
        .agg(pl.col("send_window_bytes").max())
    )
    return _state(known.sort("t_us"), "send_window_bytes", edges)


def _out_of_order(other: pl.DataFrame, receiving: pl.DataFrame, reinjected: Array, edges: Array) -> Array:
    """Return what subflows have brought and the stream has not taken, without copies.

    Copies are at most what the sender has reinjected, and at most the least excess that is seen later: as
    `out_of_order_max_bytes` of the metrics.
    """
    parts = receiving.sort("t_us").partition_by("subflow")
    if other.is_empty() or len(parts) < 2:
        return np.zeros(len(edges))
    brought = np.sum([np.nan_to_num(_counter(part, "received_bytes", edges)) for part in parts], axis=0)
    ahead = brought - np.nan_to_num(_counter(other, "received_bytes", edges))
    later = np.minimum.accumulate(ahead[::-1])[::-1]
    return np.asarray(np.maximum(ahead - np.minimum(later, reinjected), 0))


def _paths(plan: Plan, view: View, tracks: Mapping[str, Sequence[Track]]) -> tuple[PathFacts, ...]:
    """The flow's paths in the order of the plan, then what subflows there are beside them."""
    planned = {path.name: path for path in view.paths}
    usable = view.paths if view.transport == "mptcp" else view.paths[:1]
    # A backup that was never needed is no path that could have given anything.
    names = [path.name for path in usable if not path.backup or path.name in tracks]
    found = []
    for name in dict.fromkeys([*names, *tracks]):
        path = planned.get(name)
        rate = could_bps(plan, path) if path is not None else None
        found.append(PathFacts(name, path, rate, tuple(tracks.get(name, ()))))
    return tuple(found)


def _tracks(
    view: View, sending: pl.DataFrame, events: pl.DataFrame, edges: Array, connected: float
) -> dict[str, list[Track]]:
    """The subflows by the name of their path."""
    found: dict[str, list[Track]] = {}
    for part in sending.sort("t_us").partition_by("subflow", maintain_order=True):
        first = part.row(0, named=True)
        if _refused(part, first, events):
            continue
        name = path_name(
            view, view.sender, first["local_address"], first["remote_address"], first["remote_port"]
        )
        found.setdefault(name, []).append(_track(part, first, events, edges, connected))
    return found


def _refused(part: pl.DataFrame, first: Mapping[str, object], events: pl.DataFrame) -> bool:
    """Whether it was never more than an attempt: no data either way, and no event that it was established."""
    if first["subflow"] == 0 or (part["sent_bytes"].max() or 0) or (part["received_bytes"].max() or 0):
        return False
    return events.filter((pl.col("event") == "sub_established") & _same_ends(first)).is_empty()


def _same_ends(first: Mapping[str, object]) -> pl.Expr:
    names = ("local_address", "local_port", "remote_address", "remote_port")
    return pl.all_horizontal([pl.col(name) == first[name] for name in names if first[name] is not None])


def _track(
    part: pl.DataFrame, first: Mapping[str, object], events: pl.DataFrame, edges: Array, connected: float
) -> Track:
    times = part["t_us"].to_numpy().astype(float)
    number = int(str(first["subflow"]))
    own = events.filter(_same_ends(first))
    came = own.filter(pl.col("event") == "sub_established")["t_us"].drop_nulls().to_list()
    went = own.filter(pl.col("event") == "sub_closed")["t_us"].drop_nulls().to_list()
    step = float(np.median(np.diff(edges))) if len(edges) > 2 else 0.0
    born = connected if number == 0 else float(came[0]) if came else max(connected, times[0] - step)
    gone = float(went[0]) if went and went[0] < edges[-1] else np.inf
    values: dict[str, Array] = {}
    for name in COUNTERS:
        known = part.select("t_us", name).drop_nulls()
        at = known["t_us"].to_numpy().astype(float)
        counts = known[name].to_numpy().astype(float)
        if len(at) and at[0] > born:
            # Before its first sample it was there from its birth on, with nothing counted yet.
            at, counts = np.concatenate(([born], at)), np.concatenate(([0.0], counts))
        values[name] = np.interp(edges, at, counts) if len(at) else np.full(len(edges), np.nan)
    for name in STATES:
        values[name] = _state(part, name, edges)
    last = {name: float(values[name][-1]) for name in COUNTERS}
    return Track(number, born, gone, values, last)
