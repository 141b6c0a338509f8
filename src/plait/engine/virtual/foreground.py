"""Runs one program of the host in a guest in the foreground: passes on its output, its signals and its exit code.

In virtual time, plait reads standard input to its end before the program starts. In real time, it passes input on as it
arrives, and the program can use the terminal.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import shutil
import signal
import struct
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from plait.engine.host_view import HostView
from plait.engine.interactive import END, STDERR, STDOUT, ProgramEnd, TerminalSize
from plait.engine.packages import install_hint
from plait.engine.virtual.crash import ran_out_of_memory
from plait.engine.virtual.session import Session
from plait.engine.virtual.watch import Standstill, virtual_us, waited_s
from plait.errors import TrialError
from plait.files import Folder

RUN = 1
"""The number of the program in orders and frames."""
TIMED_OUT = 124
"""The exit code of a program that exceeded its time limit, as of timeout(1)."""
_NOT_FOUND, _NOT_RUNNABLE, _SIGNALLED = 127, 126, 128
_ENOENT, _EACCES = errno.ENOENT, errno.EACCES
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_STALL_S = 120.0
_INPUT_BYTES = 1 << 20
OUTPUT_BYTES = 1 << 30
"""Default limit of what a program may write to its output streams."""
_LAST_OUTPUT_BYTES = 4096
_GRACE_S = 10.0
"""How long a program may run after SIGTERM or SIGHUP."""
_UNREAD_INPUT_POLL_S, _POLL_S = 0.005, 0.25
"""Intervals of polling: for the guest to read its input, and for the time limits."""


@dataclass(frozen=True)
class SessionLimits:
    """The limits at which plait ends the guest."""

    wall_s: float
    memory_mib: int
    processes_max: int
    real_time: bool
    output_bytes: int = OUTPUT_BYTES
    debugged: bool = False
    """Whether a person may stop the guest, and with it a virtual clock."""


def terminal_size(descriptor: int) -> TerminalSize:
    """Return the size of the terminal behind `descriptor`."""
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, b"\0" * 8))
    return TerminalSize(rows or 24, columns or 80)


def follow(
    session: Session, limits: SessionLimits, report: Callable[[str], None], *, typed: bool, terminal: bool
) -> int:
    """Wait for the program's end and return its exit code, as a shell reports it.

    `typed`: pass input on as it arrives; `terminal`: the program runs in the terminal. `report` prints a message of
    plait. Raises TrialError if the guest fails.
    """
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(_signals(resize=terminal))
        if terminal:
            stack.enter_context(raw(sys.stdin.fileno()))
        return _Follower(session, limits, report, signals, typed=typed).until_end()


class _Follower:
    def __init__(
        self,
        session: Session,
        limits: SessionLimits,
        report: Callable[[str], None],
        signals: int,
        *,
        typed: bool,
    ) -> None:
        self._session = session
        self._limits = limits
        self._report = report
        self._signals = signals
        self._input = sys.stdin.fileno() if typed else None
        self._interrupts = 0
        self._began = time.monotonic()
        self._standstill = Standstill(self._began)
        self._virtual_us = -1
        self._written = 0
        self._last_output = b""
        self._deadline: tuple[float, int] | None = None
        """When plait ends the guest and with which exit code, unless the program ends first."""

    def until_end(self) -> int:
        while True:
            unread = self._input is not None and self._session.has_unread_input()
            watched = [self._signals] if self._input is None or unread else [self._signals, self._input]
            ready = self._session.wait(watched, _UNREAD_INPUT_POLL_S if unread else _POLL_S)
            if self._signals in ready and (code := self._forward_signals()) is not None:
                return code
            if self._input in ready:
                self._forward_input()
            gone = self._session.guest.process.poll() is not None
            for frame in self._session.frames():
                if frame.kind == END:
                    self._session.check_disk()
                    return self._exit_code(ProgramEnd.read(frame.content))
                if frame.kind in (STDOUT, STDERR):
                    code = self._write(1 if frame.kind == STDOUT else 2, frame.content)
                    if code is not None:
                        return code
            if gone:
                self._session.explain_end()
                last = "".join(self._session.console()[-1:])
                raise TrialError(
                    "the guest ended without reporting the end of the program, after "
                    f"{self._session.output_bytes} bytes of output; the last line of its console: {last}"
                )
            if (code := self._overdue()) is not None:
                return code
            self._check_limits()

    def _overdue(self) -> int | None:
        """Return an exit code if the program runs too long after SIGTERM or SIGHUP."""
        if self._deadline is None or time.monotonic() < self._deadline[0]:
            return None
        self._report(f"the program still ran {_GRACE_S:.0f} s after the signal; plait ended the guest")
        return self._deadline[1]

    def _forward_signals(self) -> int | None:
        """Pass signals on to the guest's command. Return an exit code if plait must end the guest at once."""
        for number in os.read(self._signals, 64):
            if number == signal.SIGWINCH:
                size = terminal_size(sys.stdin.fileno())._asdict()
                self._session.send_order({"do": "size", "run": RUN, "size": size})
                continue
            self._interrupts += number in {signal.SIGINT, signal.SIGTERM}
            if self._interrupts > 1:
                self._report("interrupted twice; plait ended the guest")
                return _SIGNALLED + number
            if number in {signal.SIGTERM, signal.SIGHUP} and self._deadline is None:
                self._deadline = time.monotonic() + _GRACE_S, _SIGNALLED + number
            self._session.send_order({"do": "signal", "run": RUN, "number": number})
        return None

    def _forward_input(self) -> None:
        assert self._input is not None
        data = os.read(self._input, _INPUT_BYTES)
        self._session.feed(RUN, data)
        if not data:
            self._input = None

    def _write(self, descriptor: int, data: bytes) -> int | None:
        """Write all of `data`; suspend the guest while it blocks. Return a code if plait must end the guest."""
        self._written += len(data)
        self._last_output = (self._last_output + data)[-_LAST_OUTPUT_BYTES:]
        if self._written > self._limits.output_bytes:
            raise TrialError(
                f"the program wrote more than {self._limits.output_bytes >> 20} MiB; raise it with --output-limit"
            )
        while data:
            if not select.select([], [descriptor], [], 0)[1]:
                code = self._wait_for_reader(descriptor)
                if code is not None:
                    return code
            try:
                data = data[os.write(descriptor, data) :]
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return _SIGNALLED + signal.SIGHUP  # the terminal was closed
        return None

    def _wait_for_reader(self, descriptor: int) -> int | None:
        """Wait until `descriptor` accepts data. Return an exit code if plait must end the guest meanwhile."""
        self._session.guest.suspend()
        try:
            while not select.select([], [descriptor], [], _POLL_S)[1]:
                signalled = select.select([self._signals], [], [], 0)[0]
                code = self._forward_signals() if signalled else self._overdue()
                if code is not None:
                    return code
        finally:
            self._session.guest.wake()
            self._standstill.restart(time.monotonic(), waited_s(self._session.guest.pid))
        return None

    def _check_limits(self) -> None:
        self._session.check_disk()
        now = time.monotonic()
        if now - self._began > self._limits.wall_s:
            raise TrialError(
                f"the guest exceeded {self._limits.wall_s:.0f} s of wall time, with its clock at "
                f"{max(self._virtual_us, 0) / 1e6:.0f} s; raise the limit with --wall-timeout"
            )
        waited = waited_s(self._session.guest.pid)
        reached_us = virtual_us(self._session.folder)
        if reached_us > self._virtual_us:
            self._virtual_us = reached_us
            self._standstill.restart(now, waited)
        stalled = self._standstill.seconds(now, waited)
        if stalled > _STALL_S and not (self._limits.real_time or self._limits.debugged):
            raise TrialError(
                f"virtual time did not advance from {max(self._virtual_us, 0) / 1e6:.0f} s for {_STALL_S:.0f} s in "
                "which the guest could run: the program computes, or polls without sleeping; use `--clock real`"
            )

    def _exit_code(self, end: ProgramEnd) -> int:
        """Return the exit code, and report what plait or the guest's kernel did to the program."""
        if ran_out_of_memory(self._session.console()):
            self._report(
                f"the guest ran out of memory ({self._limits.memory_mib} MiB) and its kernel killed a program; "
                "set more with --memory"
            )
        if end.refused_processes:
            self._report(
                f"the program reached the limit of {self._limits.processes_max} processes; raise it with --processes"
            )
        if end.full:
            places = ", ".join(end.full)
            self._report(
                f"{places}: no space left in the guest's memory; set more with --memory, or write to --rw DIR"
            )
        for device in end.missing_devices:
            self._report(
                f"there is no {device} in a guest, which has none of this machine's devices (`plait exec -- ls /dev`)"
            )
        if end.timed_out:
            limit_s = (self._session.request.time_limit_us or 0) / 1e6
            self._report(
                f"the program exceeded {limit_s:g} s of the guest's clock; raise the limit with --timeout"
            )
            return TIMED_OUT
        if end.error:
            program = self._session.request.start.argv[0] if self._session.request.start else ""
            self._report(f"starting {program}: {_why_not_started(program, end, self._session.view)}")
            return _NOT_FOUND if end.errno == _ENOENT else _NOT_RUNNABLE
        if end.signal is not None:
            if not self._interrupts and end.signal != signal.SIGPIPE:
                self._report(f"the program was terminated by {_signal_name(end.signal)}")
            return _SIGNALLED + end.signal
        code = 1 if end.code is None else end.code
        hidden = self._session.view.hidden_path(self._last_output.decode(errors="replace"))
        if code != 0 and hidden is not None:
            self._report(hidden)
        return code


