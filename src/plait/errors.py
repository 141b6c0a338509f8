"""The errors that plait raises on purpose, and their exit codes.

    PlaitError
    +-- RequestError      the request is wrong; plait ran nothing                     exit 2
    |   +-- ScenarioError     one or more located mistakes in a scenario file
    |   +-- FieldMistakesError  the same, before plait locates them
    +-- MachineError      this machine cannot run it; the message says what it lacks  exit 3
    |   +-- KernelBuildError  the laboratory kernel is missing or cannot be built
    +-- TrialError        one trial failed; the others continue                       exit 1
    +-- DataError         a result folder or table is damaged or invalid              exit 2

A message states what plait attempted, on what, why it failed, and what to do next.
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


def printable(text: str, keep: str = "\n\t") -> str:
    """Return `text` with every control character escaped, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def shell_command(*words: object) -> str:
    """Return a command for the reader to type: each word is quoted for a shell, and no path can be an option."""
    return shlex.join(
        f"./{word}" if isinstance(word, Path) and str(word)[0] == "-" else str(word) for word in words
    )


class PlaitError(Exception):
    """The base class of all errors that plait raises on purpose."""

    exit_code = 1


class RequestError(PlaitError):
    """The request is wrong; plait ran nothing."""

    exit_code = 2


@dataclass(frozen=True)
class Mistake:
    """One mistake in a scenario, and its place in the text."""

    source: str
    """The file name or `--set PATH=VALUE`; empty for a scenario made in Python."""
    line: int | None
    column: int | None
    """Line and column count from 1; None without a text."""
    path: str
    """The path of the field, `network.links.h1-s1.rate`; empty for the whole file."""
    message: str
    """`problem; remedy`."""

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"
        line = ": ".join(part for part in (place, self.path, self.message) if part)
        return printable(line, keep="")  # no text of the file may break the line


class ScenarioError(RequestError):
    """A scenario has mistakes; the message lists each on a line."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)
        """In the order of their places in the file."""


class FieldMistakesError(RequestError):
    """A scenario has mistakes, each a path of a field and `problem; remedy`; what knows its text locates them."""

    def __init__(self, *mistakes: tuple[tuple[str | int, ...], str]) -> None:
        super().__init__("\n".join(f"{'.'.join(map(str, where))}: {problem}" for where, problem in mistakes))
        self.mistakes = mistakes

    def within(self, *outer: str | int) -> FieldMistakesError:
        """Return the same mistakes of the fields below another one."""
        return FieldMistakesError(*(((*outer, *where), problem) for where, problem in self.mistakes))


def refuse_fields(mistakes: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
    """Raise FieldMistakesError with these mistakes, if there are any."""
    if found := tuple(mistakes):
        raise FieldMistakesError(*found)


class OldSpellingWarning(FutureWarning):
    """A scenario has a field in an old spelling, which the next version refuses; the message names the new one."""


class DataError(PlaitError):
    """A result folder or a table in it is damaged or invalid."""

    exit_code = 2


class MachineError(PlaitError):
    """This machine lacks something; the message names the command that provides it."""

    exit_code = 3


class KernelBuildError(MachineError):
    """plait cannot find, patch, configure or build the laboratory kernel."""


class Ended(SystemExit):
    """A signal asked the process to end. Unlike Ctrl-C, it also ends a prompt."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(128 + number)
        self.signal = number


class TrialError(PlaitError):
    """One trial failed; the rest of the study continues."""
