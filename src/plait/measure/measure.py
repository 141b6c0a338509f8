"""Measures every line of a hosts file: what to send, in which order, and what follows from it.

idle      both directions of two lines at once, small packets every 20 ms: base RTT and jitter
train     0.3 s at the rate of the limits: roughly the rate (the dispersion of a packet train)
overload  one direction after the other, at 1.3 times that rate, beside small packets of another flow: rate, token
          bucket, queue
quarter   both directions of two lines at once, at a quarter of the rate: loss
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plait.errors import RequestError
from plait.frames import IPV6_HEADER, UDP_HEADER
from plait.hosts.model import HostsFile
from plait.measure.estimates.delays import base_rtt, jitter
from plait.measure.estimates.load import Load, Overload, overload, train_rate
from plait.measure.estimates.losses import loss
from plait.measure.estimates.packets import PacketTimes
from plait.measure.estimates.queues import AFTER_US
from plait.measure.model import DirectionEstimate, LineEstimate
from plait.measure.named import ends_of
from plait.measure.over_tcp import measure_over_tcp
from plait.measure.probing import DRAIN_US, LineEnd, LineProber, PacketBurst
from plait.scenario.names import read_link_name

SMALL_BYTES, FULL_BYTES, LOSS_BYTES = 64, 1400, 64
_IDLE_S, _TRAIN_S, _QUARTER_S = 5.0, 0.3, 10.0
_SMALL_NS = 20_000_000
_SMALL_BPS = 50_000
"""More than the small packets beside a load take of limits.rate."""
_QUIET_US = 1_000_000
"""Small packets alone, before and after a load."""
_WARM_UP = 10
"""Idle packets that do not count: the first ones wait for ARP."""
_BETWEEN_US = 2_000_000
_OVERLOAD_S = (2.0, 10.0)
"""The shortest and the longest time of an overload."""
_ABOVE = 1.3
_MOST_PACKETS_PER_S = 2000
"""Packets per second of the phase for loss."""
_MOST_PACKETS = 1_500_000
_MOST_DRAINING_S = 30.0
_AT_ONCE = 2
"""Lines whose small packets, and whose quarters, cross at once: a shared bottleneck then carries half of its rate."""
_PORTS = 4
"""Each burst of a trial has its own."""


@dataclass(frozen=True)
class Budget:
    """What the measurement of one line may use: time for each overload, rate, and bytes that a host sends."""

    overload_s: float
    rate_bps: float
    bytes: float

    @classmethod
    def within(cls, hosts: HostsFile) -> Budget:
        """Divide the limits of a hosts file among its lines.

        Raises RequestError if no line is there, or the limits are too small for a measurement.
        """
        lines = len(hosts.lines())
        if not lines:
            raise RequestError(
                "the hosts file has no line: give two hosts an address under the same name, for example "
                "addresses: {fibre: 192.0.2.1}"
            )
        others_s = (
            _IDLE_S + 2 * _TRAIN_S + _QUARTER_S + (4 * _BETWEEN_US + 2 * (AFTER_US + 2 * _QUIET_US)) / 1e6
        )
        overload_s = min(_OVERLOAD_S[1], (hosts.limits.time.us / 1e6 / lines - others_s) / 2)
        if overload_s < _OVERLOAD_S[0]:
            needed = lines * (others_s + 2 * _OVERLOAD_S[0])
            raise RequestError(
                f"measuring {lines} lines takes at least {needed:.0f}s; write limits.time: {needed:.0f}s or more"
            )
        return cls(overload_s, float(hosts.limits.rate), int(hosts.limits.bytes) / lines)


Ways = tuple[tuple[LineEnd, LineEnd], tuple[LineEnd, LineEnd]]


@dataclass(frozen=True)
class _Line:
    """A line, its directions, and the payload of packets that fill it."""

    name: str
    ways: Ways
    payload: int


_Loaded = tuple[Overload, float]
"""A direction under load: what it shows, and the rate in bit/s that it carries for long."""


def _measure_lines(
    lines: Sequence[_Line], budget: Budget, prober: LineProber, notify: Callable[[str], None]
) -> list[LineEstimate]:
    """Measure up to two lines. What fills no queue crosses both at once. Raises TrialError if a host fails."""
    names = ", ".join(line.name for line in lines)
    notify(f"{names}: round-trip time and jitter")
    count = _WARM_UP + int(_IDLE_S * 1e9 / _SMALL_NS)
    ways = [way for line in lines for way in line.ways]
    quiet = prober.send([PacketBurst(*way, 0, SMALL_BYTES, _SMALL_NS, count) for way in ways])
    estimates: dict[str, LineEstimate] = {}
    loaded: list[tuple[_Line, list[PacketTimes], list[_Loaded]]] = []
    for number, line in enumerate(lines):
        calm = quiet[2 * number : 2 * number + 2]
        if any(packets.arrived.any() for packets in calm):
            idle = [packets.without_first(_WARM_UP) for packets in calm]
            loaded.append((line, idle, _loaded(line, budget, prober, notify)))
        else:
            notify(f"{line.name}: no UDP packet arrives, so TCP connections measure the line")
            estimates[line.name] = measure_over_tcp(
                line.name, line.ways[0], prober, budget.rate_bps, budget.bytes
            )
    if loaded:
        notify(f"{', '.join(line.name for line, _, _ in loaded)}: loss")
        quarters = prober.send(
            [
                _quarter(way, lasting_bps, budget)
                for line, _, directions in loaded
                for way, (_, lasting_bps) in zip(line.ways, directions, strict=True)
            ]
        )
        for number, (line, idle, directions) in enumerate(loaded):
            lossy = quarters[2 * number : 2 * number + 2]
            estimates[line.name] = _estimate(line, idle, directions, lossy)
    return [estimates[line.name] for line in lines]


def _loaded(line: _Line, budget: Budget, prober: LineProber, notify: Callable[[str], None]) -> list[_Loaded]:
    """Overload one direction of a line after the other."""
    notify(f"{line.name}: rate")
    trains = _trains(line.ways, budget, line.payload)
    coarse = prober.send(trains)
    trains_us = prober.zero_us
    prober.wait(max(map(draining_s, trains, coarse)))
    notify(f"{line.name}: rate, token bucket and queue under load")
    most_bps = max(budget.rate_bps - _SMALL_BPS, budget.rate_bps / 2)
    rates = [min(most_bps, _ABOVE * (train_rate(packets) or most_bps)) for packets in coarse]
    bursts = _loads(line.ways, rates, budget, line.payload)
    packets = prober.send(bursts)
    directions = []
    for number, train in enumerate(coarse):
        full, sparse = 2 * number, 2 * number + 1
        taken_before_us = prober.zero_us + bursts[full].start_us - trains_us - trains[number].start_us
        taken = float(train.arrived.sum() * train.frame_bytes)
        result = overload(Load(packets[full], packets[sparse], taken, max(0.0, taken_before_us)))
        directions.append((result, result.lasting_bps or rates[number]))
    return directions


def _estimate(
    line: _Line, idle: Sequence[PacketTimes], directions: Sequence[_Loaded], quarters: Sequence[PacketTimes]
) -> LineEstimate:
    """Return what the idle, the loaded and the quarterly filled line show."""
    there, back = (
        _direction(way, calm, result, quarter)
        for way, calm, (result, _), quarter in zip(line.ways, idle, directions, quarters, strict=True)
    )
    serialisation_us = sum(
        small.frame_bytes * 8e6 / (result.rate_bps.value or lasting_bps)
        for small, (result, lasting_bps) in zip(idle, directions, strict=True)
    )
    return LineEstimate(line.name, there, back, base_rtt(idle[0], idle[1], serialisation_us))


def _trains(ways: Ways, budget: Budget, payload: int) -> list[PacketBurst]:
    lasts_s = min(_TRAIN_S, 0.1 * budget.bytes * 8 / budget.rate_bps)
    return [
        PacketBurst.at_rate(way, place * (_BETWEEN_US + 300_000), payload, budget.rate_bps, lasts_s)
        for place, way in enumerate(ways)
    ]


def draining_s(train: PacketBurst, packets: PacketTimes) -> float:
    """Return how long packets of a train may still wait in a queue after its trial: seconds, at most 30.

    A queue of thousands of packets (fq_codel has 10,240) holds a train for longer than the trial listens. They would
    fill it again before the load. Nothing waits if no packet arrived in the last second of the trial.
    """
    times, bps = packets.arrivals_us(), train_rate(packets)
    listened_us = train.end_us - train.start_us + DRAIN_US
    if bps is None or times[-1] - times[0] < listened_us - 1e6:
        return 0.0
    return min(_MOST_DRAINING_S, float((~packets.arrived).sum()) * packets.frame_bytes * 8 / bps)


def _loads(ways: Ways, rates: list[float], budget: Budget, payload: int) -> list[PacketBurst]:
    """Return for each direction its load, and the small packets before, beside and after it."""
    bursts: list[PacketBurst] = []
    begin_us = 0
    for way, bps in zip(ways, rates, strict=True):
        lasts_s = min(budget.overload_s, 0.6 * budget.bytes * 8 / bps, _MOST_PACKETS * payload * 8 / bps)
        full = PacketBurst.at_rate(way, begin_us + _QUIET_US, payload, bps, lasts_s)
        end_us = full.end_us + int(AFTER_US) + _QUIET_US
        small = (end_us - begin_us) * 1000 // _SMALL_NS
        bursts += [full, PacketBurst(*way, begin_us, SMALL_BYTES, _SMALL_NS, small)]
        begin_us = end_us
    return bursts


def _direction(
    way: tuple[LineEnd, LineEnd], calm: PacketTimes, result: Overload, quarter: PacketTimes
) -> DirectionEstimate:
    ratio, model = loss(quarter)
    deviation, above_us = jitter(calm)
    return DirectionEstimate(
        way[0].host, way[1].host, result.rate_bps, result.bucket, result.lasted_s, result.queue,
        ratio, model, deviation, above_us, quarter.sent_us.size, result.burst_bytes,
    )  # fmt: skip


def _quarter(way: tuple[LineEnd, LineEnd], bps: float, budget: Budget) -> PacketBurst:
    """Return a burst at a quarter of `bps`, of at most a tenth of the bytes."""
    frame = PacketBurst(*way, 0, LOSS_BYTES, 1, 1).frame_bytes
    bps = min(bps / 4, _MOST_PACKETS_PER_S * frame * 8, 0.1 * budget.bytes * 8 / _QUARTER_S)
    return PacketBurst.at_rate(way, 0, LOSS_BYTES, bps, _QUARTER_S)


def check_lines(hosts: HostsFile) -> None:
    """Raise RequestError if the name of a line is not that of a link between its two hosts, or an end lacks ports."""
    for line, (a, b) in hosts.lines().items():
        for end in (a, b):
            if len(hosts.hosts[end].port_range) < _PORTS:
                raise RequestError(
                    f"measuring {line} takes {_PORTS} ports of {end}, and the hosts file allows "
                    f"{hosts.hosts[end].ports}; allow more in ports"
                )
        try:
            name = read_link_name(line, hosts.hosts)
        except ValueError:
            name = None
        if name is None or {name.a, name.b} != {a, b}:
            raise RequestError(
                f"the line {line} joins {a} and {b}; call it {a}-{b} in the hosts file, or {a}-{b}#2 if there is "
                "another, so that a scenario can have it as a link"
            )


def measure(
    hosts: HostsFile,
    prober: LineProber,
    notify: Callable[[str], None],
    mtus: Mapping[str, int] | None = None,
) -> list[LineEstimate]:
    """Measure every line of a hosts file.

    `notify` shows what is going on; `mtus` are those of lines, if they are known. Raises RequestError if the limits
    are too small or a name is not that of a link, and TrialError if a host fails.
    """
    check_lines(hosts)
    budget = Budget.within(hosts)
    lines = []
    for name in hosts.lines():
        a, b = ends_of(hosts, name)
        lines.append(_Line(name, ((a, b), (b, a)), full_bytes((mtus or {}).get(name))))
    return [
        estimate
        for first in range(0, len(lines), _AT_ONCE)
        for estimate in _measure_lines(lines[first : first + _AT_ONCE], budget, prober, notify)
    ]


def full_bytes(mtu: int | None) -> int:
    """Return the payload of a packet that fills a line whose path has this MTU, or at most the usual one."""
    return FULL_BYTES if mtu is None else min(FULL_BYTES, mtu - IPV6_HEADER - UDP_HEADER)
