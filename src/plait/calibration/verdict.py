"""Compare the measured values of a setting with the configured ones, within tolerances.

A study may have hundreds of settings, and a repeated measurement gives the same result, so a valid link must not fail
by chance. Each bound on a random quantity therefore holds for a valid link with a probability of 1 - `FALSE_ALARM` (all
but one in a million), for the number of packets that were measured.

- Delay: 10 us. netem keeps one-way delays to the nanosecond, and the receiver's timestamps are in microseconds; the
  rest is for the kernel's timers. With jitter, the mean of n packets may be off by t more, from Bernstein's inequality
  (Boucheron, Lugosi, Massart, Concentration Inequalities, 2013, theorem 2.10): P(|mean - delay| > t) is at most
  2 exp(-n t^2 / (2 s^2 + 2 b t / 3)), with the standard deviation s of the configured jitter and its greatest
  distance b from the mean. It holds for heavy tails as well, where the sample's own standard error is too small.
- Rate: 0.5 %, and two microseconds over the measured time, for the resolution of the receiver's timestamps at both
  ends. A token bucket in virtual time is exact. Jitter, loss and reordering have no influence: see probes.
- Loss: the number of lost packets has an exact distribution (`lost_between`), computed packet by packet from the
  states of the Gilbert-Elliott model; without states it is the binomial one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import polars as pl

from plait.calibration.probes import WARM_UP_PACKETS, SettingProbe, loss_ratio, lost_share
from plait.calibration.settings import LEAST_DELAY_NS, Setting
from plait.frames import DEFAULT_MTU
from plait.plan.links.distributions import NETEM_SCALE, UNIFORM, deviation_ns, table
from plait.plan.model.links import EFFECTS
from plait.plan.model.qdiscs import Netem

DELAY_TOLERANCE_US = 10.0
RATE_TOLERANCE = 0.005
RESOLUTION_US = 2.0
"""The resolution of the time between two timestamps."""
FALSE_ALARM = 1e-6
"""The probability that a valid link is outside a bound on a random quantity."""
MAX_LOSS = 0.9
"""If a link loses more, it may deliver too few packets to measure the delay."""
NAMES = ("delay_us", "rate_bps", "loss_ratio")
"""The names of the figures of a setting."""


@dataclass(frozen=True)
class MeasuredFigure:
    """One measured quantity. `measured` is None if it could not be measured; `low` and `high` are its bounds."""

    name: str
    """`delay_us`, `rate_bps` or `loss_ratio`."""
    configured: float | None
    measured: float | None
    low: float | None
    high: float | None
    packets: int

    @property
    def good(self) -> bool:
        """Whether it is within its bounds, or needs no measurement."""
        if self.measured is None or self.low is None or self.high is None:
            return self.configured is None
        return self.low <= self.measured <= self.high

    def as_json(self) -> dict[str, Any]:
        """Return the figure for calibration.json."""
        return {
            "meant": self.configured,
            "measured": self.measured,
            "low": self.low,
            "high": self.high,
            "packets": self.packets,
        }


def figures(probe: SettingProbe, messages: pl.DataFrame) -> list[MeasuredFigure]:
    """Return the figures of one setting from the table `messages`."""
    probe_packets = messages.filter(pl.col("flow") == probe.probe).sort("index")
    saturating_packets = None if probe.saturate is None else messages.filter(pl.col("flow") == probe.saturate)
    setting = probe.setting
    return [_delay(setting, probe_packets), _rate(setting, saturating_packets), _loss(setting, probe_packets)]


def _delay(setting: Setting, probe: pl.DataFrame) -> MeasuredFigure:
    """Return the one-way delay of packets that met no queue: the median, or the mean with jitter.

    On lossy links a packet may wait until its host has resolved an address again. That is no delay of the link, and it
    does not change the median.
    """
    netem = setting.netem
    arrived = (probe["received_us"] - probe["sent_us"]).drop_nulls()
    if not setting.steady or netem is None or netem.reorder_ratio or loss_ratio(setting) == 1:
        return MeasuredFigure("delay_us", None, None, None, None, len(arrived))
    configured = netem.delay_ns / 1000
    if len(arrived) < 2:
        too_lossy = loss_ratio(setting) > MAX_LOSS
        return MeasuredFigure("delay_us", None if too_lossy else configured, None, None, None, len(arrived))
    measured, tolerance = arrived.median(), DELAY_TOLERANCE_US
    if netem.jitter_ns:
        measured = arrived.mean()
        tolerance += _mean_within_us(netem, len(arrived))
    delay = float(measured)  # type: ignore[arg-type]  # delays are numbers
    low, high = configured - tolerance, configured + tolerance
    return MeasuredFigure("delay_us", configured, delay, low, high, len(arrived))


def _mean_within_us(netem: Netem, packets: int) -> float:
    """Return how far the mean delay of `packets` packets may be off by chance: Bernstein's inequality, solved for t."""
    if netem.distribution is None:
        deviation, furthest = netem.jitter_ns / sqrt(3), float(netem.jitter_ns)
    else:
        values = np.array(table(netem.distribution).values) / NETEM_SCALE * netem.jitter_ns
        deviation, furthest = deviation_ns(netem.distribution, netem.jitter_ns), float(np.abs(values).max())
    exponent = log(2 / FALSE_ALARM) / packets
    linear = furthest * exponent / 3
    return (linear + sqrt(linear**2 + 2 * deviation**2 * exponent)) / 1000


