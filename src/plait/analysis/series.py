"""Series over time of one trial: goodput, round-trip time and window of each subflow, queues of links.

Times are seconds from the start of the first flow. Long series are reduced to means over equal bins, so that a
figure stays small also for long trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from plait.analysis.by_flow import known_samples
from plait.analysis.metrics.programs import without_control
from plait.analysis.translation import path_name
from plait.dataset.model import Tables
from plait.plan.model.plan import Flow, Plan
from plait.traffic.program import Connection

GOODPUT_BINS = 50
POINTS = 240
MOST_SERIES = 8
"""Most lines in one chart, so that they stay distinguishable: the largest subflows and queues are kept."""

Points = tuple[tuple[float, float], ...]
"""(seconds, value) pairs."""


@dataclass(frozen=True)
class _SubflowSeries:
    """One subflow, or one flow when there are too many subflows to show."""

    label: str
    colour: int
    """Index into the palette: the path's number for a single flow, else a number of its own."""
    path: str
    goodput_bps: Points
    """Payload bytes that the receiving side got, per bin; a bin begins at its time and has no value after the end."""
    rtt_us: Points
    """A value is NaN where measurements end, because nothing is acknowledged: a line ends there."""
    cwnd_segments: Points


@dataclass(frozen=True)
class _QueueSeries:
    """The queue in front of one direction of a link."""

    label: str
    colour: int | None
    """The colour of the only path that crosses it; None when several do."""
    queue_bytes: Points


@dataclass(frozen=True)
class TrialSeries:
    """Everything that is drawn over time for one trial."""

    duration_s: float
    bin_s: float
    subflows: tuple[_SubflowSeries, ...]
    queues: tuple[_QueueSeries, ...]
    omitted: int
    """Subflows that are not shown because there are too many."""
    by_path: tuple[_SubflowSeries, ...] = ()
    """The goodput of all subflows of a path, also of those that are not shown; without round-trip time and window."""
    marks: tuple[tuple[float, str], ...] = ()
    """Events of the network: (seconds, text). Events at one time are one mark."""
    ideal_bps: float | None = None
    """Goodput that the links allow, to be drawn beside the only flow; `trial_series` does not compute it."""
    start_us: int = 0
    """When the first flow started: zero seconds here."""


def trial_series(plan: Plan, tables: Tables) -> TrialSeries:
    """Return what happened over time; empty when no flow has a known start and end.

    Connections of programs in the background are left out: they may carry the same bytes once more.
    """
    plan = without_control(plan)
    span = _span(plan, tables["flows"])
    if span is None:
        return TrialSeries(0.0, 0.0, (), (), 0)
    start_us, end_us = span
    interval = plan.sample_interval_us
    bin_us = interval * max(1, round((end_us - start_us) / GOODPUT_BINS / interval))
    edges = _edges(start_us, end_us, bin_us)
    of_flows = [
        series
        for flow in plan.flows
        if not flow.unsampled
        for series in _flow_series(plan, flow, tables["subflows"], edges, span)
    ]
    shown = _largest(of_flows)
    return TrialSeries(
        duration_s=(end_us - start_us) / 1e6,
        bin_s=bin_us / 1e6,
        subflows=tuple(shown),
        queues=tuple(_queues(plan, tables["links"], span)),
        omitted=len(of_flows) - len(shown),
        by_path=_by_path(of_flows),
        marks=_marks(plan, tables["events"], span),
        start_us=start_us,
    )


def _by_path(subflows: Sequence[_SubflowSeries]) -> tuple[_SubflowSeries, ...]:
    """Return the sum of the goodputs of each path; all subflows have the same bins."""
    rates: dict[str, dict[float, float]] = {}
    for subflow in subflows:
        of_path = rates.setdefault(subflow.path, {})
        for begin_s, rate in subflow.goodput_bps:
            of_path[begin_s] = of_path.get(begin_s, 0.0) + rate
    return tuple(
        _SubflowSeries(path, number, path, tuple(sorted(of_path.items())), (), ())
        for number, (path, of_path) in enumerate(rates.items())
    )


def _marks(plan: Plan, events: pl.DataFrame, span: tuple[int, int]) -> tuple[tuple[float, str], ...]:
    """Return the events of the plan that happened within the span; not those that have no words."""
    happened = set(events.select("t_us", "node", "event").rows())
    texts: dict[int, list[str]] = {}
    for event in plan.events:
        has_happened = (event.t_us, event.subject, event.name) in happened
        if event.text and has_happened and span[0] <= event.t_us <= span[1]:
            texts.setdefault(event.t_us, []).append(event.text)
    return tuple(((t_us - span[0]) / 1e6, ", ".join(words)) for t_us, words in texts.items())


