"""Calls a scheduler, a stranger's code, and checks what it returns. An error names its file and line."""

from __future__ import annotations

import dis
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from plait.prototype.path import SendingPath
from plait.prototype.scheduler import ConnectionView, Scheduler
from plait.prototype.segment import StreamSegment

MOST_LINES = 100_000
"""Lines that one call of a scheduler may execute. No clock bounds it, because computing takes no virtual time."""


class SchedulerError(Exception):
    """A scheduler failed; the message begins with its file and line."""


class _TooLongError(BaseException):
    """A call executed too many lines."""


def _raise_overrun(_: str) -> None:
    """End the call. A scheduler that catches BaseException goes on, so the guest ends the process instead."""
    raise _TooLongError


class _LineBudget:
    """Counts the lines that a stranger's code executes, as a context manager.

    Above `MOST_LINES` it calls `overrun` with the line and what happened.
    """

    def __init__(self, file: str, overrun: Callable[[str], None] = _raise_overrun) -> None:
        self._file = file
        self._overrun = overrun
        self._lines = 0

    def __enter__(self) -> None:
        self._lines = 0
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        if event == "call":
            frame.f_trace_opcodes = bool(_short_loops(frame.f_code))
        elif event == "opcode" and frame.f_lasti not in _short_loops(frame.f_code):
            return self._trace
        self._lines += 1
        if self._lines > MOST_LINES:
            inside: FrameType | None = frame
            while inside is not None and inside.f_code.co_filename != self._file:
                inside = inside.f_back
            line, name = (1, "<module>") if inside is None else (inside.f_lineno, inside.f_code.co_name)
            called = "the file" if name == "<module>" else f"{name}()"
            self._overrun(f"{_short(self._file)}:{line}: {called} {TOO_LONG}")
        return self._trace


@lru_cache(maxsize=1024)
def _short_loops(code: CodeType) -> frozenset[int]:
    """Return the offsets of jumps back within one line, such as in `while True: pass`; they begin no new line."""
    jumps = [
        jump for jump in dis.get_instructions(code) if jump.opcode in _JUMPS and jump.argval <= jump.offset
    ]
    if not jumps:
        return frozenset()
    lines = {offset: line for start, end, line in code.co_lines() for offset in range(start, end)}
    return frozenset(jump.offset for jump in jumps if lines.get(jump.offset) == lines.get(jump.argval))


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))

TOO_LONG = f"executed more than {MOST_LINES} lines"


def load_scheduler(
    file: str, name: str, source: str, overrun: Callable[[str], None] | None = None
) -> Scheduler:
    """Return an instance of class `name` of a scheduler's file. Raise SchedulerError."""
    budget = _LineBudget(file, overrun or _raise_overrun)
    # Not with its folder's modules: the file is all that the trial's identity covers.
    space: dict[str, Any] = {"__name__": "scheduler", "__file__": file}
    try:
        code = compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise SchedulerError(f"{_short(file)}:{line}: {getattr(error, 'msg', error)}") from None
    try:
        with budget:
            exec(code, space)  # noqa: S102 - in the guest, contained
    except BaseException as error:  # noqa: BLE001 - a stranger's code
        raise SchedulerError(_raised(error, file, "the file", None)) from None
    space_class = space.get(name)
    if not isinstance(space_class, type) or not issubclass(space_class, Scheduler):
        raise SchedulerError(
            f"{_short(file)}:1: there is no class {name} that inherits from plait.prototype.Scheduler"
        )
    if space_class.pick is Scheduler.pick:
        raise SchedulerError(f"{_short(file)}:1: class {name} has no method pick(self, paths, segment)")
    try:
        with budget:
            scheduler: Scheduler = space_class()
    except BaseException as error:  # noqa: BLE001 - a stranger's code
        raise SchedulerError(_raised(error, file, "__init__()", name)) from None
    return scheduler


def _raised(error: BaseException, file: str, subject: str, name: str | None) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = frames[-1].lineno if frames else 1
    class_text = "" if name is None else f" of {name}"
    return f"{_short(file)}:{line}: {subject}{class_text} {_error_text(error)}"


def _error_text(error: BaseException) -> str:
    """Return what an exception of a scheduler says."""
    if isinstance(error, _TooLongError):
        return TOO_LONG
    return f"raised {type(error).__name__}: {str(error)[:300]}"


