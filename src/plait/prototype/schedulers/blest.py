"""blest: skips a slow path whose data would take the send window that the fast path needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment

STEP, LEAST, MOST = 0.01, 0.5, 2.0


class Blest(Scheduler):
    """Blocking estimation (Ferlin et al., IFIP Networking 2016, section III)."""

    scale, blocked, corrected = 1.0, False, 0.0

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the fastest path with room, unless it would block the fastest one."""
        fast = min(paths, key=lambda path: path.srtt)
        slow = min((path for path in paths if path.room), key=lambda path: path.srtt, default=None)
        if slow is None:
            return None
        if self.connection.now - self.corrected >= slow.srtt:
            self.scale = min(max(self.scale + (STEP if self.blocked else -STEP), LEAST), MOST)
            self.blocked, self.corrected = False, self.connection.now
        if slow is not fast and not fast.timeouts:
            rtts = slow.srtt / fast.srtt
            sends = fast.mss * (fast.cwnd + (rtts - 1) / 2) * rtts
            if sends * self.scale > self.connection.window - slow.mss * (slow.in_flight + 1):
                return None
        self.blocked |= self.connection.window_left < 2 * segment.length
        return slow
