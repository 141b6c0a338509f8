"""Links: what each direction of them does to packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plait.scenario.parts import Delay, Part, Whole
from plait.units import Queue, Rate, Ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

ETHERNET_BYTES = 14


class Conditions(Part):
    """What a direction of a link does to packets. Not given: no limit, no delay, no loss."""

    rate: Rate | None = None
    delay: Delay | None = None
    """One way."""
    jitter: Delay | None = None
    """Each packet's delay is uniform within delay +- jitter; it can overtake others."""
    loss: Ratio | None = None
    queue: Queue | None = None
    """Drop-tail, in front of the rate. Default: the greater of 100 packets and one bandwidth-delay product."""


class Link(Conditions):
    """A link; `forward` (from the first node of its name to the second) and `backward` replace single conditions."""

    mtu: Annotated[Whole, Field(ge=576, le=65535)] = 1500
    forward: Conditions | None = None
    backward: Conditions | None = None

    def conditions(self, *, forward: bool) -> Conditions:
        """The conditions of one direction."""
        own = self.forward if forward else self.backward
        common = {name: getattr(self, name) for name in Conditions.model_fields}
        if own is not None:
            common |= {name: getattr(own, name) for name in own.model_fields_set}
        return Conditions.model_construct(**common)


def mistakes_of(conditions: Conditions, mtu: int) -> Iterator[tuple[str, str]]:
    """What makes no sense together in one direction of a link: (field, what is wrong; what would be right)."""
    queue, frame = conditions.queue, mtu + ETHERNET_BYTES
    if queue is not None and conditions.rate is None:
        yield "queue", "a link without a rate has no queue; give a rate as well"
    elif queue is not None and queue.unit == "B" and queue.amount < frame:
        yield "queue", f"{queue} is less than one frame ({frame} bytes); give at least that"
    if conditions.jitter and (conditions.delay or 0) < conditions.jitter:
        yield "jitter", "jitter is greater than the delay; at most the delay makes sense"
