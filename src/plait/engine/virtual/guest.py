"""A guest's process: started in its sandbox, signalled, and ended.

plait-contain reports before any code of the guest runs which layers the sandbox has, or why it cannot start.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from typing import IO

from plait.binaries import CONTAIN
from plait.cache import temporary
from plait.engine.virtual.containment import GUEST, LAYERS, Sandbox, layer_title
from plait.engine.virtual.guest_folder import GuestFolder
from plait.errors import MachineError, TrialError
from plait.files import Folder
from plait.limits import remedy

_START_S, _END_S = 60.0, 10.0
_REPORT_BYTES = 65_536


class Guest:
    """A guest's process in its sandbox."""

    def __init__(
        self, process: subprocess.Popen[bytes], pid: int, missing: Mapping[str, str], console: int
    ) -> None:
        """`process`: the supervisor, which ends with the guest's exit code; `pid`: that of the guest's kernel.

        `console`: a descriptor of the log of its console, which stays the caller's.
        """
        self.process = process
        self.pid = pid
        self.missing = missing
        """Layers that this machine does not offer, with the reason."""
        self._console: int | None = os.dup(console)
        self._handle: int | None = None
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            self._handle = os.pidfd_open(pid)  # unlike a PID, it never refers to another process later

    def end(self) -> None:
        """End all processes of the sandbox, and wait for them."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._console is not None:  # the guest has this descriptor too, and so can change the file's mode
            os.fchmod(self._console, 0o600)
            os.close(self._console)
            self._console = None

    def suspend(self) -> None:
        """Stop the guest, and with it a virtual clock. Does nothing if the guest has ended."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Continue a suspended guest."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)


def start(sandbox: Sandbox, console: IO[bytes], orders: int = subprocess.DEVNULL) -> Guest:
    """Start a guest; it writes its console to `console`, and `orders` is its descriptor 0.

    Its folder, which is in memory, takes the place of `guest` in the job folder until `GuestFolder.remove`.

    Raises MachineError if this machine lacks a required layer, TrialError if the start fails for another reason.
    """
    reports, theirs = socket.socketpair()
    try:
        specification = json.dumps(sandbox.specification(theirs.fileno()))
        process = subprocess.Popen(
            [str(CONTAIN), specification],
            cwd=sandbox.folder,
            stdin=orders,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={},
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # Ctrl-C must reach plait only
        )
    except OSError as error:
        reports.close()
        reason = error.strerror or str(error)
        advice = remedy(error, "run `make setup`")
        raise MachineError(f"starting {CONTAIN}: {reason}; {advice}") from error
    finally:
        theirs.close()
    with reports:
        line, folders = _read_report(reports)
    try:
        guest = _started(process, line, console.fileno())
    except BaseException:
        for folder in folders:
            os.close(folder)
        raise
    for folder in folders:
        GuestFolder(sandbox.folder / GUEST).mount(folder)
    return guest


def _read_report(reports: socket.socket) -> tuple[bytes, list[int]]:
    """Return the line that plait-contain sends, empty if none arrives, and a descriptor of the guest's folder."""
    line, folders = b"", list[int]()
    deadline = time.monotonic() + _START_S
    while not line.endswith(b"\n") and len(line) < _REPORT_BYTES:
        left_s = max(0.0, deadline - time.monotonic())
        if not select.select([reports], [], [], left_s)[0]:
            break
        part, passed, _, _ = socket.recv_fds(reports, _REPORT_BYTES, 1)
        folders += passed
        if not part:
            break
        line += part
    return (line.strip() if line.endswith(b"\n") else b""), folders


def _advice(error: str) -> str:
    """Return what to do about an error of plait-contain, which ends with the number of the system's error."""
    number = re.search(r"\(os error (\d+)\)", error)
    return remedy(OSError(int(number[1]) if number else 0, error), "`plait doctor` lists what is missing")


def _started(process: subprocess.Popen[bytes], line: bytes, console: int) -> Guest:
    if line:
        report = json.loads(line)
        if "pid" in report:
            return Guest(process, report["pid"], dict(report["missing"]), console)
    process.kill()
    process.wait()
    if not line:
        raise TrialError(
            "starting the guest's sandbox: plait-contain ended without a report; `plait doctor` checks the sandbox"
        )
    layer = report["layer"]
    if layer is None:
        raise TrialError(f"starting the guest: {report['error']}; {_advice(report['error'])}")
    raise MachineError(
        f"containing the guest: {report['error']}. This machine does not offer the layer {layer_title(layer)}. "
        f"Without it, {LAYERS[layer]}, so plait does not start a guest with untrusted code. Allow the layer "
        "(in a container: allow user namespaces), or add --unconfined if you trust all that runs in the guest"
    )


def probe() -> dict[str, str | None]:
    """Return for each layer why this machine does not offer it; None if it does.

    Raises MachineError or TrialError if no sandbox starts at all.
    """
    with temporary("probe") as folder:
        (folder / GUEST).mkdir()
        with os.fdopen(Folder(folder).new("console.log"), "wb") as console:
            guest = start(
                Sandbox(CONTAIN, (), folder), console
            )  # run as the kernel, it only prints its usage
            guest.process.wait(_START_S)
            guest.end()
            GuestFolder(folder / GUEST).remove()
    return {layer: guest.missing.get(layer) for layer in LAYERS}
