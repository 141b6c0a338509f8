"""The queueing disciplines of the plan, with options as the kernel takes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plait.parts import U32, U64, Attribute, Count, IfName, Record, Share
from plait.traffic.transfer import File

TCA_NETEM_REORDER, TCA_NETEM_CORRUPT = 3, 4
"""Attributes of netem that hold a probability and a correlation (linux/pkt_sched.h)."""


class Distribution(Record):
    """A delay table for netem: a packet's delay is `delay_ns + jitter_ns * (one of the values) / 8192`."""

    name: str
    values: Annotated[tuple[Annotated[int, Field(ge=-32768, le=32767)], ...], Field(max_length=16384)]


class Gemodel(Record):
    """netem's Gilbert-Elliott model: whether each packet is lost, and whether the state changes after it."""

    p: Share
    """The probability of a transition from the good state to the bad one."""
    r: Share
    """The probability of a transition from the bad state to the good one."""
    loss_bad: Share
    """tc's `1-h`."""
    loss_good: Share
    """tc's `1-k`."""


class Netem(Record):
    """netem: loss, delay and reordering of packets in flight (`limit_packets` never binds there), or a line."""

    kind: Literal["netem"] = "netem"
    delay_ns: int = Field(ge=0)
    jitter_ns: int = Field(default=0, ge=0, lt=2**31)
    """Uniform within ± this value; or the factor of a value from `distribution`."""
    distribution: str | None = None
    """The name of one of the network's tables."""
    in_order: bool = False
    """No packet overtakes an earlier one: netem's own rate is so high that it adds no delay (8000 Tbit/s)."""
    loss_ratio: Share = 0.0
    gemodel: Gemodel | None = None
    """Replaces `loss_ratio`."""
    duplicate_ratio: Share = 0.0
    reorder_ratio: Annotated[Share | None, Attribute(TCA_NETEM_REORDER)] = None
    """The ratio of packets that get no delay. None: the option is not sent, which differs from 0 in a change."""
    corrupt_ratio: Annotated[Share | None, Attribute(TCA_NETEM_CORRUPT)] = None
    """The ratio of packets with one inverted bit. None: the option is not sent, and a change keeps the value."""
    limit_packets: int = Field(gt=0, lt=2**32)
    rate_bps: Count | None = None
    """The rate of a line: packets leave one after the other, each after its own transmission time.

    `limit_packets` then counts those that wait for the line and the one that it sends.
    """
    seed: U64
    """The seed of netem's own generator (TCA_NETEM_PRNG_SEED)."""


class Tbf(Record):
    """tbf: the rate of a link. `burst_bytes` is the bucket; `limit_bytes` is the queue if there is no child."""

    kind: Literal["tbf"] = "tbf"
    rate_bps: Count
    burst_bytes: int = Field(gt=0, lt=2**32)
    limit_bytes: int = Field(gt=0, lt=2**32)
    peak_bps: Count | None = None
    """The rate while there are tokens; None: as fast as the device."""
    peak_burst_bytes: U32 | None = None
    """The burst at the peak rate; set exactly when `peak_bps` is."""


class Replay(Record):
    """A recorded trace of delivery opportunities; each lets `opportunity_bytes` bytes of packets leave.

    Each line of the file holds the time of an opportunity in ms, ascending; zero is the trial's. A repeated
    trace begins again at its last time. Bytes are those of IP packets, without the Ethernet header.
    """

    file: File
    opportunity_bytes: int = Field(gt=0, lt=2**32)
    repeated: bool


class PlaitTrace(Replay):
    """plait_trace: the replay of a trace as a qdisc."""

    kind: Literal["plait_trace"] = "plait_trace"


class Pfifo(Record):
    """pfifo: a drop-tail queue with a limit in packets."""

    kind: Literal["pfifo"] = "pfifo"
    limit_packets: int = Field(gt=0, lt=2**32)


class Bfifo(Record):
    """bfifo: a drop-tail queue with a limit in bytes."""

    kind: Literal["bfifo"] = "bfifo"
    limit_bytes: int = Field(gt=0, lt=2**32)


class Red(Record):
    """red: Linux's random early detection, by the average queue in bytes. Its queue is a child qdisc."""

    kind: Literal["red"] = "red"
    min_bytes: int = Field(gt=0, lt=2**32)
    max_bytes: int = Field(gt=0, lt=2**32)
    probability: Share
    """The drop probability at `max_bytes`."""
    weight_log: int = Field(ge=1, le=31)
    idle_log: int = Field(ge=0, le=31)
    """red counts idle time in cells of 2^`idle_log` microseconds (Scell_log)."""
    idle_shifts: tuple[Annotated[int, Field(ge=0, le=31)], ...]
    """After i idle cells, red shifts the average right by the i-th of these 256 numbers (the kernel's stab)."""
    ecn: bool
    limit_bytes: int = Field(gt=0, lt=2**32)
    """Required by tc. The agent sets none, so that the child stays when options change."""


class PlaitRed(Record):
    """plait_red: random early detection by the average queue in packets, with a piecewise linear drop curve."""

    kind: Literal["plait_red"] = "plait_red"
    limit_packets: int = Field(gt=0, lt=2**32)
    weight_log: int = Field(ge=0, le=16)
    points: Annotated[tuple[tuple[U32, U32], ...], Field(min_length=1, max_length=8)]
    """(average queue in 1/256 packet, drop probability as a fraction of 2^32 - 1), with ascending averages."""
    ecn: bool
    idle_ns: int = Field(gt=0, lt=2**32)
    """The transmission time of a full frame: the average decays by it while the queue is empty."""
    seed: U64
    """The seed of its own generator; the kernel takes the lower 32 bits."""


class Codel(Record):
    """codel: controlled delay (RFC 8289)."""

    kind: Literal["codel"] = "codel"
    limit_packets: int = Field(gt=0, lt=2**32)
    target_us: int = Field(gt=0, lt=2**32)
    interval_us: int = Field(gt=0, lt=2**32)
    ecn: bool


class FqCodel(Record):
    """fq_codel: codel in each of many queues (RFC 8290)."""

    kind: Literal["fq_codel"] = "fq_codel"
    limit_packets: int = Field(gt=0, lt=2**32)
    target_us: int = Field(gt=0, lt=2**32)
    interval_us: int = Field(gt=0, lt=2**32)
    ecn: bool
    flows: int = Field(ge=1, le=65536)
    quantum_bytes: int = Field(gt=0, lt=2**32)


QdiscOptions = Annotated[
    Netem | Tbf | Pfifo | Bfifo | Red | PlaitRed | Codel | FqCodel | PlaitTrace,
    Field(discriminator="kind"),
]


class Qdisc(Record):
    """A queueing discipline on an interface. `handle` and `parent` have tc's notation (`1:`, `root`, `1:1`)."""

    netns: str
    ifname: IfName
    parent: str
    handle: str
    options: QdiscOptions
