"""How the command ends when somebody or something ends it: signals, limits of the process, a reader that went away.

SIGTERM (also from systemd, a batch system, `timeout`) and SIGHUP (a terminal that is closed) do what Ctrl-C does:
guests end, finished trials stay, the working folder goes, and the exit code is 128 and the signal's number. A second
one leaves at once; the guests then end with plait, and the janitor removes their folder. Who ignores them already
(`nohup`) goes on ignoring them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import typer

from plait.errors import Ended, MachineError, printable
from plait.limits import remedy

if TYPE_CHECKING:
    from types import FrameType

_SHOW_CURSOR = "\x1b[?25h"
_BROKEN_PIPE = 128 + signal.SIGPIPE


def notify(text: str) -> None:
    """Print a message on standard error, its control characters as escapes; a closed terminal is no error."""
    with contextlib.suppress(OSError):
        typer.echo(f"plait: {printable(text)}", err=True)


def on_signals() -> None:
    """Have SIGTERM and SIGHUP raise Ended in the main thread, where nobody has said otherwise."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


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
    """Return the exit code for an error that the machine caused, and print what it lacks; None for other errors."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads what Python may still want to write
        return _BROKEN_PIPE
    if isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename is not None else ""
        hint = remedy(error, "check that it is there, and whose it is")
        notify(f"{path}{error.strerror or error}; {hint}")
    elif isinstance(error, ImportError):
        notify(
            f"loading a library failed: {error}; install plait again, or allow the process more (ulimit -v)"
        )
    elif isinstance(error, MemoryError):
        notify("there is not enough memory; free some, or allow the process more (ulimit -v)")
    elif isinstance(error, RuntimeError) and "start new thread" in str(error):
        notify("starting a thread failed; allow this user more processes (ulimit -u), or run with --jobs 1")
    elif type(error).__name__ == "PanicException":
        first = (str(error).splitlines() or [""])[0]
        notify(
            f"a library gave up ({first}); is there too little memory, or too few processes (ulimit -v, -u)?"
        )
    else:
        return None
    return MachineError.exit_code


def flush() -> None:
    """Write out what is left for standard output, so that a reader who went away or a full disk is noticed here."""
    sys.stdout.flush()
