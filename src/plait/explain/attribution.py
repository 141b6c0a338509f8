"""Attribute a flow's time to causes: shares that add up to one, the cost of each cause, and the named causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from plait.analysis.by_flow import divided
from plait.analysis.metrics.programs import peers_between, with_connections
from plait.cautions import Code
from plait.dataset.model import Tables
from plait.explain.capacity import LinkSamples, capacity_bps
from plait.explain.cause import Cause
from plait.explain.causes import CAUSES, HARMLESS, RULES
from plait.explain.costs import Key, capacity_of, costs_of, flow_costs, sums, together_of
from plait.explain.facts import FlowFacts, PathFacts, flow_facts
from plait.explain.messages.flows import explain_datagrams, with_messages
from plait.explain.messages.program_udp import explain_program_udp
from plait.explain.model import FlowExplanation, KernelTimes, Moment, PathAccount, Share, share_links
from plait.explain.reasons import Reasons, reasons_by_path
from plait.explain.time.path_time import PathTime
from plait.explain.time.states import attribute_time
from plait.explain.wording import paragraph
from plait.plan.model.plan import Flow, Path, Plan
from plait.traffic.program import Connection

WORTH_NAMING = 0.10
"""A cause is named when its cost is at least this share of the paths' capacity. Smaller costs come from the start of
any transfer, the sawtooth of any congestion control and the resolution of the samples."""
WORTH_NAMING_TIME = 0.20
"""If a link has no rate, the cost is unknown; a cause is then named when it takes at least this share of the time."""


@dataclass(frozen=True)
class UnrestrictedPaths:
    """The further paths of a flow without `limits` and `endpoints`, and why the plan does not have them."""

    paths: tuple[Path, ...] = ()
    reason: Code | None = None


def explain_trial(
    plan: Plan, tables: Tables, unrestricted: Mapping[int, UnrestrictedPaths] | None = None
) -> tuple[FlowExplanation, ...]:
    """Return an explanation of every sampled flow, including connections of programs; a page is one flow.

    `unrestricted` maps the ID of a flow to the paths that `plan` leaves out.
    """
    plan = with_tunnels(with_connections(plan, tables), tables)
    explanations: list[FlowExplanation] = []
    links, parts = LinkSamples(plan, tables["links"]), divided(tables)
    for flow in plan.flows:
        datagrams = explain_datagrams(tables, links, flow) if flow.transport == "udp" else None
        if datagrams is not None:
            explanations.append(datagrams)
        if flow.transport == "udp" or flow.kind == "page_connection" or flow.unsampled:
            continue
        facts = flow_facts(parts, links, flow)
        if facts is not None:
            further = (unrestricted or {}).get(flow.id, UnrestrictedPaths())
            explanations.append(_explain(plan, tables, _with_missing(plan, facts, further), further))
    return (*explanations, *explain_program_udp(plan, tables))


def _with_missing(plan: Plan, facts: FlowFacts, further: UnrestrictedPaths) -> FlowFacts:
    """Return the facts with the paths that the plan leaves out, because an MPTCP flow could have used them."""
    if facts.flow.transport != "mptcp":
        return facts
    names = {path.name for path in facts.paths}
    extra = tuple(
        PathFacts(path.name, path, capacity_bps(plan, path))
        for path in further.paths
        if path.name not in names and not path.backup
    )
    return replace(facts, paths=(*facts.paths, *extra))


def _explain(plan: Plan, tables: Tables, facts: FlowFacts, further: UnrestrictedPaths) -> FlowExplanation:
    times = [attribute_time(facts, path, RULES) for path in facts.paths]
    capacity, together = capacity_of(facts), together_of(plan, facts)
    reasons = reasons_by_path(plan, tables, facts, further.reason)
    goodput = _goodput(facts)
    shares = _flow_shares(
        facts, times, flow_costs(plan, facts, times, goodput), (capacity, together), reasons
    )
    named = _named(shares, capacity, together)
    accounts = tuple(_account_for(facts, path_time, reasons) for path_time in times)
    explanation = FlowExplanation(
        flow=facts.flow.name,
        flow_id=facts.flow.id,
        transport=facts.flow.transport,
        background=facts.flow.background,
        start_us=round(facts.start_us),
        end_us=round(facts.end_us),
        completed=bool(facts.row.get("completed")),
        goodput_bps=goodput,
        capacity_bps=capacity,
        together_bps=together,
        first=named[0] if named else None,
        named=named,
        shares=shares,
        paths=accounts,
        kernel=_kernel(facts),
        moments=_moments(facts, shares, named),
    )
    explanation = explanation.model_copy(update={"sentences": paragraph(explanation)})
    return with_messages(plan, tables, facts, times, explanation)


def _weights(times: Sequence[PathTime]) -> list[float]:
    """Return the weight of each path: its share of the total capacity, or equal weights if a capacity is unknown."""
    rates = [path_time.facts.capacity_bps for path_time in times]
    if all(rates):
        total = sum(rate or 0 for rate in rates)
        return [(rate or 0) / total for rate in rates]
    return [1 / len(times)] * len(times)


def _goodput(facts: FlowFacts) -> float | None:
    received = facts.row.get("received_bytes")
    if isinstance(received, int):
        return received * 8e6 / facts.lasted_us
    acked = [subflow.totals["acked_bytes"] for path in facts.paths for subflow in path.subflows]
    return sum(acked) * 8e6 / facts.lasted_us if acked and np.isfinite(acked).all() else None


def _account_for(facts: FlowFacts, path_time: PathTime, reasons: Reasons) -> PathAccount:
    costs = sums(costs_of(facts, path_time))
    shares = _merged(facts, [(path_time, 1.0)], costs, reasons)
    rate, carried = path_time.facts.capacity_bps, facts.carried.get(path_time.facts.name)
    return PathAccount(
        path=path_time.facts.name,
        subflows=tuple(subflow.number for subflow in path_time.facts.subflows),
        backup=path_time.facts.is_backup,
        goodput_bps=None if carried is None else carried * 8e6 / facts.lasted_us,
        capacity_bps=rate * facts.payload_ratio if rate else None,
        shares=shares,
    )


def _flow_shares(
    facts: FlowFacts,
    times: Sequence[PathTime],
    costs: Mapping[Key, float],
    capacities: tuple[float | None, float | None],
    reasons: Reasons,
) -> tuple[Share, ...]:
    weighted = list(zip(times, _weights(times), strict=True))
    shares = _merged(facts, weighted, costs, reasons)
    if share_links(*capacities):  # it is how the paths are, and takes nothing from what they carry at once
        return tuple(sorted(shares, key=lambda share: (not share.cost_bps, _is_sharing(share))))
    return shares


def _is_sharing(share: Share) -> bool:
    return share.cause == Cause.SHARED_BOTTLENECK


def _merged(
    facts: FlowFacts,
    parts: Sequence[tuple[PathTime, float]],
    costs: Mapping[Key, float],
    reasons: Reasons,
) -> tuple[Share, ...]:
    """Return one share for each cause, the most costly first; the places of each cause are sorted by cost as well."""
    spent: dict[Key, float] = {}
    first_seen: dict[str, float] = {}
    for path_time, weight in parts:
        for key, us in path_time.time.items():
            spent[key] = spent.get(key, 0.0) + weight * float(np.sum(us)) / facts.lasted_us
            slices = np.flatnonzero(us > 0)
            if len(slices):
                t_us = float(facts.edges[slices[0]])
                first_seen[key[0]] = min(first_seen.get(key[0], t_us), t_us)
    for key in costs:
        spent.setdefault(key, 0.0)
    total = sum(spent.values()) or 1.0
    shares = []
    for cause in dict.fromkeys(key[0] for key in spent):
        keys = sorted(
            (key for key in spent if key[0] == cause), key=lambda key: (-costs.get(key, 0), -spent[key])
        )
        places = tuple(dict.fromkeys(name for key in keys for name in key[1]))
        reason, sentences = reasons.get((cause, places[0]), (None, ())) if places else (None, ())
        write = CAUSES[cause].evidence
        shares.append(
            Share(
                cause=cause,
                time=sum(spent[key] for key in keys) / total,
                cost_bps=sum(costs.get(key, 0.0) for key in keys) if costs else None,
                where=places,
                reason=reason,
                since_us=round(first_seen[cause]) if cause in first_seen else None,
                evidence=(*sentences, *write(facts, places)) if write is not None else sentences,
            )
        )
    return tuple(
        sorted(shares, key=lambda share: (-(share.cost_bps or 0), share.cause in HARMLESS, -share.time))
    )


def _named(shares: Sequence[Share], capacity: float | None, together: float | None) -> tuple[str, ...]:
    """Return the causes that are large enough to be named, the most costly first, and last that paths share a link."""
    harmful = [share for share in shares if share.cause not in HARMLESS]
    if capacity is not None:
        attainable, is_shared = together or capacity, share_links(capacity, together)
        costly = [share for share in harmful if (share.cost_bps or 0) >= WORTH_NAMING * attainable]
        costly.sort(key=lambda share: (is_shared and _is_sharing(share), -(share.cost_bps or 0)))
        return tuple(share.cause for share in costly)
    long = [share for share in harmful if share.time >= WORTH_NAMING_TIME]
    return tuple(share.cause for share in sorted(long, key=lambda share: -share.time))


def _kernel(facts: FlowFacts) -> KernelTimes | None:
    lives = [
        max(0.0, min(subflow.closed_us, part.end_us) - max(subflow.established_us, part.connected_us))
        for part in facts.connections
        for path in part.paths
        for subflow in path.subflows
    ]
    totals = {name: facts.total(name) for name in ("busy_us", "rwnd_limited_us", "sndbuf_limited_us")}
    if not lives or any(map(np.isnan, totals.values())):
        return None
    return KernelTimes(lifetime_us=round(sum(lives)), **{name: round(us) for name, us in totals.items()})


def _moments(facts: FlowFacts, shares: Sequence[Share], named: Sequence[str]) -> tuple[Moment, ...]:
    """Return when named causes began; if a late subflow is named, also when the subflows were established."""
    marks = [
        Moment(t_us=share.since_us, cause=share.cause, text=CAUSES[share.cause].title)
        for share in shares
        if share.cause in named and CAUSES[share.cause].is_marked and share.since_us is not None
    ]
    for path in facts.paths:
        for subflow in path.subflows:
            if subflow.number and Cause.SUBFLOW_LATE in named:
                text = f"subflow on {path.name} established"
                marks.append(Moment(t_us=round(subflow.established_us), cause=Cause.SUBFLOW_LATE, text=text))
    return tuple(sorted(marks, key=lambda mark: mark.t_us))


CARRIED = 0.9
"""A link that carried less than this share of a subflow's bytes does not carry the subflow."""


