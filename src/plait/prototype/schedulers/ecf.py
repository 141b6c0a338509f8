"""ecf: leaves a slow path idle if the fast one would finish the waiting data sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment

BETA = 0.25


class Ecf(Scheduler):
    """Earliest completion first (Lim et al., CoNEXT 2017, algorithm 1)."""

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
        if rounds * fast.srtt >= (1 + self.waiting * BETA) * (slow.srtt + delta):
            self.waiting = False
            return slow
        if segments / slow.cwnd * slow.srtt < 2 * fast.srtt + delta:
            return slow
        self.waiting = True
        return None
