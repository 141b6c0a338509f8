"""Applications that write to a connection: bytes for a time, a number of bytes, or messages."""

from __future__ import annotations

from collections.abc import Mapping

ENDLESS = 2**62


class Application:
    """The bytes written by a time, and what the receiver makes of those that arrive. Times are seconds."""

    def __init__(self, job: Mapping[str, int | None]) -> None:
        self.duration = _seconds(job.get("duration_us"))
        self.message_bytes = job.get("message_bytes")
        self._interval = _seconds(job.get("interval_us"))
        self._count = job.get("count")
        self._bytes = job.get("bytes")
        self._begin = 0.0
        self._acked = 0
        self.due: list[float] = []
        """When each message was written."""
        self.arrived: list[float] = []
        """When the receiver had each message."""
        self.received = 0
        self.first_at: float | None = None
        self.last_at: float | None = None

    @property
    def total(self) -> int | None:
        """Bytes after which the connection has ended; None: it ends after its duration."""
        if self.message_bytes is not None and self._count is not None:
            return self.message_bytes * self._count
        return self._bytes

    def begin(self, now: float) -> None:
        """Start writing."""
        self._begin = now

    def written(self, now: float, acked: int) -> int:
        """Return the bytes written by `now`, if the receiver has acknowledged `acked` of them."""
        self._acked = acked
        if self.message_bytes is None:
            return ENDLESS if self._bytes is None else self._bytes
        while (due := self.next_time()) is not None and due <= now:
            self.due.append(due if self._interval is not None else now)
        return len(self.due) * self.message_bytes

    def next_time(self) -> float | None:
        """Return when the next message is due; None: never, or when the one before has been acknowledged."""
        if self.message_bytes is None or len(self.due) == self._count:
            return None
        if self._interval is not None:
            return self._begin + len(self.due) * self._interval
        return self._begin if self._acked >= len(self.due) * self.message_bytes else None

    def receive(self, data: bytes | memoryview, now: float) -> None:
        """Take data that arrived in order."""
        self.received += len(data)
        self.last_at = now
        if self.first_at is None:
            self.first_at = now
        if self.message_bytes is not None:
            while (len(self.arrived) + 1) * self.message_bytes <= self.received:
                self.arrived.append(now)

    def ended(self, now: float) -> bool:
        """Return whether the receiver has everything, or the duration is over."""
        if self.total is not None:
            return self.received >= self.total
        return self.duration is not None and now >= self._begin + self.duration

    def end_time(self) -> float | None:
        """Return when the duration is over; None if the end depends on what arrives."""
        return None if self.total is not None or self.duration is None else self._begin + self.duration


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6
