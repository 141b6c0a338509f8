"""Finds where two trials of one plan part: the first sample at which a flow has delivered different amounts."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from plait.analysis.by_flow import rows_of
from plait.dataset.model import Tables
from plait.parts import Part
from plait.plan.model.plan import Flow, Plan

_SEGMENTS = 4
"""Differences of fewer full segments are a matter of the moment of the sample."""
_SEGMENT_BYTES = 1460
_LATENESS = 0.02
"""How late a sample may be, as a share of the sampling interval."""
_STATE = ("cwnd_segments", "rtt_us", "retransmitted_segments", "congestion_state")


class Divergence(Part):
    """The first sample at which a flow differs for good."""

    flow: str
    t_us: int
    delivered: tuple[int, int]
    """Bytes that the flow had delivered by then, in both trials."""
    states: tuple[dict[str, Any], dict[str, Any]]
    """The state of the sender's subflow that differs most, in both trials: local address, window, RTT, losses."""


def divergence(plan: Plan, first: Tables, second: Tables, bound: float) -> Divergence | None:
    """Return where the trials part by more than `bound` (relative); None if they never do."""
    parts = [_of_flow(flow, first, second, bound, plan.sample_interval_us) for flow in plan.flows]
    return min((part for part in parts if part is not None), key=lambda part: part.t_us, default=None)


def _of_flow(
    flow: Flow,
    first: Tables,
    second: Tables,
    bound: float,
    interval_us: int,
) -> Divergence | None:
    counts = [_acked(tables, flow, interval_us) for tables in (first, second)]
    both = counts[0].join(counts[1], on="number").sort("number")
    sides = [both[name].to_numpy() for name in ("acked_bytes", "acked_bytes_right")]
    tolerance = np.maximum(_SEGMENTS * _SEGMENT_BYTES, bound * np.maximum(*sides))
    together = np.flatnonzero(abs(sides[0] - sides[1]) <= tolerance)
    apart = both[int(together[-1]) + 1 if len(together) else 0 :]
    if apart.is_empty():
        return None
    since = apart.row(0, named=True)
    states = _states(flow, first, second, (since["t_us"], since["t_us_right"]))
    delivered = (since["acked_bytes"], since["acked_bytes_right"])
    return Divergence(flow=flow.name, t_us=since["t_us"], delivered=delivered, states=states)


def _acked(tables: Tables, flow: Flow, interval_us: int) -> pl.DataFrame:
    """Return the acknowledged bytes of a flow by the number of the sample: number, t_us, acked_bytes.

    An engine on which computing takes time samples a little after the planned moment. Rows that are further from one
    are those of the end of a flow, and of samples that came late.
    """
    rows = (
        rows_of(tables, "connections", flow.carrier, flow.sender).select("t_us", "acked_bytes").drop_nulls()
    )
    late = pl.col("t_us") % interval_us > interval_us * _LATENESS
    samples = rows.filter(~late).with_columns(number=pl.col("t_us") // interval_us)
    return samples.unique("number", keep="first", maintain_order=True)


def _states(
    flow: Flow, first: Tables, second: Tables, t_us: tuple[int, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of the subflow whose window differs most at the times `t_us`."""
    first_states, second_states = (
        _subflows(tables, flow, moment) for tables, moment in zip((first, second), t_us, strict=True)
    )
    shared = sorted(first_states.keys() & second_states.keys())
    if not shared:
        return {}, {}

    def distance(address: str) -> float:
        windows = [float(state[address]["cwnd_segments"] or 0) for state in (first_states, second_states)]
        return abs(windows[0] - windows[1])

    address = max(shared, key=distance)
    return {"address": address, **first_states[address]}, {"address": address, **second_states[address]}


def _subflows(tables: Tables, flow: Flow, t_us: int) -> dict[str, dict[str, Any]]:
    rows = rows_of(tables, "subflows", flow.carrier, flow.sender)
    rows = rows.filter(rows["t_us"] == t_us)
    return {row["local_address"]: {name: row[name] for name in _STATE} for row in rows.iter_rows(named=True)}
