"""Measures every line of a hosts file: what to send, in which order, and what follows from it.

idle      both directions at once, small packets every 20 ms: base RTT and jitter
train     0.3 s at the rate of the limits: roughly the rate
overload  one direction after the other, at 1.3 times that rate: rate, token bucket, queue
quarter   both directions at a quarter of the rate: loss
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.errors import RequestError
from plait.measure.estimate import base_rtt, jitter, loss, overload, train_rate
from plait.measure.model import DirectionEstimate, LineEstimate
from plait.measure.probing import LineEnd, PacketBurst
from plait.scenario.names import read_link_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.hosts.model import HostsFile
    from plait.measure.estimate import Overload, PacketTimes
    from plait.measure.probing import LineProber

SMALL_BYTES, FULL_BYTES, LOSS_BYTES = 64, 1400, 400
_IDLE_S, _TRAIN_S, _QUARTER_S = 5.0, 0.3, 6.0
_WARM_UP = 10
"""Idle packets that do not count: the first ones wait for ARP."""
_BETWEEN_US = 2_000_000
_OVERLOAD_S = (2.0, 10.0)
"""The shortest and the longest time of an overload."""
_ABOVE = 1.3
_MOST_PACKETS_PER_S = 4000
"""PacketTimes per second of the phase for loss."""
_MOST_PACKETS = 1_500_000


@dataclass(frozen=True)
class Budget:
    """What the measurement of one line may use: time for each overload, rate, and bytes that a host sends."""

    overload_s: float
    rate_bps: float
    bytes: float

    @classmethod
    def of(cls, hosts: HostsFile) -> Budget:
        """Divide the limits of a hosts file among its lines.

        Raises RequestError if no line is there, or the limits are too small for a measurement.
        """
        lines = len(hosts.lines())
        if not lines:
            raise RequestError(
                "the hosts file has no line: give two hosts an address under the same name, for example "
                "addresses: {fibre: 192.0.2.1}"
            )
        others_s = _IDLE_S + 2 * _TRAIN_S + _QUARTER_S + 4 * _BETWEEN_US / 1e6
        overload_s = min(_OVERLOAD_S[1], (hosts.limits.time.us / 1e6 / lines - others_s) / 2)
        if overload_s < _OVERLOAD_S[0]:
            needed = lines * (others_s + 2 * _OVERLOAD_S[0])
            raise RequestError(
                f"measuring {lines} lines takes at least {needed:.0f}s; write limits.time: {needed:.0f}s or more"
            )
        return cls(overload_s, float(hosts.limits.rate), int(hosts.limits.bytes) / lines)


def ends_of(hosts: HostsFile, line: str) -> tuple[LineEnd, LineEnd]:
    """Return the two ends of a line."""
    a, b = (
        LineEnd(name, hosts.hosts[name].addresses[line], hosts.hosts[name].port_range[0])
        for name in hosts.lines()[line]
    )
    return a, b


def measure_line(
    name: str,
    ends: tuple[LineEnd, LineEnd],
    budget: Budget,
    prober: LineProber,
    notify: Callable[[str], None],
) -> LineEstimate:
    """Measure one line. Raises TrialError if a host fails."""
    ways = (ends, (ends[1], ends[0]))
    notify(f"{name}: round-trip time and jitter")
    count = _WARM_UP + int(_IDLE_S * 50)
    quiet = [PacketBurst(*way, 0, SMALL_BYTES, 20_000_000, count) for way in ways]
    idle = [packets.without_first(_WARM_UP) for packets in prober.send(quiet)]
    notify(f"{name}: rate")
    train_s = min(_TRAIN_S, 0.1 * budget.bytes * 8 / budget.rate_bps)
    trains = [
        PacketBurst.at_rate(way, place * (_BETWEEN_US + 300_000), FULL_BYTES, budget.rate_bps, train_s)
        for place, way in enumerate(ways)
    ]
    coarse = [train_rate(packets) for packets in prober.send(trains)]
    trains_us = prober.zero_us
    notify(f"{name}: rate, token bucket and queue under load")
    rates = [min(budget.rate_bps, _ABOVE * (rate or budget.rate_bps)) for rate in coarse]
    bursts: list[PacketBurst] = []
    for way, bps in zip(ways, rates, strict=True):
        start_us = bursts[-1].end_us + _BETWEEN_US if bursts else 0
        lasts_s = min(budget.overload_s, 0.6 * budget.bytes * 8 / bps, _MOST_PACKETS * FULL_BYTES * 8 / bps)
        bursts.append(PacketBurst.at_rate(way, start_us, FULL_BYTES, bps, lasts_s))
    loads = prober.send(bursts)
    least = [float(packets.delays_us.min()) if packets.arrived.any() else None for packets in idle]
    results = []
    for number, load in enumerate(loads):
        spent = float(trains[number].count * trains[number].frame_bytes)
        arrived = spent if coarse[number] is None else min(spent, (coarse[number] or 0) * train_s / 8)
        begin_us, train_end_us = prober.zero_us + bursts[number].start_us, trains_us + trains[number].end_us
        gap_us = begin_us - train_end_us
        delay = _least_delay(load, least[number])
        results.append(overload(load, delay, arrived, max(0.0, gap_us)))
    notify(f"{name}: loss")
    lasting = [_long_run_bps(result, bps) for result, bps in zip(results, rates, strict=True)]
    quarters = prober.send([_quarter(way, bps, budget) for way, bps in zip(ways, lasting, strict=True)])
    directions = []
    for way, calm, result, quarter in zip(ways, idle, results, quarters, strict=True):
        deviation, above_us = jitter(calm)
        directions.append(
            DirectionEstimate(
                way[0].host, way[1].host, result.rate_bps, result.bucket, result.queue_bytes,
                loss(quarter), deviation, above_us, quarter.sent_us.size,
            )
        )  # fmt: skip
    return LineEstimate(name, directions[0], directions[1], base_rtt(*idle))


def _least_delay(load: PacketTimes, idle_us: float | None) -> float | None:
    """Return the least delay without load, on the clocks of the trial with load: that of its own first packets.

    The offset of two trials differs, because each begins at a zero of its own; the first packet meets an empty queue.
    """
    if idle_us is None or not load.arrived.any():
        return None
    return float(load.delays_us[: max(3, load.delays_us.size // 100)].min())


def _long_run_bps(result: Overload, fallback: float) -> float:
    """Return the rate that a direction carries for long: that of its bucket's baseline, or its rate."""
    if result.bucket is not None and result.bucket.baseline_bps.value:
        return result.bucket.baseline_bps.value
    return result.rate_bps.value or result.rate_bps.low or fallback


