"""Puts a setting of a link, and a figure that is out of its bounds, into words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.calibration.probes import loss_ratio
from plait.calibration.settings import LEAST_DELAY_NS
from plait.plan.links.distributions import UNIFORM, deviation_ns

if TYPE_CHECKING:
    from plait.calibration.settings import Setting
    from plait.calibration.verdict import Figure


def setting(link: Setting) -> str:
    """Return what one direction of a link does: `50 Mbit/s, 30 ms, jitter 5 ms`."""
    netem, tbf = link.netem, link.tbf
    said = [] if tbf is None else [rate(tbf.rate_bps)]
    if netem is not None:
        if netem.delay_ns > LEAST_DELAY_NS:
            said.append(time(netem.delay_ns / 1000))
        if netem.jitter_ns and netem.distribution in (None, UNIFORM):
            said.append(f"jitter {time(netem.jitter_ns / 1000)}")
        elif netem.jitter_ns and netem.distribution is not None:
            deviation = deviation_ns(netem.distribution, netem.jitter_ns)
            said.append(f"{netem.distribution} jitter with a deviation of {time(deviation / 1000)}")
    if loss_ratio(link):
        said.append(f"{percent(loss_ratio(link))} loss")
    return ", ".join([*said, *([f"MTU {link.mtu}"] if link.mtu != 1500 else [])]) or "no conditions"


def figure(one: Figure) -> str:
    """Return what is wrong with a figure that is out of its bounds, with the bounds."""
    if one.measured is None or one.meant is None or one.low is None or one.high is None:
        return f"its {_NAMES[one.name]} could not be measured, as only {one.packets} packets arrived"
    say = {"delay_us": time, "rate_bps": rate, "loss_ratio": percent}[one.name]
    off, room = abs(one.measured - one.meant), one.high - one.meant
    if one.name == "loss_ratio":
        return (
            f"its loss is {say(one.measured)} of {one.packets} packets instead of {say(one.meant)}; by chance it is "
            f"{say(one.low)} to {say(one.high)}"
        )
    side = ("too low", "too high") if one.name == "rate_bps" else ("too short", "too long")
    share = one.name == "rate_bps"
    errors = [percent(value / one.meant) if share else time(value) for value in (off, room)]
    return (
        f"its {_NAMES[one.name]} is {say(one.measured)} instead of {say(one.meant)}, {errors[0]} "
        f"{side[one.measured > one.meant]}, where {errors[1]} is allowed"
    )


_NAMES = {"delay_us": "delay", "rate_bps": "rate", "loss_ratio": "loss"}


def rate(bps: float) -> str:
    """Return bits per second as `49.7 Mbit/s`."""
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bps >= scale:
            return f"{_short(bps / scale)} {prefix}bit/s"
    return f"{_short(bps)} bit/s"


def time(us: float) -> str:
    """Return microseconds as `5.04 ms`, to the microsecond as far as six digits go."""
    return f"{us / 1000:.6g} ms" if us >= 1000 else f"{us:.3g} us"


def percent(ratio: float) -> str:
    """Return a ratio as `0.51 %`."""
    return f"{ratio * 100:.2g} %" if ratio < 0.1 else f"{_short(ratio * 100)} %"


def _short(value: float) -> str:
    """Return at most three digits, and no exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
