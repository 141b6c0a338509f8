"""Groups of flows that the scenario names: mean goodput, completion times and slowdowns of the flows of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plait.metrics import Metrics, all_known, nearest_rank
from plait.plan.model.plan import Flow, Plan
from plait.traffic.transfer import Transfer

MEAN = ".mean_goodput_bps"
STEADY = ".mean_steady_goodput_bps"
PERCENTILES = {"p50": 0.5, "p99": 0.99}


def group_metrics(plan: Plan, metrics: Mapping[str, float | None]) -> Metrics:
    """Return the means and percentiles of each group's flows; None where a flow of the group has no value.

    `metrics` has those of the flows. Steady goodput is that of a measured window; completion times and slowdowns are
    of groups of transfers.
    """
    groups: dict[str, list[Flow]] = {}
    for flow in plan.flows:
        if flow.group is not None:
            groups.setdefault(flow.group, []).append(flow)
    of_groups: Metrics = {}
    for group, flows in groups.items():
        prefixes = [f"{flow.name}." if len(plan.flows) > 1 else "" for flow in flows]

        def of_every_flow(name: str, prefixes: list[str] = prefixes) -> list[float]:
            return sorted(all_known(metrics.get(f"{prefix}{name}") for prefix in prefixes) or [])

        of_groups[f"{group}{MEAN}"] = _mean(of_every_flow("goodput_bps"))
        if plan.measure is not None:
            of_groups[f"{group}{STEADY}"] = _mean(of_every_flow("steady_goodput_bps"))
        if all(isinstance(flow.application, Transfer) for flow in flows):
            times, slowdowns = of_every_flow("completion_s"), of_every_flow("slowdown")
            of_groups[f"{group}.mean_completion_s"] = _mean(times)
            of_groups[f"{group}.completion_p99_s"] = nearest_rank(times, 0.99)
            for name, share in PERCENTILES.items():
                of_groups[f"{group}.slowdown_{name}"] = nearest_rank(slowdowns, share)
    return of_groups


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def group_names(metrics: Iterable[str]) -> dict[str, str]:
    """Return the metric of each group by the group's name: the steady goodput if there is one."""
    names = {}
    for name in metrics:
        for ending in (MEAN, STEADY):
            if name.endswith(ending):
                names[name.removesuffix(ending)] = name
    return names
