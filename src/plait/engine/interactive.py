"""A guest that takes orders and emits frames: what prompts use, whatever engine runs it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

STDOUT, STDERR, END, READY, TAKEN = 1, 2, 3, 4, 5
"""Kinds of frames (`agent/src/session/output.rs`)."""


class TerminalSize(NamedTuple):
    """A terminal's."""

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
    """`nothing`, `file` (input/stdin), or `orders` (as it comes)."""
    merged: bool = False
    terminal: TerminalSize | None = None

    def record(self) -> dict[str, object]:
        """As the agent reads it."""
        size = None if self.terminal is None else self.terminal._asdict()
        return {**asdict(self), "terminal": size}


class OutputFrame(NamedTuple):
    """A piece of what a session tells."""

    run: int
    kind: int
    content: bytes


class PromptedGuest(Protocol):
    """A guest that a prompt uses, while its trial is halted or as long as its session lasts."""

    @property
    def folder(self) -> Path:
        """The job folder."""

    @property
    def numbers(self) -> Iterator[int]:
        """Numbers for the runs of those who share it."""

    def send_order(self, order: dict[str, object]) -> None:
        """Give an order."""

    def feed(self, run: int, data: bytes) -> None:
        """Give a program input; no bytes end it."""

    def frames(self) -> Iterator[OutputFrame]:
        """Yield what the guest has emitted since the last call."""

    def run_clock(self, *, needed: bool) -> float:
        """Let its clock run if that is `wanted`. Return in how many seconds to ask again, at the latest."""

    def run_clock_briefly(self) -> None:
        """Let its clock run a little, where it can stand, for what nobody waits for."""

    def wait(self, others: Sequence[int] = (), timeout_s: float = ...) -> list[int]:
        """Wait until the guest emits something or ends, or one of `others` is ready. Return those that are."""

    def check_disk(self) -> None:
        """Raise TrialError when the guest has written more than it may."""

    def has_ended(self) -> bool:
        """Whether the guest has gone, and all that it emitted has been read."""

    def end(self) -> None:
        """End the guest's process."""
