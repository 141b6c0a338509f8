"""How an MPTCP flow is split over its paths: in any second, for an observer of some paths, and what came of it.

Everything is computed from samples; `docs/reference/results.md` has the formulas.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import polars as pl

from plait.analysis.by_flow import SideColumns, columns_of
from plait.analysis.metrics.users import foreground
from plait.analysis.translation import SUBFLOW_ENDS, path_name
from plait.plan.model.plan import Flow, Plan

Metrics = dict[str, float | None]
Counts = dict[str, list[int]]
"""By path, a cumulative count of bytes at each sample."""

HELD_BACK = ("duplicate_bytes", "out_of_order_max_bytes", "out_of_order_mean_bytes")
END_OF_TIME = 2**62
WINDOW_US = 1_000_000
"""Length of the sliding windows; and how much of a flow's beginning they leave out."""


def share_metrics(plan: Plan, tables: Mapping[str, pl.DataFrame]) -> Metrics:
    """Return the metrics of the split: of several MPTCP flows that of the worst, and the sum of their copies.

    Empty without MPTCP flows. Flows in the background are no part of it.
    """
    flows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    values: dict[str, list[float]] = {}
    names: set[str] = set()
    for flow in foreground(plan):
        if not flow.multipath or flow.id not in flows:
            continue
        shares = _of_flow(flow, flows[flow.id], tables)
        names |= shares.keys()
        for name, value in shares.items():
            if value is not None:
                values.setdefault(name, []).append(value)
    return {name: _of_all_flows(name, values[name]) if name in values else None for name in sorted(names)}


def _of_all_flows(name: str, values: list[float]) -> float:
    return sum(values) if name == "duplicate_bytes" else max(values)


def _of_flow(flow: Flow, row: Mapping[str, object], tables: Mapping[str, pl.DataFrame]) -> Metrics:
    start, end = row["start_us"], row["end_us"]
    last_us = end if isinstance(end, int) else END_OF_TIME
    times, sent = by_path(flow, flow.sender, tables, "sent_bytes", last_us)
    arrived_at, arrived = by_path(flow, flow.receiver, tables, "received_bytes", last_us)
    first = start if isinstance(start, int) else 0
    taken = _counted(
        columns_of(tables, "connections", flow.carrier, flow.receiver), "received_bytes", last_us
    )
    reinjected = _counted(
        columns_of(tables, "connections", flow.carrier, flow.sender), "retransmitted_bytes", last_us
    )
    metrics: Metrics = {
        "path_share_window_max": largest_share(times, list(sent.values()), first + WINDOW_US),
        "path_switches_per_s": switches_per_s(times, list(sent.values())),
        "path_run_max_bytes": longest_run(list(sent.values())),
    }
    metrics |= _observed(flow, tables)
    return metrics | _held_back(arrived_at, arrived, taken, reinjected)


def _counted(rows: SideColumns, column: str, last_us: int) -> dict[int, int]:
    """Return a counter by time up to `last_us`."""
    pairs = zip(rows["t_us"], rows[column], strict=True)
    return {
        t_us: count for t_us, count in pairs if count is not None and t_us is not None and t_us <= last_us
    }


def by_path(
    flow: Flow, side: str, tables: Mapping[str, pl.DataFrame], column: str, last_us: int = END_OF_TIME
) -> tuple[list[int], Counts]:
    """Return the times of the samples of one side up to `last_us` (us), and a counter summed over each path's subflows.

    A subflow that is gone keeps its last value. Every planned path is there, with zeros if it carried nothing.
    """
    rows = columns_of(tables, "subflows", flow.carrier, side)
    sampled_us: list[int] = rows["t_us"]
    numbers: list[int] = rows["subflow"]
    known_times = (row for row, t_us in enumerate(sampled_us) if t_us is not None and t_us <= last_us)
    order = sorted(known_times, key=lambda row: (sampled_us[row], numbers[row]))
    times = list(dict.fromkeys(sampled_us[row] for row in order))
    place = {t_us: i for i, t_us in enumerate(times)}
    samples: dict[int, list[int]] = {}
    """By subflow, the numbers of its rows."""
    for row in order:
        samples.setdefault(numbers[row], []).append(row)
    values = rows[column]
    counts: Counts = {path.name: [0] * len(times) for path in flow.paths}
    for subflow_rows in samples.values():
        name = path_name(flow.paths, rows.row(subflow_rows[0], *SUBFLOW_ENDS))
        path = counts.setdefault(name, [0] * len(times))
        known = {place[sampled_us[row]]: values[row] for row in subflow_rows if values[row] is not None}
        last = 0
        for i in range(len(times)):
            last = known.get(i, last)
            path[i] += last
    return times, counts


