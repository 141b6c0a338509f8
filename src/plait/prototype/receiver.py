"""The receiving end of a connection: it answers on the path on which a packet arrived. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Callable

from plait.prototype.packets import (
    MAX_RANGES,
    OPEN,
    OPENED,
    Ack,
    Data,
    Open,
    Repair,
    decode,
    encode_ack,
    encode_open,
)
from plait.prototype.parity import Recovery
from plait.prototype.path import MAX_ACK_DELAY

Deliver = Callable[[bytes | memoryview, float], None]


ACK_EVERY = 2
"""Packets in order that one ACK acknowledges (RFC 9000, section 13.2.2)."""


class _PathArrivals:
    """Which packets of one path have arrived, and when the next ACK is due."""

    def __init__(self) -> None:
        self.ranges: list[list[int]] = []
        """(first, last) of the numbers that arrived, ascending."""
        self.bytes = self.packets = self.out_of_order = 0
        self.unacknowledged = 0
        self.due: float | None = None
        self.largest_at = 0.0

    def add(self, number: int, now: float) -> bool:
        """Note a packet, and return whether it is new."""
        ranges = self.ranges
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        elif not ranges or number > ranges[-1][1]:
            ranges.append([number, number])
            self._hurry(now)
        else:
            if not self._insert(number):
                return False
            self.out_of_order += 1
            self._hurry(now)
        if number == ranges[-1][1]:
            self.largest_at = now
        self.unacknowledged += 1
        if self.unacknowledged >= ACK_EVERY or len(ranges) > 1:
            self._hurry(now)
        elif self.due is None:
            self.due = now + MAX_ACK_DELAY
        return True

    def _hurry(self, now: float) -> None:
        self.due = now

    def _insert(self, number: int) -> bool:
        """Insert a number below the largest one; False if it is there."""
        ranges = self.ranges
        place = len(ranges)
        while place and ranges[place - 1][0] > number:
            place -= 1
        if place and ranges[place - 1][1] >= number:
            return False
        joins_below = place > 0 and ranges[place - 1][1] + 1 == number
        joins_above = place < len(ranges) and ranges[place][0] == number + 1
        if joins_below and joins_above:
            ranges[place - 1][1] = ranges[place][1]
            del ranges[place]
        elif joins_below:
            ranges[place - 1][1] = number
        elif joins_above:
            ranges[place][0] = number
        else:
            ranges.insert(place, [number, number])
        return True

    def acknowledged(self) -> list[tuple[int, int]]:
        """Return the ranges for an ACK, the largest first, and forget those that no ACK will name again."""
        del self.ranges[:-MAX_RANGES]
        self.unacknowledged, self.due = 0, None
        return [(first, last) for first, last in reversed(self.ranges)]


class Receiver:
    """The receiving end. Drivers pass it datagrams and times, and send what it returns."""

    def __init__(
        self,
        paths: int,
        window: int,
        connection: int,
        deliver: Deliver | None = None,
        *,
        repairs: bool = False,
    ) -> None:
        """Keep segments for parities if `repairs`: if the sender's scheduler asks for them."""
        self.recovery = Recovery() if repairs else None
        self.buffer = ReorderBuffer(window)
        self.paths = [_PathArrivals() for _ in range(paths)]
        self._connection = connection
        self._deliver = deliver
        self._answers: list[tuple[int, bytes]] = []

    def receive(self, path: int, datagram: bytes, now: float) -> None:
        """Take a datagram that arrived on `path`; ignore what does not belong to this connection."""
        packet = decode(datagram)
        if packet is None or packet.connection != self._connection or packet.path != path:
            return
        if isinstance(packet, (Data, Repair)):
            self._data(path, packet, now)
        elif isinstance(packet, Open) and packet.kind == OPEN:
            answer = encode_open(Open(OPENED, path, self._connection, packet.time))
            self._answers.append((path, answer))

    def _data(self, path: int, packet: Data | Repair, now: float) -> None:
        arrivals = self.paths[path]
        if not arrivals.add(packet.number, now):
            return
        arrivals.packets += 1
        arrivals.bytes += len(packet.data)
        if not packet.data:
            arrivals.due = now  # a probe
            return
        for sequence, received in self._segments(packet):
            for data in self.buffer.insert(sequence, received):
                if self._deliver is not None:
                    self._deliver(data, now)

    def _segments(self, packet: Data | Repair) -> list[tuple[int, bytes | memoryview]]:
        """Return the segments (offset, data) that a packet brings: its own, and what it recovers."""
        recovered: list[tuple[int, bytes | memoryview]] = []
        if isinstance(packet, Data):
            recovered.append((packet.sequence, packet.data))
            if self.recovery is not None:
                recovered += self.recovery.take_segment(packet.sequence, packet.data)
        elif self.recovery is not None:
            recovered += self.recovery.take_repair(packet)
        return recovered

    def datagrams_to_send(self, now: float) -> list[tuple[int, bytes]]:
        """Return (path, datagram) of all that is due."""
        answers, self._answers = self._answers, []
        for path, arrivals in enumerate(self.paths):
            if arrivals.due is None or arrivals.due > now:
                continue
            delay_us = max(0, min(2**32 - 1, round((now - arrivals.largest_at) * 1e6)))
            ranges = arrivals.acknowledged()
            ack = Ack(path, self._connection, delay_us, self.buffer.next, self.buffer.limit, ranges)
            answers.append((path, encode_ack(ack)))
        return answers

    def next_timeout(self) -> float | None:
        """Return when `datagrams_to_send` is due without another datagram."""
        return min((arrivals.due for arrivals in self.paths if arrivals.due is not None), default=None)


class ReorderBuffer:
    """Segments that arrived before their turn. The application reads what is in order at once."""

    def __init__(self, window: int) -> None:
        self.window = window
        """Bytes that may arrive beyond the first missing one."""
        self.next = 0
        """Offset of the first missing byte."""
        self.held_bytes = 0
        self.most_held_bytes = 0
        self.out_of_order = 0
        """Segments that arrived before an earlier one."""
        self.duplicates = 0
        """Segments that had arrived before, on any path."""
        self._held: dict[int, bytes] = {}

    @property
    def limit(self) -> int:
        """Return the offset that no byte may reach."""
        return self.next + self.window

    def insert(self, sequence: int, data: bytes | memoryview) -> list[bytes | memoryview]:
        """Take a segment, and return the data that are now in order."""
        if sequence < self.next or sequence in self._held:
            self.duplicates += 1
            return []
        if sequence + len(data) > self.limit:
            return []  # beyond the window: the sender may not send it
        if sequence > self.next:
            self.out_of_order += 1
            self._held[sequence] = bytes(data)
            self.held_bytes += len(data)
            self.most_held_bytes = max(self.most_held_bytes, self.held_bytes)
            return []
        ready: list[bytes | memoryview] = [data]
        self.next += len(data)
        while (held := self._held.pop(self.next, None)) is not None:
            ready.append(held)
            self.next += len(held)
            self.held_bytes -= len(held)
        return ready
