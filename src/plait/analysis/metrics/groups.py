"""Groups of flows that the scenario names: the mean goodput of the flows of each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plait.plan.model.plan import Flow, Plan

MEAN = ".mean_goodput_bps"
STEADY = ".mean_steady_goodput_bps"


def group_metrics(plan: Plan, metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the mean goodput of the flows of each group, and of their steady goodput where a window is measured.

    `metrics` has those of the flows. None where a flow of the group has none.
    """
    groups: dict[str, list[Flow]] = {}
    for flow in plan.flows:
        if flow.group is not None:
            groups.setdefault(flow.group, []).append(flow)
    endings = ((MEAN, "goodput_bps"), (STEADY, "steady_goodput_bps"))[: 1 if plan.measure is None else 2]
    means: dict[str, float | None] = {}
    for group, flows in groups.items():
        for ending, name in endings:
            prefixes = [f"{flow.name}." if len(plan.flows) > 1 else "" for flow in flows]
            values = [metrics.get(f"{prefix}{name}") for prefix in prefixes]
            measured = [value for value in values if value is not None]
            means[f"{group}{ending}"] = (
                sum(measured) / len(measured) if len(measured) == len(values) else None
            )
    return means


def group_names(metrics: Iterable[str]) -> dict[str, str]:
    """Return the metric of each group by the group's name: the steady goodput if there is one."""
    names = {}
    for name in metrics:
        for ending in (MEAN, STEADY):
            if name.endswith(ending):
                names[name.removesuffix(ending)] = name
    return names
