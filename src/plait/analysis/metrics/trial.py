"""The metrics of one trial, from its plan and tables. Null where something could not be measured, never zero.

`docs/reference/results.md` lists every metric with its unit, its formula and the formula's source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import polars as pl

from plait.analysis.by_flow import SenderSubflow, columns_of, divided, sender_subflows
from plait.analysis.gaps import part
from plait.analysis.metrics.groups import PERCENTILES, group_metrics
from plait.analysis.metrics.ideal import (
    capped_goodput_bps,
    ideal_goodput_bps,
    single_path_goodputs_bps,
    slowdown,
)
from plait.analysis.metrics.joint_ideal import joint_goodput_bps
from plait.analysis.metrics.layers import layer_metrics
from plait.analysis.metrics.messages import message_metrics
from plait.analysis.metrics.path_shares import share_metrics
from plait.analysis.metrics.programs import flow_prefix, is_control, program_metrics
from plait.analysis.metrics.users import Rows, finished_span, foreground, goodput_bps, may_compare, users
from plait.analysis.metrics.windows import second_subflow_s, steady_goodput_bps
from plait.analysis.queueing import queue_metrics
from plait.dataset.model import Tables
from plait.metrics import CATALOGUE, Metrics, all_known, nearest_rank
from plait.metrics.metric import TrialData
from plait.plan.model.plan import Flow, Plan
from plait.traffic.kinds import COMPLETED, GREEDY
from plait.traffic.program import Connection
from plait.traffic.transfer import Transfer

SYN_AND_FIN = 2
"""bytes_acked of tcp_info counts SYN and FIN as a byte each: a subflow that acked no more carried no data."""


def trial_metrics(plan: Plan, tables: Tables) -> Metrics:
    """Return every metric of one trial by name; names end in the unit, see the reference for each."""
    tables = divided(tables)
    flows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    parts: dict[str, Callable[[], Metrics]] = {
        "goodput": lambda: _goodputs(plan, flows),
        "subflows": lambda: _subflow_metrics(plan, tables, flows),
        "the split over paths": lambda: share_metrics(plan, tables),
        "queues": lambda: queue_metrics(plan, tables),
        "steady goodput and second subflows": lambda: _windows(plan, tables, flows),
        "messages": lambda: message_metrics(plan, tables),
        "layers": lambda: layer_metrics(plan, tables, flows),
        "the catalogue": lambda: computed_metrics(plan, tables, flows),
        "programs": lambda: program_metrics(plan, tables),
        "single flows": lambda: _flow_metrics(plan, flows),
    }
    metrics: Metrics = {}
    for name, compute in parts.items():
        metrics |= part(f"metrics of {name}", compute, {})
    metrics |= part("metrics of groups", lambda: group_metrics(plan, metrics), {})
    return metrics | dict.fromkeys(_unknown(plan, metrics))


def _unknown(plan: Plan, names: Iterable[str]) -> Iterator[str]:
    """Yield the metrics that need samples over time of a flow that has only its last rows."""
    owners = {
        owner
        for flow in plan.flows
        if flow.unsampled
        for owner in (flow.name, flow.group, None if flow.background else "")
    }
    for name in names if owners else ():
        owner, _, last = name.rpartition(".")
        if owner in owners and last in CATALOGUE and CATALOGUE[last].over_time:
            yield name


def computed_metrics(plan: Plan, tables: Tables, rows: Rows) -> Metrics:
    """Return the metrics whose entry in the catalogue has a function: of the trial, and of each of several flows.

    A trial has those of its kinds of foreground flows. `rows` are those of the table `flows`, by flow.
    """
    metrics: Metrics = {}
    probes = tables.get("probes")
    has_probes = probes is not None and not probes.is_empty()
    for metric in CATALOGUE.values():
        if metric.compute is None:
            continue
        asked = [flow for flow in foreground(plan) if flow.measured_as in metric.traffic]
        owners: dict[str, list[Flow]] = {}
        if "trial" in metric.owners and (asked or (has_probes and "probe" in metric.traffic)):
            owners[metric.name] = asked
        if "FLOW" in metric.owners and len(plan.flows) > 1:
            named = (flow for flow in _planned(plan) if flow.measured_as in metric.traffic)
            owners |= {f"{flow.name}.{metric.name}": [flow] for flow in named}
        for name, flows in owners.items():
            compute = partial(
                metric.compute, TrialData(plan, flows, tables, rows, partial(columns_of, tables))
            )
            metrics[name] = part(f"the metric {name}", compute, None)
    return metrics


def _goodputs(plan: Plan, flows: Rows) -> Metrics:
    """Return what all flows together get, and how that compares with what the links allow."""
    asked = foreground(plan)
    goodput = goodput_bps(asked, flows)
    alone = plan.flows[0] if len(plan.flows) == 1 and plan.flows[0].measured_as in GREEDY else None
    ideal = ideal_goodput_bps(plan, alone) if alone is not None else None
    if len(plan.flows) > 1:
        ideal = joint_goodput_bps(plan)
    return {
        "goodput_bps": goodput,
        "ideal_goodput_bps": ideal,
        "efficiency": _part(goodput, ideal),
        "of_cap": _part(goodput, capped_goodput_bps(plan, alone) if alone is not None else None),
        "completion_s": completion_s(asked, flows),
        "aggregation_benefit": aggregation_benefit(plan, alone, goodput) if alone is not None else None,
        "best_path_ratio": best_path_ratio(plan, alone, goodput) if alone is not None else None,
        "jain_index": jain_index([goodput_bps(members, flows) for members in users(asked).values()])
        if may_compare(asked)
        else None,
    }


def _flow_metrics(plan: Plan, flows: Rows) -> Metrics:
    """Return what each flow gets, where there are several."""
    metrics: Metrics = {}
    if len(plan.flows) > 1:
        for flow in _planned(plan):
            metrics[f"{flow.name}.goodput_bps"] = goodput_bps([flow], flows)
            metrics[f"{flow.name}.completion_s"] = taken = completion_s([flow], flows)
            if isinstance(flow.application, Transfer):
                metrics[f"{flow.name}.slowdown"] = slowdown(plan, flow, taken)
    if slowdowns := all_known(metrics.get(f"{flow.name}.slowdown") for flow in foreground(plan)):
        slowdowns.sort()
        metrics |= {f"slowdown_{name}": nearest_rank(slowdowns, share) for name, share in PERCENTILES.items()}
    return metrics


def _part(goodput_bps: float | None, allowed_bps: float | None) -> float | None:
    """Return the goodput as a share of what is allowed."""
    return goodput_bps / allowed_bps if goodput_bps is not None and allowed_bps else None


def _windows(plan: Plan, tables: Tables, flows: Rows) -> Metrics:
    """Return the steady goodput if the scenario has a window, and the start of second subflows."""
    metrics: Metrics = {}
    asked = foreground(plan)
    if plan.measure is not None:
        metrics["steady_goodput_bps"] = steady_goodput_bps(plan.measure, asked, tables, flows)
        if len(plan.flows) > 1:
            metrics |= {
                f"{flow.name}.steady_goodput_bps": steady_goodput_bps(plan.measure, [flow], tables, flows)
                for flow in _planned(plan)
            }
    begun = [second_subflow_s(flow, tables, flows.get(flow.id)) for flow in asked if flow.multipath]
    measured = [seconds for seconds in begun if seconds is not None]
    metrics["second_subflow_s"] = sum(measured) / len(measured) if measured else None
    return metrics


def _planned(plan: Plan) -> list[Flow]:
    """Return the flows that have names of their own; connections of programs have none that lasts."""
    return [flow for flow in plan.flows if not isinstance(flow.application, Connection)]


def completion_s(asked: Sequence[Flow], flows: Rows) -> float | None:
    """Return seconds from the start of the first transfer to the last byte of the last one.

    None when there is no transfer, and when any transfer did not complete.
    """
    spans = all_known(finished_span(flows.get(flow.id)) for flow in asked if flow.measured_as in COMPLETED)
    return (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e6 if spans else None


def aggregation_benefit(plan: Plan, flow: Flow, goodput_bps: float | None) -> float | None:
    """Return the aggregation benefit of Kaspar and of Paasch et al. for a flow that is alone.

    With g the goodput, C_i what path i alone allows TCP, Cmax the greatest C_i and C what all paths allow together
    (their sum when they share no link, the maximum flow otherwise):

        (g - Cmax) / (C - Cmax)  if g >= Cmax,   (g - Cmax) / Cmax  otherwise

    1: all capacity is used; 0: as good as the best path; below 0: worse than it. The C_i are ideals from the plan,
    not measurements, so that the figure of a trial does not depend on what else the study ran. None for TCP, for
    unlimited paths, and when the paths together allow no more than the best alone.
    """
    singles = single_path_goodputs_bps(plan, flow)
    if not flow.multipath or goodput_bps is None or singles is None or flow.ideal_rate_bps is None:
        return None
    best = max(singles)
    best_rate = max(path.rate_bps or 0 for path in flow.paths)
    together = best * flow.ideal_rate_bps / best_rate
    if together <= best:
        return None
    return (goodput_bps - best) / ((together - best) if goodput_bps >= best else best)


def best_path_ratio(plan: Plan, flow: Flow, goodput_bps: float | None) -> float | None:
    """Return the goodput over what the best path alone allows TCP (Cmax above): 2 for two equal paths that are full.

    None for TCP and where a path has no limit.
    """
    singles = single_path_goodputs_bps(plan, flow)
    if not flow.multipath or goodput_bps is None or singles is None:
        return None
    return goodput_bps / max(singles)


def jain_index(goodputs: Sequence[float | None]) -> float | None:
    """Return Jain's fairness index (sum x)^2 / (n sum x^2) (DEC-TR-301, 1984) of the flows' goodputs.

    None with fewer than two flows, when one was not measured, and when nothing flowed.
    """
    values = all_known(goodputs) or []
    squares = sum(value * value for value in values)
    if len(values) < 2 or squares == 0:
        return None
    return sum(values) ** 2 / (len(values) * squares)


def _subflow_metrics(plan: Plan, tables: Tables, flows: Rows) -> Metrics:
    """Return the metrics of the senders' subflows: retransmissions, shares of paths, round-trip times."""
    used: list[float | None] = []
    carried: dict[str, dict[str, int]] = {}
    largest: list[float] = []
    multipath = any(flow.multipath for flow in plan.flows)
    for flow in plan.flows:
        if flow.transport == "udp":
            continue
        rows = sender_subflows(tables, flow, flows.get(flow.id, {}).get("end_us"))
        if (flow.multipath or not multipath) and not flow.background:
            used.append(_used(rows))
        by_path = _bytes_by_path(flow, rows)
        total = sum(by_path.values())
        if total == 0 or is_control(flow) or (multipath and not flow.multipath):
            continue
        if not flow.background:
            largest.append(max(by_path.values()) / total)
        counts = carried.setdefault(flow_prefix(plan, flow), {})
        for name, count in by_path.items():
            counts[name] = counts.get(name, 0) + count
    shares: Metrics = {
        f"{prefix}{name}.path_share": count / sum(counts.values())
        for prefix, counts in carried.items()
        for name, count in _in_plans_order(plan, counts)
    }
    rtt = _round_trips(plan, tables)
    return {
        "path_share_max": max(largest) if largest else None,
        "subflows_used": max((count for count in used if count is not None), default=None),
        "retransmits": _retransmits(plan, tables, flows),
        "reinjected_bytes": _reinjected(plan, tables),
        **rtt,
        **shares,
    }


