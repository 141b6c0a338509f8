"""Transfers: send a number of bytes or a file, and measure the time until the receiver has the last byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, PlainSerializer, model_validator

from plait.errors import FieldMistakesError
from plait.parts import Count, Record, Span
from plait.traffic.gaps import Period
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, Tool, rate_bps
from plait.traffic.spec import OneWay, SlotFacts
from plait.units import Size


def _returned(value: object) -> object:
    """Return the size for a text; `true` and `false` stay."""
    return value if isinstance(value, bool) else Size.parse(value)


class TransferSpec(OneWay):
    """Send a number of bytes or a file; complete when the receiver has the last byte."""

    SMALLEST: ClassVar[dict[str, Any]] = {"bytes": "1B"}

    bytes: Size | None = None
    """Number of bytes to send."""
    file: str | None = None
    """File to send: a path relative to the scenario file, or an absolute path."""
    back: Annotated[
        Size | bool,
        BeforeValidator(_returned, json_schema_input_type=Size | bool),
        PlainSerializer(lambda value: value if isinstance(value, bool) else str(value)),
    ] = False
    """Whether the receiver also sends, at the same time and on the same connection: `true` for as many bytes, or a
    number of bytes."""
    first: Size | None = None
    """Number of bytes that each side writes before it waits for `gap` and writes the rest."""
    gap: Period | None = None
    """Time between `first` and the rest, so that further subflows can join before a side with few bytes ends its
    stream."""

    @property
    def returned(self) -> Size | None:
        """The number of bytes in the other direction; None for none."""
        if isinstance(self.back, bool):
            return self.bytes if self.back else None
        return self.back

    @model_validator(mode="after")
    def _one_content(self) -> TransferSpec:
        if (self.bytes is None) == (self.file is None):
            raise ValueError(
                "a transfer sends either a number of bytes or a file; write exactly one of bytes and file"
            )
        if self.back is True and self.bytes is None:
            raise ValueError("back: true sends as many bytes back as bytes says; with a file, write a size")
        if (self.first is None) != (self.gap is None):
            raise ValueError("first and gap need each other; write for example first: 100B, gap: 200ms")
        if self.first is not None and self.bytes is None:
            raise ValueError("first needs a number of bytes, not a file; write bytes instead of file")
        for size in (self.bytes, self.returned):
            if self.first is not None and size is not None and self.first >= size:
                raise ValueError(f"first is {self.first}, but the whole transfer has {size}; lower first")
        return self

    @property
    def parts(self) -> int:
        """2 if both sides send."""
        return 1 if self.returned is None else 2

    def input_files(self) -> Iterator[tuple[str, str]]:
        """Yield the file to send."""
        if self.file is not None:
            yield "file", self.file

    def job(self, slot: SlotFacts) -> Transfer:
        """Return what the flow of `slot` does. Raise FieldMistakesError for a file that was not read."""
        first = None
        if self.first is not None and self.gap is not None:
            first = First(bytes=int(self.first), pause_us=self.gap.us)
        if slot.part and self.returned is not None:
            return Transfer(bytes=int(self.returned), first=first)
        if self.file is None:
            assert self.bytes is not None
            return Transfer(bytes=int(self.bytes), first=first)
        facts = slot.files.get(self.file)
        if facts is None:
            problem = (
                f"the file '{self.file}' has not been read; read the scenario with plait.scenario.read.load"
            )
            raise FieldMistakesError((("file",), problem))
        file = File(name=facts.name, bytes=facts.bytes, sha256=facts.sha256)
        return Transfer(bytes=file.bytes, file=file)


class File(Record):
    """A real file to transfer. The engine puts it into the trial's folder as `input/NAME`."""

    name: str
    bytes: Count
    sha256: str


class First(Record):
    """The sender writes `bytes`, is silent for `pause_us`, and then writes the rest."""

    bytes: Count
    pause_us: Span


class Transfer(FlowJob):
    """A transfer of `bytes` application bytes, those of the file if there is one.

    It is complete when the receiver has read the last byte.
    """

    GREEDY: ClassVar[bool] = True
    COMPLETES: ClassVar[bool] = True
    HEADLINE: ClassVar[str] = "completion_s"

    kind: Literal["transfer"] = "transfer"
    bytes: Count
    file: File | None = None
    first: First | None = None

    @property
    def input_files(self) -> tuple[str, ...]:
        """Its file."""
        return () if self.file is None else (self.file.name,)

    @property
    def certain_bytes(self) -> int:
        """All of its bytes."""
        return self.bytes

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return ample time for all bytes, and the pause."""
        pause_us = 0 if self.first is None else self.first.pause_us
        return PATIENCE_US + pause_us + int(self.bytes * 8_000_000 / rate_bps(flow))

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return the frames of its bytes."""
        del flow, rate_bps, frame
        return self.bytes / payload

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield iperf3 with its bytes."""
        del names
        if self.first is not None:
            yield (
                f"(each side writes {self.first.bytes} bytes, waits {self.first.pause_us / 1e6:g} s, and then writes "
                "the rest; iperf3 cannot do that)"
            )
        yield "iperf3", f"-n {self.bytes}"
