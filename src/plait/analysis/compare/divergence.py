"""Finds where two trials of one plan part: the first sample at which a flow has delivered different amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.analysis.by_flow import rows_of
from plait.analysis.model import ClosedRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from plait.plan.model.plan import Flow, Plan

_SEGMENTS = 4
"""Differences of fewer full segments are a matter of the moment of the sample."""
_SEGMENT_BYTES = 1460
_STATE = ("cwnd_segments", "rtt_us", "retransmitted_segments", "congestion_state")


class Divergence(ClosedRecord):
    """The first sample at which a flow differs for good."""

    flow: str
    t_us: int
    delivered: tuple[int, int]
    """Bytes that the flow had delivered by then, in both trials."""
    states: tuple[dict[str, Any], dict[str, Any]]
    """The state of the sender's subflow that differs most, in both trials: local address, window, RTT, losses."""


def divergence(
    plan: Plan, first: Mapping[str, pl.DataFrame], second: Mapping[str, pl.DataFrame], bound: float
) -> Divergence | None:
    """Return where the trials part by more than `bound` (relative); None if they never do."""
    found = [part for flow in plan.flows if (part := _of_flow(flow, first, second, bound)) is not None]
    return min(found, key=lambda part: part.t_us, default=None)


def _of_flow(
    flow: Flow,
    first: Mapping[str, pl.DataFrame],
    second: Mapping[str, pl.DataFrame],
    bound: float,
) -> Divergence | None:
    acked = [_acked(tables, flow) for tables in (first, second)]
    since: tuple[int, int, int] | None = None
    for t_us in sorted(acked[0].keys() & acked[1].keys()):
        one, other = acked[0][t_us], acked[1][t_us]
        apart = abs(one - other) > max(_SEGMENTS * _SEGMENT_BYTES, bound * max(one, other))
        since = (since or (t_us, one, other)) if apart else None
    if since is None:
        return None
    t_us, one, other = since
    states = _states(flow, first, second, t_us)
    return Divergence(flow=flow.name, t_us=t_us, delivered=(one, other), states=states)


def _acked(tables: Mapping[str, pl.DataFrame], flow: Flow) -> dict[int, int]:
    """Return the acknowledged bytes of a flow by the time of the sample."""
    rows = rows_of(tables, "connections", flow.carrier, flow.sender)
    pairs = zip(rows["t_us"].to_list(), rows["acked_bytes"].to_list(), strict=True)
    return {t_us: acked for t_us, acked in pairs if acked is not None}


def _states(
    flow: Flow, first: Mapping[str, pl.DataFrame], second: Mapping[str, pl.DataFrame], t_us: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of the subflow whose window differs most at `t_us`."""
    one, other = (_subflows(tables, flow, t_us) for tables in (first, second))
    both = sorted(one.keys() & other.keys())
    if not both:
        return {}, {}

    def distance(address: str) -> float:
        windows = [float(state[address]["cwnd_segments"] or 0) for state in (one, other)]
        return abs(windows[0] - windows[1])

    address = max(both, key=distance)
    return {"address": address, **one[address]}, {"address": address, **other[address]}


def _subflows(tables: Mapping[str, pl.DataFrame], flow: Flow, t_us: int) -> dict[str, dict[str, Any]]:
    rows = rows_of(tables, "subflows", flow.carrier, flow.sender)
    rows = rows.filter(rows["t_us"] == t_us)
    return {row["local_address"]: {name: row[name] for name in _STATE} for row in rows.iter_rows(named=True)}
