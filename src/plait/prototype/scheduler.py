"""The interface of packet schedulers: what they see, and what they return. `choice.py` calls them."""

from __future__ import annotations

from collections.abc import Sequence

from plait.prototype.path import SendingPath
from plait.prototype.segment import StreamSegment


class ConnectionView:
    """The state of a connection, as a scheduler sees it. Sizes are bytes, times seconds."""

    __slots__ = ("now", "seed", "waiting", "window", "window_left")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        """The flow's seed, for schedulers that draw random numbers."""
        self.now = 0.0
        """Time since the start of the trial."""
        self.waiting = 0
        """Bytes that no path carries yet."""
        self.window = 0
        """Bytes that the receiver allows beyond what it has acknowledged in order."""
        self.window_left = 0
        """Bytes of this window that no segment uses yet."""


class Scheduler:
    """Decides which path carries a segment.

    plait calls `pick` for each segment while at least one path has room in its congestion window. A segment for a path
    without room waits in the backlog of that path.
    """

    connection: ConnectionView
    """plait sets it before it calls any method."""

    def pick(
        self, paths: list[SendingPath], segment: StreamSegment
    ) -> SendingPath | Sequence[SendingPath] | None:
        """Return the path of `segment`, several paths (copies), or None: ask again after the next ACK, loss or 10 ms.

        `paths` are the established paths, in the order in which they joined. It has backup paths and paths with two
        unanswered timeouts only if there are no others.
        """
        raise NotImplementedError

    def repair(
        self,
        paths: list[SendingPath],  # noqa: ARG002 - no parities unless a scheduler asks for them
        block: tuple[StreamSegment, ...],  # noqa: ARG002 - as above
    ) -> SendingPath | Sequence[SendingPath] | None:
        """Return the path of a parity of `block`, several paths, or None: no parity now.

        plait calls it after each new segment. `block` are the segments since the last parity; at most one of them can
        be recovered. A block ends with a segment that is shorter than the others, or with its 64th.
        """
        return None

    def on_ack(self, path: SendingPath, segment: StreamSegment) -> None:
        """Note that the receiver acknowledged `segment` on `path`."""

    def on_loss(self, path: SendingPath, segment: StreamSegment) -> None:
        """Note that `segment` was lost on `path`."""
