"""Links: what each direction of them does to packets, and the token bucket that interfaces of a node can share."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from plait.frames import DEFAULT_MTU
from plait.scenario.check.conditions import condition_mistakes
from plait.scenario.fields.conditions import AqmField, Bucket, JitterField, LossField
from plait.scenario.fields.middlebox import Middlebox
from plait.scenario.fields.parts import Delay, Part, Whole
from plait.scenario.read.traces import TraceSpec
from plait.units import Queue, Rate, Ratio


class Conditions(Part):
    """What a direction of a link does to packets. Not given: no limit, no delay, no loss."""

    rate: Rate | None = None
    delay: Delay | None = None
    """One way."""
    jitter: JitterField | None = None
    """Each packet's delay is uniform within delay ± jitter, or has a distribution; packets stay in order."""
    loss: LossField | None = None
    """Random loss: a ratio, bursts, or a Gilbert-Elliott model."""
    reorder: Ratio | None = None
    """The share of packets that have no delay, and so overtake those under way."""
    duplicate: Ratio | None = None
    """The share of packets that arrive twice."""
    corrupt: Ratio | None = None
    """The share of packets in which one bit is flipped."""
    queue: Queue | None = None
    """In front of the rate. Default: the greater of 100 packets and one bandwidth-delay product."""
    aqm: AqmField | None = None
    """How the queue is managed. Default: drop-tail."""
    bucket: Bucket | None = None
    """A token bucket: `rate` as long as there are tokens, then its baseline."""
    trace: TraceSpec | None = None
    """A recorded trace that the direction follows: of opportunities to deliver packets, or of rate, delay and loss."""


class Link(Conditions):
    """A link; `forward` (from the first node of its name to the second) and `backward` replace single conditions."""

    mtu: Annotated[Whole, Field(ge=576, le=65535)] = DEFAULT_MTU
    forward: Conditions | None = None
    backward: Conditions | None = None
    middlebox: Middlebox | None = None

    def conditions(self, *, forward: bool) -> Conditions:
        """The conditions of one direction."""
        own = self.forward if forward else self.backward
        common = {name: getattr(self, name) for name in Conditions.model_fields}
        if own is not None:
            common |= {name: getattr(own, name) for name in own.model_fields_set}
        return Conditions.model_construct(**common)

    @cached_property
    def mistakes(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """What its conditions cannot mean together: (field below the link, what is wrong; what would be right)."""
        met: dict[tuple[tuple[str, ...], str], None] = {}
        for side, own in (("forward", self.forward), ("backward", self.backward)):
            for fields, what in condition_mistakes(self.conditions(forward=side == "forward"), self.mtu):
                given = own is not None and fields[0] in own.model_fields_set
                met[((side, *fields) if given else fields), what] = None
        return tuple(met)


class SharedBucket(Bucket):
    """A token bucket that all or some interfaces of a node take from, as a cloud instance has it."""

    peak: Rate
    """Of all these interfaces together, as long as there are tokens."""
    queue: Queue | None = None
    """In front of the bucket. Default: the greater of 100 packets and one bandwidth-delay product of the peak."""
    links: Annotated[list[str], Field(min_length=1)] | None = None
    """The links whose interfaces share it. Default: all of the node."""
    direction: Literal["out", "in", "each", "together"] = "each"
    """What it limits: what the node sends, what it receives, each with a bucket of its own, or the sum of both."""
