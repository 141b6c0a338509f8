"""Build the networks of the reference model and collect their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from statistics import fmean

from coupling_packets import KHALILI, Clock, Queue, Route
from coupling_rules import RENO, Rule
from coupling_sender import EQUATIONS, Behaviour, Connection, Subflow

FRAME_BITS = 1514 * 8
SAMPLE = 0.1
JITTER = 5.0
"""Flows start at random within these seconds."""


@dataclass(frozen=True)
class Group:
    """Means over the subflows of a kind."""

    rate: float
    """Delivered frames, bit/s."""
    cwnd: float
    """Segments, over time."""
    ssthresh: float
    """Segments, over time."""
    srtt: float
    """Seconds, over time."""
    losses: float
    """Lost packets per second."""
    timeouts: float
    """Per second."""


Groups = dict[str, Group]


@dataclass(frozen=True)
class Run:
    """The length of a run, its seed, and the behaviour of its hosts."""

    start: float
    """Statistics start here, seconds."""
    end: float
    seed: int = 1
    behaviour: Behaviour = EQUATIONS
    delay: float = 0.04
    """One way, seconds."""
    red: bool = True
    """Queues drop by random early detection, or only when full."""


class Watch:
    """Statistics of groups of subflows."""

    def __init__(self, clock: Clock, groups: dict[str, list[Subflow]], run: Run) -> None:
        self.clock, self.groups, self.interval = clock, groups, run
        self.samples: dict[str, list[tuple[float, float, float]]] = {name: [] for name in groups}
        self.first: dict[str, list[tuple[int, int, int]]] = {}
        clock.at(run.start, self._start)

    def _start(self) -> None:
        self.first = {name: self._counters(name) for name in self.groups}
        self._sample()

    def _counters(self, name: str) -> list[tuple[int, int, int]]:
        return [(flow.delivered, flow.losses, flow.timeouts) for flow in self.groups[name]]

    def _sample(self) -> None:
        for name, flows in self.groups.items():
            self.samples[name] += [(flow.cwnd, min(flow.ssthresh, 1e6), flow.srtt) for flow in flows]
        if self.clock.now + SAMPLE <= self.interval.end:
            self.clock.at(self.clock.now + SAMPLE, self._sample)

    def run(self) -> Groups:
        """Run to the end and return the statistics of each group."""
        self.clock.run(self.interval.end)
        return {name: self._group(name) for name in self.groups}

    def _group(self, name: str) -> Group:
        seconds = self.interval.end - self.interval.start
        pairs = zip(self._counters(name), self.first[name], strict=True)
        changes = [[last - first for last, first in zip(*pair, strict=True)] for pair in pairs]
        packets, losses, timeouts = (fmean(column) / seconds for column in zip(*changes, strict=True))
        cwnd, ssthresh, srtt = (fmean(column) for column in zip(*self.samples[name], strict=True))
        return Group(packets * FRAME_BITS, cwnd, ssthresh, srtt, losses, timeouts)


def bottleneck(clock: Clock, random: Random, rate: float, run: Run) -> Queue:
    """Return a link of Khalili's test bed; the queue's length scales with the rate."""
    curve = [(packets * rate / 10e6, share) for packets, share in KHALILI]
    return Queue(clock, random, rate / FRAME_BITS, curve[-1][0], curve if run.red else ())


@dataclass(frozen=True)
class Users:
    """Users of two routes (groups `private` and `shared`) beside TCP users of one (`tcp`)."""

    rule: Rule
    private: Route
    shared: Route
    tcp: Route
    n1: int
    n2: int

    def run(self, clock: Clock, random: Random, run: Run) -> Groups:
        """Start all flows, and return their statistics."""
        groups: dict[str, list[Subflow]] = {"private": [], "shared": [], "tcp": []}
        for _ in range(self.n1):
            connection, start = Connection(self.rule, run.behaviour), random.uniform(0, JITTER)
            groups["private"].append(connection.join(clock, self.private, start))
            groups["shared"].append(connection.join(clock, self.shared, start + 0.1))
        for _ in range(self.n2):
            connection = Connection(RENO, run.behaviour)
            groups["tcp"].append(connection.join(clock, self.tcp, random.uniform(0, JITTER)))
        return Watch(clock, groups, run).run()


def scenario_a(rule: Rule, run: Run, n1: int, n2: int) -> Groups:
    """Return Khalili's scenario A, 1 Mbit/s per user: both routes of type 1 cross its server's link."""
    clock, random = Clock(), Random(run.seed)
    server, access = (bottleneck(clock, random, users * 1e6, run) for users in (n1, n2))
    private = Route(clock, ((server, run.delay),), run.delay)
    shared = Route(clock, ((server, run.delay), (access, 0.0)), run.delay)
    tcp = Route(clock, ((access, run.delay),), run.delay)
    return Users(rule, private, shared, tcp, n1, n2).run(clock, random, run)


def scenario_c(rule: Rule, run: Run, n1: int, n2: int) -> Groups:
    """Return Khalili's scenario C, 1 Mbit/s per user: type 1 also has an access point without other users."""
    clock, random = Clock(), Random(run.seed)
    private = Route(clock, ((bottleneck(clock, random, n1 * 1e6, run), run.delay),), run.delay)
    shared = Route(clock, ((bottleneck(clock, random, n2 * 1e6, run), run.delay),), run.delay)
    return Users(rule, private, shared, shared, n1, n2).run(clock, random, run)


def lossy(rule: Rule, run: Run, losses: tuple[float, ...]) -> Groups:
    """Run one connection over links of 1 Gbit/s with random loss: groups `path0`, `path1`, .."""
    clock, random = Clock(), Random(run.seed)
    connection = Connection(rule, run.behaviour)
    groups = {}
    for number, loss in enumerate(losses):
        queue = Queue(clock, random, 1e9 / FRAME_BITS, 10_000, loss=loss)
        route = Route(clock, ((queue, run.delay),), run.delay)
        groups[f"path{number}"] = [connection.join(clock, route, 0.1 * number)]
    return Watch(clock, groups, run).run()


def empty(
    connection: Connection, run: Run, rates: tuple[float, ...], limit: float = 1000, *, ack_frames: float = 0
) -> Groups:
    """Run one connection over links without other users: groups `path0`, `path1`, ..

    An ACK takes as long as that many frames, in addition to the delay of its path.
    """
    clock, random = Clock(), Random(run.seed)
    groups = {}
    for number, rate in enumerate(rates):
        ack_delay = run.delay + ack_frames * FRAME_BITS / rate
        route = Route(clock, ((Queue(clock, random, rate / FRAME_BITS, limit), run.delay),), ack_delay)
        groups[f"path{number}"] = [connection.join(clock, route, 0.1 * number)]
    return Watch(clock, groups, run).run()
