"""What plait measures of a line: estimates with intervals, by direction, and how plait found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TAIL = 0.005
"""The chance that a true value is below its interval, and that it is above.

A line has many values, so intervals of 95 % would often miss one of them.
"""


@dataclass(frozen=True)
class MeasuredValue:
    """A measured value, and the interval that contains the true one with 99 % confidence or by its bound.

    `value` is None if the measurement gives only a bound, and then one of `low` and `high` may be None, too.
    """

    value: float | None
    low: float | None
    high: float | None


NOT_MEASURED = MeasuredValue(None, None, None)


@dataclass(frozen=True)
class BucketEstimate:
    """A token bucket: bytes that pass at the full rate, and the rate at which it fills (bit/s)."""

    burst_bytes: MeasuredValue
    baseline_bps: MeasuredValue


@dataclass(frozen=True)
class LossModel:
    """The model of random losses that fits. The chances are per packet; they are None for independent losses."""

    kind: Literal["independent", "gilbert", "gilbert-elliott"]
    p: float | None = None
    """Chance to enter the bad state."""
    r: float | None = None
    """Chance to leave the bad state."""
    loss_bad: float | None = None
    """Ratio of packets lost in the bad state."""


QueueKind = Literal["drop-tail", "active", "not full", "unknown"]
"""`active`: it holds packets of some flows back longer than others, or drops packets before it is full."""


@dataclass(frozen=True)
class QueueEstimate:
    """The queue of a direction."""

    kind: QueueKind
    bytes: MeasuredValue = NOT_MEASURED
    """The depth of a drop-tail queue; only its lower bound if it did not fill."""
    wait_us: float | None = None
    """How long full packets waited under load: the median of the last quarter."""
    sparse_wait_us: float | None = None
    """How long small packets of another flow waited at that time."""
    reason: str = ""
    """What showed the kind."""


@dataclass(frozen=True)
class DirectionEstimate:
    """One direction of a line. Rates and sizes count Ethernet frames without their check sequence, as tc does."""

    source: str
    target: str
    rate_bps: MeasuredValue
    """The rate at which packets arrive while the line is overloaded; of a bucket, while it has tokens."""
    bucket: BucketEstimate | None
    lasted_s: float
    """How long packets arrived under load: a bucket that lasts longer does not show."""
    queue: QueueEstimate
    loss_ratio: MeasuredValue
    """The ratio of packets lost at a quarter of the rate, without a full queue."""
    loss_model: LossModel | None
    jitter_us: MeasuredValue
    """The standard deviation of the delay."""
    mean_above_least_us: float
    """The mean delay above the least one."""
    probes: int
    """Packets from which the loss is estimated."""
    burst_bytes: MeasuredValue = NOT_MEASURED
    """Bytes that a shaper passes at once on an idle line; not measured if each packet takes its time at the rate."""


@dataclass(frozen=True)
class LineEstimate:
    """A line between two hosts."""

    name: str
    forward: DirectionEstimate
    backward: DirectionEstimate
    base_rtt_us: MeasuredValue
    remark: str = ""
    """How plait measured the line, if not in the usual way."""
