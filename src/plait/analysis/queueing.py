"""Queues of links: their lengths over the samples, drops, and percentiles of the time that packets waited.

Percentiles come from the kernel's histogram, the table `queueing_delays`. Its bins are at most an eighth of their
lower bound wide, so the middle of a bin differs from every value in it by at most 1/16 of the value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter

import polars as pl

from plait.dataset.model import Tables
from plait.metrics import Metrics, nearest_rank
from plait.plan.model.plan import Plan

PERCENTILES = {"queueing_delay_p50_us": 0.5, "queueing_delay_p95_us": 0.95, "queueing_delay_p99_us": 0.99}
MOST_DIRECTIONS = 32
"""The most link directions with a rate that have metrics of their own; of larger networks, only the table has them."""


def queue_metrics(plan: Plan, tables: Tables) -> Metrics:
    """Return the fullest queue (by its mean over the samples), all drops, and the queueing delays."""
    by_link = (
        tables["links"]
        .group_by("link", maintain_order=True)
        .agg(
            pl.col("queue_bytes").mean().alias("mean"),
            pl.col("queue_bytes").max().alias("max"),
            pl.col("dropped_packets").max(),
        )
    )
    queues = [row for row in by_link.iter_rows(named=True) if row["mean"] is not None]
    fullest = max(queues, key=lambda row: float(row["mean"]), default=None)
    dropped = by_link["dropped_packets"].drop_nulls()
    return {
        "queue_mean_bytes": None if fullest is None else float(fullest["mean"]),
        "queue_max_bytes": None if fullest is None else float(fullest["max"]),
        "dropped_packets": float(dropped.sum()) if len(dropped) else None,
        **_delay_metrics(plan, tables),
    }


def _delay_metrics(plan: Plan, tables: Tables) -> Metrics:
    """Return the percentiles of each direction that has a rate, and the largest of them.

    Nothing without the table; null for a direction that the table does not have.
    """
    table = tables.get("queueing_delays")
    if table is None:
        return {}
    histograms = _histograms(table)
    by_direction: Metrics = {}
    largest: Metrics = {}
    limited = [name for name, direction in plan.directions.items() if direction.rate_bps is not None]
    for metric, share in PERCENTILES.items():
        values = {
            name: percentile_us(histograms[name], share) if name in histograms else None for name in limited
        }
        # A percentile in the last bin has no upper bound, and nothing is known to be larger.
        unbounded = any(values[name] is None for name in limited if name in histograms)
        known = [value for value in values.values() if value is not None]
        largest[metric] = None if unbounded else max(known, default=None)
        by_direction |= {f"{name}.{metric}": value for name, value in values.items()}
    return {**largest, **(by_direction if len(limited) <= MOST_DIRECTIONS else {})}


def _histograms(table: pl.DataFrame) -> dict[str, list[tuple[int, int | None, int]]]:
    """Return (from ns, below ns, packets) of the bins of each direction, in ascending order.

    A trial has dozens of short histograms: a query for each takes longer than all of their rows.
    """
    histograms: dict[str, list[tuple[int, int | None, int]]] = {}
    for name, *row in table.select("link", "at_least_ns", "below_ns", "packets").iter_rows():
        histograms.setdefault(name, []).append((row[0], row[1], row[2]))
    for rows in histograms.values():
        rows.sort(key=itemgetter(0))
    return histograms


def percentile_us(histogram: Sequence[tuple[int, int | None, int]], share: float) -> float | None:
    """Return the nearest-rank percentile of one direction's queueing delays, as the middle of its bin.

    Args:
        histogram: its bins (from ns, below ns, packets), in ascending order.
        share: 0.95 for the 95th percentile.

    Returns:
        The delay in us; None if the histogram is empty, or the percentile is in the bin without end.
    """
    packets = list(accumulate(count for _, _, count in histogram))
    rank = nearest_rank(range(1, packets[-1] + 1), share) if packets else None
    if rank is None:
        return None
    at_least, upper_ns, _ = histogram[bisect_left(packets, rank)]
    # A bin of one nanosecond has one value.
    return None if upper_ns is None else (at_least + upper_ns - 1) / 2e3
