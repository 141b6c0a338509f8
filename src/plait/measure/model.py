"""What plait measures of a line: estimates with intervals, by direction."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredValue:
    """A measured value, and the interval that contains the true one with 95 % confidence or by its bound.

    `value` is None if the measurement gives only a bound, and then one of `low` and `high` may be None, too.
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BucketEstimate:
    """A token bucket: bytes that pass at the full rate, and the rate at which it fills (bit/s)."""

    burst_bytes: MeasuredValue
    baseline_bps: MeasuredValue


@dataclass(frozen=True)
class DirectionEstimate:
    """One direction of a line. Rates and sizes count Ethernet frames without their check sequence, as tc does."""

    source: str
    target: str
    rate_bps: MeasuredValue
    """The rate at which packets arrive while the line is overloaded; of a bucket, while it has tokens."""
    bucket: BucketEstimate | None
    queue_bytes: MeasuredValue
    loss_ratio: MeasuredValue
    """The ratio of packets lost at a quarter of the rate, without a full queue."""
    jitter_us: MeasuredValue
    """The standard deviation of the delay."""
    mean_above_least_us: float
    """The mean delay above the least one."""
    probes: int
    """PacketTimes from which the loss is estimated."""


@dataclass(frozen=True)
class LineEstimate:
    """A line between two hosts."""

    name: str
    forward: DirectionEstimate
    backward: DirectionEstimate
    base_rtt_us: MeasuredValue
