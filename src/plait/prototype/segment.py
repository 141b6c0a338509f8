"""A segment of the stream, and a packet that carried it."""

from __future__ import annotations


class StreamSegment:
    """Consecutive bytes of the stream. A retransmission carries the same segment again."""

    __slots__ = ("copies", "delivered", "length", "losses", "sequence")

    def __init__(self, sequence: int, length: int) -> None:
        self.sequence = sequence
        """Offset of its first byte in the stream."""
        self.length = length
        """Bytes of data."""
        self.losses = 0
        """How often it was lost; above 0 for a retransmission."""
        self.copies = 0
        """Packets in flight, or in a backlog, that carry it."""
        self.delivered = False
        """Whether the receiver has it."""

    @property
    def end(self) -> int:
        """Offset in the stream behind it."""
        return self.sequence + self.length


class SentPacket:
    """A packet in flight on one path. `segment` is None for a probe."""

    __slots__ = ("acked_bytes", "number", "segment", "sent")

    def __init__(self, number: int, segment: StreamSegment | None, sent: float, acked_bytes: int) -> None:
        self.number = number
        self.segment = segment
        self.sent = sent
        self.acked_bytes = acked_bytes
        """Bytes that its path had delivered when it left, for the delivery rate."""
