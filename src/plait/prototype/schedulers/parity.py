"""parity: minrtt, and after each eight segments their parity, on the path with the most room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.schedulers.minrtt import MinRtt

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment


class Parity(MinRtt):
    """Lowest RTT first, with forward error correction: a lost segment of a block needs no retransmission."""

    def repair(self, paths: list[SendingPath], block: tuple[StreamSegment, ...]) -> SendingPath | None:
        """Return the path with the most room when eight segments, or the last ones that wait, have been sent."""
        if len(block) < 8 and self.connection.waiting:
            return None
        return max(paths, key=lambda path: path.room)
