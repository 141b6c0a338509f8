"""Links: what each direction of them does to packets."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plait.scenario.parts import Delay, Part, Whole
from plait.units import Queue, Rate, Ratio


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