def _retransmits(plan: Plan, tables: Tables, flows: Rows) -> float | None:
    """Return the segments that TCP sent again, over the sending sides of all connections.

    These are the last counters of each subflow. Those of bulk flows, which stop while data are in flight, are from the
    end of the flow.
    """
    sending: dict[tuple[int, str], list[Flow]] = {}
    for flow in plan.flows:
        if flow.transport != "udp" and not flow.background:
            sending.setdefault((flow.carrier, flow.sender), []).append(flow)
    counts = []
    for members in sending.values():
        ends = [flows.get(flow.id, {}).get("end_us") for flow in members if flow.measured_as == "bulk"]
        known = [end for end in ends if end is not None]
        end_us = max(known) if len(known) == len(members) else None
        rows = sender_subflows(tables, members[0], end_us)
        counts.append(_known_sum(row.retransmitted_segments for row in rows))
    return _sum(counts)


def _in_plans_order(plan: Plan, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the bytes of each path; paths between programs have the order of the plan in both directions."""
    names = [path.name for peers in plan.peers for path in peers.paths]
    return sorted(counts.items(), key=lambda item: names.index(item[0]) if item[0] in names else len(names))


def _used(rows: Sequence[SenderSubflow]) -> float | None:
    """Return how many subflows carried data."""
    acked = [row.acked_bytes for row in rows if row.acked_bytes is not None]
    return float(sum(count > SYN_AND_FIN for count in acked)) if acked else None


def _bytes_by_path(flow: Flow, rows: Sequence[SenderSubflow]) -> dict[str, int]:
    """Return acknowledged payload bytes by path, planned paths first, those that carried nothing included."""
    if all(row.acked_bytes is None for row in rows):
        return {}
    counts = {path.name: 0 for path in flow.paths}
    for row in rows:
        acked = row.acked_bytes or 0
        counts[row.path] = counts.get(row.path, 0) + (acked if acked > SYN_AND_FIN else 0)
    return counts


def _round_trips(plan: Plan, tables: Tables) -> Metrics:
    """Return median and maximum of the smoothed round-trip time over all samples of sending sides."""
    sending = {(flow.carrier, flow.sender) for flow in foreground(plan)}
    samples: list[int] = []
    for carrier, side in sending:
        rtts, counts = columns_of(tables, "subflows", carrier, side, "rtt_us", "acked_bytes")
        pairs = zip(rtts, counts, strict=True)
        samples += [rtt for rtt, acked in pairs if None not in (rtt, acked) and acked > SYN_AND_FIN]
    if not samples:
        return {"rtt_median_us": None, "rtt_max_us": None}
    return {"rtt_median_us": pl.Series(samples).quantile(0.5, "linear"), "rtt_max_us": float(max(samples))}


def _reinjected(plan: Plan, tables: Tables) -> float | None:
    """Return bytes that MPTCP sent again on another subflow, over all MPTCP flows."""
    counts: list[float | None] = []
    for flow in plan.flows:
        if flow.transport == "mptcp" and not flow.background:
            (samples,) = columns_of(tables, "connections", flow.carrier, flow.sender, "retransmitted_bytes")
            values = [count for count in samples if count is not None]
            counts.append(float(max(values)) if values else None)
    return _sum(counts)


def _known_sum(values: Iterable[int | None]) -> float | None:
    """Return the sum of the known values, None when there are none."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum, None when there is nothing to add or a part of it is not known."""
    known = all_known(values)
    return sum(known) if known else None
