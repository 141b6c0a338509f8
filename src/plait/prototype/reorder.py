"""The receiver's buffer: it puts segments of all paths in order, and bounds what it holds."""

from __future__ import annotations


class ReorderBuffer:
    """Segments that arrived before their turn. The application reads what is in order at once."""

    def __init__(self, window: int) -> None:
        self.window = window
        """Bytes that may arrive beyond the first missing one."""
        self.next = 0
        """Offset of the first missing byte."""
        self.held_bytes = 0
        self.most_held_bytes = 0
        self.out_of_order = 0
        """Segments that arrived before an earlier one."""
        self.duplicates = 0
        """Segments that had arrived before, on any path."""
        self._held: dict[int, bytes] = {}

    @property
    def limit(self) -> int:
        """Return the offset that no byte may reach."""
        return self.next + self.window

    def insert(self, sequence: int, data: bytes | memoryview) -> list[bytes | memoryview]:
        """Take a segment, and return the data that are now in order."""
        if sequence < self.next or sequence in self._held:
            self.duplicates += 1
            return []
        if sequence + len(data) > self.limit:
            return []  # beyond the window: the sender may not send it
        if sequence > self.next:
            self.out_of_order += 1
            self._held[sequence] = bytes(data)
            self.held_bytes += len(data)
            self.most_held_bytes = max(self.most_held_bytes, self.held_bytes)
            return []
        ready: list[bytes | memoryview] = [data]
        self.next += len(data)
        while (held := self._held.pop(self.next, None)) is not None:
            ready.append(held)
            self.next += len(held)
            self.held_bytes -= len(held)
        return ready
