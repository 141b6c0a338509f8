"""What is read from samples at chosen times: goodput over a window of each flow, and when a second subflow sets in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plait.analysis.units import union_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.plan.model import Flow, Measure


class Steady(NamedTuple):
    """What one flow received within its window."""

    received_bytes: float
    start_us: int
    end_us: int


def steady_goodput_bps(windows: Sequence[Steady | None]) -> float | None:
    """Return application bits per second at the receivers of several flows, over the time that their windows cover.

    None without any flow, or when one of them has no window.
    """
    known = [window for window in windows if window is not None]
    if not known or len(known) < len(windows):
        return None
    covered_us = union_us([(window.start_us, window.end_us) for window in known])
    return sum(window.received_bytes for window in known) * 8e6 / covered_us


def steady_window(
    measure: Measure, flow: Flow, tables: Mapping[str, pl.DataFrame], row: Mapping[str, object] | None
) -> Steady | None:
    """Return what one flow received within the window that `measure` gives it.

    Bytes at the window's ends are interpolated between samples; of UDP, packets that arrived within it are counted.
    None when the flow did not complete, or is shorter than what the window leaves out.
    """
    if row is None or not row["completed"]:
        return None
    start, end = row["start_us"], row["end_us"]
    if not (isinstance(start, int) and isinstance(end, int)):
        return None
    low = start + measure.from_us if measure.from_us >= 0 else end + measure.from_us
    high = end if measure.to_us is None else (end if measure.to_us < 0 else start) + measure.to_us
    low, high = max(low, start), min(high, end)
    if high <= low:
        return None
    if flow.transport == "udp":
        arrived = tables["messages"].filter(
            (pl.col("flow") == flow.id) & (pl.col("received_us") >= low) & (pl.col("received_us") < high)
        )
        return Steady(float(arrived["bytes"].sum()), low, high)
    levels = _received_at(flow, tables["connections"], start, [low, high])
    return None if levels is None else Steady(levels[1] - levels[0], low, high)


def _received_at(
    flow: Flow, connections: pl.DataFrame, start_us: int, at_us: list[int]
) -> tuple[float, float] | None:
    """Return the bytes in order at the receiver at two times."""
    receiver = "server" if flow.sender == "client" else "client"
    own = connections.filter((pl.col("flow") == flow.carrier) & (pl.col("side") == receiver))
    own = own.select("t_us", "received_bytes").drop_nulls().sort("t_us")
    if own.is_empty():
        return None
    times = np.concatenate(([start_us], own["t_us"].to_numpy()))
    counts = np.concatenate(([0], own["received_bytes"].to_numpy()))
    if at_us[1] > times[-1]:
        return None  # the samples end before the window does
    first, last = np.interp(at_us, times, counts)
    return float(first), float(last)


def second_subflow_s(flow: Flow, subflows: pl.DataFrame, row: Mapping[str, object] | None) -> float | None:
    """Return the seconds from connect() until the sender has first sent data on another subflow than the initial one.

    The first sample in which a further subflow has sent data, less the time for which it says to have been busy
    (`tcpi_busy_time`, to the millisecond): exact for a sender that never pauses, else late by at most one sample.
    None for TCP, and when there was no such subflow.
    """
    start = row["start_us"] if row is not None else None
    if flow.transport != "mptcp" or not isinstance(start, int):
        return None
    rows = subflows.filter(
        (pl.col("flow") == flow.carrier)
        & (pl.col("side") == flow.sender)
        & (pl.col("subflow") > 0)
        & (pl.col("sent_bytes") > 0)
    )
    if rows.is_empty():
        return None
    firsts = rows.sort("t_us").group_by("subflow", maintain_order=True).first()
    began = [t_us - (busy_us or 0) for t_us, busy_us in firsts.select("t_us", "busy_us").iter_rows()]
    return float(min(began) - start) / 1e6
