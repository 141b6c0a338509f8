"""Sums a flow's slices up: shares of time that add up to one, what each cause cost, and which one is named first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plait.analysis.metrics.ideal import payload_ratio
from plait.analysis.metrics.programs import with_connections
from plait.explain import evidence, missing
from plait.explain.capacity import could_bps
from plait.explain.causes import HARMLESS, Cause
from plait.explain.facts import PathFacts, flow_facts
from plait.explain.flow_view import view_of
from plait.explain.messages.flows import explain_datagrams, with_messages
from plait.explain.messages.program_udp import explain_told
from plait.explain.model import FlowExplanation, Kernel, PathAccount, Share
from plait.explain.states import path_time
from plait.explain.tunnels import with_tunnels
from plait.explain.wording import paragraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from plait.explain.facts import FlowFacts
    from plait.explain.states import PathTime
    from plait.plan.model.plan import Path, Plan
    from plait.plan.mptcp.missing_subflows import Reason

    Tables = Mapping[str, pl.DataFrame]

WORTH_NAMING = 0.10
"""A cause is named when it cost so much of what the paths could have given. Below are the beginning of any transfer,
the sawtooth of any congestion control and the grain of samples."""
WORTH_NAMING_TIME = 0.20
"""Where links have no rate, so that no cost is known: when it took so much of the time."""

Key = tuple[Cause, tuple[str, ...]]


@dataclass(frozen=True)
class Possible:
    """What a flow could have had if nobody had restricted it: further paths, and what the plan lacks for them."""

    paths: tuple[Path, ...] = ()
    lacking: Reason | None = None


def explain_trial(
    plan: Plan, tables: Tables, possible: Mapping[int, Possible] | None = None
) -> tuple[FlowExplanation, ...]:
    """Returns an explanation of every flow that was sampled, foreign ones included; a page is one flow.

    `possible` holds by a flow's number what `plan` leaves out of it.
    """
    plan = with_tunnels(with_connections(plan, tables), tables)
    found: list[FlowExplanation] = []
    for flow in plan.flows:
        if flow.transport == "udp" and (one := explain_datagrams(plan, tables, flow)) is not None:
            found.append(one)
        if flow.transport == "udp" or flow.kind == "page_connection":
            continue
        view = view_of(flow)
        ratio = payload_ratio(plan, view.flow, transport=view.transport)
        facts = flow_facts(plan, tables, view, ratio)
        if facts is not None:
            further = (possible or {}).get(view.flow_id, Possible())
            found.append(_explain(plan, tables, _with_missing(plan, facts, further), further))
    return (*found, *explain_told(plan, tables))


def _with_missing(plan: Plan, facts: FlowFacts, further: Possible) -> FlowFacts:
    """The facts with the paths that the plan leaves out; an MPTCP flow could have used them."""
    if facts.view.transport != "mptcp":
        return facts
    known = {path.name for path in facts.paths}
    extra = tuple(
        PathFacts(path.name, path, could_bps(plan, path))
        for path in further.paths
        if path.name not in known and not path.backup
    )
    return replace(facts, paths=(*facts.paths, *extra))


def _explain(plan: Plan, tables: Tables, facts: FlowFacts, further: Possible) -> FlowExplanation:
    times = [path_time(facts, path) for path in facts.paths]
    weights = _weights(times)
    known = all(one.facts.could_bps for one in times)
    could = sum((one.facts.could_bps or 0) * facts.payload_ratio for one in times) if known else None
    reasons = {
        path.name: missing.why_never(plan, tables, facts, path, _lacking(facts, path, further))
        for path in facts.paths
        if not path.tracks
    }
    goodput = _goodput(facts)
    shares = _flow_shares(facts, times, weights, could, reasons)
    named = _named(shares, could)
    accounts = tuple(_account(facts, one, reasons) for one in times)
    found = FlowExplanation(
        flow=facts.view.name,
        flow_id=facts.view.flow_id,
        transport=facts.view.transport,
        background=facts.view.flow.background,
        start_us=round(facts.start_us),
        end_us=round(facts.end_us),
        completed=bool(facts.row.get("completed")),
        goodput_bps=goodput,
        could_bps=could,
        first=named[0] if named else None,
        named=named,
        shares=shares,
        paths=accounts,
        kernel=_kernel(facts),
        moments=evidence.moments(facts, shares, named),
    )
    found = found.model_copy(update={"sentences": paragraph(found, greedy=facts.view.greedy)})
    return with_messages(plan, tables, facts, times, found)


def _lacking(facts: FlowFacts, path: PathFacts, further: Possible) -> Reason | None:
    """What the plan lacks, of a path that the plan does not have."""
    planned = {one.name for one in facts.view.paths}
    return further.lacking if path.name not in planned else None


def _weights(times: Sequence[PathTime]) -> list[float]:
    """How much of the flow each path stands for: its part of what all could give; alike where that is not known."""
    rates = [one.facts.could_bps for one in times]
    if all(rates):
        total = sum(rate or 0 for rate in rates)
        return [(rate or 0) / total for rate in rates]
    return [1 / len(times)] * len(times)


def _goodput(facts: FlowFacts) -> float | None:
    received = facts.row.get("received_bytes")
    if isinstance(received, int):
        return received * 8e6 / (facts.end_us - facts.start_us)
    sent = sum(track.last["acked_bytes"] for path in facts.paths for track in path.tracks)
    return None if np.isnan(sent) else sent * 8e6 / (facts.end_us - facts.start_us)


def _costs(facts: FlowFacts, one: PathTime) -> dict[Key, float]:
    """What each cause cost of this path's payload, in bit/s over the flow's time.

    What a slice did not carry is laid to its causes in proportion to their time in it.
    """
    if not one.facts.could_bps:
        return {}
    dt = np.diff(facts.edges)
    rate = one.facts.could_bps * facts.payload_ratio
    lost = rate * dt * np.maximum(1 - np.nan_to_num(one.used), 0)
    guilty = {key: us for key, us in one.time.items() if key[0] not in HARMLESS}
    total = np.sum(list(guilty.values()), axis=0) if guilty else np.zeros(len(dt))
    length = facts.end_us - facts.start_us
    # A slice that was at capacity but for a moment lost nothing to that moment that others would not lose.
    owed = np.minimum(lost, rate * np.maximum(total, 0))
    return {key: float(np.sum(owed * us / np.maximum(total, 1e-9)) / length) for key, us in guilty.items()}


def _account(
    facts: FlowFacts, one: PathTime, reasons: Mapping[str, tuple[str, tuple[str, ...]]]
) -> PathAccount:
    length = facts.end_us - facts.start_us
    costs = _costs(facts, one)
    shares = _merged(facts, [(one, 1.0)], costs, length, reasons)
    # What the receiver has acknowledged: what was sent may still wait in a queue, and would be more than links carry.
    payload = sum(float(np.nansum(track.grown("acked_bytes"))) for track in one.facts.tracks)
    rate = one.facts.could_bps
    return PathAccount(
        path=one.facts.name,
        subflows=tuple(track.number for track in one.facts.tracks),
        gave_bps=payload * 8e6 / length,
        could_bps=rate * facts.payload_ratio if rate else None,
        shares=shares,
    )


def _flow_shares(
    facts: FlowFacts,
    times: Sequence[PathTime],
    weights: Sequence[float],
    could: float | None,
    reasons: Mapping[str, tuple[str, tuple[str, ...]]],
) -> tuple[Share, ...]:
    costs: dict[Key, float] = {}
    if could is not None:
        for one in times:
            for key, cost in _costs(facts, one).items():
                costs[key] = costs.get(key, 0.0) + cost
    length = facts.end_us - facts.start_us
    return _merged(facts, list(zip(times, weights, strict=True)), costs, length, reasons)


def _merged(
    facts: FlowFacts,
    parts: Sequence[tuple[PathTime, float]],
    costs: Mapping[Key, float],
    length: float,
    reasons: Mapping[str, tuple[str, tuple[str, ...]]],
) -> tuple[Share, ...]:
    """One share for each cause, the dearest first; where it happened, worst place first."""
    spent: dict[Key, float] = {}
    begun: dict[Cause, float] = {}
    for one, weight in parts:
        for key, us in one.time.items():
            spent[key] = spent.get(key, 0.0) + weight * float(np.sum(us)) / length
            first = np.flatnonzero(us > 0)
            if len(first):
                at = float(facts.edges[first[0]])
                begun[key[0]] = min(begun.get(key[0], at), at)
    total = sum(spent.values()) or 1.0
    found = []
    for cause in dict.fromkeys(key[0] for key in spent):
        keys = sorted(
            (key for key in spent if key[0] is cause), key=lambda key: (-costs.get(key, 0), -spent[key])
        )
        where = tuple(dict.fromkeys(name for key in keys for name in key[1]))
        reason, said = _reason(cause, where, reasons)
        found.append(
            Share(
                cause=cause,
                time=sum(spent[key] for key in keys) / total,
                cost_bps=sum(costs.get(key, 0.0) for key in keys) if costs else None,
                where=where,
                reason=reason,
                since_us=round(begun[cause]) if cause in begun else None,
                evidence=(*said, *evidence.of(facts, cause, where)),
            )
        )
    return tuple(
        sorted(found, key=lambda share: (-(share.cost_bps or 0), share.cause in HARMLESS, -share.time))
    )


def _reason(
    cause: Cause, where: tuple[str, ...], reasons: Mapping[str, tuple[str, tuple[str, ...]]]
) -> tuple[str | None, tuple[str, ...]]:
    if cause is not Cause.SUBFLOW_NEVER or not where:
        return None, ()
    return reasons.get(where[0], (None, ()))


def _named(shares: Sequence[Share], could: float | None) -> tuple[Cause, ...]:
    """The causes that are worth naming, the dearest first."""
    guilty = [share for share in shares if share.cause not in HARMLESS]
    if could is not None:
        dear = [share for share in guilty if (share.cost_bps or 0) >= WORTH_NAMING * could]
        return tuple(share.cause for share in sorted(dear, key=lambda share: -(share.cost_bps or 0)))
    long = [share for share in guilty if share.time >= WORTH_NAMING_TIME]
    return tuple(share.cause for share in sorted(long, key=lambda share: -share.time))


def _kernel(facts: FlowFacts) -> Kernel | None:
    tracks = [track for path in facts.paths for track in path.tracks]
    if not tracks or any(np.isnan(track.last["busy_us"]) for track in tracks):
        return None
    lived = sum(
        max(0.0, min(track.gone_us, facts.end_us) - max(track.born_us, facts.connected_us))
        for track in tracks
    )
    sums = {
        name: sum(track.last[name] for track in tracks)
        for name in ("busy_us", "rwnd_limited_us", "sndbuf_limited_us")
    }
    return Kernel(
        lifetime_us=round(lived),
        busy_us=round(sums["busy_us"]),
        rwnd_limited_us=round(sums["rwnd_limited_us"]),
        sndbuf_limited_us=round(sums["sndbuf_limited_us"]),
    )
