"""A process's standard input and output with deadlines and bounds; the other end is not trusted."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

from plait.errors import TrialError, printable

MAX_LINE = 4096
_CHUNK = 1 << 16
_TICK_S = 0.2
_SLOWEST_BPS = 16 << 10
"""The rate in bytes per second below which plait takes no more of a file."""


class LastWords:
    """The last bytes that a process wrote to its standard error; a thread reads and discards all others."""

    _MOST_BYTES = 4096

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Read until the process, and what inherited its standard error, have closed it."""
        assert process.stderr is not None
        self._errors = process.stderr
        self._text = b""
        self._thread = threading.Thread(target=self._read, name="plait-ssh-errors", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._errors, contextlib.suppress(OSError):
            while data := os.read(self._errors.fileno(), _CHUNK):
                self._text = (self._text + data)[-self._MOST_BYTES :]

    def last_line(self, patience_s: float) -> str:
        """Return the last line that is not empty, as printable text; wait up to `patience_s` for the end."""
        self._thread.join(patience_s)
        lines = [line.strip() for line in self._text.decode("utf-8", errors="replace").splitlines()]
        return printable(next((line for line in reversed(lines) if line), "")[:300], keep="")


class StoppedError(Exception):
    """The user stopped the study while plait waited for a host."""


class Channel:
    """The standard input and output of `process`, which `name` names in messages.

    Every method raises TrialError if the other end closes, breaks a bound, or does not respond within the time, and
    StoppedError soon after `stop` is set.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        name: str,
        stop: Callable[[], threading.Event | None],
        why: Callable[[], str],
    ) -> None:
        """`why` returns what the process last wrote to its standard error."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._name = name
        self._stop = stop
        self._reason = why
        self._read = b""

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write `data`."""
        rest = memoryview(data)
        deadline = time.monotonic() + timeout_s
        while rest:
            self._wait(self._in, select.POLLOUT, deadline, "accept data")
            try:
                rest = rest[os.write(self._in, rest[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise TrialError(self._ended()) from error

    def line(self, timeout_s: float) -> str:
        """Return the next line, without its end, as printable text."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._read:
            if len(self._read) > MAX_LINE:
                raise TrialError(
                    f"{self._name} sent a line of more than {MAX_LINE} bytes; plait ended the session"
                )
            self._read += self._received(deadline)
        line, _, self._read = self._read.partition(b"\n")
        return printable(line.decode("utf-8", errors="replace"), keep="")

    def has_line(self) -> bool:
        """Return whether a line has arrived; never waits."""
        if b"\n" not in self._read and self._ready(self._out, select.POLLIN, 0):
            self._read += self._received(time.monotonic())
        return b"\n" in self._read

    def pause(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for data."""
        self._ready(self._out, select.POLLIN, timeout_s)

    def rest_until(self, moment_s: float) -> None:
        """Wait until `moment_s` of the monotonic clock, whatever arrives meanwhile."""
        stop = self._stop() or threading.Event()
        if stop.wait(max(0.0, moment_s - time.monotonic())):
            raise StoppedError

    def chunks(self, length: int, timeout_s: float) -> Iterator[bytes]:
        """Yield the next `length` bytes in pieces; `timeout_s` bounds the wait for each piece.

        At less than 16 KiB/s plait gives up, because a host could else send a byte now and then for ever.
        """
        deadline = time.monotonic() + timeout_s + length / _SLOWEST_BPS
        while length > 0:
            if time.monotonic() > deadline:
                raise TrialError(
                    f"{self._name} sent a file at less than {_SLOWEST_BPS >> 10} KiB/s{self._reason()}"
                )
            if not self._read:
                self._read = self._received(min(time.monotonic() + timeout_s, deadline))
            piece, self._read = self._read[:length], self._read[length:]
            length -= len(piece)
            yield piece

    def _received(self, deadline: float) -> bytes:
        self._wait(self._out, select.POLLIN, deadline, "answer")
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            raise TrialError(self._ended())
        return data

    def _wait(self, descriptor: int, event: int, deadline: float, what: str) -> None:
        while True:
            stop = self._stop()
            if stop is not None and stop.is_set():
                raise StoppedError
            left = deadline - time.monotonic()
            if self._ready(descriptor, event, max(0.0, min(left, _TICK_S))):
                return
            if left <= 0:
                raise TrialError(
                    f"{self._name} did not {what} in time; is the connection down?{self._reason()}"
                )

    @staticmethod
    def _ready(descriptor: int, event: int, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(descriptor, event)
        return bool(poll.poll(timeout_s * 1000))

    def _ended(self) -> str:
        return f"the connection to {self._name} ended{self._reason() or '; check that the host is up'}"
