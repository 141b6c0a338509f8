"""Whether a trial's plan leaves anything to chance.

The kernel draws ports, initial sequence numbers, tokens and hash seeds on its own. These differ from seed to seed
in any trial, and seldom change its results (see docs/reference/scenario.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.links.qdiscs import reseeded
from plait.plan.model.applications import OnOff, Request
from plait.plan.model.plan import ChangeQdisc
from plait.plan.model.qdiscs import Netem, PlaitRed, Red

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.model.plan import Plan

NETEM_DRAWS = ("jitter_ns", "loss_ratio", "gemodel", "duplicate_ratio", "reorder_ratio", "corrupt_ratio")


def nothing_drawn(first: Plan, second: Plan) -> bool:
    """Return whether the plans of two seeds of a case are equal, and draw no random number.

    Programs and a person at a prompt may draw random numbers, so plans with them never qualify.
    """
    if first.programs or first.pause or any(map(_draws, _options(first))):
        return False
    return _without_seeds(first) == _without_seeds(second)


def _options(plan: Plan) -> Iterator[object]:
    """Yield the options of each qdisc, at the start and after events."""
    for qdisc in plan.network.qdiscs:
        yield qdisc.options
    for event in plan.events:
        for action in event.actions:
            if isinstance(action, ChangeQdisc):
                yield action.qdisc.options


def _draws(options: object) -> bool:
    if isinstance(options, Netem):
        return any(getattr(options, name) for name in NETEM_DRAWS)
    return isinstance(options, (Red, PlaitRed))


def _without_seeds(plan: Plan) -> Plan:
    """Return the plan with 0 for the seeds of what draws no random number."""
    qdiscs = tuple(reseeded(qdisc, 0) for qdisc in plan.network.qdiscs)
    flows = tuple(
        flow.model_copy(update={"application": flow.application.model_copy(update={"seed": 0})})
        if isinstance(flow.application, (OnOff, Request)) and not _gaps_drawn(flow.application)
        else flow
        for flow in plan.flows
    )
    network = plan.network.model_copy(update={"qdiscs": qdiscs})
    return plan.model_copy(update={"seed": 0, "network": network, "flows": flows})


def _gaps_drawn(application: OnOff | Request) -> bool:
    gaps = (application.on, application.off) if isinstance(application, OnOff) else (application.gap,)
    return any(gap is not None and gap.exponential for gap in gaps)
