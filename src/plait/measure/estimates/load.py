"""Rate, token bucket and queue, from packets that were sent faster than a line carries them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # type: ignore[import-untyped]  # scipy ships no types

from plait.measure.estimates.delays import MOST_DRIFT
from plait.measure.estimates.packets import PacketTimes, Times
from plait.measure.estimates.queues import queue
from plait.measure.model import NOT_MEASURED, TAIL, BucketEstimate, MeasuredValue, QueueEstimate

_BLOCKS = 10
_KNEE_POINTS = 1000
_LEAST_BURST_BYTES = 30_000
"""A smaller burst is that of any rate limiter."""
_LEAST_DROP = 0.85
"""The baseline is at most this part of the rate before; a smaller change counts as noise."""
_BURST_US = 1_000_000.0
"""The part of a load that shows what a shaper passes at once: its second half has the rate."""
_LEAST_BURST_FRAMES = 2
SEEN_PART = 0.89
"""A bucket shows that is empty after this part of the load."""
_STAMP_US = 2.0
"""Time stamps count whole microseconds."""


def train_rate(packets: PacketTimes) -> float | None:
    """Return the rate in bit/s at which a short train arrived; None with too few packets."""
    times = packets.arrivals_us()
    if times.size < 5 or times[-1] <= times[0]:
        return None
    return float((times.size - 1) * packets.frame_bytes * 8e6 / (times[-1] - times[0]))


NO_QUEUE = QueueEstimate("unknown", reason="too few packets arrived")


@dataclass(frozen=True)
class Load:
    """Packets that overload a direction, and small ones of another flow: from before the load until after it."""

    full: PacketTimes
    sparse: PacketTimes
    taken_bytes: float = 0.0
    """What an earlier train took from a bucket."""
    taken_before_us: float = 0.0
    """How long before the load that train began."""

    @property
    def jitter_us(self) -> float:
        """The standard deviation of delays before the load."""
        before = self.sparse.sent_between(-np.inf, float(self.full.sent_us[0])).delays_us
        return float(before.std(ddof=1)) if before.size > 1 else 0.0


@dataclass(frozen=True)
class Overload:
    """What an overloaded direction shows."""

    rate_bps: MeasuredValue = NOT_MEASURED
    bucket: BucketEstimate | None = None
    burst_bytes: MeasuredValue = NOT_MEASURED
    queue: QueueEstimate = NO_QUEUE
    lasted_s: float = 0.0

    @property
    def lasting_bps(self) -> float | None:
        """The rate that the direction carries for long: that of its bucket's baseline, or its rate."""
        if self.bucket is not None and self.bucket.baseline_bps.value:
            return self.bucket.baseline_bps.value
        return self.rate_bps.value or self.rate_bps.low


def overload(load: Load) -> Overload:
    """Return rate, bucket and queue of a direction."""
    if load.full.arrived.sum() < 50:
        return Overload()
    arrivals = _Arrivals.merged(load)
    knee = arrivals.knee_us()
    end = arrivals.times[-1]
    steady = arrivals.cut_before(end * 0.5 if knee is None else knee * 1.05)
    rate, lasted_s, first_us = steady.rate(), float(end / 1e6), float(load.full.sent_us[0])
    if not is_limited(load.full):
        unfilled = QueueEstimate("not full", reason="the packets did not fill the line")
        return Overload(MeasuredValue(None, rate.low, None), None, NOT_MEASURED, unfilled, lasted_s)
    bucket = None if knee is None else _bucket(steady, arrivals, rate, load)
    if knee is None or bucket is None:
        burst = arrivals.cut_behind(_BURST_US).burst_bytes(load, rate)
        return Overload(rate, None, burst, queue(load.full, load.sparse, rate.value, first_us), lasted_s)
    before = arrivals.cut_behind(knee * 0.95).rate()
    if not is_limited(load.full.sent_between(first_us, first_us + knee)):
        before = MeasuredValue(None, before.low, None)
    begin_us = float(np.nanmin(load.full.received_us)) + knee * 1.05
    emptied = load.full.sent_us[load.full.received_us >= begin_us]
    from_us = float(emptied[0]) if emptied.size else first_us
    return Overload(
        before, bucket, NOT_MEASURED, queue(load.full, load.sparse, rate.value, from_us), lasted_s
    )


