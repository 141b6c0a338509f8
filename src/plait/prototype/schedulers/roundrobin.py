"""roundrobin: 2800 bytes on each path in turn; a path with a full window is passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment

QUANTUM = 2800


class RoundRobin(Scheduler):
    """Paths in turn, by bytes (Paasch et al., CSWS 2014)."""

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
            self.turn, self.left = current.index, QUANTUM - self.excess.get(current.index, 0)
        self.left -= segment.length
        return current