class Choices:
    """A scheduler whose calls are bounded and checked."""

    def __init__(
        self,
        scheduler: Scheduler,
        connection: ConnectionView,
        *,
        trusted: bool = False,
        overrun: Callable[[str], None] | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._trusted = trusted
        """Whether it is one of plait's, whose lines need no count."""
        self._budget = _LineBudget(_file(scheduler), overrun or _raise_overrun)
        self.calls = 0
        """How many calls have begun; `busy` while one is in progress."""
        self.busy = False
        base = type(scheduler)
        self.repairs = base.repair is not Scheduler.repair
        """Whether the scheduler asks for parities."""
        self.hears_acks = base.on_ack is not Scheduler.on_ack
        self.hears_losses = base.on_loss is not Scheduler.on_loss
        scheduler.connection = connection

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> Sequence[SendingPath]:
        """Return the chosen paths, none to wait. Raise SchedulerError."""
        return self._chosen(self._scheduler.pick, paths, segment)

    def repair(self, paths: list[SendingPath], block: tuple[StreamSegment, ...]) -> Sequence[SendingPath]:
        """Return the paths of a parity, none for no parity. Raise SchedulerError."""
        return self._chosen(self._scheduler.repair, paths, block)

    def _chosen(
        self, method: Callable[..., Any], paths: list[SendingPath], subject: object
    ) -> Sequence[SendingPath]:
        chosen = self._call(method, list(paths), subject)
        if chosen is None:
            return ()
        if isinstance(chosen, SendingPath):
            chosen = (chosen,)
        if not isinstance(chosen, (list, tuple)) or not all(isinstance(each, SendingPath) for each in chosen):
            problem = f"returned {_shown(chosen)}; return a path of `paths`, a list of them, or None"
            raise self._wrong(problem, method)
        if len(set(chosen)) != len(chosen):
            raise self._wrong("returned the same path twice", method)
        for path in chosen:
            if path not in paths:
                problem = f"returned path {path.name}, which is not in `paths`: it is closed or dead"
                raise self._wrong(problem, method)
        return chosen

    def on_ack(self, path: SendingPath, segment: StreamSegment) -> None:
        """Tell the scheduler of an acknowledged segment. Raise SchedulerError."""
        if self.hears_acks:
            self._call(self._scheduler.on_ack, path, segment)

    def on_loss(self, path: SendingPath, segment: StreamSegment) -> None:
        """Tell the scheduler of a lost segment. Raise SchedulerError."""
        if self.hears_losses:
            self._call(self._scheduler.on_loss, path, segment)

    def never_picks(self, seconds: float) -> SchedulerError:
        """Return the error of a scheduler that has waited with nothing in flight."""
        return self._wrong(
            f"chose no path for {seconds:g} s, although data wait and nothing is in flight; choose a path with room",
            self._scheduler.pick,
        )

    def broke_transport(self, error: Exception) -> SchedulerError:
        """Return the error of a scheduler that left paths or segments in a state that the transport cannot use."""
        return self._wrong(
            f"changed a path or a segment: the transport raised {type(error).__name__}: {str(error)[:300]}; "
            "only read them",
            self._scheduler.pick,
        )

    def _call(self, method: Callable[..., Any], *arguments: object) -> Any:
        if self._trusted:
            return method(*arguments)
        self.calls += 1
        self.busy = True
        try:
            with self._budget:
                return method(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - also SystemExit
            raise SchedulerError(self._located(error, _error_text(error))) from None
        finally:
            self.busy = False

    def _located(self, error: BaseException, reason: str) -> str:
        """Return `FILE:LINE: METHOD() of CLASS WHY` for the innermost line of the scheduler's file."""
        file = _file(self._scheduler)
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if frame.filename == file] or frames
        name = type(self._scheduler).__name__
        return f"{_short(file)}:{inside[-1].lineno}: {inside[-1].name}() of {name} {reason}"

    def _wrong(self, reason: str, method: Callable[..., Any]) -> SchedulerError:
        code = getattr(type(self._scheduler), method.__name__).__code__
        name = type(self._scheduler).__name__
        place = f"{_short(code.co_filename)}:{code.co_firstlineno}"
        return SchedulerError(f"{place}: {code.co_name}() of {name} {reason}")


def _file(scheduler: Scheduler) -> str:
    return type(scheduler).pick.__code__.co_filename


def _short(file: str) -> str:
    return file.rpartition("/")[2]


def _shown(value: object) -> str:
    """Return a short text for a stranger's value, without calling its code."""
    if isinstance(value, (bool, int, float, str)):
        return repr(value)[:60]
    return f"a value of type {type(value).__name__}"
