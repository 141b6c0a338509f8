"""Simulate a packet-level network in discrete events: a clock, queues with random early detection, and paths.

All packets have the same size. A path keeps their order.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

Curve = Sequence[tuple[float, float]]
"""Pairs of queue length in packets and drop probability, linear in between."""

KHALILI: Curve = ((25, 0.0), (50, 0.1), (100, 1.0))
"""Random early detection of Khalili's test bed at 10 Mbit/s (draft-khalili-mptcp-performance-issues-06)."""


class Clock:
    """The simulated time, and the events to come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._number = itertools.count()

    def at(self, time: float, action: Callable[..., None], *arguments: object) -> None:
        """Schedule a call; calls for the same time run in the order of scheduling."""
        heapq.heappush(self._events, (time, next(self._number), action, arguments))

    def run(self, until: float) -> None:
        """Run all events up to a time."""
        events = self._events
        while events and events[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(events)
            action(*arguments)


@dataclass
class Queue:
    """A link's queue. It drops arriving packets by a curve, when it is full, or at random."""

    clock: Clock
    random: Random
    rate: float
    """Packets per second."""
    limit: float
    """Packets."""
    curve: Curve = ()
    loss: float = 0.0
    """Drop probability of every packet, whatever the queue length."""
    _free: float = field(default=0.0, init=False)

    def length(self) -> float:
        """Return the packets in the queue and on the wire."""
        return max(0.0, self._free - self.clock.now) * self.rate

    def _drop_probability(self) -> float:
        length = self.length()
        if length >= self.limit:
            return 1.0
        for (low, least), (high, most) in itertools.pairwise(self.curve):
            if low <= length < high:
                return least + (most - least) * (length - low) / (high - low)
        return self.loss

    def enter(self) -> float | None:
        """Return when the packet that arrives now leaves; None if the queue drops it."""
        probability = self._drop_probability()
        if probability and self.random.random() < probability:
            return None
        self._free = max(self._free, self.clock.now) + 1 / self.rate
        return self._free


Arrival = Callable[[int], None]
Drop = Callable[[int, float], None]


@dataclass(frozen=True)
class Route:
    """Queues in order, each with the delay behind it, and the delay of ACKs; all in seconds."""

    clock: Clock
    hops: tuple[tuple[Queue, float], ...]
    ack_delay: float

    def carry(self, arrive: Arrival, drop: Drop, transmission: int, hop: int = 0) -> None:
        """Carry one packet from a hop on. `drop` also receives the time that its ACK would have taken from then."""
        queue, delay = self.hops[hop]
        departure = queue.enter()
        if departure is None:
            delays = sum(later for _, later in self.hops[hop:]) + self.ack_delay
            drop(transmission, queue.length() / queue.rate + delays)
        elif hop + 1 < len(self.hops):
            self.clock.at(departure + delay, self.carry, arrive, drop, transmission, hop + 1)
        else:
            self.clock.at(departure + delay, arrive, transmission)
