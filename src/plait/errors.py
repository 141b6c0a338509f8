"""Every error that plait raises on purpose, and the exit code that each becomes.

    PlaitError
    +-- RequestError      the request was wrong; nothing was run                      exit 2
    |   +-- ScenarioError     one or more located mistakes in a scenario file
    +-- MachineError      this machine cannot run it, and what would bring it         exit 3
    |   +-- KernelBuildError  the laboratory kernel could not be found or built
    +-- TrialError        one trial failed; the others go on                          exit 1
    +-- DataError         a result folder or table is not what it should be           exit 2

A message says what was attempted, on what, why it failed, and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence


def printable(text: str, keep: str = "\n\t") -> str:
    """Return `text` with its control characters, but for those to `keep`, as escapes that a terminal only shows."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class PlaitError(Exception):
    """The base of all errors that plait raises on purpose."""

    exit_code = 1


class RequestError(PlaitError):
    """The request was wrong and nothing was run."""

    exit_code = 2


@dataclass(frozen=True)
class Mistake:
    """One mistake in a scenario, and the place where it stands."""

    source: str
    """The file, `--set PATH=VALUE`, or empty for a scenario made in Python."""
    line: int | None
    column: int | None
    """Both from 1; None where there is no text."""
    path: str
    """`network.links.h1-s1.rate`; empty for the file as a whole."""
    message: str
    """What is wrong; what would be right."""

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"
        line = ": ".join(part for part in (place, self.path, self.message) if part)
        return printable(line, keep="")  # nothing of a file's may break the line


class ScenarioError(RequestError):
    """A scenario has mistakes: all that were found, a line each."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)
        """In the order of their places."""


class DataError(PlaitError):
    """A result folder or a table in it is not what it should be."""

    exit_code = 2


class MachineError(PlaitError):
    """This machine lacks something; the message names the command that brings it."""

    exit_code = 3


class KernelBuildError(MachineError):
    """The laboratory kernel could not be found, patched, configured or built."""


class Ended(SystemExit):
    """The process was asked to end by a signal: like Ctrl-C, but no prompt goes on after it."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(128 + number)
        self.signal = number


class TrialError(PlaitError):
    """One trial failed. The rest of the study goes on."""
