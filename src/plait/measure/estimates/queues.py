"""The queue of a direction, from packets of two flows under load. Pure.

A drop-tail queue that is full holds every packet back equally long, whatever flow it is of. An active one does not: it
serves a flow with few packets first (fq_codel, cake), or drops packets before it is full (codel, pie, red), so that the
wait falls or varies although the load stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plait.measure.estimates.delays import MOST_DRIFT
from plait.measure.estimates.packets import PacketTimes, Times
from plait.measure.model import MeasuredValue, QueueEstimate

_LEAST_PACKETS, _LEAST_SPARSE = 16, 5
AFTER_US = 2_500_000.0
"""How long after the load its last packets may still wait."""


@dataclass(frozen=True)
class _Baseline:
    """The mean delay of small packets on the idle line, which can drift, and its deviation: the jitter of the line."""

    at_us: float
    mean_us: float
    drift: float
    deviation_us: float
    error_us: float

    def waits(self, packets: PacketTimes) -> Times:
        sent = packets.sent_us[packets.arrived]
        return packets.delays_us - self.mean_us - self.drift * (sent - self.at_us)


def queue(
    full: PacketTimes, sparse: PacketTimes, rate_bps: float | None, steady_from_us: float
) -> QueueEstimate:
    """Return what the last quarter of the packets `full` shows of the queue; `sparse` ran before, beside and after.

    From `steady_from_us` on the line carries `rate_bps`.
    """
    base = _baseline(sparse, full)
    begin_us = steady_from_us + 0.75 * (float(full.sent_us[-1]) - steady_from_us)
    late, beside = full.sent_between(begin_us, np.inf), sparse.sent_between(begin_us, float(full.sent_us[-1]))
    if base is None or not rate_bps or late.arrived.sum() < _LEAST_PACKETS:
        return QueueEstimate("unknown", reason="too few packets arrived")
    waits, others = base.waits(late), base.waits(beside)
    wait, half = float(np.median(waits)), waits.size // 2
    sparse_wait = float(np.median(others)) if others.size >= _LEAST_SPARSE else None
    frame_us = full.frame_bytes * 8e6 / rate_bps
    noise_us = 2 * frame_us + 4 * base.deviation_us
    risen = float(np.median(waits[half:]) - np.median(waits[:half]))

    def estimate(kind: str, value: MeasuredValue, reason: str) -> QueueEstimate:
        return QueueEstimate(kind, value, wait, sparse_wait, reason)  # type: ignore[arg-type]  # one of its kinds

    nothing = MeasuredValue(None, None, None)
    spare_us = 4 * base.deviation_us / np.sqrt(max(1, others.size))
    if sparse_wait is not None and wait > 2 * frame_us and sparse_wait + spare_us < 0.5 * wait:
        return estimate("active", nothing, "it serves small packets of another flow first")
    if -risen > max(noise_us, 0.1 * wait):
        return estimate("active", nothing, "the wait fell under a constant load")
    depth = (wait + sparse.frame_bytes * 8e6 / rate_bps) * rate_bps / 8e6 + full.frame_bytes / 2
    error = 2 * full.frame_bytes + (0.5 * base.deviation_us + base.error_us) * rate_bps / 8e6
    if risen > max(noise_us, 0.03 * wait) or late.arrived.all():
        return estimate("not full", MeasuredValue(None, max(0.0, depth - error), None), "it did not overflow")
    if float(np.percentile(waits, 95)) - wait > max(noise_us, 0.2 * wait):
        return estimate("active", nothing, "the wait varied under a constant load")
    interval = MeasuredValue(depth, max(0.0, depth - error), depth + error)
    return estimate("drop-tail", interval, "the wait of packets when it was full")


def _baseline(sparse: PacketTimes, full: PacketTimes) -> _Baseline | None:
    """Return the delay without load, from the small packets before the load and, for the drift of clocks, after it."""
    before = sparse.sent_between(-np.inf, float(full.sent_us[0]))
    after = sparse.sent_between(float(full.sent_us[-1]) + AFTER_US, np.inf)
    if before.arrived.sum() < _LEAST_SPARSE:
        return None
    at_us, mean_us = float(before.sent_us.mean()), float(before.delays_us.mean())
    deviation = float(before.delays_us.std(ddof=1))
    error = 2 * deviation / float(np.sqrt(before.arrived.sum()))
    if after.arrived.sum() < _LEAST_SPARSE:
        return _Baseline(at_us, mean_us, 0.0, deviation, error)
    drift = (float(after.delays_us.mean()) - mean_us) / (float(after.sent_us.mean()) - at_us)
    drift = drift if abs(drift) < MOST_DRIFT else 0.0
    return _Baseline(at_us, mean_us, drift, deviation, error)
