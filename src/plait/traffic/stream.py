"""Streams: send messages at a constant rate, and measure the delay of each at the receiver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from plait.parts import Count, Span
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, Tool
from plait.traffic.spec import OneWay, Paced, SlotFacts
from plait.units import Size


class StreamSpec(OneWay, Paced):
    """Send messages at a constant rate, and measure the delay of each at the receiver."""

    SMALLEST: ClassVar[dict[str, Any]] = {"message": "1KB", "rate": "1mbit", "duration": "1s"}

    message: Size
    """Size of a message."""

    def job(self, slot: SlotFacts) -> Stream:
        """Return what the flow of `slot` does."""
        size = int(self.message)
        pace = self.interval_ns(size)
        return Stream(message_bytes=size, interval_ns=pace, count=self.messages_due(pace, slot.start_us))


class Stream(FlowJob):
    """Messages at a constant rate: message i is due i * `interval_ns` after the connection is established.

    A message that finds the socket's buffer full is late, and delays those behind it; the sender skips none.
    The stream is complete when the receiver has read the last message.
    """

    MEASURED_DELAY: ClassVar[str | None] = "message_delay"
    HEADLINE: ClassVar[str] = "message_delay_p95_us"
    PACED: ClassVar[bool] = True

    kind: Literal["stream"] = "stream"
    message_bytes: Count
    interval_ns: Span
    count: Count

    @property
    def sends_ns(self) -> int | None:
        """The intervals of all messages."""
        return self.count * self.interval_ns

    @property
    def certain_bytes(self) -> int:
        """The bytes of all messages."""
        return self.message_bytes * self.count

    @property
    def offered_bps(self) -> float | None:
        """A message each interval."""
        return self.message_bytes * 8e9 / self.interval_ns

    def messages(self, flow: PlannedFlow) -> int:
        """Return the number of messages."""
        del flow
        return self.count

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return the intervals of all messages, and ample time for the last one."""
        del flow
        return self.interval_ns * self.count // 1000 + PATIENCE_US

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return at least one frame for each message."""
        del rate_bps, frame
        return self.messages(flow) * (1 + self.message_bytes / payload)

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield iperf3 with its rate."""
        del names
        size, pace = self.message_bytes, self.interval_ns
        messages = f"{self.count} messages of {size} bytes, one every {pace / 1e6:g} ms"
        yield f"{messages}; iperf3 does not measure their delays"
        yield "iperf3", f"-b {size * 8 * 10**9 // pace} -l {size} -n {size * self.count}"
