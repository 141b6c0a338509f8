"""How an MPTCP flow is split over its paths: in any second, for an observer of some paths, and what came of it.

Everything is computed from samples; `docs/reference/results.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.analysis.by_flow import columns_of
from plait.analysis.metrics.users import foreground
from plait.analysis.translation import SUBFLOW_ENDS, path_name
from plait.dataset.model import Tables
from plait.metrics import Metrics
from plait.plan.model.plan import Flow, Plan

Numbers = NDArray[np.int64]

HELD_BACK = ("duplicate_bytes", "out_of_order_max_bytes", "out_of_order_mean_bytes")
END_OF_TIME = 2**62
WINDOW_US = 1_000_000
"""Length of the sliding windows; and how much of a flow's beginning they leave out."""


def share_metrics(plan: Plan, tables: Tables) -> Metrics:
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
    return {
        name: (sum if name == "duplicate_bytes" else max)(values[name]) if name in values else None
        for name in sorted(names)
    }


def _of_flow(flow: Flow, row: Mapping[str, Any], tables: Tables) -> Metrics:
    last_us = END_OF_TIME if row["end_us"] is None else row["end_us"]
    times, sent = by_path(flow, flow.sender, tables, "sent_bytes", last_us)
    arrived_at, arrived = by_path(flow, flow.receiver, tables, "received_bytes", last_us)
    taken = _counted(flow, flow.receiver, tables, "received_bytes", last_us)
    reinjected = _counted(flow, flow.sender, tables, "retransmitted_bytes", last_us)
    return {
        "path_share_window_max": largest_share(times, sent, (row["start_us"] or 0) + WINDOW_US),
        "path_switches_per_s": switches_per_s(times, sent),
        "path_run_max_bytes": longest_run(sent),
        **_observed(flow, tables),
        **_held_back(arrived_at, arrived, taken, reinjected),
    }


def _counted(flow: Flow, side: str, tables: Tables, column: str, last_us: int) -> dict[int, int]:
    """Return a counter of the connection by time up to `last_us`."""
    times, counts = columns_of(tables, "connections", flow.carrier, side, "t_us", column)
    pairs = zip(times, counts, strict=True)
    return {t_us: count for t_us, count in pairs if None not in (t_us, count) and t_us <= last_us}


def by_path(
    flow: Flow, side: str, tables: Tables, column: str, last_us: int = END_OF_TIME
) -> tuple[Numbers, Numbers]:
    """Return the times of the samples of one side up to `last_us` (us), and a counter summed over each path's subflows.

    The counts are paths x times. A subflow that is gone keeps its last value. Every planned path is there, with zeros
    if it carried nothing.
    """
    columns = columns_of(tables, "subflows", flow.carrier, side, "subflow", "t_us", column, *SUBFLOW_ENDS)
    samples: dict[int, list[Any]] = {}
    """By subflow, its samples: time, count, and ends."""
    for subflow, t_us, *sample in zip(*columns, strict=True):
        if t_us is not None and t_us <= last_us:
            samples.setdefault(subflow, []).append((t_us, *sample))
    times = np.array(
        sorted({sample[0] for sampled in samples.values() for sample in sampled}), dtype=np.int64
    )
    counts = {path.name: np.zeros(len(times), dtype=np.int64) for path in flow.paths}
    for sampled in samples.values():
        sampled.sort(key=itemgetter(0))
        name = path_name(flow.paths, dict(zip(SUBFLOW_ENDS, sampled[0][2:], strict=True)))
        known = {t_us: count for t_us, count, *_ in sampled if count is not None}
        counts[name] = counts.get(name, 0) + _latest(known, times)
    return times, np.array([*counts.values()], dtype=np.int64).reshape(len(counts), len(times))


def _latest(counter: Mapping[int, int], times: Numbers) -> Numbers:
    """Return a counter, of which some samples are known, at these times; 0 before its first sample."""
    sampled_at = sorted(counter)
    values = np.array([0, *(counter[t_us] for t_us in sampled_at)], dtype=np.int64)
    return np.asarray(values[np.searchsorted(np.array(sampled_at, dtype=np.int64), times, side="right")])


