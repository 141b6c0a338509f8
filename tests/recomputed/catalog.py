"""The catalogue names the function that recomputes each metric of `summary.json`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import ceilings
import exchanges
import goodputs
import spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from recorded import Flow, Trial

    OfStudy = Callable[[Trial], float | None]
    OfFlow = Callable[[Trial, Flow], float | None]
    OfFlows = Callable[[Trial, list[Flow]], float | None]

STUDY: dict[str, OfStudy] = {
    "goodput_bps": goodputs.goodput,
    "steady_goodput_bps": goodputs.steady_goodput,
    "completion_s": goodputs.completion_s,
    "slowdown_p50": ceilings.slowdown(0.5),
    "slowdown_p99": ceilings.slowdown(0.99),
    "jain_index": goodputs.jain_index,
    "ideal_goodput_bps": ceilings.ideal_goodput,
    "efficiency": ceilings.efficiency,
    "aggregation_benefit": ceilings.aggregation_benefit,
    "best_path_ratio": ceilings.best_path_ratio,
    "of_cap": ceilings.of_cap,
    "path_share_max": spread.path_share_max,
    "path_share_window_max": spread.path_share_window_max,
    "path_switches_per_s": spread.path_switches_per_s,
    "path_run_max_bytes": spread.path_run_max_bytes,
    "duplicate_bytes": spread.duplicate_bytes,
    "out_of_order_max_bytes": spread.out_of_order_max_bytes,
    "out_of_order_mean_bytes": spread.out_of_order_mean_bytes,
    "subflows_used": spread.subflows_used,
    "retransmits": spread.retransmits,
    "reinjected_bytes": spread.reinjected_bytes,
    "second_subflow_s": spread.second_subflow_s,
    "stall_max_s": spread.longest_stall,
    "rtt_median_us": spread.rtt_median_us,
    "rtt_max_us": spread.rtt_max_us,
    "queue_mean_bytes": exchanges.queue_mean_bytes,
    "queue_max_bytes": exchanges.queue_max_bytes,
    "queueing_delay_p50_us": exchanges.queueing_delay(0.50),
    "queueing_delay_p95_us": exchanges.queueing_delay(0.95),
    "queueing_delay_p99_us": exchanges.queueing_delay(0.99),
    "dropped_packets": exchanges.dropped_packets,
    "iperf3_udp_loss_ratio": exchanges.iperf3_udp_loss_ratio,
    "iperf3_udp_jitter_us": exchanges.iperf3_udp_jitter_us,
    "probe_rtt_p50_us": exchanges.probe_rtt(0.50),
    "probe_rtt_p95_us": exchanges.probe_rtt(0.95),
    "probe_loss_ratio": exchanges.probe_loss_ratio,
}
QUEUEING_DELAYS = {
    "queueing_delay_p50_us": 0.50,
    "queueing_delay_p95_us": 0.95,
    "queueing_delay_p99_us": 0.99,
}
PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
EXCHANGED: dict[str, OfFlows] = {
    "page_load_s": exchanges.page_load_s,
    "page_load_p95_s": exchanges.page_load_p95_s,
    "page_load_max_s": exchanges.page_load_max_s,
    "udp_loss_ratio": exchanges.udp_loss_ratio,
    "udp_jitter_us": exchanges.udp_jitter_us,
    **{
        f"message_delay_{p}_us": exchanges.delay(exchanges.MESSAGES, share)
        for p, share in PERCENTILES.items()
    },
    **{
        f"request_latency_{p}_us": exchanges.delay(exchanges.REQUESTS, share)
        for p, share in PERCENTILES.items()
    },
    **{f"udp_delay_{p}_us": exchanges.delay(exchanges.PACKETS, share) for p, share in PERCENTILES.items()},
}
OF_PAGES = ("page_load_p95_s", "page_load_max_s")
"""Metrics of all pages together, which no single flow has."""
FLOW: dict[str, OfFlow] = {
    "goodput_bps": goodputs.flow_goodput,
    "steady_goodput_bps": goodputs.flow_steady_goodput,
    "completion_s": goodputs.flow_completion_s,
    "slowdown": ceilings.flow_slowdown,
    "stall_max_s": spread.flow_stall,
}
GROUP = {
    "mean_goodput_bps": goodputs.group_goodput,
    "mean_steady_goodput_bps": goodputs.group_steady_goodput,
    "mean_completion_s": goodputs.group_mean_completion,
    "completion_p99_s": goodputs.group_completion_p99,
    "slowdown_p50": ceilings.group_slowdown(0.5),
    "slowdown_p99": ceilings.group_slowdown(0.99),
}
PROGRAM = {"goodput_bps": goodputs.program_goodput, "duration_s": goodputs.program_duration}


def recompute(name: str, trial: Trial) -> float | None:
    """Return the value of a metric of one trial. A name that nothing here recomputes raises KeyError."""
    if name in STUDY:
        return STUDY[name](trial)
    if name in EXCHANGED:
        return EXCHANGED[name](trial, trial.foreground)
    if observed := re.fullmatch(r"observed_(\d)path_share", name):
        return spread.observed(trial, int(observed[1]))
    owner, _, metric = name.rpartition(".")
    if metric in QUEUEING_DELAYS:
        return exchanges.queueing_delay(QUEUEING_DELAYS[metric], owner)(trial)
    if metric == "path_share":
        return of_path(trial, owner)
    flows = [flow for flow in trial.flows if flow.name == owner]
    if flows:
        return FLOW[metric](trial, flows[0]) if metric in FLOW else EXCHANGED[metric](trial, flows)
    if owner in {program["name"] for program in trial.plan.get("programs", ())}:
        return PROGRAM[metric](trial, owner) if metric in PROGRAM else of_figure(trial, owner, metric)
    if owner in {flow.plan["group"] for flow in trial.flows} - {None}:
        return GROUP[metric](trial, owner)
    raise KeyError(name)


def of_figure(trial: Trial, program: str, metric: str) -> float | None:
    if not metric.startswith("iperf3_"):
        raise KeyError(metric)
    return goodputs.program_figure(trial, program, metric)


def of_path(trial: Trial, owner: str) -> float | None:
    """`PATH.path_share`, or with several flows `FLOW.PATH.path_share`."""
    for flow in trial.flows:
        for path in flow.plan["paths"]:
            if owner == f"{flow.name}.{path['name']}":
                return spread.flow_path_share(trial, flow, path["name"])
    if owner in {path["name"] for flow in trial.flows for path in flow.plan["paths"]}:
        return spread.path_share(trial, owner)
    raise KeyError(owner)
