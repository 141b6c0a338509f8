"""An interactive guest: it accepts commands and emits output frames. Prompts use this interface with every engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plait.errors import TrialError

STDOUT, STDERR, END, READY, TAKEN = 1, 2, 3, 4, 5
"""Kinds of frames (`agent/src/session/output.rs`)."""


class TerminalSize(NamedTuple):
    """The size of a terminal in characters."""

    rows: int
    columns: int


@dataclass(frozen=True)
class ProgramStart:
    """A program to run (mirrored by `agent/src/session/orders.rs`)."""

    run: int
    argv: Sequence[str]
    environment: Sequence[tuple[str, str]]
    directory: str = "/"
    netns: str | None = None
    input: str = "nothing"
    """The standard input: `nothing`, `file` (input/stdin), or `orders` (passed on as it arrives)."""
    merged: bool = False
    terminal: TerminalSize | None = None

    def record(self) -> dict[str, object]:
        """Return the record that the agent reads."""
        size = None if self.terminal is None else self.terminal._asdict()
        return {**asdict(self), "terminal": size}


class ProgramEnd(BaseModel):
    """How a program ended: the content of an END frame, which a program of the guest can write as well."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    code: Annotated[int, Field(ge=0, le=255)] | None
    """The exit code; None if a signal ended it, or if it did not start."""
    signal: Annotated[int, Field(ge=1, le=64)] | None = None
    error: str | None = None
    """Why it did not start, and the number of the error."""
    errno: Annotated[int, Field(ge=0, le=4095)] | None = None
    timed_out: bool = False
    refused_processes: int = Field(default=0, ge=0, lt=1 << 63)
    full: tuple[str, ...] = ()
    """Private file systems without space."""
    missing_devices: tuple[str, ...] = ()

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Return the record in the content of a frame (TrialError if the agent cannot have written it)."""
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            raise TrialError(
                "reading how the program ended: the agent did not write this content; a program of the guest "
                "interferes with it"
            ) from error


class OutputFrame(NamedTuple):
    """A piece of a session's output."""

    run: int
    kind: int
    content: bytes


class PromptedGuest(Protocol):
    """A guest that a prompt uses: during a pause of its trial, or for a whole session."""

    @property
    def folder(self) -> Path:
        """The job folder."""

    @property
    def numbers(self) -> Iterator[int]:
        """The next numbers for programs; all prompts of the guest share them."""

    def send_order(self, order: dict[str, object]) -> None:
        """Send an order to the agent."""

    def feed(self, run: int, data: bytes) -> None:
        """Pass input to the program `run`; empty `data` ends its input."""

    def frames(self) -> Iterator[OutputFrame]:
        """Yield the frames that the guest has emitted since the last call."""

    def run_clock(self, *, needed: bool) -> float:
        """Let the guest's clock run if a program `needed` it. Return the longest time in s until the next call."""

    def run_clock_briefly(self) -> None:
        """Let a stopped clock run briefly, so that the guest handles an order whose end no prompt waits for."""

    def wait(self, descriptors: Sequence[int] = (), timeout_s: float = ...) -> list[int]:
        """Wait until the guest emits output or ends, or a descriptor is ready; return the ready ones."""

    def check_disk(self) -> None:
        """Raise TrialError if the guest has exceeded its disk limit."""

    def has_ended(self) -> bool:
        """Return whether the guest has ended and plait has read all its output."""

    def end(self) -> None:
        """End the guest's process."""
