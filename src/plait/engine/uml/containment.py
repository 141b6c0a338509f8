"""The sandbox of a guest: its layers, its start, and its end.

`plait-contain` (contain/, Rust) builds the sandbox from the specification of this module, and reports which layers it
has. Programs, kernel modules and prompts bring untrusted code into a guest. plait starts such a guest only if every
layer but Landlock is present, or with `--unconfined`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from plait.binaries import CONTAIN
from plait.errors import MachineError, TrialError
from plait.limits import remedy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAYERS = {
    "user_namespace": "root in the guest's process would be root of this machine",
    "minimal_root": "the guest's process would see every file that you can read, and write those that you can write",
    "pid_namespace": "the guest's process could signal and trace your other processes",
    "network_namespace": "the guest's process could reach this machine's network and abstract sockets",
    "ipc_namespace": "the guest's process could reach this machine's shared memory",
    "uts_namespace": "the guest's process could change this machine's name",
    "cgroup_namespace": "the guest's process could see this machine's control groups",
    "no_capabilities": "the guest's process would keep what root may do",
    "no_new_privileges": "the guest's process could gain privileges by programs that give some",
    "resource_limits": "the guest's process could write files of any size",
    "seccomp": "the guest's process could make every system call of this machine's kernel",
    "landlock": "FIFOs among the files that programs see could be written to, and every program there executed",
}
"""Every layer, and the consequence of its absence."""
REQUIRED = tuple(layer for layer in LAYERS if layer != "landlock")
"""Layers that untrusted code requires. Landlock is newer (Linux 5.13) and repeats what the mounts do."""

DISK_BYTES = 4 << 30
"""Default limit of what a guest may write to its folder."""
_DESCRIPTORS, _PROCESSES = 65_536, 16_384
_START_S, _END_S = 60.0, 10.0
_REPORT_BYTES = 65_536

GUEST = "guest"
"""The subfolder of a job folder that the guest may write to; plait reads it only through `guest_folder`."""


def program() -> Path:
    """Return the path of plait-contain."""
    return CONTAIN


@dataclass(frozen=True)
class Policy:
    """What the user allows a guest."""

    unconfined: bool = False
    """Untrusted code runs even if layers are missing."""
    disk_bytes: int = DISK_BYTES
    """Limit of what a guest may write to its folder."""
    without: Sequence[str] = ()
    """Layers to omit; only tests do so, to show what each layer prevents."""


DEFAULT_POLICY = Policy()


@dataclass(frozen=True)
class Sandbox:
    """What one guest can access on this machine."""

    kernel: Path
    arguments: Sequence[str]
    folder: Path
    """The job folder. The guest writes to its subfolder `guest`, and reads the files in `inputs`."""
    inputs: Sequence[str] = ()
    host_files: bool = False
    writable: Sequence[Path] = ()
    untrusted_code: bool = False
    """Whether the guest runs code that is part of neither plait nor its kernel."""
    policy: Policy = DEFAULT_POLICY
    memory_mib: int = 0
    """The guest's memory: a file of its process (memfd_create(2)), not of its folder."""

    def specification(self, report: int) -> Mapping[str, object]:
        """Return the specification that plait-contain reads (mirrored by contain/src/spec.rs)."""
        hard = os.sysconf("SC_OPEN_MAX")
        return {
            "parent": os.getpid(),
            "report": report,
            "kernel": str(self.kernel),
            "arguments": list(self.arguments),
            "job": str(self.folder.resolve() / GUEST),
            "inputs": [{"source": str(self.folder.resolve() / name), "name": name} for name in self.inputs],
            "host_files": self.host_files,
            "writable": [str(path.resolve()) for path in self.writable],
            "limits": {
                "file_bytes": max(self.policy.disk_bytes, self.memory_mib << 20),
                "descriptors": max(hard, _DESCRIPTORS),
                "processes": _PROCESSES,
            },
            "required": list(REQUIRED) if self.untrusted_code and not self.policy.unconfined else [],
            "without": list(self.policy.without),
        }


class Guest:
    """A guest's process in its sandbox."""

    def __init__(self, process: subprocess.Popen[bytes], pid: int, missing: Mapping[str, str]) -> None:
        """`process`: the supervisor, which ends with the guest's exit code; `pid`: that of the guest's kernel."""
        self.process = process
        self.pid = pid
        self.missing = missing
        """Layers that this machine does not offer, with the reason."""
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

    Raises MachineError if this machine lacks a required layer, TrialError if the start fails for another reason.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        specification = json.dumps(sandbox.specification(writer))
        process = subprocess.Popen(
            [str(program()), specification],
            cwd=sandbox.folder,
            stdin=orders,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={},
            pass_fds=(writer,),
            start_new_session=True,  # Ctrl-C must reach plait only
        )
    except OSError as error:
        os.close(reader)
        reason = error.strerror or str(error)
        advice = remedy(error, "run `make setup`")
        raise MachineError(f"starting {program()}: {reason}; {advice}") from error
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as report:
        return _started(process, _read_report(report))


def _read_report(report: IO[bytes]) -> bytes:
    """Return the line that plait-contain writes before any code of the guest runs; empty if none arrives."""
    if not select.select([report], [], [], _START_S)[0]:
        return b""
    return report.read(_REPORT_BYTES)


def _advice(error: str) -> str:
    """Return what to do about an error of plait-contain, which ends with the number of the system's error."""
    number = re.search(r"\(os error (\d+)\)", error)
    return remedy(OSError(int(number[1]) if number else 0, error), "`plait doctor` lists what is missing")


def _started(process: subprocess.Popen[bytes], line: bytes) -> Guest:
    if line:
        report = json.loads(line)
        if "pid" in report:
            return Guest(process, report["pid"], dict(report["missing"]))
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
    with tempfile.TemporaryDirectory(prefix="plait-probe-") as name:
        folder = Path(name)
        (folder / GUEST).mkdir()
        with (folder / "console.log").open("wb") as console:
            guest = start(
                Sandbox(program(), (), folder), console
            )  # run as the kernel, it only prints its usage
            guest.process.wait(_START_S)
            guest.end()
    return {layer: guest.missing.get(layer) for layer in LAYERS}


def layer_title(layer: str) -> str:
    """Return the name of a layer for messages."""
    return layer.replace("_", " ")


def caution(missing: Mapping[str, str]) -> str:
    """Return a caution that names each missing layer and the consequence of its absence."""
    sentences = [f"{layer_title(layer)}: {LAYERS[layer]} ({reason})" for layer, reason in missing.items()]
    return "this machine lacks layers of containment. " + ". ".join(sentences)
