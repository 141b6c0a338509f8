"""Model what Linux adds to the equations: loss detection, recovery and delayed ACKs of a subflow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coupling_sender import Subflow

LEAST_RTO = 0.2
DELAYED_ACK = 0.04
QUICK_ACKS = 16
"""Packets that Linux acknowledges at once at the start, and after a silence longer than a retransmission timeout."""
MOST_BACKOFF = 64


class Reduction:
    """Proportional rate reduction (RFC 6937), with slow start below ssthresh, as in Linux."""

    def __init__(self, subflow: Subflow) -> None:
        self.subflow = subflow
        self.window = 1.0
        self.delivered = self.first_transmission = 0

    def start(self, window: float) -> None:
        """Start recovery from a window."""
        self.window, self.delivered = window, 0
        self.first_transmission = self.subflow.next_transmission

    def limit(self, arrived: int, lost: int) -> None:
        """Set the window to the packets in flight plus those that may leave now."""
        subflow = self.subflow
        self.delivered += arrived
        sent = subflow.next_transmission - self.first_transmission
        flying = len(subflow.flying)
        room = int(subflow.ssthresh) - flying
        if room < 0:
            count = math.ceil(subflow.ssthresh * self.delivered / self.window) - sent
        else:
            count = min(room, max(self.delivered - sent, arrived) + (not lost))
        subflow.cwnd = flying + max(count, 0 if sent else 1)


class Receiver:
    """It acknowledges every packet at once, or delays ACKs.

    Delayed ACKs leave for every second packet in order, after 40 ms, and when a packet of a sibling makes the
    application read: MPTCP then acknowledges on all subflows (mptcp_cleanup_rbuf).
    """

    def __init__(self, subflow: Subflow) -> None:
        self.subflow = subflow
        self.expected = 0
        self.early: set[int] = set()
        self.waiting: list[int] = []
        self.timer = 0
        self.quick = QUICK_ACKS
        self.last_arrival = 0.0

    def receive(self, transmission: int) -> None:
        """Receive a packet."""
        for sibling in self.subflow.connection.subflows:
            if sibling is not self.subflow:
                sibling.receiver.flush()
        waits = self.subflow.behaviour.delayed_acks and self._may_wait(transmission)
        if not waits or self.waiting:
            self._acknowledge(transmission)
        else:
            self.waiting.append(transmission)
            self.timer += 1
            self.subflow.clock.at(self.subflow.clock.now + DELAYED_ACK, self._expire, self.timer)

    def _may_wait(self, transmission: int) -> bool:
        subflow = self.subflow
        in_order = self._is_in_order(subflow.flying.get(transmission, (-1, 0.0))[0])
        if subflow.clock.now - self.last_arrival > subflow.detection.timeout():
            self.quick = QUICK_ACKS
        self.last_arrival = subflow.clock.now
        self.quick = max(0, self.quick - 1)
        return in_order and not self.quick

    def _is_in_order(self, segment: int) -> bool:
        in_order = segment == self.expected and not self.early
        self.early.add(segment)
        while self.expected in self.early:
            self.early.remove(self.expected)
            self.expected += 1
        self.early = {early for early in self.early if early > self.expected}
        return in_order

    def flush(self) -> None:
        """Acknowledge what waits, because the application reads."""
        if self.waiting:
            self._acknowledge()

    def _expire(self, timer: int) -> None:
        if timer == self.timer:
            self.flush()

    def _acknowledge(self, *transmissions: int) -> None:
        subflow, waiting = self.subflow, [*self.waiting, *transmissions]
        self.waiting = []
        subflow.clock.at(subflow.clock.now + subflow.route.ack_delay, subflow.acknowledge, waiting)


class LossDetection:
    """Detection by later ACKs (RACK, or RFC 5681), tail loss probes (RFC 8985) and timeouts (RFC 6298)."""

    def __init__(self, subflow: Subflow) -> None:
        self.subflow = subflow
        self.timed_out = False
        self.backoff = 1
        self.overtaken: dict[int, int] = {}
        """Transmission in flight -> the number of later ones that have arrived."""
        self.probe: int | None = None
        """The segment of the tail loss probe in flight."""
        self.deadline = math.inf
        self.deadline_is_probe = False
        self.scheduled = False

    def overtake(self, transmission: int) -> int:
        """Mark earlier transmissions lost when enough later ones have arrived; return how many."""
        subflow = self.subflow
        if next(iter(subflow.flying), transmission) >= transmission:
            self.overtaken = {}
            return 0
        earlier = [number for number in subflow.flying if number < transmission]
        self.overtaken = {number: self.overtaken.get(number, 0) + 1 for number in earlier}
        lost = [number for number in earlier if self.overtaken[number] >= subflow.behaviour.duplicates]
        for number in lost:
            del self.overtaken[number]
            subflow.lost.append(subflow.flying.pop(number)[0])
        subflow.losses += len(lost)
        return len(lost)

    def answer(self, segment: int) -> None:
        """Stop backing off, and settle a probe: the segment's first transmission was lost."""
        self.backoff = 1
        if segment != self.probe:
            return
        subflow = self.subflow
        self.probe = None
        copies = [number for number, (other, _) in subflow.flying.items() if other == segment]
        for number in copies:
            del subflow.flying[number]
            self.overtaken.pop(number, None)
        if copies and not subflow.recovering:
            subflow.losses += 1
            subflow.reduce()

    def timeout(self) -> float:
        """Return the retransmission timeout before backing off, seconds."""
        subflow = self.subflow
        return subflow.srtt + max(LEAST_RTO, 4 * subflow.variance) if subflow.srtt else 1.0

    def restart_timer(self) -> None:
        """Restart the timer of a probe, or of the retransmission timeout."""
        subflow = self.subflow
        if not subflow.behaviour.detects_losses:
            return
        if subflow.behaviour.probes and not subflow.recovering and subflow.srtt and self.probe is None:
            wait = 2 * subflow.srtt + (LEAST_RTO if len(subflow.flying) <= 1 else 0.002)
            self._set_timer(min(wait, self.timeout()), probe=True)
        else:
            self._set_timer(self.timeout() * self.backoff)

    def _set_timer(self, wait: float, *, probe: bool = False) -> None:
        self.deadline, self.deadline_is_probe = self.subflow.clock.now + wait, probe
        if not self.scheduled:
            self.scheduled = True
            self.subflow.clock.at(self.deadline, self._fire)

    def _fire(self) -> None:
        self.scheduled = self.subflow.clock.now < self.deadline
        if self.scheduled:
            self.subflow.clock.at(self.deadline, self._fire)
        elif self.subflow.flying and self.deadline_is_probe:
            self._send_probe()
        elif self.subflow.flying:
            self._time_out()

    def _send_probe(self) -> None:
        subflow = self.subflow
        self.probe = max(segment for segment, _ in subflow.flying.values())
        self._set_timer(self.timeout())
        subflow.send(self.probe)

    def _time_out(self) -> None:
        """Mark everything in flight lost, and start again with one segment."""
        subflow = self.subflow
        flying = [segment for segment, _ in subflow.flying.values()]
        subflow.timeouts += 1
        subflow.losses += len(flying)
        subflow.lost = sorted({*subflow.lost, *flying})
        subflow.flying.clear()
        self.overtaken.clear()
        if not subflow.recovering:
            subflow.reduce()
            subflow.high = subflow.next_segment
        subflow.recovering = self.timed_out = True
        subflow.cwnd = 1.0
        self.probe = None
        self.backoff = min(2 * self.backoff, MOST_BACKOFF)
        subflow.send_next()
