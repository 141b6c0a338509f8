"""Base RTT and jitter, from packets on an idle line. Pure."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]  # scipy ships no types

from plait.measure.estimates.packets import PacketTimes, Times
from plait.measure.model import NOT_MEASURED, TAIL, MeasuredValue

_WINDOW_US = 1_000_000.0
_CLOCK_US = 2.0
"""Time stamps count whole microseconds."""
_SPACINGS = 5.0
"""The end of a distribution is that many mean distances of the two least values below the least, see `base_rtt`."""
MOST_DRIFT = 200e-6
"""Clocks of hosts drift by less (RFC 5905 allows 500e-6 for a clock without discipline)."""


def base_rtt(forward: PacketTimes, backward: PacketTimes, serialisation_us: float = 0.0) -> MeasuredValue:
    """Return the least round-trip time in us: the least delay there plus the least delay back.

    The offset of the clocks is in both, with opposite signs, and so is its drift. The estimate is the least sum of a
    window of a second, and the interval ends at the greatest one. It begins below the least sum by
    five times the mean distance to the second least delay (where delays end abruptly, these distances are exponential
    variates of the same mean), and by `serialisation_us`: how long the packets themselves took at the rate of the line,
    which no packet shows.
    """
    sums, gaps = [], []
    drift = _drift(forward, backward)
    forward, backward = _without(forward, drift), _without(backward, -drift)
    for there, back in zip(_by_window(forward), _by_window(backward), strict=False):
        if there.size > 1 and back.size > 1:
            firsts = [np.partition(delays, 1)[:2] for delays in (there, back)]
            sums.append(float(sum(pair[0] for pair in firsts)))
            gaps.append(float(sum(pair[1] - pair[0] for pair in firsts)))
    if not sums:
        return NOT_MEASURED
    least = min(sums)
    low = least - _SPACINGS * float(np.mean(gaps)) - serialisation_us - _CLOCK_US
    return MeasuredValue(least, max(0.0, low), max(sums) + _CLOCK_US)


def _drift(forward: PacketTimes, backward: PacketTimes) -> float:
    """Return the drift between the clocks of two hosts: the slope of the delays that differs by sign; 0 if unclear."""
    slopes, variances = [], []
    for packets in (forward, backward):
        if packets.arrived.sum() < 10:
            return 0.0
        sent_us = packets.sent_us[packets.arrived]
        fit, covariance = np.polyfit(sent_us - sent_us[0], packets.delays_us, 1, cov=True)
        slopes.append(float(fit[0]))
        variances.append(float(covariance[0, 0]))
    drift, error = (slopes[0] - slopes[1]) / 2, float(np.sqrt(sum(variances))) / 2
    return drift if 3 * error < abs(drift) < MOST_DRIFT else 0.0


def _without(packets: PacketTimes, drift: float) -> PacketTimes:
    shift = drift * (packets.sent_us - packets.sent_us[0]) if packets.sent_us.size else 0.0
    return PacketTimes(packets.sent_us, packets.received_us - shift, packets.frame_bytes)


def _by_window(packets: PacketTimes) -> list[Times]:
    sent = packets.sent_us[packets.arrived]
    if not sent.size:
        return []
    windows = np.floor((sent - sent.min()) / _WINDOW_US)
    return [packets.delays_us[windows == number] for number in range(int(windows.max()) + 1)]


def jitter(packets: PacketTimes) -> tuple[MeasuredValue, float]:
    """Return the standard deviation of the delay in us, and the mean delay above the least one.

    A line fitted to the delays removes the drift of the clocks. The interval follows from the fourth moment of the
    delays (the delta method for the logarithm of the deviation), so it needs no normal distribution.
    """
    delays = packets.delays_us
    count = delays.size
    if count < 10:
        return NOT_MEASURED, 0.0
    sent = packets.sent_us[packets.arrived]
    slope, _offset = np.polyfit(sent - sent[0], delays, 1)
    slope = slope if abs(slope) < MOST_DRIFT else 0.0
    rest = delays - slope * (sent - sent[0])
    deviation = float(np.std(rest, ddof=1))
    if deviation < 1e-3:  # less than a nanosecond is a rounding error
        return MeasuredValue(0.0, 0.0, _CLOCK_US), 0.0
    squares = (rest - rest.mean()) ** 2
    kurtosis = np.mean(squares**2) / np.mean(squares) ** 2
    half = float(ndtri(1 - TAIL) * np.sqrt((kurtosis - 1 + 2 / count) / (4 * count)))
    low, high = deviation * np.exp(-half), deviation * np.exp(half)
    return MeasuredValue(deviation, float(low), float(high)), float(rest.mean() - rest.min())
