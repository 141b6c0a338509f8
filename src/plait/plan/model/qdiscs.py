"""The part of the plan that is queueing disciplines, with options as the kernel takes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plait.plan.model.applications import File
from plait.plan.model.record import IfName, Record, Share


class Distribution(Record):
    """A table of delays for netem: a packet's delay is `delay_ns + jitter_ns * (one of the values) / 8192`."""

    name: str
    values: Annotated[tuple[Annotated[int, Field(ge=-32768, le=32767)], ...], Field(max_length=16384)]


class Gemodel(Record):
    """netem's Gilbert-Elliott model: for each packet, whether it is lost, and whether the state changes after it."""

    p: Share
    """From the good state to the bad one."""
    r: Share
    """Back."""
    loss_bad: Share
    """tc's `1-h`."""
    loss_good: Share
    """tc's `1-k`."""


class Netem(Record):
    """netem: what happens to packets under way. `limit_packets` never binds: queues are elsewhere."""

    kind: Literal["netem"] = "netem"
    delay_ns: int = Field(ge=0)
    jitter_ns: int = Field(default=0, ge=0, lt=2**31)
    """Uniform within ± this; or a multiple of what the `distribution` says."""
    distribution: str | None = None
    """The name of one of the network's tables."""
    in_order: bool = False
    """No packet overtakes an earlier one: netem's own rate is set, so high that it takes no time (8000 Tbit/s)."""
    loss_ratio: Share = 0.0
    gemodel: Gemodel | None = None
    """Instead of a `loss_ratio`."""
    duplicate_ratio: Share = 0.0
    reorder_ratio: Share | None = None
    """Of packets that have no delay. None: the kernel is not told (which differs from 0 when a qdisc is changed)."""
    corrupt_ratio: Share | None = None
    """Of packets in which one bit is flipped. None: the kernel is not told."""
    limit_packets: int = Field(gt=0)
    seed: int = Field(ge=0)
    """For netem's own generator (TCA_NETEM_PRNG_SEED)."""


class Tbf(Record):
    """tbf: the rate of a link. `burst_bytes` is the bucket, `limit_bytes` the queue when no child is given."""

    kind: Literal["tbf"] = "tbf"
    rate_bps: int = Field(gt=0)
    burst_bytes: int = Field(gt=0, lt=2**32)
    limit_bytes: int = Field(gt=0, lt=2**32)
    peak_bps: int | None = None
    """The rate as long as there are tokens; None: as fast as the device takes it."""
    peak_burst_bytes: int | None = None
    """What may pass at once of the peak rate; given exactly with `peak_bps`."""


class PlaitTrace(Record):
    """plait_trace: a recorded trace of delivery opportunities; each of them lets so many bytes of packets leave.

    The file holds the time of an opportunity in ms, rising, on each line; zero is the trial's. Repeated, the trace
    begins again at its last time. Bytes are those of IP packets, without the Ethernet header.
    """

    kind: Literal["plait_trace"] = "plait_trace"
    file: File
    opportunity_bytes: int = Field(gt=0)
    repeated: bool


class Pfifo(Record):
    """pfifo: a drop-tail queue of so many packets."""

    kind: Literal["pfifo"] = "pfifo"
    limit_packets: int = Field(gt=0)


class Bfifo(Record):
    """bfifo: a drop-tail queue of so many bytes."""

    kind: Literal["bfifo"] = "bfifo"
    limit_bytes: int = Field(gt=0)


class Red(Record):
    """red: Linux's random early detection, by the average queue in bytes. Its queue is a child of its own."""

    kind: Literal["red"] = "red"
    min_bytes: int = Field(gt=0)
    max_bytes: int = Field(gt=0)
    probability: Share
    """At `max_bytes`."""
    weight_log: int = Field(ge=1, le=31)
    idle_log: int = Field(ge=0, le=31)
    """Idle time is counted in cells of 2^this microseconds .. (Scell_log)."""
    idle_shifts: tuple[Annotated[int, Field(ge=0, le=31)], ...]
    """.. and after i cells of it the average is shifted right by the i-th of these 256 numbers (the kernel's stab)."""
    ecn: bool
    limit_bytes: int = Field(gt=0)
    """tc asks for it. The agent gives none, so that the child stays when options change."""


class PlaitRed(Record):
    """plait_red: random early detection by the average queue in packets, with the drop curve point by point."""

    kind: Literal["plait_red"] = "plait_red"
    limit_packets: int = Field(gt=0)
    weight_log: int = Field(ge=0, le=16)
    points: Annotated[tuple[tuple[int, int], ...], Field(min_length=1, max_length=8)]
    """(average queue in 1/256 packet, drop probability of 2^32 - 1), averages ascending."""
    ecn: bool
    idle_ns: int = Field(gt=0, lt=2**32)
    """The time that a full frame takes to leave: by it the average decays while the queue is empty."""
    seed: int = Field(ge=0)
    """For its own generator; the kernel takes the lower 32 bits."""


class Codel(Record):
    """codel: controlled delay (RFC 8289)."""

    kind: Literal["codel"] = "codel"
    limit_packets: int = Field(gt=0)
    target_us: int = Field(gt=0)
    interval_us: int = Field(gt=0)
    ecn: bool


class FqCodel(Record):
    """fq_codel: codel in each of many queues (RFC 8290)."""

    kind: Literal["fq_codel"] = "fq_codel"
    limit_packets: int = Field(gt=0)
    target_us: int = Field(gt=0)
    interval_us: int = Field(gt=0)
    ecn: bool
    flows: int = Field(ge=1, le=65536)
    quantum_bytes: int = Field(gt=0)


class Qdisc(Record):
    """A queueing discipline on an interface. `handle` and `parent` as tc writes them (`1:`, `root`, `1:1`)."""

    netns: str
    ifname: IfName
    parent: str
    handle: str
    options: Annotated[
        Netem | Tbf | Pfifo | Bfifo | Red | PlaitRed | Codel | FqCodel | PlaitTrace,
        Field(discriminator="kind"),
    ]
