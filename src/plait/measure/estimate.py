"""From the times of packets to the properties of a line.

All functions are pure. Times are in us; those of sending and of arrival are on the clocks of two hosts, whose offset is
unknown. Differences of times on one clock are exact, and the sum of the delays of both directions has no offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import beta, chi2, t  # type: ignore[import-untyped]  # scipy ships no types

from plait.measure.model import BucketEstimate, MeasuredValue

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.float64]

LEVEL = 0.95
_BLOCKS = 10
_WINDOW_US = 1_000_000.0
_KNEE_POINTS = 1000
_LEAST_BURST_BYTES = 30_000
"""A smaller burst is that of any rate limiter."""
_LEAST_DROP = 0.85
"""The baseline is at most this part of the rate before; a smaller change counts as noise."""


@dataclass(frozen=True)
class PacketTimes:
    """The packets of one flow, in the order of their numbers: when each was sent and when it arrived (NaN: lost)."""

    sent_us: Times
    received_us: Times
    frame_bytes: int

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Which packets arrived."""
        return ~np.isnan(self.received_us)

    @property
    def delays_us(self) -> Times:
        """The delay of each packet that arrived, plus the unknown offset."""
        return np.asarray((self.received_us - self.sent_us)[self.arrived])

    def without_first(self, count: int) -> PacketTimes:
        """Return the packets without the first `count`."""
        return PacketTimes(self.sent_us[count:], self.received_us[count:], self.frame_bytes)

    def arrivals_us(self) -> Times:
        """The times of arrival, in order."""
        return np.sort(self.received_us[self.arrived])


def base_rtt(forward: PacketTimes, backward: PacketTimes) -> MeasuredValue:
    """Return the least round-trip time in us: the least delay there plus the least delay back.

    The offset of the clocks is in both, with opposite signs. Its drift is small within a window of a second, so the
    estimate is the least sum of a window; the interval ends at the greatest sum.
    """
    sums = [
        float(there.min() + back.min())
        for there, back in zip(_by_window(forward), _by_window(backward), strict=False)
        if there.size and back.size
    ]
    return MeasuredValue(min(sums), min(sums), max(sums)) if sums else MeasuredValue(None, None, None)


def _by_window(packets: PacketTimes) -> list[Times]:
    sent = packets.sent_us[packets.arrived]
    if not sent.size:
        return []
    windows = np.floor((sent - sent.min()) / _WINDOW_US)
    return [packets.delays_us[windows == number] for number in range(int(windows.max()) + 1)]


def jitter(packets: PacketTimes) -> tuple[MeasuredValue, float]:
    """Return the standard deviation of the delay in us, and the mean delay above the least one.

    A line fitted to the delays removes the drift of the clocks. The interval is that of a normal distribution.
    """
    delays = packets.delays_us
    count = delays.size
    if count < 3:
        return MeasuredValue(None, None, None), 0.0
    sent = packets.sent_us[packets.arrived]
    slope, _offset = np.polyfit(sent - sent[0], delays, 1)
    slope = slope if abs(slope) < 2e-4 else 0.0  # more than 200 ppm is no clock
    rest = delays - slope * (sent - sent[0])
    deviation = float(np.std(rest, ddof=1))
    low, high = (deviation * np.sqrt((count - 1) / chi2.ppf(q, count - 1)) for q in (0.975, 0.025))
    return MeasuredValue(deviation, float(low), float(high)), float(rest.mean() - rest.min())


def loss(packets: PacketTimes) -> MeasuredValue:
    """Return the ratio of lost packets, with the interval of Clopper and Pearson (1934) for independent losses."""
    count = packets.sent_us.size
    lost = count - int(packets.arrived.sum())
    if not count:
        return MeasuredValue(None, None, None)
    low = 0.0 if lost == 0 else float(beta.ppf(0.025, lost, count - lost + 1))
    high = 1.0 if lost == count else float(beta.ppf(0.975, lost + 1, count - lost))
    return MeasuredValue(lost / count, low, high)


def train_rate(packets: PacketTimes) -> float | None:
    """Return the rate in bit/s at which a short train arrived; None with too few packets."""
    times = packets.arrivals_us()
    if times.size < 5 or times[-1] <= times[0]:
        return None
    return float((times.size - 1) * packets.frame_bytes * 8e6 / (times[-1] - times[0]))


@dataclass(frozen=True)
class Overload:
    """What an overloaded direction shows."""

    rate_bps: MeasuredValue
    bucket: BucketEstimate | None
    queue_bytes: MeasuredValue


