"""The model of a link direction: 20 lines that say when each packet arrives, and which packets do not.

All numbers are integers; times are in ns. `kernel/links/plait_line.c` states the same model in words.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SECOND_BITS = 8 * 10**9
ALL = 2**32 - 1


@dataclass(frozen=True)
class Conditions:
    """The conditions of a direction, as netlink takes them; `to_bad` .. `good_loss` are the Gilbert-Elliott model."""

    rate: int = 0
    delay: int = 0
    jitter: int = 0
    table: tuple[int, ...] = ()
    overtaking: bool = False
    loss: int = 0
    ge: tuple[int, int, int, int] = (0, 0, 0, 0)
    duplicate: int = 0
    reorder: int = 0
    corrupt: int = 0
    queue_packets: int = 0
    queue_bytes: int = 0
    bucket_rate: int = 0
    bucket_burst: int = 0


class Random:
    """The kernel's prandom (lib/random32.c): a combined Tausworthe generator."""

    def __init__(self, seed: int) -> None:
        mixed = ((seed >> 32) ^ (seed << 10) ^ seed) & ALL
        self._state = [mixed + least if mixed < least else mixed for least in (2, 8, 16, 128)]

    def __call__(self) -> int:
        shifts = ((6, 13, 1, 18), (2, 27, 7, 2), (13, 21, 15, 7), (3, 12, 127, 13))
        self._state = [
            (((s & ~mask) << d) & ALL) ^ ((((s << a) & ALL) ^ s) >> b)
            for s, (a, b, mask, d) in zip(self._state, shifts, strict=True)
        ]
        a, b, c, d = self._state
        return a ^ b ^ c ^ d


def sojourn_bin(ns: int) -> int:
    """Return the bin of a time in the queue: 1 ns wide below 16 ns, then eight of a width for each power of two."""
    power = ns.bit_length() - 1
    if ns < 8:
        return ns
    return 304 if power >= 40 else (power - 2) * 8 + (ns >> (power - 3)) % 8


@dataclass
class Instant:
    """A time with the remainder of the division by the rate."""

    ns: int = 0
    rest: int = 0

    def add(self, begin: int, size: int, rate: int) -> None:
        if begin > self.ns:
            self.ns, self.rest = begin, 0
        whole, self.rest = divmod(self.rest + size * SECOND_BITS, rate)
        self.ns += whole


@dataclass
class Model:
    """One direction. `packets` are (entry, size), in order; `arrivals` then has (time, number of the packet)."""

    seed: int
    free: Instant = field(default_factory=Instant)
    full: Instant = field(default_factory=Instant)
    waiting: list[tuple[int, int, int]] = field(default_factory=list)
    """(number, entry, size) of packets in the queue."""
    arrivals: list[tuple[int, int]] = field(default_factory=list)
    lost: int = 0
    overflow: int = 0
    sojourn: int = 0
    sojourns: Counter[int] = field(default_factory=Counter)
    """Packets by the bin of their time in the queue."""
    last: int = 0
    bad: bool = False

    def __post_init__(self) -> None:
        steps = (i * 0x9E3779B97F4A7C15 for i in range(5))
        self.loss, self.duplicate, self.corrupt, self.reorder, self.jitter = (
            Random((self.seed + step) & (2**64 - 1)) for step in steps
        )

    def send(self, number: int, entry: int, size: int, link: Conditions) -> None:
        """Let a packet enter."""
        self.advance(entry, link)
        if self._loses(link):
            self.lost += 1
            return
        if link.corrupt and (self.corrupt() <= link.corrupt):
            self.corrupt(), self.corrupt()
        for _ in range(2 if link.duplicate and self.duplicate() <= link.duplicate else 1):
            full = (link.queue_packets and len(self.waiting) >= link.queue_packets) or (
                link.queue_bytes and sum(size for *_, size in self.waiting) + size > link.queue_bytes
            )
            if (not self.waiting and self.free.ns <= entry) or not full:
                self.waiting.append((number, entry, size))
            else:
                self.overflow += 1
            self.advance(entry, link)

    def advance(self, now: int, link: Conditions) -> None:
        """Start all packets that the line can take until `now`."""
        while self.waiting and self.free.ns <= now:
            number, entry, size = self.waiting.pop(0)
            start = max(entry, self.free.ns)
            self.sojourn += start - entry
            self.sojourns[sojourn_bin(start - entry)] += 1
            if link.bucket_rate:
                spare = max(0, link.bucket_burst - size) * SECOND_BITS // link.bucket_rate
                start = max(start, self.full.ns + (self.full.rest > 0) - spare)
                self.full.add(start, size, link.bucket_rate)
            if link.rate:
                self.free.add(start, size, link.rate)
            elif start > self.free.ns:
                self.free = Instant(start)
            arrival = self.free.ns
            if not (link.reorder and self.reorder() <= link.reorder):
                arrival = max(arrival + self._delay(link), 0 if link.overtaking else self.last)
                self.last = arrival
            self.arrivals.append((arrival, number))

    def change_bucket(self, now: int, before: Conditions, after: Conditions) -> None:
        """Give the bucket another rate and size, with the tokens that it has, or owes to a packet that has started."""
        old, new = (before.bucket_rate, before.bucket_burst), (after.bucket_rate, after.bucket_burst)
        if old == new:
            return
        holds = new[1]
        if old[0]:
            missing = max(0, self.full.ns - now) * old[0] // SECOND_BITS + (now < self.full.ns)
            holds = old[1] - missing
        if new[0]:
            self.full = Instant(now + max(0, new[1] - holds) * SECOND_BITS // new[0])

    def level(self, now: int, link: Conditions) -> int:
        """Return the tokens that a packet could take."""
        missing = max(0, self.full.ns - now) * link.bucket_rate // SECOND_BITS + (now < self.full.ns)
        return max(0, link.bucket_burst - missing)

    def _loses(self, link: Conditions) -> bool:
        if not any(link.ge):
            return bool(link.loss) and self.loss() <= link.loss
        was, change, draw = self.bad, self.loss(), self.loss()
        to_bad, to_good, bad_loss, good_loss = link.ge
        limit = to_good if was else to_bad
        self.bad = was != (limit > 0 and change <= limit)
        limit = bad_loss if was else good_loss
        return limit > 0 and draw <= limit

    def _delay(self, link: Conditions) -> int:
        if not link.jitter:
            return link.delay
        draw = self.jitter()
        if not link.table:
            return max(0, link.delay + draw % (2 * link.jitter) - link.jitter)
        move = link.jitter * link.table[draw % len(link.table)]
        return max(0, link.delay + (abs(move) + 4096) // 8192 * (1 if move >= 0 else -1))
