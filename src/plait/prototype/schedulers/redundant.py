"""redundant: every segment on every path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment


class Redundant(Scheduler):
    """Copies on all paths (Frommgen et al., ICC 2016). A slow path skips what the receiver has by then."""

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> list[SendingPath]:
        """Return all paths."""
        return paths
