"""One path of a sender: round-trip times, loss detection, and what is in flight (RFC 9002).

RTTs follow section 5, the packet threshold 3 and the time threshold 9/8 section 6.1, the probe timeout (PTO) section
6.2. Unlike there, a second consecutive PTO declares everything in flight lost: other paths can carry it.
"""

from __future__ import annotations

from collections import deque

from plait.prototype.packets import SEGMENT_BYTES, Ack
from plait.prototype.segment import SentPacket, StreamSegment

PACKET_THRESHOLD = 3
TIME_THRESHOLD = 9 / 8
GRANULARITY = 0.001
INITIAL_RTT = 0.333
MAX_ACK_DELAY = 0.025
MAX_PTO = 60.0
INITIAL_WINDOW = 10.0
LEAST_WINDOW = 2.0
DEAD = 2
"""The number of unanswered timeouts after which a path counts as dead."""


class SendingPath:
    """A path as its sender, its congestion control and schedulers see it. Times are seconds, windows segments."""

    def __init__(self, index: int, name: str, *, backup: bool = False) -> None:
        self.index = index
        self.name = name
        self.backup = backup
        self.mss = SEGMENT_BYTES
        self.established = False
        self.srtt = INITIAL_RTT
        self.rttvar = INITIAL_RTT / 2
        self.min_rtt: float | None = None
        self.latest_rtt = 0.0
        self.cwnd = INITIAL_WINDOW
        self.ssthresh: float | None = None
        self.in_flight = 0
        """Packets in flight."""
        self.timeouts = 0
        """Consecutive probe timeouts without an answer."""
        self.queue: deque[StreamSegment] = deque()
        self.assigned = 0
        """Bytes of new data that the scheduler has given to this path."""
        self.sent_bytes = self.resent_bytes = self.resent_segments = 0
        self.acked_bytes = self.lost_segments = 0
        self.delivery_rate: float | None = None
        """Delivery rate of the last acknowledged packet in bit/s."""
        self.recovery_start = -1.0
        self.recovering = False
        """Whether no packet that was sent after the last loss has been acknowledged yet."""
        self._unacked: dict[int, SentPacket] = {}
        self._number = 0
        self._largest = -1
        self._loss_time: float | None = None
        self._last_sent = 0.0

    @property
    def room(self) -> int:
        """Segments that the congestion window still admits, beyond those in the backlog."""
        return max(0, int(self.cwnd) - self.in_flight - len(self.queue))

    @property
    def backlog(self) -> int:
        """Bytes that wait for this path's congestion window."""
        return sum(segment.length for segment in self.queue)

    @property
    def rate(self) -> float:
        """The rate that window and RTT allow, in bit/s."""
        return self.cwnd * self.mss * 8 / self.srtt

    @property
    def alive(self) -> bool:
        """Whether fewer than two probe timeouts are unanswered."""
        return self.timeouts < DEAD

    def send(self, segment: StreamSegment | None, now: float) -> int:
        """Record a packet that leaves now, and return its number."""
        number = self._number
        self._number += 1
        self._unacked[number] = SentPacket(number, segment, now, self.acked_bytes)
        self.in_flight += 1
        self._last_sent = now
        if segment is not None:
            self.sent_bytes += segment.length
            if segment.losses:
                self.resent_bytes += segment.length
                self.resent_segments += 1
        return number

    def acknowledge(self, ack: Ack, now: float) -> tuple[list[SentPacket], list[SentPacket]]:
        """Return the packets that an ACK newly acknowledges, and those that it shows to be lost."""
        largest = ack.ranges[0][1]
        if largest >= self._number:
            return [], []  # no such packet was sent
        acked = self._take(ack.ranges, largest)
        if not acked:
            return [], []
        newest = acked[-1]
        if newest.number == largest:
            self._sample_rtt(now - newest.sent, ack.delay_us / 1e6)
        self._largest = max(self._largest, largest)
        self.timeouts = 0
        size = sum(packet.segment.length for packet in acked if packet.segment is not None)
        self.acked_bytes += size
        elapsed = now - newest.sent
        if elapsed > 0 and newest.segment is not None:
            self.delivery_rate = (self.acked_bytes - newest.acked_bytes) * 8 / elapsed
        if newest.sent > self.recovery_start:
            self.recovering = False
        return acked, self.detect_losses(now)

    def _take(self, ranges: list[tuple[int, int]], largest: int) -> list[SentPacket]:
        """Remove the packets of `ranges` from those in flight, and return them in order."""
        acked = []
        for number, packet in self._unacked.items():
            if number > largest:
                break
            if any(first <= number <= last for first, last in ranges):
                acked.append(packet)
        for packet in acked:
            del self._unacked[packet.number]
        self.in_flight -= len(acked)
        return acked

    def detect_losses(self, now: float) -> list[SentPacket]:
        """Return the packets that are lost by now, and set the time at which the next ones will be."""
        self._loss_time = None
        wait = max(TIME_THRESHOLD * max(self.srtt, self.latest_rtt), GRANULARITY)
        lost = []
        for number, packet in self._unacked.items():
            if number > self._largest:
                break
            if self._largest - number >= PACKET_THRESHOLD or packet.sent + wait <= now:
                lost.append(packet)
            elif self._loss_time is None:
                self._loss_time = packet.sent + wait
        for packet in lost:
            del self._unacked[packet.number]
        self.in_flight -= len(lost)
        self.lost_segments += sum(packet.segment is not None for packet in lost)
        return lost

    def give_up(self) -> list[SentPacket]:
        """Declare everything in flight lost, and return it."""
        lost = list(self._unacked.values())
        self._unacked.clear()
        self.in_flight = 0
        self._loss_time = None
        self.lost_segments += sum(packet.segment is not None for packet in lost)
        return lost

    def oldest(self) -> SentPacket | None:
        """Return the oldest packet in flight."""
        return next(iter(self._unacked.values()), None)

    def timeout(self) -> float | None:
        """Return the time at which a loss or a probe timeout is due; None if nothing is in flight."""
        if self._loss_time is not None:
            return self._loss_time
        return self._last_sent + self.pto() if self._unacked else None

    def loss_is_due(self, now: float) -> bool:
        """Return whether the time of a loss, instead of a probe timeout, has come."""
        return self._loss_time is not None and self._loss_time <= now

    def pto(self) -> float:
        """Return the probe timeout with its backoff."""
        single = self.srtt + max(4 * self.rttvar, GRANULARITY) + MAX_ACK_DELAY
        return float(min(single * 2 ** min(self.timeouts, 16), MAX_PTO))

    def first_rtt(self, rtt: float) -> None:
        """Take the RTT of the exchange that established the path."""
        self.established = True
        self.min_rtt = self.latest_rtt = self.srtt = rtt
        self.rttvar = rtt / 2

    def _sample_rtt(self, rtt: float, delay: float) -> None:
        self.latest_rtt = rtt
        self.min_rtt = rtt if self.min_rtt is None else min(self.min_rtt, rtt)
        delay = min(delay, MAX_ACK_DELAY)
        adjusted = rtt - delay if rtt >= self.min_rtt + delay else rtt
        self.rttvar += (abs(self.srtt - adjusted) - self.rttvar) / 4
        self.srtt += (adjusted - self.srtt) / 8