def _signal_name(number: int) -> str:
    """Return the name of a signal; Python has none for most of those in real time."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _why_not_started(program: str, end: ProgramEnd, view: HostView) -> str:
    if end.errno == _EACCES and "/" in program:
        return "the file is not executable; make it executable (chmod +x), or put the interpreter before it"
    if end.errno != _ENOENT:
        return str(end.error)
    if not program:
        return "the name of the program is empty"
    installed = program if "/" in program else shutil.which(program)
    if installed is not None and (hidden := view.hidden_path(str(Path(installed).absolute()))) is not None:
        return hidden
    if program in ("sudo", "doas"):
        return f"there is no such program in PATH; leave {program} out: programs of the guest run as root"
    if "/" not in program:
        return f"there is no such program in PATH; {install_hint(program)}, or give its path"
    if not Path(program).exists():
        return f"there is no such file; {install_hint(program)}, or correct its path"
    return "the interpreter in its first line does not exist; install it, or correct the line"


@contextlib.contextmanager
def _signals(*, resize: bool) -> Iterator[int]:
    """Yield a descriptor from which plait reads the numbers of the signals to pass on."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    passed_on = (*_PASSED_ON, signal.SIGWINCH) if resize else _PASSED_ON
    handlers = {number: signal.signal(number, lambda *_: None) for number in passed_on}
    wakeup = signal.set_wakeup_fd(writer)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


