"""Metrics of messages: delays of streams, latencies of requests, loading times of pages, what UDP packets suffered.

Null where something could not be measured, never zero: if some messages of a flow never arrived,
percentiles of the others would be too low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from plait.dataset.model import Tables
from plait.metrics import Metrics, all_known, nearest_rank
from plait.plan.model.plan import Flow, Plan
from plait.traffic.kinds import JOBS
from plait.traffic.page import Page

Messages = dict[int, pl.DataFrame]
"""The rows of the table of messages by flow."""

PERCENTILES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
PREFIX = {
    kind: job.MEASURED_DELAY for kind, job in JOBS.items() if job.MEASURED_DELAY is not None and kind != "udp"
}
"""By the kind of a flow, the start of the names of its metrics."""


def message_metrics(plan: Plan, tables: Tables) -> Metrics:
    """Return the metrics of the messages of all foreground flows, and of each flow if there are several."""
    messages = tables.get("messages")
    if messages is None:
        return {}
    arrived = {part["flow"][0]: part for part in messages.partition_by("flow")}
    rows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    completed = {number for number, row in rows.items() if row["completed"]}
    flows = [flow for flow in plan.flows if not flow.background]
    metrics: Metrics = {}
    for prefix in dict.fromkeys(PREFIX.values()):
        metrics |= _percentiles(
            prefix, [flow for flow in flows if PREFIX.get(flow.measured_as) == prefix], arrived, completed
        )
    metrics |= _udp([flow for flow in flows if flow.kind == "udp"], arrived, completed)
    pages = [flow for flow in flows if flow.kind == "page"]
    loads = [_page_load_s(page, arrived, rows.get(page.id)) for page in pages]
    if pages:
        measured = all_known(loads) or []
        metrics["page_load_s"] = sum(measured) / len(measured) if measured else None
        metrics["page_load_p95_s"] = nearest_rank(sorted(measured), 0.95)
        metrics["page_load_max_s"] = max(measured, default=None)
    if len(plan.flows) > 1:
        metrics |= _by_flow(plan, arrived, completed)
        metrics |= {f"{page.name}.page_load_s": load for page, load in zip(pages, loads, strict=True)}
    return metrics


def delays_us(messages: pl.DataFrame, flows: Sequence[Flow]) -> pl.Series:
    """Return the delays of all messages of these flows that arrived, in us, in no certain order."""
    mine = messages.filter(pl.col("flow").is_in([flow.id for flow in flows]))
    return (mine["received_us"] - mine["sent_us"]).drop_nulls()


def _delays_us(flows: Sequence[Flow], arrived: Messages) -> list[int | None]:
    """Return the delay of each message of the flows; None of those that did not arrive."""
    parts = [arrived[flow.id] for flow in flows if flow.id in arrived]
    return [delay for part in parts for delay in (part["received_us"] - part["sent_us"]).to_list()]


def _by_flow(plan: Plan, arrived: Messages, completed: set[int]) -> Metrics:
    """Return the metrics of every flow by itself, those in the background included, named after it."""
    metrics: Metrics = {}
    for flow in plan.flows:
        prefix = PREFIX.get(flow.measured_as)
        of_flow = _percentiles(prefix, [flow], arrived, completed) if prefix is not None else {}
        if flow.kind == "udp":
            of_flow = _udp([flow], arrived, completed)
        metrics |= {f"{flow.name}.{name}": value for name, value in of_flow.items()}
    return metrics


def _percentiles(
    prefix: str, flows: Sequence[Flow], arrived: Messages, completed: set[int], *, lossy: bool = False
) -> Metrics:
    """Return percentiles and maximum; nothing when no such flow has messages, null when some of them are missing."""
    delays = _delays_us(flows, arrived)
    if not delays:
        return {}
    names = [*(name for _, name in PERCENTILES), "max"]
    known = sorted(delay for delay in delays if delay is not None)
    whole = lossy or len(known) == len(delays)
    if not known or not whole or not all(flow.id in completed for flow in flows):
        return {f"{prefix}_{name}_us": None for name in names}
    values = [nearest_rank(known, share) for share, _ in PERCENTILES]
    return {
        f"{prefix}_{name}_us": value for name, value in zip(names, [*values, float(known[-1])], strict=True)
    }


def _udp(flows: Sequence[Flow], arrived: Messages, completed: set[int]) -> Metrics:
    """Return loss, delays and jitter of UDP packets; delays are of those that arrived."""
    parts = [arrived[flow.id] for flow in flows if flow.id in arrived]
    if not parts:
        return {}
    rows = pl.concat(parts)
    complete = all(flow.id in completed for flow in flows)
    lost = rows["received_us"].null_count()
    return {
        "udp_loss_ratio": lost / rows.height if complete else None,
        **_percentiles("udp_delay", flows, arrived, completed, lossy=True),
        "udp_jitter_us": _jitter_us(rows) if complete else None,
    }


def _jitter_us(rows: pl.DataFrame) -> float | None:
    """Return the mean of |D| over packets of a flow that arrived one after the other, D as in RFC 3550, 6.4.1.

    D is the difference of two packets' delays. RFC 3550 smooths |D| with 1/16 and reports the last value; the mean
    covers the whole flow.
    """
    in_order = rows.drop_nulls("received_us").sort("flow", "received_us", "index")
    delay = pl.col("received_us") - pl.col("sent_us")
    steps = in_order.select(delay.diff().over("flow").abs()).to_series().drop_nulls()
    return None if steps.is_empty() else float(steps.sum()) / steps.len()


def _page_load_s(page: Flow, arrived: Messages, row: Mapping[str, object] | None) -> float | None:
    """Return the time from the first connect() of a page to the last byte of its last object."""
    objects = arrived.get(page.id)
    start_us = row["start_us"] if row is not None else None
    asked = len(page.application.objects) if isinstance(page.application, Page) else 0
    ends = [] if objects is None else [end for end in objects["received_us"].to_list() if end is not None]
    if len(ends) < asked or not ends or not isinstance(start_us, int):
        return None
    return float(max(ends) - start_us) / 1e6