def _rate(setting: Setting, packets: pl.DataFrame | None) -> MeasuredFigure:
    """Return the output rate of a queue that was never empty: frame bytes over the time from first to last frame."""
    if packets is None or setting.tbf is None:
        return MeasuredFigure("rate_bps", None, None, None, None, 0)
    configured = float(setting.tbf.rate_bps)
    times = packets["received_us"].drop_nulls().sort()
    settled = times[setting.settling_frames :]
    if len(settled) < 2 or settled[-1] == settled[0]:
        return MeasuredFigure("rate_bps", configured, None, None, None, len(times))
    measured = (len(settled) - 1) * setting.frame_bytes * 8e6 / (settled[-1] - settled[0])
    tolerance = configured * (RATE_TOLERANCE + RESOLUTION_US / (settled[-1] - settled[0]))
    return MeasuredFigure(
        "rate_bps", configured, measured, configured - tolerance, configured + tolerance, len(settled)
    )


def _loss(setting: Setting, probe: pl.DataFrame) -> MeasuredFigure:
    """Return the share of the probe's packets that did not arrive."""
    sent, lost = len(probe), int(probe["received_us"].null_count())
    discards = any(effect.discarded and getattr(setting.conditions, name) for name, effect in EFFECTS.items())
    if not setting.steady or discards or not sent:
        return MeasuredFigure("loss_ratio", None, lost / sent if sent else None, None, None, sent)
    configured = loss_ratio(setting)
    low, high = lost_between(setting, sent)
    return MeasuredFigure("loss_ratio", configured, lost / sent, low / sent, high / sent, sent)


def lost_between(setting: Setting, sent: int) -> tuple[int, int]:
    """Return the least and the most of `sent` packets that a valid link loses, except with probability `FALSE_ALARM`.

    The distribution is exact: it follows the probability of each count in both states of the model packet by packet,
    from the good state on and including the warm-up packets. As in netem, the current state decides about a packet, and
    then the state changes.
    """
    probability = _distribution(setting, sent)
    cumulative = np.cumsum(probability)
    low, high = np.searchsorted(cumulative, (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    return int(low), min(int(high), sent)


def _distribution(setting: Setting, sent: int) -> np.ndarray:
    """Return the probability of each count of lost packets, 0 to `sent`."""
    netem = setting.netem
    model = None if netem is None else netem.gemodel
    p, r = (0.0, 0.0) if model is None else (model.p, model.r)
    ratios = (0.0 if netem is None else netem.loss_ratio,) * 2
    if model is not None:
        ratios = (model.loss_good, model.loss_bad)
    lost = np.array(ratios)[:, None] * lost_share(setting)
    moves = np.array([[1 - p, p], [r, 1 - r]])
    probability = np.zeros((2, sent + 1))
    probability[:, 0] = np.linalg.matrix_power(moves, WARM_UP_PACKETS)[0]
    for _ in range(sent):
        next_probability = probability * (1 - lost)
        next_probability[:, 1:] += (probability * lost)[:, :-1]
        probability = moves.T @ next_probability
    return np.asarray(probability.sum(axis=0))


def describe(setting: Setting) -> dict[str, Any]:
    """Return the main parameters of a setting for calibration.json."""
    netem, tbf = setting.netem, setting.tbf
    return {
        "mtu": setting.mtu,
        "rate_bps": None if tbf is None else tbf.rate_bps,
        "delay_ns": None if netem is None else netem.delay_ns,
        "jitter_ns": None if netem is None else netem.jitter_ns,
        "loss_ratio": loss_ratio(setting),
        "qdiscs": [qdisc.options.kind for qdisc in setting.qdiscs],
    }


def worst(results: Mapping[str, list[MeasuredFigure]] | list[list[MeasuredFigure]]) -> dict[str, float]:
    """Return the greatest errors: `delay_us`, and `rate` as a share of the configured rate."""
    lists = list(results.values()) if not isinstance(results, list) else results
    errors: dict[str, float] = {}
    for figure in (figure for figures_ in lists for figure in figures_):
        if figure.configured is None or figure.measured is None:
            continue
        error = abs(figure.measured - figure.configured)
        if figure.name == "delay_us":
            errors["delay_us"] = max(errors.get("delay_us", 0.0), error)
        elif figure.name == "rate_bps":
            errors["rate"] = max(errors.get("rate", 0.0), error / figure.configured)
    return errors


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