@contextlib.contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Set the terminal to raw mode, so that it passes every key on."""
    attributes = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)  # keep what was typed ahead
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, attributes)


def read_ahead(source: int, folder: Path, max_bytes: int, report: Callable[[str], None]) -> None:
    """Copy standard input to its end into `folder`/stdin (TrialError if it is longer than `max_bytes`)."""
    bytes_left = max_bytes
    waited = False
    with Folder(folder).create("stdin") as file:
        while True:
            if not waited and not select.select([source], [], [], 1.0)[0]:
                waited = True
                report(
                    "waiting for the end of standard input; plait reads it before the program starts (</dev/null: none)"
                )
            chunk = os.read(source, 1 << 20)
            if not chunk:
                return
            bytes_left -= len(chunk)
            if bytes_left < 0:
                raise TrialError(
                    f"standard input is longer than {max_bytes >> 20} MiB, the most that plait reads ahead in "
                    "virtual time; let the program read a file, or use --clock real"
                )
            file.write(chunk)


def merged_streams() -> bool:
    """Return whether plait's standard output and standard error are the same file, and not /dev/null."""
    stdout, err = os.fstat(1), os.fstat(2)
    one_file = (stdout.st_dev, stdout.st_ino) == (err.st_dev, err.st_ino)
    return one_file and not Path("/dev/null").samefile(f"/proc/self/fd/{1}")