@dataclass(frozen=True)
class _Arrivals:
    """Frames in the order of their arrival, from the first full one on."""

    times: Times
    total: Times
    """Bytes that have arrived, this frame included."""

    @classmethod
    def merged(cls, load: Load) -> _Arrivals:
        both = (load.full, load.sparse)
        times = np.concatenate([packets.received_us[packets.arrived] for packets in both])
        sizes = np.concatenate(
            [np.full(packets.arrived.sum(), float(packets.frame_bytes)) for packets in both]
        )
        inside = (times >= np.nanmin(load.full.received_us)) & (times <= np.nanmax(load.full.received_us))
        order = np.argsort(times[inside], kind="stable")
        ordered = times[inside][order]
        return cls(ordered - ordered[0], np.cumsum(sizes[inside][order]))

    def cut_before(self, begin_us: float) -> _Arrivals:
        return _Arrivals(self.times[self.times >= begin_us], self.total[self.times >= begin_us])

    def cut_behind(self, end_us: float) -> _Arrivals:
        return _Arrivals(self.times[self.times <= end_us], self.total[self.times <= end_us])

    def rate(self) -> MeasuredValue:
        """Return the rate in bit/s.

        The interval comes from the variation of ten blocks. It also allows for what no packet shows: the drift of the
        receiver's clock, and the resolution of time stamps.
        """
        times = self.times
        if times.size < 2 * _BLOCKS or times[-1] <= times[0]:
            return NOT_MEASURED
        lasted = float(times[-1] - times[0])
        rate = float((self.total[-1] - self.total[0]) * 8e6 / lasted)
        cuts = np.linspace(0, times.size - 1, _BLOCKS + 1).astype(int)
        rates = np.diff(self.total[cuts]) * 8e6 / np.maximum(np.diff(times[cuts]), 1.0)
        half = float(stdtrit(_BLOCKS - 1, 1 - TAIL) * rates.std(ddof=1) / np.sqrt(_BLOCKS))
        half += rate * (MOST_DRIFT + _STAMP_US / lasted)
        return MeasuredValue(rate, rate - half, rate + half)

    def burst_bytes(self, load: Load, rate: MeasuredValue) -> MeasuredValue:
        """Return what passed at once, before the rate: the bytes that arrived beyond it.

        A line on which each packet takes its time at the rate shows one frame; less than two frames is no burst. Frames
        are whole, jitter moves the first arrival, and the rate varies: the interval has all of them.
        """
        late = self.cut_before(_BURST_US / 2)
        if late.times.size < 2 * _BLOCKS or rate.value is None or rate.low is None:
            return NOT_MEASURED
        beyond = late.total - rate.value / 8e6 * late.times
        means = [float(part.mean()) for part in np.array_split(beyond, _BLOCKS)]
        frame_bytes, value = load.full.frame_bytes, float(beyond.mean())
        spare = frame_bytes / 2 + max(means) - min(means) + 3 * load.jitter_us * rate.value / 8e6
        spare += (rate.value - rate.low) * float(late.times.mean()) / 8e6
        if value - spare < _LEAST_BURST_FRAMES * frame_bytes - frame_bytes / 2:
            return NOT_MEASURED
        return MeasuredValue(value, value - spare, value + spare)

    def knee_us(self) -> float | None:
        """Return when a bucket ran empty: where the best pair of lines meets; None without a bucket."""
        picks = np.searchsorted(self.times, np.linspace(0, self.times[-1], _KNEE_POINTS)[1:-1])
        x, y = self.times[picks], self.total[picks]
        best, where = np.inf, 0
        for cut in range(4, round(x.size * (SEEN_PART + 0.01))):
            error = _line_error(x[:cut], y[:cut]) + _line_error(x[cut:], y[cut:])
            if error < best:
                best, where = error, cut
        if not where:
            return None
        early, late = np.polyfit(x[:where], y[:where], 1), np.polyfit(x[where:], y[where:], 1)
        if late[0] > _LEAST_DROP * early[0] or late[1] - early[1] < _LEAST_BURST_BYTES * 0.5:
            return None
        return float((late[1] - early[1]) / (early[0] - late[0]))


def _line_error(x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> float:
    """Return the sum of the squared residuals of a fitted line."""
    x, y = x - x.mean(), y - y.mean()
    xx = float(x @ x)
    return float(y @ y) - (float(x @ y) ** 2 / xx if xx else 0.0)


def _bucket(
    steady: _Arrivals, arrivals: _Arrivals, baseline: MeasuredValue, load: Load
) -> BucketEstimate | None:
    """Return the bucket: what arrived beyond the baseline, plus what a train had taken and the pause not refilled.

    Frames and the slots of the queue are whole, so the burst is known to two frames, and jitter blurs its beginning.
    """
    if baseline.value is None or baseline.low is None or baseline.high is None:
        return None
    first = float(arrivals.total[0])

    def burst(bps: float) -> float:
        kept = max(0.0, load.taken_bytes - bps * load.taken_before_us / 8e6)
        return float(np.mean(steady.total - first - bps * steady.times / 8e6)) + kept

    value = burst(baseline.value)
    spare = 2 * load.full.frame_bytes + 3 * load.jitter_us * baseline.value / 8e6
    if value < _LEAST_BURST_BYTES:
        return None
    interval = MeasuredValue(value, max(0.0, burst(baseline.high) - spare), burst(baseline.low) + spare)
    return BucketEstimate(interval, baseline)


def is_limited(packets: PacketTimes) -> bool:
    """Return whether the line was overloaded: more losses than random ones, or packets that waited ever longer."""
    if packets.sent_us.size < 20 or packets.arrived.sum() < 10:
        return False
    if packets.arrived[-max(1, packets.arrived.size // 2) :].mean() < 0.9:
        return True
    delays = packets.delays_us
    quarter = max(1, delays.size // 4)
    first, last = np.median(delays[:quarter]), np.median(delays[-quarter:])
    return bool(last - first > 0.02 * (packets.sent_us[-1] - packets.sent_us[0]))
