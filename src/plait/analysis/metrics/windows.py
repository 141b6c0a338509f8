"""Metrics at chosen times: goodput over a window of each flow, and the start of a second subflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from plait.analysis.by_flow import columns_of
from plait.analysis.metrics.users import Rows, finished_span
from plait.dataset.model import Tables
from plait.metrics import all_known
from plait.plan.model.plan import Flow, Measure

Span = tuple[int, int]


def steady_goodput_bps(measure: Measure, flows: Sequence[Flow], tables: Tables, rows: Rows) -> float | None:
    """Return application bits per second at the receivers: the sum over these flows, each over its own window.

    Bytes at the ends are interpolated between samples; of UDP, packets that arrived are counted. None without any
    flow, when one of them did not complete or is shorter than what the window leaves out, and when the windows have no
    time in common: the sum would be a rate that there never was.
    """
    windows = all_known(_window(measure, flow, tables, rows.get(flow.id)) for flow in flows)
    if windows is None or max(low for low, _ in windows) >= min(high for _, high in windows):
        return None
    return sum(
        _received(flow, tables, rows[flow.id], span) * 8e6 / (span[1] - span[0])
        for flow, span in zip(flows, windows, strict=True)
    )


def _window(measure: Measure, flow: Flow, tables: Tables, row: Mapping[str, object] | None) -> Span | None:
    """Return from when to when `measure` looks at a flow; None where it has no such time, or no samples of it."""
    if (span := finished_span(row)) is None:
        return None
    start, end = span
    low = start + measure.from_us if measure.from_us >= 0 else end + measure.from_us
    high = end if measure.to_us is None else (end if measure.to_us < 0 else start) + measure.to_us
    low, high = max(low, start), min(high, end)
    if high <= low:
        return None
    if flow.transport != "udp":
        samples = _samples(flow, tables)
        if not samples or high > samples[-1][0]:
            return None  # the samples end before the window does
    return low, high


def _received(flow: Flow, tables: Tables, row: Mapping[str, object], span: Span) -> float:
    """Return the bytes in order at a flow's receiver between two times."""
    if flow.transport == "udp":
        of_flow = pl.col("flow") == flow.id
        within = (pl.col("received_us") >= span[0]) & (pl.col("received_us") < span[1])
        return float(tables["messages"].filter(of_flow & within)["bytes"].sum())
    samples = _samples(flow, tables)
    start = row["start_us"]
    assert isinstance(start, int)  # or the flow had no window
    times, counts = zip((start, 0), *samples, strict=True)
    first, last = np.interp(span, times, counts)
    return float(last - first)


def _samples(flow: Flow, tables: Tables) -> list[tuple[int, int]]:
    """Return the times of the receiver's samples in ascending order, each with the bytes received so far."""
    columns = columns_of(tables, "connections", flow.carrier, flow.receiver, "t_us", "received_bytes")
    return sorted(
        (
            (t_us, count)
            for t_us, count in zip(*columns, strict=True)
            if t_us is not None and count is not None
        ),
        key=lambda sample: sample[0],
    )


def second_subflow_s(flow: Flow, tables: Tables, row: Mapping[str, object] | None) -> float | None:
    """Return the seconds from connect() until the sender first sends data on an additional subflow.

    `row` is the flow's row of the table `flows`. The time is that of the first sample in which an additional subflow
    has sent data, minus the subflow's busy time (`tcpi_busy_time`, to the millisecond). It is exact for a sender that
    never pauses, otherwise late by at most one sample. None for TCP, and if no additional subflow has sent data.
    """
    start = row["start_us"] if row is not None else None
    if not flow.multipath or not isinstance(start, int):
        return None
    names = ("t_us", "subflow", "sent_bytes", "busy_us")
    columns = columns_of(tables, "subflows", flow.carrier, flow.sender, *names)
    firsts: dict[int, tuple[int, int]] = {}
    for t_us, subflow, sent, busy_us in zip(*columns, strict=True):
        if subflow and sent and (subflow not in firsts or t_us < firsts[subflow][0]):
            firsts[subflow] = t_us, busy_us or 0
    return float(min(t_us - busy_us for t_us, busy_us in firsts.values()) - start) / 1e6 if firsts else None
