"""Forward error correction: the parity (XOR) of consecutive segments recovers the one of them that is missing."""

from __future__ import annotations

from collections.abc import Iterable

from plait.prototype.packets import MOST_BLOCK, SEGMENT_BYTES, Repair
from plait.prototype.segment import StreamSegment

_MOST_KEPT = 2048
"""Segments that a receiver keeps for parities that have not arrived."""
_MOST_PENDING = 64
"""Parities that a receiver keeps because several of their segments are missing."""


class RepairSegment(StreamSegment):
    """The parity of a block: consecutive segments, all but the last of full size. It carries no new bytes."""

    __slots__ = ("covers",)

    def __init__(self, block: tuple[StreamSegment, ...]) -> None:
        first = block[0].sequence
        self.covers = block[-1].end - first
        """Bytes of the stream in the block."""
        super().__init__(first, min(self.covers, SEGMENT_BYTES))

    @property
    def end(self) -> int:
        """Offset in the stream behind the block."""
        return self.sequence + self.covers


def offsets(sequence: int, covers: int) -> range:
    """Return the offsets of the segments in a block."""
    return range(sequence, sequence + covers, SEGMENT_BYTES)


def parity(segments: Iterable[bytes | memoryview], length: int) -> bytes:
    """Return the XOR of segments, as if zeros followed the shorter ones."""
    total = 0
    for data in segments:
        total ^= int.from_bytes(data, "little")
    return total.to_bytes(length, "little")


def block_is_full(block: tuple[StreamSegment, ...]) -> bool:
    """Return whether no segment can join a block: it is as long as may be, or its last segment is short."""
    return len(block) == MOST_BLOCK or block[-1].length < SEGMENT_BYTES


class Recovery:
    """The receiver's part: it keeps segments, and recovers missing ones."""

    def __init__(self) -> None:
        self.recovered = 0
        """Segments that a parity has recovered."""
        self._kept: dict[int, bytes] = {}
        self._pending: dict[int, Repair] = {}

    def take_segment(self, sequence: int, data: bytes | memoryview) -> list[tuple[int, bytes]]:
        """Keep a segment, and return the segments (offset, data) that can be recovered now."""
        self._keep(sequence, bytes(data))
        recovered = []
        for repair in list(self._pending.values()):
            if sequence in offsets(repair.sequence, repair.covers):
                recovered += self.take_repair(repair)
        return recovered

    def take_repair(self, repair: Repair) -> list[tuple[int, bytes]]:
        """Return the segment (offset, data) that a parity recovers. Keep the parity if several are missing."""
        places = offsets(repair.sequence, repair.covers)
        missing = [place for place in places if place not in self._kept]
        if len(missing) > 1:
            self._pending[repair.sequence] = repair._replace(data=bytes(repair.data))
            if len(self._pending) > _MOST_PENDING:
                del self._pending[next(iter(self._pending))]
            return []
        self._pending.pop(repair.sequence, None)
        if not missing:
            return []
        present = [self._kept[place] for place in places if place != missing[0]]
        length = min(SEGMENT_BYTES, repair.sequence + repair.covers - missing[0])
        data = parity([repair.data, *present], len(repair.data))[:length]
        self._keep(missing[0], data)
        self.recovered += 1
        return [(missing[0], data)]

    def _keep(self, sequence: int, data: bytes) -> None:
        self._kept[sequence] = data
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
