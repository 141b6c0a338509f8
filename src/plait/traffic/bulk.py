"""Bulk traffic: send as fast as possible for a duration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from plait.parts import Span
from plait.traffic.job import FlowJob, PlannedFlow, Tool
from plait.traffic.spec import Lasting, OneWay, SlotFacts


class BulkSpec(OneWay, Lasting):
    """Send as fast as possible for a duration."""

    SMALLEST: ClassVar[dict[str, Any]] = {"duration": "1s"}

    may_last: ClassVar[bool] = True
    back: bool = False
    """Whether the receiver also sends, on the same connection."""

    @property
    def parts(self) -> int:
        """2 if both sides send."""
        return 2 if self.back else 1

    def job(self, slot: SlotFacts) -> Bulk:
        """Return what the flow of `slot` does."""
        return Bulk(duration_us=self.duration_us(slot.start_us))


class Bulk(FlowJob):
    """The sender writes as fast as it can for `duration_us`; goodput counts exactly this time.

    Without a duration it ends when every flow that has an end of its own has ended.
    """

    GREEDY: ClassVar[bool] = True

    kind: Literal["bulk"] = "bulk"
    duration_us: Span | None

    @property
    def sends_ns(self) -> int | None:
        """Its duration."""
        return None if self.duration_us is None else self.duration_us * 1000

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return its duration; the other flows decide the end of a flow without one."""
        del flow
        return self.duration_us or 0

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return the frames that fit into its duration."""
        del flow, payload
        return rate_bps * (self.duration_us or 0) / 8e6 / frame

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield iperf3 with its duration."""
        del names
        if self.duration_us is None:
            yield "until all other flows have ended; stop it by hand"
        yield "iperf3", "-t 0" if self.duration_us is None else f"-t {self.duration_us / 1e6:g}"
