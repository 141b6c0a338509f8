"""Calls a scheduler, a stranger's code, and checks what it returns. An error names its file and line."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any

from plait.prototype.path import SendingPath
from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from plait.prototype.scheduler import ConnectionView
    from plait.prototype.segment import StreamSegment

MOST_LINES = 100_000
"""Lines that one call of a scheduler may execute. No clock bounds it, because computing takes no virtual time."""


MOST_SOURCE = 65_536
"""Bytes of a scheduler's file."""


class SchedulerError(Exception):
    """A scheduler failed; the message begins with its file and line."""


class _TooLongError(BaseException):
    """A call executed too many lines. `except Exception` of a scheduler does not catch it."""


def load_scheduler(file: str, name: str, source: str) -> Scheduler:
    """Return an instance of class `name` of a scheduler's file. Raise SchedulerError."""
    # Not with its folder's modules: the file is all that the trial's identity covers.
    space: dict[str, Any] = {"__name__": "scheduler", "__file__": file}
    try:
        exec(compile(source, file, "exec", dont_inherit=True), space)  # noqa: S102 - in the guest, contained
    except SyntaxError as error:
        raise SchedulerError(f"{_short(file)}:{error.lineno}: {error.msg}") from None
    except Exception as error:  # noqa: BLE001 - a stranger's code
        raise SchedulerError(_raised(error, file, "the file", None)) from None
    found = space.get(name)
    if not isinstance(found, type) or not issubclass(found, Scheduler):
        raise SchedulerError(
            f"{_short(file)}:1: there is no class {name} that inherits from plait.prototype.Scheduler"
        )
    if found.pick is Scheduler.pick:
        raise SchedulerError(f"{_short(file)}:1: class {name} has no method pick(self, paths, segment)")
    try:
        made: Scheduler = found()
    except Exception as error:  # noqa: BLE001
        raise SchedulerError(_raised(error, file, "__init__()", name)) from None
    return made


def _raised(error: Exception, file: str, what: str, name: str | None) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = frames[-1].lineno if frames else 1
    of = "" if name is None else f" of {name}"
    return f"{_short(file)}:{line}: {what}{of} raised {type(error).__name__}: {str(error)[:300]}"


class Choices:
    """A scheduler whose calls are bounded and checked."""

    def __init__(self, scheduler: Scheduler, connection: ConnectionView, *, trusted: bool = False) -> None:
        self._scheduler = scheduler
        self._trusted = trusted
        """Whether it is one of plait's, whose lines need no count."""
        self._lines = 0
        self.calls = 0
        """How many calls have begun; `busy` while one is in progress."""
        self.busy = False
        base = type(scheduler)
        self.hears_acks = base.on_ack is not Scheduler.on_ack
        self.hears_losses = base.on_loss is not Scheduler.on_loss
        scheduler.connection = connection

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> Sequence[SendingPath]:
        """Return the chosen paths, none to wait. Raise SchedulerError."""
        offered = list(paths)
        chosen = self._call(self._scheduler.pick, offered, segment)
        if chosen is None:
            return ()
        if isinstance(chosen, SendingPath):
            chosen = (chosen,)
        if not isinstance(chosen, (list, tuple)) or not all(isinstance(each, SendingPath) for each in chosen):
            raise self._wrong(f"returned {_shown(chosen)}; return a path of `paths`, a list of them, or None")
        if len(set(chosen)) != len(chosen):
            raise self._wrong("returned the same path twice")
        for path in chosen:
            if path not in paths:
                raise self._wrong(f"returned path {path.name}, which is not in `paths`: it is closed or dead")
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
            f"chose no path for {seconds:g} s, although data wait and nothing is in flight; choose a path with room"
        )

    def _call(self, method: Callable[..., Any], *arguments: object) -> Any:
        if self._trusted:
            return method(*arguments)
        self._lines = 0
        self.calls += 1
        self.busy = True
        sys.settrace(self._trace)
        try:
            return method(*arguments)
        except _TooLongError:
            sys.settrace(None)
            raise SchedulerError(
                self._located(sys.exc_info()[1], f"executed more than {MOST_LINES} lines")
            ) from None
        except Exception as error:  # noqa: BLE001
            sys.settrace(None)
            why = f"raised {type(error).__name__}: {str(error)[:300]}"
            raise SchedulerError(self._located(error, why)) from None
        finally:
            sys.settrace(None)
            self.busy = False

    def _trace(self, _frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        self._lines += 1
        if self._lines > MOST_LINES:
            raise _TooLongError
        return self._trace

    def _located(self, error: BaseException | None, why: str) -> str:
        """Return `FILE:LINE: METHOD() of CLASS WHY` for the innermost line of the scheduler's file."""
        file = _file(self._scheduler)
        frames = traceback.extract_tb(None if error is None else error.__traceback__)
        inside = [frame for frame in frames if frame.filename == file] or frames
        name = type(self._scheduler).__name__
        return f"{_short(file)}:{inside[-1].lineno}: {inside[-1].name}() of {name} {why}"

    def _wrong(self, why: str) -> SchedulerError:
        code = type(self._scheduler).pick.__code__
        name = type(self._scheduler).__name__
        return SchedulerError(f"{_short(code.co_filename)}:{code.co_firstlineno}: pick() of {name} {why}")


def _file(scheduler: Scheduler) -> str:
    return type(scheduler).pick.__code__.co_filename


def _short(file: str) -> str:
    return file.rpartition("/")[2]


def _shown(value: object) -> str:
    """Return a short text for a stranger's value, without calling its code."""
    if isinstance(value, (bool, int, float, str)):
        return repr(value)[:60]
    return f"a value of type {type(value).__name__}"
