"""The schedulers that plait ships, by their names in scenarios.

Seven have the same rules as those of the laboratory kernel (kernel/schedulers/*.c). `bandit` and `parity` exist only
here.
"""

from __future__ import annotations

from math import log, sqrt

from plait.prototype.path import SendingPath
from plait.prototype.scheduler import Scheduler
from plait.prototype.segment import StreamSegment


class _MinRtt(Scheduler):
    """Choose the path with the lowest smoothed RTT among those with room in their window.

    Lowest RTT first (Paasch et al., CSWS 2014).
    """

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the fastest path with room."""
        return min((path for path in paths if path.room), key=lambda path: path.srtt, default=None)


class _RoundRobin(Scheduler):
    """2800 bytes on each path in turn; a path with a full window is passed over.

    Paths in turn, by bytes (Paasch et al., CSWS 2014).
    """

    QUANTUM = 2800

    def __init__(self) -> None:
        self.turn = -1
        self.left = 0
        self.excess: dict[int, int] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path whose turn it is."""
        order = sorted(paths, key=lambda path: (path.index <= self.turn, path.index))
        current = next((path for path in paths if path.index == self.turn), None)
        if current is None or self.left <= 0 or not current.room:
            self.excess[self.turn] = max(0, -self.left)
            current = next((path for path in order if path.room), None)
            if current is None:
                return None
            self.turn, self.left = current.index, self.QUANTUM - self.excess.get(current.index, 0)
        self.left -= segment.length
        return current


class _Redundant(Scheduler):
    """Every segment on every path.

    Copies on all paths (Frommgen et al., ICC 2016). A slow path skips what the receiver has by then.
    """

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> list[SendingPath]:
        """Return all paths."""
        return paths


class _Blest(Scheduler):
    """Skips a slow path whose data would take the send window that the fast path needs.

    Blocking estimation (Ferlin et al., IFIP Networking 2016, section III).
    """

    SCALE_STEP, LEAST_SCALE, MOST_SCALE = 0.01, 0.5, 2.0

    scale, blocked, corrected = 1.0, False, 0.0

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the fastest path with room, unless it would block the fastest one."""
        fast = min(paths, key=lambda path: path.srtt)
        slow = min((path for path in paths if path.room), key=lambda path: path.srtt, default=None)
        if slow is None:
            return None
        if self.connection.now - self.corrected >= slow.srtt:
            step = self.SCALE_STEP if self.blocked else -self.SCALE_STEP
            self.scale = min(max(self.scale + step, self.LEAST_SCALE), self.MOST_SCALE)
            self.blocked, self.corrected = False, self.connection.now
        if slow is not fast and not fast.timeouts:
            rtts = slow.srtt / fast.srtt
            sends = fast.mss * (fast.cwnd + (rtts - 1) / 2) * rtts
            if sends * self.scale > self.connection.window - slow.mss * (slow.in_flight + 1):
                return None
        self.blocked |= self.connection.window_left < 2 * segment.length
        return slow


class _Ecf(Scheduler):
    """Leaves a slow path idle if the fast one would finish the waiting data sooner.

    Earliest completion first (Lim et al., CoNEXT 2017, algorithm 1).
    """

    BETA = 0.25

    waiting = False

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the fastest path with room, or None to wait for the fastest one."""
        fast = min(paths, key=lambda path: path.srtt)
        slow = min((path for path in paths if path.room), key=lambda path: path.srtt, default=None)
        if slow is None or slow is fast or fast.timeouts:
            return slow
        segments = self.connection.waiting / fast.mss
        delta = max(fast.rttvar, slow.rttvar)
        rounds = 1 + segments / fast.cwnd
        if rounds * fast.srtt >= (1 + self.waiting * self.BETA) * (slow.srtt + delta):
            self.waiting = False
            return slow
        if segments / slow.cwnd * slow.srtt < 2 * fast.srtt + delta:
            return slow
        self.waiting = True
        return None


