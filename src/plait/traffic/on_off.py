"""On-off traffic: send and pause alternately, on one connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from plait.parts import U64, Count, Span
from plait.traffic.gaps import Gap, RandomTime
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, Tool
from plait.traffic.spec import Lasting, OneWay, SlotFacts
from plait.units import Rate, Size

MESSAGE_BYTES = 1000


class OnOffSpec(OneWay, Lasting):
    """Send and pause alternately."""

    SMALLEST: ClassVar[dict[str, Any]] = {"on": "1s", "off": "1s", "duration": "1s"}

    on: RandomTime
    """Length of each sending period."""
    off: RandomTime
    """Length of each silent period."""
    rate: Rate | None = None
    """Rate in sending periods. Default: as fast as possible."""
    message: Size | None = None
    """Size of a message, with a rate. Default: 1000 bytes."""

    @model_validator(mode="after")
    def _paced(self) -> OnOffSpec:
        if self.message is not None and self.rate is None:
            raise ValueError("message needs a rate; add a rate, or remove message")
        return self

    def job(self, slot: SlotFacts) -> OnOff:
        """Return what the flow of `slot` does."""
        size = None if self.rate is None else int(self.message or MESSAGE_BYTES)
        return OnOff(
            on=self.on.planned,
            off=self.off.planned,
            duration_us=self.duration_us(slot.start_us) or 1,
            message_bytes=size,
            interval_ns=None
            if size is None or self.rate is None
            else max(1, size * 8 * 10**9 // int(self.rate)),
            seed=slot.seed,
        )


class OnOff(FlowJob):
    """The sender alternates between writing and silence, for `duration_us` from the connection on.

    With `message_bytes` and `interval_ns` it writes messages at that rate while it is on, otherwise as fast as
    it can.
    """

    MEASURED_DELAY: ClassVar[str | None] = "message_delay"
    HEADLINE: ClassVar[str] = "message_delay_p95_us"
    PACED: ClassVar[bool] = True

    kind: Literal["on_off"] = "on_off"
    on: Gap
    off: Gap
    duration_us: Span
    message_bytes: Count | None = None
    interval_ns: Span | None = None
    seed: U64 = 0

    @property
    def sends_ns(self) -> int | None:
        """Its duration, periods of silence included."""
        return self.duration_us * 1000

    def messages(self, flow: PlannedFlow) -> int:
        """Return the messages of a sender that is never silent."""
        del flow
        return 0 if self.interval_ns is None else self.duration_us * 1000 // self.interval_ns + 1

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return its duration, and ample time for the last bytes."""
        del flow
        return self.duration_us + PATIENCE_US

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return the frames of a sender that is never silent."""
        if self.message_bytes is None:
            return rate_bps * self.duration_us / 8e6 / frame
        return self.messages(flow) * (1 + self.message_bytes / payload)

    def unseeded(self) -> Self:
        """Return the job with seed 0 if all its periods are of fixed length."""
        return self if self.on.exponential or self.off.exponential else self.model_copy(update={"seed": 0})

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield iperf3 for one period."""
        del names
        rate = ""
        if self.message_bytes is not None and self.interval_ns is not None:
            rate = f"-b {self.message_bytes * 8 * 10**9 // self.interval_ns} -l {self.message_bytes} "
        lasts_s = self.duration_us / 1e6
        yield f"for {lasts_s:g} s: on for {self.on}, off for {self.off}, on one connection; repeat:"
        yield "iperf3", f"{rate}-t {self.on.mean_us / 1e6:g}"
