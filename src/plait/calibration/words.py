"""The text of a link setting, and of a figure that is out of tolerance."""

from __future__ import annotations

from plait.calibration.probes import loss_ratio
from plait.calibration.settings import LEAST_DELAY_NS, Setting
from plait.calibration.verdict import MeasuredFigure
from plait.frames import DEFAULT_MTU
from plait.plan.links.distributions import UNIFORM, deviation_ns


def setting(link: Setting) -> str:
    """Return the conditions of one link direction as text: `50 Mbit/s, 30 ms, jitter 5 ms`."""
    netem, tbf = link.netem, link.tbf
    parts = [] if tbf is None else [rate(tbf.rate_bps)]
    if netem is not None:
        if netem.delay_ns > LEAST_DELAY_NS:
            parts.append(time(netem.delay_ns / 1000))
        if netem.jitter_ns and netem.distribution in (None, UNIFORM):
            parts.append(f"jitter {time(netem.jitter_ns / 1000)}")
        elif netem.jitter_ns and netem.distribution is not None:
            deviation = deviation_ns(netem.distribution, netem.jitter_ns)
            parts.append(f"{netem.distribution} jitter with a deviation of {time(deviation / 1000)}")
    if loss_ratio(link):
        parts.append(f"{percent(loss_ratio(link))} loss")
    return ", ".join([*parts, *([f"MTU {link.mtu}"] if link.mtu != DEFAULT_MTU else [])]) or "no conditions"


def figure(result: MeasuredFigure) -> str:
    """Return how a figure is out of tolerance, with its bounds."""
    if result.measured is None or result.configured is None or result.low is None or result.high is None:
        return (
            f"its {_NAMES[result.name]} could not be measured, because only {result.packets} packets arrived"
        )
    show = {"delay_us": time, "rate_bps": rate, "loss_ratio": percent}[result.name]
    error, tolerance = abs(result.measured - result.configured), result.high - result.configured
    if result.name == "loss_ratio":
        return (
            f"its loss is {show(result.measured)} of {result.packets} packets instead of {show(result.configured)}; "
            f"by chance it is {show(result.low)} to {show(result.high)}"
        )
    side = ("too low", "too high") if result.name == "rate_bps" else ("too short", "too long")
    relative = result.name == "rate_bps"
    errors = [percent(value / result.configured) if relative else time(value) for value in (error, tolerance)]
    return (
        f"its {_NAMES[result.name]} is {show(result.measured)} instead of {show(result.configured)}, {errors[0]} "
        f"{side[result.measured > result.configured]}, where {errors[1]} is allowed"
    )


_NAMES = {"delay_us": "delay", "rate_bps": "rate", "loss_ratio": "loss"}


def rate(bps: float) -> str:
    """Return bits per second as `49.7 Mbit/s`."""
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bps >= scale:
            return f"{_short(bps / scale)} {prefix}bit/s"
    return f"{_short(bps)} bit/s"


def time(us: float) -> str:
    """Return microseconds as `5.04 ms`, with at most six digits."""
    return f"{us / 1000:.6g} ms" if us >= 1000 else f"{us:.3g} us"


def percent(ratio: float) -> str:
    """Return a ratio as `0.51 %`; `0.001 %` for one that is smaller, but not 0: bounds are rounded up."""
    if 0 < ratio < 1e-5:
        return "0.001 %"
    return f"{ratio * 100:.2g} %" if ratio < 0.1 else f"{_short(ratio * 100)} %"


def _short(value: float) -> str:
    """Return a value with at most three significant digits below 100, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
