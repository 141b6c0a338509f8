"""Links with the conditions of each direction, and the token bucket that interfaces of a node can share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plait.frames import DEFAULT_MTU, MAX_PACKET, MIN_MTU
from plait.parts import Label, Listed, Part, Whole
from plait.scenario.fields.conditions import Bucket, Conditions
from plait.units import Queue, Rate

SEGMENTS = ("syn", "synack", "ack", "data")


class MiddleboxSpec(Part):
    """A box in a link that changes passing TCP segments."""

    strip: Annotated[list[Literal["syn", "synack", "ack", "data", "all"]], Field(max_length=5), Listed] = []
    """Segments that lose their MPTCP options: SYN, SYN-ACK, pure ACKs (`ack`), segments with payload (`data`)."""
    rewrite: bool = False
    """Whether to change a byte in the payload of every longer segment, like a gateway that edits addresses in it."""
    direction: Literal["both", "forward", "backward"] = "both"
    """Affected direction; `forward` is from the first node of the link's name to the second."""

    @model_validator(mode="after")
    def _require_an_action(self) -> MiddleboxSpec:
        if not self.strip and not self.rewrite:
            raise ValueError("the middlebox does nothing; write for example strip: [syn], or rewrite: true")
        return self

    @property
    def segments(self) -> tuple[str, ...]:
        """The kinds of segments to strip, each once, in the order of a connection."""
        return tuple(kind for kind in SEGMENTS if kind in self.strip or "all" in self.strip)


class LinkSpec(Conditions):
    """A link; `forward` (from the first node of its name to the second) and `backward` override conditions."""

    label: Label | None = None
    """Text that figures, tables and sentences show instead of its name."""
    mtu: Annotated[Whole, Field(ge=MIN_MTU, le=MAX_PACKET)] = DEFAULT_MTU
    """MTU of the interfaces at both ends, in bytes."""
    forward: Conditions | None = None
    """Conditions from the first node of the link's name to the second."""
    backward: Conditions | None = None
    """Conditions from the second node of the link's name to the first."""
    middlebox: MiddleboxSpec | None = None
    """Middlebox in the link."""

    def conditions(self, *, forward: bool) -> Conditions:
        """Return the conditions of one direction."""
        direction = self.forward if forward else self.backward
        common = {name: getattr(self, name) for name in Conditions.model_fields}
        if direction is not None:
            common |= {name: getattr(direction, name) for name in direction.model_fields_set}
        return Conditions.model_construct(**common)


class SharedBucketSpec(Bucket):
    """A token bucket that all or some interfaces of a node share, as in a cloud instance."""

    baseline: Rate
    """Fill rate of the bucket, which is the long-run rate."""
    peak: Rate
    """Rate of all these interfaces together while the bucket has tokens."""
    queue: Queue | None = None
    """Queue length at the bucket. Default: the greater of 100 packets and one bandwidth-delay product of the peak."""
    links: Annotated[list[str], Field(min_length=1)] | None = None
    """Links whose interfaces share the bucket. Default: all links of the node."""
    direction: Literal["out", "in", "each", "together"] = "each"
    """Limited traffic: sent (`out`), received (`in`), both with a bucket each (`each`), or their sum (`together`)."""
