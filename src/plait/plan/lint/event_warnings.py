"""Findings about events of hosts that come too late to have an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.cautions import Code
from plait.plan.lint.finding import LintFinding
from plait.plan.model.mptcp import AddEndpoint, SetLimits, SetSysctl
from plait.plan.network.sysctls import CONGESTION_CONTROL, SCHEDULER
from plait.scenario.fields.events import host_happenings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.model.plan import Event, Plan
    from plait.scenario import Scenario

_BY_SOCKET = {SCHEDULER: "scheduler", CONGESTION_CONTROL: "congestion_control"}


def lint(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield the findings in the order of the events."""
    happenings = iter(host_happenings(scenario.events))
    for event in plan.events:
        (action, *_) = event.actions or (None,)
        if not event.name.startswith(("endpoint_", "limits_", "sysctl_")):
            continue
        where = next(happenings).where
        if _connects_later(plan, event):
            continue
        if isinstance(action, SetSysctl) and action.path in _BY_SOCKET:
            field = _BY_SOCKET[action.path]
            message = (
                f"no flow connects from there after {event.t_us / 1e6:g} s, and a connection keeps the {field} "
                "that it began with"
            )
            remedy = f"use an earlier time, or set {field} of the flow or of the host"
        elif isinstance(action, SetLimits) and not _endpoint_comes_later(plan, event):
            message = (
                f"no flow connects from there after {event.t_us / 1e6:g} s, and no event adds an endpoint: a limit by "
                "itself neither closes nor opens a subflow"
            )
            remedy = "use an earlier time; to close a subflow, remove its endpoint"
        else:
            continue
        yield LintFinding(Code.TOO_LATE, event.subject, message, remedy, where)


def _connects_later(plan: Plan, event: Event) -> bool:
    """Return whether a flow connects from the host at that time or later, or may do so."""
    flows = (flow for flow in plan.flows if event.subject in (flow.client.netns, flow.server.netns))
    return any(flow.after or flow.start_us >= event.t_us for flow in flows)


def _endpoint_comes_later(plan: Plan, event: Event) -> bool:
    later = (other for other in plan.events if other.t_us >= event.t_us)
    return any(isinstance(action, AddEndpoint) for other in later for action in other.actions)
