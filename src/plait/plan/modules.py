"""The kernel modules that a plan needs: those with a scheduler or a congestion control that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plait.plan.model.mptcp import SetSysctl
from plait.plan.model.plan import Module, Plan

_NAMES = ("net/mptcp/scheduler", "net/ipv4/tcp_congestion_control")
"""Settings whose value is the name of an algorithm."""


def with_modules(plan: Plan, additions: Mapping[str, Module]) -> Plan:
    """Return the plan with the kernel modules that it needs; `additions` maps the names of algorithms to their modules.

    Only these become part of the plan, and so of the trial's identity: an addition does not affect other
    trials.
    """
    needed = {additions[name].name: additions[name] for name in algorithms_of(plan) if name in additions}
    if not needed:
        return plan
    machine = plan.machine.model_copy(update={"modules": tuple(needed[name] for name in sorted(needed))})
    return plan.model_copy(update={"machine": machine})


def algorithms_of(plan: Plan) -> Iterator[str]:
    """Yield every scheduler and congestion control that the plan names."""
    settings = [plan.machine.sysctls, *(space.sysctls for space in plan.network.namespaces)]
    for path, value in (pair for pairs in settings for pair in pairs):
        if path in _NAMES:
            yield value
    for flow in plan.flows:
        yield from filter(None, (flow.socket.scheduler, flow.socket.congestion_control))
    for action in (action for event in plan.events for action in event.actions):
        if isinstance(action, SetSysctl) and action.path in _NAMES:
            yield action.value
