"""Links in a plan: the conditions of each direction, token buckets that directions share, and changes of conditions.

These records are part of the plan's contract (`plan.py`). A plan has the conditions themselves; `plan.links.chain`
derives the qdiscs for engines whose kernel has no links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from plait.frames import DEFAULT_MTU, ETHERNET_HEADER
from plait.parts import U32, U64, Attribute, IfName, Record
from plait.plan.model.qdiscs import Gemodel, QdiscOptions, Replay  # pydantic needs them at run time

_FRAME = DEFAULT_MTU + ETHERNET_HEADER


@dataclass(frozen=True)
class PacketEffect(Attribute):
    """An effect on a random share of a direction's packets; it annotates a field `.._ratio` of `LinkDirection`.

    The field of the scenario, the option of netem and the word of `tc` have the same name without `_ratio`. The
    attribute is that of a `plait_link` (`kernel/links/plait_link.h`).
    """

    word: str
    """The word for such packets: `corrupted`."""


class VethEnd(Record):
    """One end of a veth pair or of a link, and the IP addresses on it (`10.0.0.1/24`, `fd00::1/64`)."""

    netns: str
    ifname: IfName
    mac: str
    addresses: tuple[str, ...] = ()


class LinkDirection(Record):
    """One direction of a link: its conditions, and its interface in `wire`.

    A `rate_bps` of None is an unlimited rate; such a link has no queue. At most one of `queue_packets` and
    `queue_bytes` is set.
    """

    name: str
    """`h1->s1`; unique within the plan."""
    source: str
    target: str
    ifname: IfName
    """The interface in namespace `wire` through which this direction leaves."""
    interface: IfName | None = None
    """The interface of `source` by which packets leave; see `plan.network.ifnames`."""
    rate_bps: U64 | None
    delay_ns: U64
    jitter_ns: U64 = 0
    """Half the width of a uniform distribution, or the standard deviation of another."""
    jitter_distribution: str | None = None
    """None: uniform."""
    jitter_factor_ns: U32 = Field(default=0, exclude_if=lambda value: not value)
    """The factor by which the kernel multiplies a value of the distribution; half the width if it is uniform."""
    in_order: bool = Field(default=False, exclude_if=lambda value: not value)
    """No packet overtakes an earlier one, however their delays differ."""
    loss_ratio: float = 0.0
    """The long-run ratio of random loss, with or without bursts."""
    loss_burst_packets: float | None = None
    """Mean length of a burst; None: each loss is independent."""
    gemodel: Gemodel | None = Field(default=None, exclude_if=lambda value: value is None)
    """The model of losses in bursts; None: each loss is independent."""
    reorder_ratio: Annotated[float, PacketEffect(10, "reordered")] = 0.0
    duplicate_ratio: Annotated[float, PacketEffect(9, "duplicated")] = 0.0
    corrupt_ratio: Annotated[float, PacketEffect(11, "corrupted")] = 0.0
    queue_packets: U64 | None = None
    queue_bytes: U64 | None = None
    aqm: str | None = None
    """`red`, `plait_red`, `codel` or `fq_codel`; None: drop-tail."""
    manager: QdiscOptions | None = Field(default=None, exclude_if=lambda value: value is None)
    """The options of that queue management."""
    baseline_bps: U64 | None = None
    """The rate at which tokens fill the bucket; `rate_bps` is then the peak rate."""
    burst_bytes: U64 | None = None
    """The size of the token bucket; without `baseline_bps` the rate fills it, and what it holds passes at once."""
    trace: Replay | None = Field(default=None, exclude_if=lambda value: value is None)
    """The recorded delivery opportunities, which replace the rate."""
    frame_bytes: U32 = Field(default=_FRAME, exclude_if=lambda value: value == _FRAME)
    """The longest frame, as `tc` counts it."""
    seed: U64 = Field(default=0, exclude_if=lambda value: not value)
    """The seed of the direction's own random generators."""


EFFECTS = {
    name: effect
    for name, field in LinkDirection.model_fields.items()
    for effect in field.metadata
    if isinstance(effect, PacketEffect)
}
"""The effects by the names of their fields."""


class Link(Record):
    """A link of the scenario."""

    name: str
    directions: tuple[LinkDirection, LinkDirection]
    ends: tuple[VethEnd, VethEnd] | None = Field(default=None, exclude_if=lambda value: value is None)
    """The interfaces of the two nodes, if an engine makes the link one `plait_link`. Plans leave it."""


class SharedBucket(Record):
    """A token bucket that several link directions share, in front of their links: an ifb in `wire`."""

    name: str
    """`h1 out`; unique within the plan, and different from every link direction."""
    ifname: IfName
    peak_bps: U64
    baseline_bps: U64
    burst_bytes: U64
    queue_packets: U64 | None = None
    queue_bytes: U64 | None = None
    frame_bytes: U32 = Field(default=_FRAME, exclude_if=lambda value: value == _FRAME)
    """The longest frame of the links, as `tc` counts it."""
    directions: tuple[str, ...]
    """Names of the link directions."""


class ChangeLink(Record):
    """An event's action: a direction has these conditions from now on; its packets and random states stay."""

    kind: Literal["change_link"] = "change_link"
    direction: LinkDirection