def largest_share(times: Numbers, counts: Numbers, since_us: int) -> float | None:
    """Return the largest share that one path has of the bytes sent in any window between samples from `since_us` on.

    A window is the shortest span between samples that is at least WINDOW_US long. None when there is none, or nothing
    was sent.
    """
    begins = np.searchsorted(times, times - WINDOW_US, side="right") - 1
    windows = (begins >= 0) & (times[begins] >= since_us)
    grown = counts[:, windows] - counts[:, begins[windows]]
    grown = grown[:, grown.sum(axis=0) > 0]
    return float((grown.max(axis=0) / grown.sum(axis=0)).max()) if grown.size else None


def switches_per_s(times: Numbers, counts: Numbers) -> float | None:
    """Return how often in a second, at least, the sender went from one path to another.

    Where k paths were given bytes between two samples, it went k - 1 times; and once more when none of them was given
    any between the two samples before. More often may be true: the order within is not known. None with one sample.
    """
    if len(times) < 2:
        return None
    fed = np.diff(counts) > 0
    fed = fed[:, fed.any(axis=0)]
    within = int(fed.sum()) - fed.shape[1]
    between = int((~(fed[:, 1:] & fed[:, :-1]).any(axis=0)).sum())
    return float((within + between) * 1e6 / (times[-1] - times[0]))


def longest_run(counts: Numbers) -> float | None:
    """Return how many bytes in a row, at least, one path was given while no other was given any.

    None when several paths were given bytes between any two samples: then no run is known.
    """
    longest, run, current = 0, 0, -1
    for grown in np.diff(counts).T.tolist():
        fed = [path for path, count in enumerate(grown) if count > 0]
        if len(fed) > 1:
            run, current = 0, -1
        elif fed:
            run = (run if fed[0] == current else 0) + grown[fed[0]]
            current = fed[0]
            longest = max(longest, run)
    return float(longest) if longest else None


def _observed(flow: Flow, tables: Tables) -> Metrics:
    """Return the largest part of the stream that an observer of k paths can hold, for each k below their number.

    All that arrived counts, also after the sender's end.
    """
    _, arrived = by_path(flow, flow.receiver, tables, "received_bytes")
    stream = max(_counted(flow, flow.receiver, tables, "received_bytes", END_OF_TIME).values(), default=0)
    totals = sorted(arrived[:, -1:].ravel().tolist(), reverse=True)
    return {
        f"observed_{k}path_share": min(1.0, sum(totals[:k]) / stream) if stream else None
        for k in range(1, len(flow.paths))
    }


def _held_back(
    times: Numbers, arrived: Numbers, taken: Mapping[int, int], reinjections: Mapping[int, int]
) -> Metrics:
    """Return the bytes that arrived twice, and how many waited at the receiver for bytes before them.

    What subflows have received is in the stream, waits, or came twice. Copies are reinjected data, so there are at
    most as many as the sender has reinjected by then (`reinjections`, by time). As their number only grows, there are
    at most as many as the least excess of any later sample. The rest waits. All are null where
    reinjections were not sampled.
    """
    sampled = np.array([t_us in taken for t_us in times.tolist()], dtype=bool)
    if not sampled.any() or not reinjections:
        return dict.fromkeys(HELD_BACK)
    excess = (arrived.sum(axis=0) - _latest(taken, times))[sampled]
    later = np.minimum.accumulate(excess[::-1])[::-1]
    copies = np.maximum(0, np.minimum(later, _latest(reinjections, times)[sampled]))
    waiting = np.maximum(0, excess - copies)
    return {
        "duplicate_bytes": float(copies[-1]),
        "out_of_order_max_bytes": float(waiting.max()),
        "out_of_order_mean_bytes": int(waiting.sum()) / len(waiting),
    }
