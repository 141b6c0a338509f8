"""capped: no path carries more than the share 1/n + `EXTRA` of the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment

EXTRA = 0.0


class Capped(Scheduler):
    """Each path has a credit: it grows by the cap's part of all bytes, and falls by the path's own bytes."""

    def __init__(self) -> None:
        self.credit: dict[SendingPath, float] = {}
        self.seen: dict[SendingPath, int] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path with room that has the most credit, if it can afford the segment."""
        cap, burst = min(1.0, 1 / len(paths) + EXTRA), 1.0 * sum(path.mss for path in paths)
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
