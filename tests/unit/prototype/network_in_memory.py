"""A network in memory with a clock of its own: it runs a connection without sockets, for tests and for notebooks."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.prototype.application import Application
    from plait.prototype.receiver import Receiver
    from plait.prototype.sender import Sender

FRAME_BYTES = 42
"""Ethernet, IPv4 and UDP headers."""


@dataclass
class MemoryLine:
    """A path's two directions: the rate (bit/s) and queue (packets) are those towards the receiver."""

    rate: float
    delay: float
    queue: int = 100
    loss: float = 0.0
    cut: tuple[float, float] = (float("inf"), float("inf"))
    """The path loses everything between these times."""


class MemoryNetwork:
    """Carries datagrams between a sender and a receiver. The same seed gives the same run."""

    def __init__(
        self, lines: Sequence[MemoryLine], sender: Sender, receiver: Receiver, seed: int = 1
    ) -> None:
        self.now = 0.0
        self.sent = 0
        self._lines, self._sender, self._receiver = list(lines), sender, receiver
        self._free = [0.0] * len(lines)
        self._random = random.Random(seed)
        self._events: list[tuple[float, int, bool, int, bytes]] = []
        self._carried = count()
        """Numbers that keep datagrams of one time in order."""

    def run(self, application: Application, limit: float = 3600.0) -> float:
        """Run the application to its end, at most `limit`, and return the time of its end."""
        sender = self._sender
        sender.open(self.now)
        application.begin(self.now)
        while self.now < limit and not application.ended(self.now):
            if sender.connected_at is not None:
                sender.written = application.written(self.now, sender.acked)
            for path, datagram in sender.datagrams_to_send(self.now):
                self._carry(path, datagram, forward=True)
            for path, datagram in self._receiver.datagrams_to_send(self.now):
                self._carry(path, datagram, forward=False)
            times = [
                self._events[0][0] if self._events else None,
                application.end_time(),
                application.next_time(),
            ]
            times += [sender.next_timeout(), self._receiver.next_timeout()]
            self.now = max(self.now, min(time for time in (*times, limit) if time is not None))
            self._arrive()
        return self.now

    def _carry(self, path: int, datagram: bytes, *, forward: bool) -> None:
        line = self._lines[path]
        self.sent += forward
        arrival = self.now
        if line.cut[0] <= arrival < line.cut[1]:
            return
        if forward:
            takes = (len(datagram) + FRAME_BYTES) * 8 / line.rate
            begin = max(arrival, self._free[path])
            if (begin - arrival) / takes > line.queue or self._random.random() < line.loss:
                return
            arrival = self._free[path] = begin + takes
        heapq.heappush(self._events, (arrival + line.delay, next(self._carried), forward, path, datagram))

    def _arrive(self) -> None:
        while self._events and self._events[0][0] <= self.now:
            _, _, forward, path, datagram = heapq.heappop(self._events)
            (self._receiver if forward else self._sender).receive(path, datagram, self.now)
