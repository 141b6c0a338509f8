"""Measures every line of a hosts file: what to send, in which order, and what follows from it.

idle      both directions at once, small packets every 20 ms: base RTT and jitter
train     0.3 s at the rate of the limits: roughly the rate (the dispersion of a packet train)
overload  one direction after the other, at 1.3 times that rate, beside small packets of another flow: rate, token
          bucket, queue
quarter   both directions at a quarter of the rate: loss
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plait.errors import RequestError
from plait.frames import IPV6_HEADER
from plait.hosts.model import HostsFile
from plait.measure.estimates.delays import base_rtt, jitter
from plait.measure.estimates.load import Load, Overload, overload, train_rate
from plait.measure.estimates.losses import loss
from plait.measure.estimates.packets import PacketTimes
from plait.measure.estimates.queues import AFTER_US
from plait.measure.model import DirectionEstimate, LineEstimate
from plait.measure.named import ends_of
from plait.measure.over_tcp import measure_over_tcp
from plait.measure.probing import DRAIN_US, UDP_HEADER, LineEnd, LineProber, PacketBurst
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
_PORTS = 4
"""Each burst of a trial has its own."""


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


def measure_line(
    name: str,
    ends: tuple[LineEnd, LineEnd],
    budget: Budget,
    prober: LineProber,
    notify: Callable[[str], None],
    *,
    payload: int = FULL_BYTES,
) -> LineEstimate:
    """Measure one line, with packets of `payload` bytes where they fill it. Raises TrialError if a host fails."""
    ways = (ends, (ends[1], ends[0]))
    notify(f"{name}: round-trip time and jitter")
    count = _WARM_UP + int(_IDLE_S * 1e9 / _SMALL_NS)
    quiet = prober.send([PacketBurst(*way, 0, SMALL_BYTES, _SMALL_NS, count) for way in ways])
    if not any(packets.arrived.any() for packets in quiet):
        notify(f"{name}: no UDP packet arrives, so TCP connections measure the line")
        return measure_over_tcp(name, ends, prober)
    idle = [packets.without_first(_WARM_UP) for packets in quiet]
    notify(f"{name}: rate")
    trains = _trains(ways, budget, payload)
    coarse = prober.send(trains)
    trains_us = prober.zero_us
    prober.wait(max(map(draining_s, trains, coarse)))
    notify(f"{name}: rate, token bucket and queue under load")
    most_bps = max(budget.rate_bps - _SMALL_BPS, budget.rate_bps / 2)
    rates = [min(most_bps, _ABOVE * (train_rate(packets) or most_bps)) for packets in coarse]
    bursts = _loads(ways, rates, budget, payload)
    packets = prober.send(bursts)
    results = []
    for number, train in enumerate(coarse):
        full, sparse = 2 * number, 2 * number + 1
        taken_before_us = prober.zero_us + bursts[full].start_us - trains_us - trains[number].start_us
        taken = float(train.arrived.sum() * train.frame_bytes)
        results.append(overload(Load(packets[full], packets[sparse], taken, max(0.0, taken_before_us))))
    notify(f"{name}: loss")
    lasting = [result.lasting_bps or bps for result, bps in zip(results, rates, strict=True)]
    quarters = prober.send([_quarter(way, bps, budget) for way, bps in zip(ways, lasting, strict=True)])
    there, back = (
        _direction(way, calm, result, quarter)
        for way, calm, result, quarter in zip(ways, idle, results, quarters, strict=True)
    )
    serialisation_us = sum(
        small.frame_bytes * 8e6 / (result.rate_bps.value or bps)
        for small, result, bps in zip(idle, results, lasting, strict=True)
    )
    return LineEstimate(name, there, back, base_rtt(idle[0], idle[1], serialisation_us))


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
    budget = Budget.of(hosts)
    return [
        measure_line(
            line, ends_of(hosts, line), budget, prober, notify, payload=full_bytes((mtus or {}).get(line))
        )
        for line in hosts.lines()
    ]


def full_bytes(mtu: int | None) -> int:
    """Return the payload of a packet that fills a line whose path has this MTU, or at most the usual one."""
    return FULL_BYTES if mtu is None else min(FULL_BYTES, mtu - IPV6_HEADER - UDP_HEADER)
