"""Requests: ask over one connection, and measure the time to each response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from plait.parts import U64, Count, Span, Whole
from plait.traffic.gaps import Gap, RandomTime
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, Tool, largest_rtt_us, rate_bps
from plait.traffic.spec import ConnectionSpec, Lasting, RequestSize, SlotFacts
from plait.units import Size

Loop = Literal["closed", "open"]


class RequestSpec(ConnectionSpec, Lasting):
    """Send requests over one connection, and measure the time to each response."""

    SMALLEST: ClassVar[dict[str, Any]] = {"response": "1KB", "requests": 1}

    answers: ClassVar[bool] = True
    request: RequestSize = Size(100)
    """Size of a request."""
    response: Size
    """Size of a response."""
    requests: Annotated[Whole, Field(ge=1, le=10**6)] | None = None
    """Number of requests, instead of a duration."""
    gap: RandomTime | None = None
    """Time from a response to the next request (closed loop). Default: none."""
    every: RandomTime | None = None
    """Time from a request to the next, which does not wait for responses (open loop)."""

    def _has_other_end(self) -> bool:
        return self.requests is not None

    def _ends(self) -> str:
        return "the flow ends after a number of requests (requests), after a duration, or at a time (stop)"

    @model_validator(mode="after")
    def _one_loop(self) -> RequestSpec:
        if self.requests is not None and (self.duration is not None or self.stop is not None):
            raise ValueError(f"{self._ends()}; write exactly one of them, for example duration: 10s")
        if self.gap is not None and self.every is not None:
            raise ValueError("gap follows a response, every does not wait for it; remove one of them")
        return self

    def job(self, slot: SlotFacts) -> Request:
        """Return what the flow of `slot` does."""
        gap = self.every or self.gap
        return Request(
            request_bytes=int(self.request),
            response_bytes=int(self.response),
            loop="closed" if self.every is None else "open",
            gap=None if gap is None else gap.planned,
            count=self.requests,
            duration_us=self.duration_us(slot.start_us),
            seed=slot.seed,
        )


class Request(FlowJob):
    """The receiver of the answers sends requests on one connection, and the other side answers each at once.

    `loop` closed: a request waits for the previous answer and then for the gap (None: no pause). `loop` open:
    requests are due one gap apart, whether answers have arrived or not. The flow ends with request number
    `count`, or with the last request due within `duration_us`. The first 8 bytes of every request hold the size
    of its answer.
    """

    MEASURED_DELAY: ClassVar[str | None] = "request_latency"
    HEADLINE: ClassVar[str] = "request_latency_p95_us"
    NOUNS: ClassVar[tuple[str, str]] = ("responses", "Response time")
    ANSWERS: ClassVar[bool] = True

    kind: Literal["request"] = "request"
    request_bytes: int = Field(ge=8, lt=2**53)
    response_bytes: Count
    loop: Loop
    gap: Gap | None = None
    count: Count | None = None
    duration_us: Span | None = None
    seed: U64 = 0

    @property
    def sends_ns(self) -> int | None:
        """Its duration, if it has one."""
        return None if self.duration_us is None else self.duration_us * 1000

    @property
    def certain_bytes(self) -> int:
        """The answers to a number of requests."""
        return self.response_bytes * (self.count or 0)

    def messages(self, flow: PlannedFlow) -> int:
        """Return the number of requests; a timed closed loop has as many as its base RTT allows."""
        if self.count is not None or self.duration_us is None:
            return self.count or 0
        if self.loop == "open" and self.gap is not None:
            return 2 * (self.duration_us // self.gap.mean_us + 1)
        least_us = max(1.0, flow.paths[0].base_rtt_us) + (0 if self.gap is None else self.gap.mean_us)
        return int(self.duration_us / least_us) + 1

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return its duration, or ample time for each request."""
        if self.duration_us is not None:
            return self.duration_us + PATIENCE_US
        transmission_us = (self.request_bytes + self.response_bytes) * 8_000_000 / rate_bps(flow)
        request_us = 10 * largest_rtt_us(flow) + transmission_us + 2 * (self.gap.mean_us if self.gap else 0)
        return PATIENCE_US + int(request_us * (self.count or 0))

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return at least one frame for each answer."""
        del rate_bps, frame
        return self.messages(flow) * (1 + self.response_bytes / payload)

    def unseeded(self) -> Self:
        """Return the job with seed 0 if it waits for no random time."""
        drawn = self.gap is not None and self.gap.exponential
        return self if drawn else self.model_copy(update={"seed": 0})

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield netperf with its sizes."""
        del names
        if self.gap is not None:
            pause = (
                "after each answer, a pause of"
                if self.loop == "closed"
                else "without waiting for answers, one every"
            )
            yield f"{pause} {self.gap}; netperf sends the next request at once"
        amount = f"-{self.count}" if self.count is not None else f"{(self.duration_us or 0) / 1e6:g}"
        yield "netperf", f"-l {amount} -- -r {self.request_bytes},{self.response_bytes}"
