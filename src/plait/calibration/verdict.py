"""What was measured of a setting, what was meant, and whether they are as near as they have to be. Pure.

Tolerances, and why these:

- Delay: 10 us. One-way delays are kept to the nanosecond by netem and stamped in microseconds at the receiver; what is
  left is the kernel's timers. With jitter, four standard errors of the mean are added.
- Rate: 0.5 %. A token bucket in virtual time is exact; this leaves room for the resolution of the receiver's stamps.
- Loss: the count must lie where a fair draw falls with a probability of 99.9999 %. A study may have hundreds of
  settings, and a measurement is the same every time: it must not refuse a good link once and for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from typing import TYPE_CHECKING, Any

import polars as pl

from plait.calibration.probes import loss_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plait.calibration.probes import Probing
    from plait.calibration.settings import Setting

DELAY_TOLERANCE_US = 10.0
RATE_TOLERANCE = 0.005
LOSS_SURPRISE = 1e-6
NAMES = ("delay_us", "rate_bps", "loss_ratio")
"""Of what is measured of a setting."""


@dataclass(frozen=True)
class Figure:
    """One measured quantity. `measured` is None where it could not be measured, `low` and `high` bound what passes."""

    name: str
    """`delay_us`, `rate_bps`, `loss_ratio`."""
    meant: float | None
    measured: float | None
    low: float | None
    high: float | None
    packets: int

    @property
    def good(self) -> bool:
        """Whether it is as it was meant, or was not to be measured."""
        if self.measured is None or self.low is None or self.high is None:
            return self.meant is None
        return self.low <= self.measured <= self.high

    def as_json(self) -> dict[str, Any]:
        """For the result folder."""
        return {
            "meant": self.meant,
            "measured": self.measured,
            "low": self.low,
            "high": self.high,
            "packets": self.packets,
        }


def figures(one: Probing, messages: pl.DataFrame) -> list[Figure]:
    """What the flows of one setting found, from the table `messages`."""
    probe = messages.filter(pl.col("flow") == one.probe).sort("index")
    fill = None if one.saturate is None else messages.filter(pl.col("flow") == one.saturate)
    return [_delay(one.setting, probe), _rate(one.setting, fill), _loss(one.setting, probe)]


def _delay(setting: Setting, probe: pl.DataFrame) -> Figure:
    """The one-way delay of packets that met no queue: the median, or with jitter the mean.

    (A packet that had to wait until its host had asked for an address again, as happens on lossy links, is no delay of
    the link, and does not move the median.)
    """
    netem = setting.netem
    arrived = (probe["received_us"] - probe["sent_us"]).drop_nulls()
    if not setting.steady or netem is None or netem.reorder_ratio or loss_ratio(setting) == 1:
        return Figure("delay_us", None, None, None, None, len(arrived))
    meant = netem.delay_ns / 1000
    if len(arrived) < 2:
        return Figure("delay_us", meant, None, None, None, len(arrived))
    measured, room = arrived.median(), DELAY_TOLERANCE_US
    if netem.jitter_ns:
        measured = arrived.mean()
        room += 4 * float(arrived.std()) / sqrt(len(arrived))  # type: ignore[arg-type]  # of numbers
    return Figure("delay_us", meant, float(measured), meant - room, meant + room, len(arrived))  # type: ignore[arg-type]


def _rate(setting: Setting, fill: pl.DataFrame | None) -> Figure:
    """What came out of a queue that was never empty: bytes of frames by the time between the first and the last."""
    if fill is None or setting.tbf is None:
        return Figure("rate_bps", None, None, None, None, 0)
    meant = float(setting.tbf.rate_bps)
    bounds = (meant * (1 - RATE_TOLERANCE), meant * (1 + RATE_TOLERANCE))
    times = fill["received_us"].drop_nulls().sort()
    copies = int(fill.filter(pl.col("received_us").is_not_null())["copies"].sum())
    if copies != len(times):
        return Figure("rate_bps", None, None, None, None, copies)  # duplicates share the rate, unseen
    settled = times[setting.settling_frames :]
    if len(settled) < 2 or settled[-1] == settled[0]:
        return Figure("rate_bps", meant, None, *bounds, len(times))
    measured = (len(settled) - 1) * setting.frame_bytes * 8e6 / (settled[-1] - settled[0])
    return Figure("rate_bps", meant, measured, *bounds, len(settled))


def _loss(setting: Setting, probe: pl.DataFrame) -> Figure:
    """The share of the probe that did not arrive."""
    sent, lost = len(probe), int(probe["received_us"].null_count())
    if not setting.steady or (setting.netem is not None and setting.netem.corrupt_ratio) or not sent:
        return Figure("loss_ratio", None, lost / sent if sent else None, None, None, sent)
    meant = loss_ratio(setting)
    low, high = _binomial(sent, meant, setting)
    return Figure("loss_ratio", meant, lost / sent, low, high, sent)


def _binomial(sent: int, ratio: float, setting: Setting) -> tuple[float, float]:
    """Between which shares a fair draw falls but for `LOSS_SURPRISE`; bursts count as fewer, independent packets."""
    if ratio in (0.0, 1.0):
        return ratio, ratio
    model = None if setting.netem is None else setting.netem.gemodel
    lasting = 0.0 if model is None else max(0.0, 1 - model.p - model.r)
    alone = max(1, round(sent * (1 - lasting) / (1 + lasting)))
    low, high = (binomial_quantile(q, alone, ratio) for q in (LOSS_SURPRISE / 2, 1 - LOSS_SURPRISE / 2))
    return low / alone, high / alone


def binomial_quantile(q: float, draws: int, ratio: float) -> int:
    """The least count that a binomial distribution stays at or below with probability `q`; 0 < ratio < 1.

    Summed term by term; a test compares it with scipy.stats.binom.ppf, whose import takes longer than all of this.
    """
    total = 0.0
    for count in range(draws):
        combinations = lgamma(draws + 1) - lgamma(count + 1) - lgamma(draws - count + 1)
        total += exp(combinations + count * log(ratio) + (draws - count) * log1p(-ratio))
        if total >= q:
            return count
    return draws


def describe(setting: Setting) -> dict[str, Any]:
    """The setting in few words, for people who read the figures."""
    netem, tbf = setting.netem, setting.tbf
    return {
        "mtu": setting.mtu,
        "rate_bps": None if tbf is None else tbf.rate_bps,
        "delay_ns": None if netem is None else netem.delay_ns,
        "jitter_ns": None if netem is None else netem.jitter_ns,
        "loss_ratio": loss_ratio(setting),
        "qdiscs": [qdisc.options.kind for qdisc in setting.qdiscs],
    }


def worst(results: Mapping[str, list[Figure]] | list[list[Figure]]) -> dict[str, float]:
    """The greatest errors: `delay_us` and, as a share of what was meant, `rate`."""
    lists = list(results.values()) if not isinstance(results, list) else results
    errors: dict[str, float] = {}
    for figure in (figure for figures_ in lists for figure in figures_):
        if figure.meant is None or figure.measured is None:
            continue
        error = abs(figure.measured - figure.meant)
        if figure.name == "delay_us":
            errors["delay_us"] = max(errors.get("delay_us", 0.0), error)
        elif figure.name == "rate_bps":
            errors["rate"] = max(errors.get("rate", 0.0), error / figure.meant)
    return errors
