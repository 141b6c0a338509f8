"""Simulate a sender with endless data over several subflows, by the documents alone or with what Linux adds.

By default windows are real numbers, the sender notices a loss when the ACK of the lost packet would have arrived,
reduces its window once per round trip, and knows no timeouts. `Behaviour` adds Linux's behaviour, part by part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coupling_linux import LossDetection, Receiver, Reduction

if TYPE_CHECKING:
    from coupling_packets import Clock, Route
    from coupling_rules import Path, Rule

FIRST_WINDOW = 10


@dataclass(frozen=True)
class Behaviour:
    """What a host does beyond the equations."""

    whole_segments: bool = False
    """Windows are whole segments: the sender saves up increases and rounds half windows down."""
    detects_losses: bool = False
    """Later ACKs, tail loss probes and timeouts reveal losses, instead of an oracle."""
    duplicates: int = 1
    """The number of later packets that reveal a loss: 1 (RACK), or 3 (RFC 5681)."""
    probes: bool = True
    """The sender repeats the last packet when its ACK is late (RFC 8985, section 7), before a timeout."""
    prr: bool = False
    """Proportional rate reduction limits what leaves during recovery (RFC 6937)."""
    delayed_acks: bool = False
    """The receiver delays ACKs (`coupling_linux.Receiver`)."""
    forgets_fractions: bool = False
    """A loss discards the saved fraction of a segment."""
    least_ssthresh: float | None = None
    """Segments; None for the rule's."""


EQUATIONS = Behaviour()
LINUX = Behaviour(whole_segments=True, detects_losses=True, prr=True, delayed_acks=True)
LINUX_2011 = Behaviour(
    whole_segments=True, detects_losses=True, duplicates=3, probes=False, delayed_acks=True
)
"""As of the published measurements: early retransmit came in 2012, tail loss probes in 2013, RACK in 2016."""


class Connection:
    """Subflows and the rule that couples them."""

    def __init__(self, rule: Rule, behaviour: Behaviour = EQUATIONS) -> None:
        self.rule = rule
        self.behaviour = behaviour
        self.subflows: list[Subflow] = []

    def join(self, clock: Clock, route: Route, start: float) -> Subflow:
        """Add a subflow that starts to send at `start`."""
        return self.add(Subflow(clock, route, self), start)

    def add(self, subflow: Subflow, start: float) -> Subflow:
        """Add a subflow; it starts to send at `start`."""
        self.subflows.append(subflow)
        subflow.clock.at(start, subflow.fill)
        return subflow

    def paths(self) -> list[Path]:
        """Return the subflows with a round-trip time."""
        return [subflow for subflow in self.subflows if subflow.srtt > 0]


