"""Ranges of sequence numbers, and the data of an MPTCP connection in one direction."""

from __future__ import annotations

import hashlib
from bisect import bisect_left

_MOST_RANGES = 10_000


def derived(key: int, version: int | None) -> tuple[int, int]:
    """Return the token and the initial data sequence number of a key (RFC 8684, section 3.1; version 0: RFC 6824)."""
    digest = (hashlib.sha1 if version == 0 else hashlib.sha256)(key.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[-8:], "big")


class Ranges:
    """Disjoint ranges of whole numbers, which mostly grow at their end."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> int:
        """Add a range, and return how many of its numbers are new. The lowest ranges are forgotten above a bound."""
        parts = self.parts
        if parts and parts[-1][0] <= start <= parts[-1][1]:
            first, last = parts[-1]
            parts[-1] = (first, max(last, end))
            return max(0, end - last)
        low = bisect_left(parts, start, key=lambda part: part[1])
        high = low
        covered = 0
        first, last = start, end
        while high < len(parts) and parts[high][0] <= end:
            covered += max(0, min(end, parts[high][1]) - max(start, parts[high][0]))
            first, last = min(first, parts[high][0]), max(last, parts[high][1])
            high += 1
        parts[low:high] = [(first, last)]
        if len(parts) > _MOST_RANGES:
            del parts[: _MOST_RANGES // 10]
        return end - start - covered

    @property
    def in_order(self) -> int | None:
        """The end of the lowest range."""
        return self.parts[0][1] if self.parts else None


class DataStream:
    """The data of an MPTCP connection in one direction, by data sequence number."""

    def __init__(self) -> None:
        self.data = Ranges()
        self.first: int | None = None
        self.last = 0
        self.new_bytes = 0
        self.again_bytes = 0
        """Bytes that were mapped again: on another subflow, or at a new place of the same."""
        self.out_of_order_bytes = 0
        self.first_acked: int | None = None
        self.acked: int | None = None
        self.elsewhere_bytes = 0
        """Data that were acknowledged, and that crossed interfaces without a capture."""
        self._from_start = False
        self._acked_us = 0

    def start(self, first: int) -> None:
        """Set the first data sequence number."""
        self.first = self.last = self.first_acked = self.acked = first
        self.data.add(first, first)
        self._from_start = True

    def whole(self, number: int) -> int:
        """Return a data sequence number of 64 bits from one of 32 or 64."""
        if number >> 32 or self.first is None:
            return number
        distance = (number - self.last) & 0xFFFFFFFF
        return self.last + (distance if distance < 1 << 31 else distance - (1 << 32))

    def add(self, start: int, end: int) -> None:
        """Note data that were sent at a new place of a subflow."""
        self.first = start if self.first is None else min(self.first, start)
        expected = self.data.in_order
        fresh = self.data.add(start, end)
        self.new_bytes += fresh
        self.again_bytes += end - start - fresh
        if expected is not None and start > expected:
            self.out_of_order_bytes += fresh
        self.last = max(self.last, end)

    def acknowledge(self, number: int, t_us: int) -> None:
        """Note a DATA_ACK.

        What an earlier one acknowledged and no packet showed has crossed another interface. At the same time it may
        stand in the file of an interface that plait reads next.
        """
        if self.first is None and not number >> 32:
            return
        number = self.whole(number)
        if self.acked is None:
            self.first_acked = self.acked = number
        expected = self.data.in_order
        if (
            t_us > self._acked_us and expected is not None and self.acked > expected + 1
        ):  # DATA_FIN counts as one byte
            fresh = self.data.add(expected, self.acked)
            self.elsewhere_bytes += fresh if self._from_start else 0
        self._acked_us = t_us
        self.acked = max(self.acked, number)

    @property
    def in_order_bytes(self) -> int:
        """The bytes without a gap from the first."""
        expected = self.data.in_order
        return 0 if expected is None or self.first is None else expected - self.first

    @property
    def acked_bytes(self) -> int | None:
        """The bytes that DATA_ACKs acknowledged."""
        return None if self.acked is None or self.first_acked is None else self.acked - self.first_acked
