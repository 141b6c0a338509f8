"""minrtt: of the paths with room in their window, the one with the lowest smoothed RTT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment


class MinRtt(Scheduler):
    """Lowest RTT first (Paasch et al., CSWS 2014)."""

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the fastest path with room."""
        return min((path for path in paths if path.room), key=lambda path: path.srtt, default=None)
