"""Links: what each direction of them does to packets, and the token bucket that interfaces of a node can share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plait.frames import DEFAULT_MTU, MAX_PACKET, MIN_MTU
from plait.scenario.fields.conditions import Bucket, Conditions
from plait.scenario.fields.middlebox import MiddleboxSpec
from plait.scenario.fields.parts import Whole
from plait.units import Queue, Rate


class LinkSpec(Conditions):
    """A link; `forward` (from the first node of its name to the second) and `backward` replace single conditions."""

    mtu: Annotated[Whole, Field(ge=MIN_MTU, le=MAX_PACKET)] = DEFAULT_MTU
    forward: Conditions | None = None
    backward: Conditions | None = None
    middlebox: MiddleboxSpec | None = None

    def conditions(self, *, forward: bool) -> Conditions:
        """The conditions of one direction."""
        direction = self.forward if forward else self.backward
        common = {name: getattr(self, name) for name in Conditions.model_fields}
        if direction is not None:
            common |= {name: getattr(direction, name) for name in direction.model_fields_set}
        return Conditions.model_construct(**common)


class SharedBucketSpec(Bucket):
    """A token bucket that all or some interfaces of a node take from, as a cloud instance has it."""

    peak: Rate
    """Of all these interfaces together, as long as there are tokens."""
    queue: Queue | None = None
    """In front of the bucket. Default: the greater of 100 packets and one bandwidth-delay product of the peak."""
    links: Annotated[list[str], Field(min_length=1)] | None = None
    """The links whose interfaces share it. Default: all of the node."""
    direction: Literal["out", "in", "each", "together"] = "each"
    """What it limits: what the node sends, what it receives, each with a bucket of its own, or the sum of both."""