def overload(
    packets: PacketTimes, least_delay_us: float | None, spent_bytes: float, gap_us: float
) -> Overload:
    """Return rate, bucket and queue from packets that were sent faster than the line carries them.

    `least_delay_us` is the least delay without load (with the same offset). A train before took `spent_bytes` from a
    bucket, `gap_us` before these packets.
    """
    times = packets.arrivals_us()
    if times.size < 50:
        nothing = MeasuredValue(None, None, None)
        return Overload(nothing, None, nothing)
    times = times - times[0]
    knee = _knee(times, packets.frame_bytes)
    steady = times[times >= max(knee or 0.0, times[-1] * 0.5 if knee is None else knee * 1.05)]
    rate = _block_rate(steady, packets.frame_bytes)
    limited = _is_limited(packets)
    bucket = None
    if knee is not None and limited:
        before = _block_rate(times[times <= knee * 0.95], packets.frame_bytes)
        bucket = _bucket(times, steady, packets.frame_bytes, rate, (spent_bytes, gap_us))
        peak = before if _limited_before(packets, knee) else MeasuredValue(None, before.value, None)
        return Overload(peak, bucket, _queue(packets, least_delay_us, rate))
    if not limited:
        return Overload(MeasuredValue(None, rate.value, None), None, MeasuredValue(None, None, None))
    return Overload(rate, None, _queue(packets, least_delay_us, rate))


def _knee(times: Times, frame_bytes: int) -> float | None:
    """Return when a bucket ran empty: where the best pair of lines for the arrivals meets; None without a bucket."""
    picks = np.searchsorted(times, np.linspace(0, times[-1], _KNEE_POINTS)[1:-1])
    x, y = times[picks], (picks + 1) * float(frame_bytes)
    best, where = np.inf, 0
    for cut in range(4, x.size - 100):
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


def _block_rate(times: Times, frame_bytes: int) -> MeasuredValue:
    """Return the rate of arrivals in bit/s; the interval comes from the variation of ten blocks."""
    if times.size < 2 * _BLOCKS or times[-1] <= times[0]:
        return MeasuredValue(None, None, None)
    rate = float((times.size - 1) * frame_bytes * 8e6 / (times[-1] - times[0]))
    cuts = np.linspace(0, times.size - 1, _BLOCKS + 1).astype(int)
    rates = np.diff(cuts) * frame_bytes * 8e6 / np.maximum(np.diff(times[cuts]), 1.0)
    half = float(t.ppf(0.975, _BLOCKS - 1) * rates.std(ddof=1) / np.sqrt(_BLOCKS))
    return MeasuredValue(rate, rate - half, rate + half)


def _bucket(
    times: Times, steady: Times, frame_bytes: int, rate: MeasuredValue, train: tuple[float, float]
) -> BucketEstimate | None:
    """Return the bucket: what arrived beyond the baseline, plus what a train before had taken from it."""
    if rate.value is None or rate.low is None or rate.high is None:
        return None
    arrived = np.arange(times.size - steady.size, times.size) * float(frame_bytes)

    def burst(bps: float) -> float:
        spent, gap_us = train
        return float(np.mean(arrived - bps * steady / 8e6)) + max(0.0, spent - bps * gap_us / 8e6)

    value = burst(rate.value)
    if value < _LEAST_BURST_BYTES:
        return None
    return BucketEstimate(MeasuredValue(value, burst(rate.high), burst(rate.low)), rate)


def _is_limited(packets: PacketTimes) -> bool:
    """Return whether the line was overloaded: it lost packets, or the last ones waited ever longer."""
    arrived = packets.arrived
    if arrived[-max(1, arrived.size // 2) :].mean() < 0.98:
        return True
    delays = packets.delays_us
    quarter = max(1, delays.size // 4)
    first, last = np.median(delays[:quarter]), np.median(delays[-quarter:])
    lasted = packets.sent_us[-1] - packets.sent_us[0]
    return bool(last - first > 0.02 * lasted)


def _limited_before(packets: PacketTimes, knee_us: float) -> bool:
    """Return whether the line also was overloaded while its bucket had tokens."""
    early = packets.sent_us - packets.sent_us[0] < knee_us
    return bool(
        early.sum() > 20 and _is_limited(PacketTimes(packets.sent_us[early], packets.received_us[early], 0))
    )


def _queue(packets: PacketTimes, least_delay_us: float | None, rate: MeasuredValue) -> MeasuredValue:
    """Return the depth of the queue in bytes: how long packets wait in the full queue, times the rate.

    Only a queue that overflowed has a known depth.
    """
    late = packets.arrived.copy()
    late[: late.size // 2] = False
    delays = (packets.received_us - packets.sent_us)[late]
    if least_delay_us is None or rate.value is None or delays.size < 20:
        return MeasuredValue(None, None, None)
    waits = delays - least_delay_us
    low, middle, high = (float(np.percentile(waits, q) * rate.value / 8e6) for q in (5, 90, 99.5))
    if packets.arrived[packets.arrived.size // 2 :].all():
        return MeasuredValue(None, middle, None)
    return MeasuredValue(middle, low, high)