class Subflow:
    """The window of one route, and the transmissions in flight on it.

    A segment is a piece of data; each time that it leaves is a transmission, with a number of its own.
    """

    def __init__(self, clock: Clock, route: Route, connection: Connection) -> None:
        self.clock, self.route, self.connection = clock, route, connection
        self.behaviour = connection.behaviour
        self.cwnd = float(FIRST_WINDOW)
        self.ssthresh = math.inf
        self.fraction = 0.0
        self.srtt = self.variance = 0.0
        self.least_rtt = math.inf
        self.flying: dict[int, tuple[int, float]] = {}
        """Transmission -> its segment and its time, in order."""
        self.lost: list[int] = []
        """Segments to send again."""
        self.next_transmission = self.next_segment = 0
        self.delivered = self.losses = self.timeouts = 0
        self.interval_start = self.last_interval = 0
        self.recovering = False
        self.high = 0
        """Recovery ends with the ACK of all segments below; with an oracle, of all transmissions below."""
        self.receiver = Receiver(self)
        self.detection = LossDetection(self)
        self.reduction = Reduction(self)

    @property
    def window(self) -> float:
        """Return the window that rules use."""
        distorted = self.recovering and not self.detection.timed_out
        return max(1.0, self.ssthresh if distorted else self.cwnd)

    @property
    def interval(self) -> float:
        """OLIA's l."""
        return max(self.last_interval, self.delivered - self.interval_start)

    def fill(self) -> None:
        """Send what the window allows."""
        while len(self.flying) < max(1, int(self.cwnd)):
            self.send_next()

    def send_next(self) -> None:
        """Send a lost segment again, or else the next one."""
        segment = self.lost.pop(0) if self.lost else self.next_segment
        self.next_segment = max(self.next_segment, segment + 1)
        self.send(segment)

    def send(self, segment: int) -> None:
        """Send a segment."""
        transmission = self.next_transmission
        self.next_transmission += 1
        if not self.flying:
            self.detection.restart_timer()
        self.flying[transmission] = (segment, self.clock.now)
        self.route.carry(self.receiver.receive, self._drop, transmission)

    def _drop(self, transmission: int, rest: float) -> None:
        if not self.behaviour.detects_losses:
            self.clock.at(self.clock.now + rest, self._notice, transmission)

    def _notice(self, transmission: int) -> None:
        """Handle a loss that the oracle reports."""
        self.lost.append(self.flying.pop(transmission)[0])
        self.losses += 1
        if transmission >= self.high:
            self.reduce()
            self.high = self.next_transmission
        self.fill()

    def acknowledge(self, transmissions: list[int]) -> None:
        """Handle an ACK."""
        arrived = [number for number in transmissions if number in self.flying]
        if not arrived:
            return
        self.measure(self.clock.now - self.flying[arrived[0]][1])
        for number in arrived:
            self.detection.answer(self.flying.pop(number)[0])
        self.delivered += len(arrived)
        if self.behaviour.detects_losses:
            self._advance(len(arrived), self.detection.overtake(arrived[-1]))
        elif arrived[-1] >= self.high:
            self.grow(len(arrived))
        self.fill()

    def _advance(self, arrived: int, lost: int) -> None:
        """Enter, continue or leave recovery, or grow."""
        if self.recovering and self.first_missing() >= self.high:
            self._leave_recovery()
        elif lost and not self.recovering:
            self._enter_recovery()
        if self.recovering and self.behaviour.prr and not self.detection.timed_out:
            self.reduction.limit(arrived, lost)
        elif self.detection.timed_out or not (self.recovering or self.detection.overtaken):
            self.grow(arrived)
        if self.recovering or not self.detection.overtaken:
            self.detection.restart_timer()

    def measure(self, sample: float) -> None:
        """Update the round-trip time (RFC 6298)."""
        self.least_rtt = min(self.least_rtt, sample)
        if not self.srtt:
            self.srtt, self.variance = sample, sample / 2
            return
        self.variance += (abs(sample - self.srtt) - self.variance) / 4
        self.srtt += (sample - self.srtt) / 8

    def first_missing(self) -> int:
        """Return the first segment without an ACK."""
        missing = [segment for segment, _ in self.flying.values()]
        return min([*missing, *self.lost], default=self.next_segment)

    def grow(self, arrived: int) -> None:
        """Grow by slow start, or by the rule's increase."""
        if self.cwnd < self.ssthresh:
            self.cwnd = min(self.cwnd + arrived, self.ssthresh)
            return
        increase = arrived * self.connection.rule.increase(self.connection.paths(), self)
        if self.behaviour.whole_segments:
            self.fraction += increase
            increase = math.trunc(self.fraction)
            self.fraction -= increase
        self.cwnd = max(1.0, self.cwnd + increase)

    def reduce(self) -> None:
        """Reduce the window after a loss, and end OLIA's interval."""
        rule, behaviour = self.connection.rule, self.behaviour
        self.last_interval = self.delivered - self.interval_start
        self.interval_start = self.delivered
        reduced = rule.decrease(self.connection.paths(), self, self.cwnd)
        least = rule.least_ssthresh if behaviour.least_ssthresh is None else behaviour.least_ssthresh
        self.ssthresh = max(least, math.floor(reduced) if behaviour.whole_segments else reduced)
        self.cwnd = self.ssthresh
        if behaviour.forgets_fractions:
            self.fraction = 0.0

    def _enter_recovery(self) -> None:
        window = self.cwnd
        self.reduce()
        self.recovering, self.high = True, self.next_segment
        self.reduction.start(window)

    def _leave_recovery(self) -> None:
        if not self.detection.timed_out:
            self.cwnd = self.ssthresh
        self.recovering = self.detection.timed_out = False
