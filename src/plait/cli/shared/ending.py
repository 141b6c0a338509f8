"""How the command ends early: by a signal, at a limit of the process, or when the reader of its output closes the pipe.

SIGTERM (also from systemd, a batch system, `timeout`) and SIGHUP (a closed terminal) act as Ctrl-C does: guests end,
finished trials stay, plait removes its working folder, and the exit code is 128 plus the number of the signal. A second
signal terminates plait at once; its guests end with it, and the janitor removes their folder. A signal that the caller
ignores (`nohup`) stays ignored.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from plait.errors import Ended, MachineError, OldSpellingWarning, printable
from plait.limits import remedy

if TYPE_CHECKING:
    from collections.abc import Callable
    from sys import UnraisableHookArgs
    from types import FrameType

_SHOW_CURSOR = "\x1b[?25h"
_SOON_S = 0.001
_BROKEN_PIPE = 128 + signal.SIGPIPE
_OLD_PROCESSOR = "Missing required CPU features"
"""How the warning of polars begins when the next of its functions would be an illegal instruction."""


def notify(text: str) -> None:
    """Print a message on standard error, with control characters escaped; ignore a closed terminal."""
    with contextlib.suppress(OSError):
        typer.echo(f"plait: {printable(text)}", err=True)


_NUMBERS = {
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "float_parsing": "write a number",
    "greater_than_equal": "write a number of at least {ge:g}",
    "greater_than": "write a number above {gt:g}",
    "less_than_equal": "write a number of at most {le:g}",
    "less_than": "write a number below {lt:g}",
}
"""The remedy for a wrong value, by the type of pydantic's error."""


def words_of_usage(error: typer.TyperException) -> str:
    """Return the problem of an option's value in plait's words: `--jobs 0: write a number of at least 1`."""
    cause = error.__cause__
    if cause is None:
        return error.format_message()
    from pydantic import ValidationError

    if not isinstance(cause, ValidationError):
        return error.format_message()
    problem = cause.errors(include_url=False)[0]
    option = getattr(getattr(error, "param", None), "opts", None) or ["the argument"]
    remedy_words = _NUMBERS.get(problem["type"])
    if remedy_words is None:
        return error.format_message()
    return f"{option[0]} {problem['input']}: {remedy_words.format(**problem.get('ctx', {}))}"


def on_signals() -> None:
    """Make SIGTERM and SIGHUP raise Ended in the main thread, and SIGINT KeyboardInterrupt.

    Not if the caller ignores or handles them.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    sys.unraisablehook = partial(_raise_again, sys.unraisablehook)


def _raise_again(show: Callable[[UnraisableHookArgs], object], ignored: UnraisableHookArgs) -> None:
    """Raise the exception of a signal again that Python ignored, because it came in a callback."""
    lost = ignored.exc_value
    if not isinstance(lost, KeyboardInterrupt | Ended):
        show(ignored)
        return

    def raise_it(_: int, __: FrameType | None) -> NoReturn:
        raise lost

    signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, _SOON_S)


def interruption_of(work: Callable[[], object]) -> signal.Signals | None:
    """Do the work, and return the signal that interrupted it; None if it came to its end."""
    try:
        work()
    except KeyboardInterrupt:
        return signal.SIGINT
    except Ended as end:
        return end.signal
    return None


def discard_output() -> int:
    """Discard what Python may still write at exit to a closed pipe, and return the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return _BROKEN_PIPE


def refuse_old_processors() -> None:
    """Make the import of polars raise its warning that this processor lacks features, which `code_of` explains."""
    warnings.filterwarnings("error", message=_OLD_PROCESSOR, category=RuntimeWarning)


def show_old_spellings() -> None:
    """Print each OldSpellingWarning once, as `notify` prints a message; other warnings stay as they are."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *arguments: Any, **options: Any) -> None:
        if issubclass(category, OldSpellingWarning):
            notify(str(message))
        else:
            shown(message, category, *arguments, **options)

    warnings.showwarning = show


def _end(number: int, _: FrameType | None) -> None:
    for other in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, _leave)
    raise Ended(signal.Signals(number))


def _leave(number: int, _: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        if os.isatty(2):
            os.write(2, _SHOW_CURSOR.encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def code_of(error: BaseException) -> int | None:
    """Return the exit code for an error that the machine caused, and print its remedy; None for other errors."""
    by_rich = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    if isinstance(error, BrokenPipeError) or by_rich:  # rich exits with 1
        return discard_output()
    if isinstance(error, FileNotFoundError) and error.filename is None:
        notify("the current folder no longer exists; change to another one (`cd`)")
    elif isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename is not None else ""
        hint = remedy(error, _remedy_of(error.filename))
        notify(f"{path}{error.strerror or error}; {hint}")
    elif isinstance(error, ImportError):
        notify(
            f"loading a library failed: {error}; install plait again, or raise the limit of addresses (ulimit -v)"
        )
    elif isinstance(error, RuntimeWarning) and str(error).startswith(_OLD_PROCESSOR):
        features = next(
            (line.strip() for line in str(error).splitlines() if line.startswith("    ")), "features"
        )
        notify(
            f"loading polars failed: this processor lacks {features}; "
            "install polars for older processors with `pip install 'polars[rtcompat]'`"
        )
    elif isinstance(error, MemoryError):
        notify("there is not enough memory; free some, or raise the limit of the process (ulimit -v)")
    elif isinstance(error, RuntimeError) and "start new thread" in str(error):
        notify("starting a thread failed; raise the limit of processes (ulimit -u), or run with --jobs 1")
    elif type(error).__name__ == "PanicException":
        first = (str(error).splitlines() or [""])[0]
        notify(
            f"a library failed ({first}); free some memory, or raise the limits of the process (ulimit -v, -u)"
        )
    else:
        return None
    return MachineError.exit_code


def _remedy_of(path: object) -> str:
    """Return the remedy for an error of a file: a cache need not be this one."""
    from plait.cache import CACHE_REMEDY, cache_root

    with contextlib.suppress(MachineError):
        if isinstance(path, str | os.PathLike) and Path(path).is_relative_to(cache_root()):
            return CACHE_REMEDY
    return "check that it exists and that you have permission to use it"


def open_closed_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed, so that no file takes its descriptor."""
    sys.stdin = sys.stdin or os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def flush() -> None:
    """Flush standard output, so that a closed pipe or a full disk raises its error here."""
    sys.stdout.flush()