class _Balanced(Scheduler):
    """Equal bytes on every path; the total rate is N times that of the slowest.

    A path is ahead of the last one by at most `self.LEAD` and 1/128. Counting restarts when paths come or go.
    """

    LEAD = 64 * 1024

    def __init__(self) -> None:
        self.base: dict[SendingPath, int] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path that has carried the fewest bytes, unless it is too far ahead of one without room."""
        if set(paths) != set(self.base):
            self.base = {path: path.assigned for path in paths}
        assigned = {path: path.assigned - base for path, base in self.base.items()}
        least = min(assigned.values())
        path = min((path for path in paths if path.room), key=lambda path: assigned[path], default=None)
        if path is not None and len(paths) > 1 and assigned[path] >= least + self.LEAD + least // 128:
            return None
        return path


class _Capped(Scheduler):
    """No path carries more than the share 1/n + `self.EXTRA` of the bytes.

    Each path has a credit: it grows by the cap's part of all bytes, and falls by the path's own bytes.
    """

    EXTRA = 0.0

    def __init__(self) -> None:
        self.credit: dict[SendingPath, float] = {}
        self.seen: dict[SendingPath, int] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path with room that has the most credit, if it can afford the segment."""
        cap, burst = min(1.0, 1 / len(paths) + self.EXTRA), 1.0 * sum(path.mss for path in paths)
        if set(paths) != set(self.credit):
            self.credit = dict.fromkeys(paths, burst)
            self.seen = {path: path.sent_bytes for path in paths}
        carried = {path: path.sent_bytes - self.seen[path] for path in paths}
        for path in paths:
            self.credit[path] = min(burst, self.credit[path] + cap * sum(carried.values()) - carried[path])
            self.seen[path] = path.sent_bytes
        cost = segment.length * (1 - cap)
        lack = max(0.0, cost - max(self.credit.values()))  # retransmissions need no credit
        able = [path for path in paths if path.room and self.credit[path] + lack >= cost]
        return max(able, key=lambda path: self.credit[path], default=None)


class _Bandit(Scheduler):
    """Learns which path delivers soonest (UCB1). It needs floating point, logarithms and a table for each path.

    Each path is an arm (Auer, Cesa-Bianchi, Fischer, 2002). A quick ACK is a reward, a loss is none.
    """

    FORGET = 0.999

    def __init__(self) -> None:
        self.pulls: dict[SendingPath, float] = {}
        self.rewards: dict[SendingPath, float] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path with room that has the highest upper confidence bound."""
        total = max(2.0, sum(self.pulls.values()))

        def bound(path: SendingPath) -> float:
            pulls = self.pulls.get(path, 0.0) + 1e-9
            return self.rewards.get(path, 0.0) / pulls + sqrt(2 * log(total) / pulls)

        return max((path for path in paths if path.room), key=bound, default=None)

    def on_ack(self, path: SendingPath, segment: StreamSegment) -> None:
        """Reward a path by the lowest RTT of the connection over its own."""
        for member in self.pulls:
            self.pulls[member] *= self.FORGET
            self.rewards[member] *= self.FORGET
        fastest = min([member.latest_rtt for member in (*self.pulls, path)])
        self.pulls[path] = self.pulls.get(path, 0.0) + 1
        self.rewards[path] = self.rewards.get(path, 0.0) + fastest / path.latest_rtt

    def on_loss(self, path: SendingPath, segment: StreamSegment) -> None:
        """Count a pull without a reward."""
        self.pulls[path] = self.pulls.get(path, 0.0) + 1


class _Parity(_MinRtt):
    """Minrtt, and after each eight segments their parity, on the path with the most room.

    Lowest RTT first, with forward error correction: a lost segment of a block needs no retransmission.
    """

    def repair(self, paths: list[SendingPath], block: tuple[StreamSegment, ...]) -> SendingPath | None:
        """Return the path with the most room when eight segments, or the last ones that wait, have been sent."""
        if len(block) < 8 and self.connection.waiting:
            return None
        return max(paths, key=lambda path: path.room)


SCHEDULERS = {
    "balanced": _Balanced,
    "bandit": _Bandit,
    "blest": _Blest,
    "capped": _Capped,
    "ecf": _Ecf,
    "minrtt": _MinRtt,
    "parity": _Parity,
    "redundant": _Redundant,
    "roundrobin": _RoundRobin,
}