def with_tunnels(plan: Plan, tables: Tables) -> Plan:
    """Return the plan with paths for the connections inside tunnels, which have none.

    The plan does not know the addresses of a tunnel. The counters of the links show the path: it is the one between
    the two hosts whose first link carried as much as the subflow sent, at the same time.
    """
    if not any(_is_in_tunnel(flow) for flow in plan.flows):
        return plan
    flows = tuple(
        _with_paths_below(plan, tables, flow) if _is_in_tunnel(flow) else flow for flow in plan.flows
    )
    return plan.model_copy(update={"flows": flows})


def _is_in_tunnel(flow: Flow) -> bool:
    return isinstance(flow.application, Connection) and not flow.paths


def _with_paths_below(plan: Plan, tables: Tables, flow: Flow) -> Flow:
    peers = peers_between(plan, *(end.netns for end in flow.ends))
    if peers is None:
        return flow
    rows = tables["subflows"].filter((pl.col("flow") == flow.carrier) & (pl.col("side") == flow.sender))
    paths: dict[str, Path] = {}
    for _, part in rows.sort("t_us").group_by("subflow", maintain_order=True):
        path = _path_below(part, tables["links"], peers.paths)
        if path is None:
            continue
        first = part.row(0, named=True)
        addresses = (first["local_address"], first["remote_address"])
        client, server = addresses if flow.sender == "client" else addresses[::-1]
        name = f"{path.name} (tunnel)"
        name = name if name not in paths else f"{name} {len(paths) + 1}"
        paths[name] = path.model_copy(
            update={"name": name, "client_address": client, "server_address": server}
        )
    return flow.model_copy(update={"paths": tuple(paths.values())})


def _path_below(part: pl.DataFrame, links: pl.DataFrame, paths: Sequence[Path]) -> Path | None:
    """Return the path whose first link correlates best with a subflow's bytes, among those that carried enough."""
    sent = part.select("t_us", "sent_bytes").drop_nulls()
    if sent.height < 2:
        return None
    edges = sent["t_us"].to_numpy().astype(float)
    sent_bytes = np.diff(sent["sent_bytes"].to_numpy().astype(float))
    best: tuple[float, Path | None] = (-2.0, None)
    for path in paths:
        samples = links.filter(pl.col("link") == path.forward[0]).select("t_us", "sent_bytes").drop_nulls()
        if samples.is_empty():
            continue
        carried = np.diff(np.interp(edges, samples["t_us"].to_numpy(), samples["sent_bytes"].to_numpy()))
        if carried.sum() < CARRIED * sent_bytes.sum():
            continue
        steady = not sent_bytes.std() or not carried.std()
        correlation = -1.0 if steady else float(np.corrcoef(sent_bytes, carried)[0, 1])
        if correlation > best[0]:
            best = (correlation, path)
    return best[1]
