"""Prototypes: send over the multipath transport in user space, `plait.prototype`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from plait.errors import FieldMistakesError
from plait.parts import U64, Buffer, Count, Span, Whole
from plait.traffic.gaps import Period
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, largest_rtt_us, rate_bps
from plait.traffic.spec import Lasting, SlotFacts
from plait.units import Size

Coupling = Literal["none", "lia", "olia"]
SCHEDULERS = ("balanced", "bandit", "blest", "capped", "ecf", "minrtt", "parity", "redundant", "roundrobin")
"""The schedulers of `plait.prototype.schedulers`."""
_FILE = r"[^\x00:]{1,1000}\.py:[A-Za-z_][A-Za-z0-9_]{0,59}"


class PrototypeSpec(Lasting):
    """Send over the multipath transport in user space, to try a packet scheduler; complete when all data arrived."""

    SMALLEST: ClassVar[dict[str, Any]] = {"bytes": "1KB"}

    scheduler: Annotated[str, Field(pattern=rf"^({'|'.join(SCHEDULERS)}|{_FILE})$")] = "minrtt"
    """Packet scheduler: one that plait ships, or `FILE.py:CLASS` with a path relative to the scenario file."""
    coupling: Coupling = "none"
    """Congestion control: Reno on each path, or its coupled variants LIA and OLIA."""
    receive_window: Buffer | None = None
    """Bytes that the receiver holds for data out of order. Default: half of `tcp.receive_buffer_max`."""
    bytes: Size | None = None
    """Number of bytes to send."""
    message: Size | None = None
    """Size of a message."""
    messages: Annotated[Whole, Field(ge=1, le=10**6)] | None = None
    """Number of messages to send."""
    every: Period | None = None
    """Time from the start of a message to the start of the next. Default: a message follows when the receiver has
    acknowledged the one before."""

    def _has_other_end(self) -> bool:
        return self.bytes is not None or self.messages is not None

    def _ends(self) -> str:
        return "the flow ends after a number of bytes or messages, after a duration, or at a time (stop)"

    @model_validator(mode="after")
    def _one_content(self) -> PrototypeSpec:
        timed = self.duration is not None or self.stop is not None
        if (self.bytes is not None) + (self.messages is not None) + timed != 1:
            raise ValueError(f"{self._ends()}; write exactly one of them, for example duration: 10s")
        if self.message is None and (self.messages is not None or self.every is not None):
            raise ValueError("messages and every need the size of a message; write for example message: 10KB")
        if self.message is not None and self.messages is None:
            raise ValueError("message needs the number of messages; write for example messages: 100")
        for field in ("send_buffer", "receive_buffer", "mark", "dscp"):
            if getattr(self, field) is not None:
                raise ValueError(f"the prototype does not set {field}; remove it")
        return self

    @property
    def scheduler_file(self) -> str | None:
        """Return the path of the scheduler's file; None for a scheduler that plait ships."""
        return self.scheduler.rpartition(":")[0] or None

    def transport_of(self, copy: int, default: str) -> str:
        """Return the transport of `plait.prototype`."""
        del copy, default
        return "prototype"

    def input_files(self) -> Iterator[tuple[str, str]]:
        """Yield the file of its scheduler."""
        if self.scheduler_file is not None:
            yield "scheduler", self.scheduler_file

    def job(self, slot: SlotFacts) -> Prototype:
        """Return what the flow of `slot` does. Raise FieldMistakesError for a file that is no scheduler."""
        source = None
        if self.scheduler_file is not None:
            facts = slot.files.get(self.scheduler_file)
            source = None if facts is None else facts.text
            if source is None:
                problem = (
                    f"the file '{self.scheduler_file}' was not read as a scheduler; name a file of Python with at most "
                    "64 KiB, and read the scenario with plait.scenario.read.load"
                )
                raise FieldMistakesError((("scheduler",), problem))
        return Prototype(
            scheduler=self.scheduler.rpartition("/")[2],
            source=source,
            coupling=self.coupling,
            receive_window_bytes=int(self.receive_window or slot.receive_buffer_max // 2),
            duration_us=self.duration_us(slot.start_us),
            bytes=self.bytes and int(self.bytes),
            message_bytes=self.message and int(self.message),
            interval_us=self.every and self.every.us,
            count=self.messages,
            seed=slot.seed,
        )


class Prototype(FlowJob):
    """A connection of the multipath transport of `plait.prototype`, which one program runs over UDP.

    It sends `bytes`, or for `duration_us`, or `count` messages: one every `interval_us`, or each when the receiver
    has acknowledged the one before.
    """

    kind: Literal["prototype"] = "prototype"
    scheduler: str
    """A scheduler that plait ships, or `FILE:CLASS` of `source`."""
    source: str | None = None
    """The content of the scheduler's file."""
    coupling: Coupling
    receive_window_bytes: Count
    duration_us: Span | None = None
    bytes: Count | None = None
    message_bytes: Count | None = None
    interval_us: Span | None = None
    count: Count | None = None
    seed: U64 = 0

    @property
    def measured_as(self) -> str:
        """The kind of flow whose metrics it has."""
        if self.message_bytes is not None:
            return "stream"
        return "bulk" if self.bytes is None else "transfer"

    @property
    def certain_bytes(self) -> int:
        """Its bytes, or those of all messages."""
        return self.bytes or (self.message_bytes or 0) * (self.count or 0)

    def messages(self, flow: PlannedFlow) -> int:
        """Return the number of messages."""
        del flow
        return self.count or 0

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return its duration, or ample time for all data."""
        if self.duration_us is not None:
            return self.duration_us
        each_us = int(10 * largest_rtt_us(flow)) if self.interval_us is None else self.interval_us
        transmission_us = int(self.certain_bytes * 8_000_000 / rate_bps(flow))
        return PATIENCE_US + transmission_us + each_us * (self.count or 0)
