"""The changes of links that a plan's events make, with the conditions before and after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plait.plan.model.links import ChangeLink, LinkDirection
from plait.plan.model.plan import ChangeQdisc, Event, Plan
from plait.plan.model.qdiscs import Tbf


class LinkChange(NamedTuple):
    """A direction's conditions before and after an event."""

    event: Event
    before: LinkDirection
    now: LinkDirection

    @property
    def moves_rate(self) -> bool:
        """Return whether the rate, its token bucket or the queue in front of it differ."""
        return any(getattr(self.before, name) != getattr(self.now, name) for name in _OF_RATE)


_OF_RATE = ("rate_bps", "baseline_bps", "burst_bytes", "queue_packets", "queue_bytes")


def link_changes(plan: Plan) -> Iterator[LinkChange]:
    """Yield all changes in the order of time. Of plans of earlier versions, these are the changes of a rate."""
    current = dict(plan.directions)
    names = {side.ifname: side.name for side in current.values()}
    for event in plan.events:
        for action in event.actions:
            if isinstance(action, ChangeLink):
                now = action.direction
            elif isinstance(action, ChangeQdisc) and isinstance(action.qdisc.options, Tbf):
                tbf = action.qdisc.options
                update: dict[str, object] = {"rate_bps": tbf.peak_bps or tbf.rate_bps}
                if tbf.peak_bps is not None:
                    update |= {"baseline_bps": tbf.rate_bps, "burst_bytes": tbf.burst_bytes}
                now = current[names[action.qdisc.ifname]].model_copy(update=update)
            else:
                continue
            yield LinkChange(event, current[now.name], now)
            current[now.name] = now