def _edges(start_us: int, end_us: int, bin_us: int) -> np.ndarray:
    """Return the edges of the bins; the last bin takes what is left over, or is shorter when that is much."""
    edges = np.arange(start_us, end_us + 1, bin_us)
    rest = end_us - int(edges[-1])
    if rest == 0:
        return edges
    return np.append(edges[:-1] if rest < bin_us / 4 and len(edges) > 1 else edges, end_us)


def _span(plan: Plan, flows: pl.DataFrame) -> tuple[int, int] | None:
    """Return start of the first and end of the last flow of the plan in us.

    A flow without an end lasted to the trial's; a connection of programs without one was shown by no sample.
    """
    rows = flows.filter(pl.col("flow").is_in([flow.id for flow in plan.flows]))
    rows = rows.filter((pl.col("kind") != "program") | pl.col("end_us").is_not_null())
    starts = rows["start_us"].drop_nulls().to_list()
    ends = [plan.end_us if end is None else end for end in rows["end_us"].to_list()]
    return (min(starts), max(ends)) if starts and max(ends) > min(starts) else None


def _flow_series(
    plan: Plan, flow: Flow, subflows: pl.DataFrame, edges: np.ndarray, span: tuple[int, int]
) -> list[_SubflowSeries]:
    """Return the series of every subflow of one flow, in order of appearance at the sender."""
    rows = subflows.filter((pl.col("flow") == flow.carrier) & (pl.col("t_us") <= span[1]))
    interval_us = plan.sample_interval_us
    paths: set[str] = set()
    series: list[_SubflowSeries] = []
    for path, label, sent, arrived in subflow_parts(flow, rows):
        paths.add(path)
        measured = _with_measured_rtts(sent, interval_us)
        series.append(
            _SubflowSeries(
                label=label if len(plan.flows) == 1 else f"{flow.name}: {label}",
                colour=_colour(plan, flow, path, len(paths)),
                path=path,
                goodput_bps=_rates(arrived, edges, interval_us),
                rtt_us=_samples(measured, "rtt_us", span, interval_us),
                cwnd_segments=_samples(sent, "cwnd_segments", span, interval_us),
            )
        )
    return series


def subflow_parts(flow: Flow, rows: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame, pl.DataFrame]]:
    """Yield each subflow in order of appearance at the sender: path, label, the sender's rows, and what arrived.

    `rows` are those of the flow in the table `subflows`. A label is the path; with ` #2` for a second subflow of the
    path. What arrived is a frame of `t_us` and a cumulative `count` of bytes: those that the receiver got, or if it
    showed none, those that it acknowledged.
    """
    received = {
        _subflow_ends(flow, part): part
        for part in rows.filter(pl.col("side") == flow.receiver).partition_by("subflow", maintain_order=True)
    }
    numbers: dict[str, int] = {}
    for part in rows.filter(pl.col("side") == flow.sender).partition_by("subflow", maintain_order=True):
        path, *_ = ends = _subflow_ends(flow, part)
        numbers[path] = numbers.get(path, 0) + 1
        label = path if numbers[path] == 1 else f"{path} #{numbers[path]}"
        counted = received.get(ends)
        if counted is not None and counted["received_bytes"].null_count() == 0:
            yield path, label, part, counted.select("t_us", count="received_bytes")
        else:
            yield path, label, part, part.select("t_us", count="acked_bytes")


def _colour(plan: Plan, flow: Flow, path: str, position: int) -> int:
    """Return the number of the path in the plan, so that a path has one colour in all cases."""
    # A connection of programs has the path first on which it began; between their hosts the plan has one order.
    peer_paths = (peers.paths for peers in plan.peers if isinstance(flow.application, Connection))
    for paths in (*peer_paths, flow.paths):
        for number, candidate in enumerate(paths):
            if candidate.name == path:
                return number
    return max(len(flow.paths), position - 1)


def _subflow_ends(flow: Flow, part: pl.DataFrame) -> tuple[str, int | None, int | None]:
    """Return the path of a subflow and its ports at client and server, which both sides show alike."""
    first = part.row(0, named=True)
    path, ports = path_name(flow.paths, first), (first["local_port"], first["remote_port"])
    return (path, *ports) if first["side"] == "client" else (path, *ports[::-1])