def largest_share(times: Sequence[int], counts: Sequence[Sequence[int]], since_us: int) -> float | None:
    """Return the largest share that one path has of the bytes sent in any window between samples from `since_us` on.

    A window is the shortest span between samples that is at least WINDOW_US long. None when there is none, or nothing
    was sent.
    """
    best: float | None = None
    for end, t_us in enumerate(times):
        begin = bisect_right(times, t_us - WINDOW_US) - 1
        if begin < 0 or times[begin] < since_us:
            continue
        grown = [path[end] - path[begin] for path in counts]
        if sum(grown) > 0:
            best = max(best or 0.0, max(grown) / sum(grown))
    return best


def switches_per_s(times: Sequence[int], counts: Sequence[Sequence[int]]) -> float | None:
    """Return how often in a second, at least, the sender went from one path to another.

    Where k paths were given bytes between two samples, it went k - 1 times; and once more when none of them was given
    any between the two samples before. More often may be true: the order within is not known. None with one sample.
    """
    if len(times) < 2:
        return None
    switches, previous = 0, set[int]()
    for fed in _fed_paths(counts):
        if fed:
            switches += len(fed) - 1 + (not fed & previous and bool(previous))
            previous = fed
    return switches * 1e6 / (times[-1] - times[0])


def longest_run(counts: Sequence[Sequence[int]]) -> float | None:
    """Return how many bytes in a row, at least, one path was given while no other was given any.

    None when several paths were given bytes between any two samples: then no run is known.
    """
    longest, run, current = 0, 0, -1
    for i, fed in enumerate(_fed_paths(counts), start=1):
        if len(fed) > 1:
            run, current = 0, -1
        elif fed:
            (path,) = fed
            run = (run if path == current else 0) + counts[path][i] - counts[path][i - 1]
            current = path
            longest = max(longest, run)
    return float(longest) if longest else None


def _fed_paths(counts: Sequence[Sequence[int]]) -> Iterator[set[int]]:
    """Yield the paths that were given bytes between each two samples."""
    for i in range(1, len(counts[0]) if counts else 0):
        yield {number for number, path in enumerate(counts) if path[i] > path[i - 1]}


def _observed(flow: Flow, tables: Mapping[str, pl.DataFrame]) -> Metrics:
    """Return the largest part of the stream that an observer of k paths can hold, for each k below their number.

    All that arrived counts, also after the sender's end.
    """
    _, arrived = by_path(flow, flow.receiver, tables, "received_bytes")
    taken = columns_of(tables, "connections", flow.carrier, flow.receiver)["received_bytes"]
    stream = max((count for count in taken if count is not None), default=0)
    totals = sorted((path[-1] for path in arrived.values() if path), reverse=True)
    return {
        f"observed_{k}path_share": min(1.0, sum(totals[:k]) / stream) if stream else None
        for k in range(1, len(flow.paths))
    }


def _held_back(
    times: Sequence[int], arrived: Counts, taken: Mapping[int, int], reinjections: Mapping[int, int]
) -> Metrics:
    """Return the bytes that arrived twice, and how many waited at the receiver for bytes before them.

    What subflows have received is in the stream, waits, or came twice. Copies are reinjected data, so there are at
    most as many as the sender has reinjected by then (`reinjections`, by time). As their number only grows, there are
    at most as many as the least excess of any later sample. The rest waits. All are null where
    reinjections were not sampled.
    """
    sampled_at = sorted(reinjections)
    sampled = [
        (sum(path[i] for path in arrived.values()) - taken[t], bisect_right(sampled_at, t))
        for i, t in enumerate(times)
        if t in taken
    ]
    if not sampled or not sampled_at:
        return dict.fromkeys(HELD_BACK)
    excess = [now for now, _ in sampled]
    later = list(accumulate(reversed(excess), min))[::-1]
    reinjected = [reinjections[sampled_at[place - 1]] if place else 0 for _, place in sampled]
    copies = [max(0, min(pair)) for pair in zip(later, reinjected, strict=True)]
    waiting = [max(0, now - twice) for now, twice in zip(excess, copies, strict=True)]
    return {
        "duplicate_bytes": float(copies[-1]),
        "out_of_order_max_bytes": float(max(waiting)),
        "out_of_order_mean_bytes": sum(waiting) / len(waiting),
    }
