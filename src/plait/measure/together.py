"""Whether lines share a bottleneck: what they carry at once, against what each carries alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from plait.errors import TrialError
from plait.hosts.model import Limits
from plait.measure.estimates.load import train_rate
from plait.measure.estimates.packets import PacketTimes
from plait.measure.model import LineEstimate
from plait.measure.probing import LineEnd, LineProber, PacketBurst

_LASTS_S, _LEAST_S, _FILLING_US = 4.0, 1.5, 1_000_000
"""How long all lines carry packets, at least and at most, and how long queues fill before plait counts."""
_BETWEEN_US = 4_000_000
_ABOVE = 1.2
_BYTES = 0.1
"""The part of the bytes that the measurement of single lines leaves."""
_SHARED = 0.9
"""Lines that carry a smaller part at once than alone share a bottleneck."""

Way = Literal["down", "up"]


@dataclass(frozen=True)
class Together:
    """What lines carry in one direction, in bit/s by line: alone, as far as plait sends as much, and at once."""

    way: Way
    alone_bps: Mapping[str, float]
    at_once_bps: Mapping[str, float]
    target: str = ""
    """The host that receives, if messages should name it instead of `way`."""

    @property
    def part(self) -> float:
        """The part of their rates that the lines carry at once."""
        return sum(self.at_once_bps.values()) / sum(self.alone_bps.values())

    @property
    def is_shared(self) -> bool:
        """Whether the lines share a bottleneck."""
        return self.part < _SHARED


def at_once(
    lines: Sequence[LineEstimate],
    ends: Mapping[str, tuple[LineEnd, LineEnd]],
    limits: Limits,
    prober: LineProber,
    full_bytes: Mapping[str, int],
    *,
    named: bool = False,
) -> list[Together]:
    """Fill all lines at once, down and then up, and return what they carried.

    `ends` are those of the client and the server. With `named`, messages name the receiving host. A direction with a
    line whose rate is not known is left out. Raises TrialError if a host fails.
    """
    bursts: list[PacketBurst] = []
    sent: list[tuple[Way, dict[str, float], dict[str, int]]] = []
    begin_us = 0
    ways: tuple[Way, Way] = ("down", "up")
    for way in ways:
        rates = _rates(lines, ends, way)
        if len(rates) < len(lines):
            continue
        scale = min(_ABOVE, float(limits.rate) / sum(rates.values()))
        lasts_s = min(_LASTS_S, _BYTES * float(limits.bytes) * 8 / (scale * sum(rates.values())))
        if lasts_s < _LEAST_S:
            continue
        sent.append((way, {name: bps * min(1.0, scale) for name, bps in rates.items()}, {}))
        for name, bps in rates.items():
            client, server = ends[name]
            pair = (server, client) if way == "down" else (client, server)
            sent[-1][2][name] = len(bursts)
            bursts.append(PacketBurst.at_rate(pair, begin_us, full_bytes[name], scale * bps, lasts_s))
        begin_us = max(burst.end_us for burst in bursts) + _BETWEEN_US
    packets = prober.send(bursts) if bursts else []
    return [
        Together(
            way,
            alone,
            {name: _carried(packets[number]) for name, number in numbers.items()},
            target=bursts[min(numbers.values())].target.host if named else "",
        )
        for way, alone, numbers in sent
    ]


def _rates(
    lines: Sequence[LineEstimate], ends: Mapping[str, tuple[LineEnd, LineEnd]], way: Way
) -> dict[str, float]:
    """Return the rate that each line carries for long in one direction, where it is known."""
    rates = {}
    for line in lines:
        source = ends[line.name][1 if way == "down" else 0].host
        direction = line.forward if line.forward.source == source else line.backward
        bucket = direction.bucket
        bps = direction.rate_bps.value if bucket is None else bucket.baseline_bps.value
        bps = bps or direction.rate_bps.low
        if bps:
            rates[line.name] = bps
    return rates


def _carried(packets: PacketTimes) -> float:
    """Return the rate of arrivals in bit/s, of packets that were sent once the queues are full."""
    if not len(packets.sent_us):
        raise TrialError("filling all lines at once: a host sent no times of its packets")
    return train_rate(packets.sent_between(float(packets.sent_us[0]) + _FILLING_US, float("inf"))) or 0.0


def together_text(results: Sequence[Together], labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each direction, with its figures."""
    for result in results:
        alone, carried = (
            f"{sum(rates.values()) / 1e6:.3g}" for rates in (result.alone_bps, result.at_once_bps)
        )
        verdict = "share a bottleneck" if result.is_shared else "share no bottleneck"
        each = ", ".join(
            f"{labels[name]} {result.at_once_bps[name] / 1e6:.3g} of {bps / 1e6:.3g}"
            for name, bps in result.alone_bps.items()
        )
        way = f"to {result.target}" if result.target else result.way
        yield f"{way}: at once the lines carry {carried} of {alone} Mbit/s ({each}), so they {verdict}"


def not_together_text(
    lines: Sequence[LineEstimate], labels: Mapping[str, str], measured: Collection[Way]
) -> Iterator[str]:
    """Yield a sentence about the directions of several lines that no packets filled at once, with the reason."""
    ways: tuple[Way, Way] = ("down", "up")
    missing = [way for way in ways if way not in measured]
    if len(lines) < 2 or not missing:
        return
    blocked = [labels[line.name] for line in lines if line.remark]
    reason = (
        f"UDP does not pass {', '.join(blocked)}"
        if blocked
        else "the rate of a line is not known, or limits.bytes (--bytes) do not suffice"
    )
    names = ", ".join(labels[line.name] for line in lines)
    yield f"{' and '.join(missing)}: whether {names} share a bottleneck is not known, because {reason}"