def _rates(counter: pl.DataFrame, edges: np.ndarray, interval_us: int) -> Points:
    """Return bits per second in each bin from a cumulative byte counter, interpolated at the edges."""
    times, counts = known_samples(counter, "count")
    if not len(times) or len(edges) < 2:
        return ()
    # Before its first sample a subflow did not exist for longer than one interval.
    times = np.concatenate(([times[0] - interval_us], times))
    counts = np.concatenate(([0.0], counts))
    levels = np.interp(edges, times, counts, left=0.0)
    rates = np.diff(levels) * 8e6 / np.diff(edges)
    starts = (edges[:-1] - edges[0]) / 1e6
    return tuple(zip(starts.tolist(), rates.tolist(), strict=True))


def _with_measured_rtts(part: pl.DataFrame, interval_us: int) -> pl.DataFrame:
    """Return samples of a subflow whose RTT is known only while something measures it: acknowledgements of its data.

    The kernel repeats its last estimate when a path is dead. Where data waited for longer than two RTTs and an
    interval, the first such sample is NaN, where a line ends, and the others are null.
    """
    if "unacked_segments" not in part.columns:
        return part
    rtts: list[float | None] = []
    acked, since, stale = None, None, False
    for t_us, rtt_us, acked_bytes, waiting in part.select(
        "t_us", "rtt_us", "acked_bytes", "unacked_segments"
    ).iter_rows():
        if acked_bytes != acked or not waiting:
            acked, since = acked_bytes, t_us
        if rtt_us is None or since is None or t_us - since <= 2 * rtt_us + interval_us:
            rtts.append(rtt_us)
            stale = False
        else:
            rtts.append(None if stale else math.nan)
            stale = True
    return part.with_columns(rtt_us=pl.Series(rtts, dtype=pl.Float64))


def _samples(part: pl.DataFrame, column: str, span: tuple[int, int], interval_us: int) -> Points:
    """Return the samples of a column, or their means over equal bins when there are too many.

    The bins are the same for all series of a trial, so that their times agree.
    """
    start_us, end_us = span
    pairs = zip(part["t_us"].to_list(), part[column].to_list(), strict=True)
    measured = [(t, value) for t, value in pairs if t is not None and value is not None]
    width = interval_us * -(-(end_us - start_us) // (interval_us * POINTS))
    if width <= interval_us:
        return tuple(((t - start_us) / 1e6, float(value)) for t, value in measured)
    bins: dict[int, list[float]] = {}
    for t, value in measured:
        bins.setdefault((t - start_us) // width, []).append(value)
    return tuple(((number + 0.5) * width / 1e6, sum(vs) / len(vs)) for number, vs in bins.items())


def _largest(largest: list[_SubflowSeries]) -> list[_SubflowSeries]:
    """Return the series that carried most, in their order, each with a colour of its own."""
    if len(largest) > MOST_SERIES:
        volume = {series.label: sum(value for _, value in series.goodput_bps) for series in largest}
        keep = set(sorted(volume, key=lambda label: -volume[label])[:MOST_SERIES])
        largest = [series for series in largest if series.label in keep]
    if len({series.colour for series in largest}) == len(largest):
        return largest
    return [replace(series, colour=number) for number, series in enumerate(largest)]


def _queues(plan: Plan, links: pl.DataFrame, span: tuple[int, int]) -> Iterable[_QueueSeries]:
    """Yield the queues that ever held anything, the fullest on average first; at most MOST_SERIES."""
    rows = links.filter(pl.col("t_us").is_between(*span) & pl.col("queue_bytes").is_not_null())
    parts = {str(part["link"][0]): part for part in rows.partition_by("link", maintain_order=True)}
    means = {
        name: sum(values) / len(values)
        for name, part in parts.items()
        if (values := part["queue_bytes"].to_list())
    }
    order = [name for name in plan.directions if means.get(name)]
    keep = set(sorted(order, key=lambda name: -means[name])[:MOST_SERIES])
    crossed: dict[str, set[int]] = {}
    for flow in plan.flows:
        for number, path in enumerate(flow.paths):
            for name in path.forward:
                crossed.setdefault(name, set()).add(number)
    for name in order:
        if name in keep:
            paths = crossed.get(name, set())
            colour = next(iter(paths)) if len(paths) == 1 else None
            yield _QueueSeries(
                name, colour, _samples(parts[name], "queue_bytes", span, plan.sample_interval_us)
            )
