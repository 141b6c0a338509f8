"""Whether a trial's plan leaves anything to chance.

The kernel draws ports, initial sequence numbers, tokens and hash seeds on its own. These differ from seed to seed
in any trial, and seldom change its results (see docs/reference/scenario.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.plan.model.links import EFFECTS, ChangeLink, LinkDirection
from plait.plan.model.plan import Plan
from plait.plan.model.qdiscs import PlaitRed, Red

DRAWN = ("jitter_ns", "loss_ratio", "gemodel", *EFFECTS)


def nothing_drawn(first: Plan, second: Plan) -> bool:
    """Return whether the plans of two seeds of a case are equal, and draw no random number.

    Programs and a person at a prompt may draw random numbers, so plans with them never qualify.
    """
    if first.programs or first.pause or any(map(_draws, _directions(first))):
        return False
    return _without_seeds(first) == _without_seeds(second)


def _directions(plan: Plan) -> Iterator[LinkDirection]:
    """Yield the conditions of each direction, at the start and after events."""
    for link in plan.links:
        yield from link.directions
    for event in plan.events:
        for action in event.actions:
            if isinstance(action, ChangeLink):
                yield action.direction


def _draws(direction: LinkDirection) -> bool:
    drawn = any(getattr(direction, name) for name in DRAWN)
    return drawn or isinstance(direction.manager, (Red, PlaitRed))


def _without_seeds(plan: Plan) -> Plan:
    """Return the plan with 0 for the seeds of what draws no random number."""
    links = tuple(
        link.model_copy(
            update={"directions": tuple(side.model_copy(update={"seed": 0}) for side in link.directions)}
        )
        for link in plan.links
    )
    flows = tuple(flow.model_copy(update={"application": flow.application.unseeded()}) for flow in plan.flows)
    return plan.model_copy(update={"seed": 0, "links": links, "flows": flows})
