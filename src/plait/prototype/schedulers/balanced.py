"""balanced: equal bytes on every path; the total rate is N times that of the slowest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment

LEAD = 64 * 1024


class Balanced(Scheduler):
    """A path is ahead of the last one by at most `LEAD` and 1/128. Counting restarts when paths come or go."""

    def __init__(self) -> None:
        self.base: dict[SendingPath, int] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path that has carried the fewest bytes, unless it is too far ahead of one without room."""
        if set(paths) != set(self.base):
            self.base = {path: path.assigned for path in paths}
        given = {path: path.assigned - base for path, base in self.base.items()}
        least = min(given.values())
        path = min((path for path in paths if path.room), key=lambda path: given[path], default=None)
        if path is not None and len(paths) > 1 and given[path] >= least + LEAD + least // 128:
            return None
        return path