def _quarter(way: tuple[LineEnd, LineEnd], bps: float, budget: Budget) -> PacketBurst:
    """Return a burst at a quarter of `bps`, of at most a tenth of the bytes."""
    frame = PacketBurst(*way, 0, LOSS_BYTES, 1, 1).frame_bytes
    bps = min(bps / 4, _MOST_PACKETS_PER_S * frame * 8, 0.1 * budget.bytes * 8 / _QUARTER_S)
    return PacketBurst.at_rate(way, 0, LOSS_BYTES, bps, _QUARTER_S)


def check_names(hosts: HostsFile) -> None:
    """Raise RequestError if the name of a line is not that of a link between its two hosts."""
    for line, (a, b) in hosts.lines().items():
        try:
            name = read_link_name(line, hosts.hosts)
        except ValueError:
            name = None
        if name is None or {name.a, name.b} != {a, b}:
            raise RequestError(
                f"the line {line} joins {a} and {b}; call it {a}-{b} in the hosts file, or {a}-{b}#2 if there is "
                "another, so that a scenario can have it as a link"
            )


def measure(hosts: HostsFile, prober: LineProber, notify: Callable[[str], None]) -> list[LineEstimate]:
    """Measure every line of a hosts file.

    `notify` shows what is going on. Raises RequestError if the limits are too small or a name is not that of a link,
    and TrialError if a host fails.
    """
    check_names(hosts)
    budget = Budget.of(hosts)
    return [measure_line(line, ends_of(hosts, line), budget, prober, notify) for line in hosts.lines()]
