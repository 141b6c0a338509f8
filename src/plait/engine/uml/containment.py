"""The sandbox of a guest: which layers it has, its start, and its end.

`plait-contain` (contain/, Rust) builds the sandbox; this module tells it what to build and reads its report. Programs,
kernel modules and prompts bring code of strangers into a guest, so such a guest starts only where every layer but
Landlock holds, unless the user said `--unconfined`.
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
"""Every layer, and what its absence means."""
REQUIRED = tuple(layer for layer in LAYERS if layer != "landlock")
"""Layers without which no code of strangers runs. Landlock came late (Linux 5.13), and repeats what mounts do."""

DISK_BYTES = 4 << 30
"""How much a guest may write to its folder, unless the user sets another bound."""
_DESCRIPTORS, _PROCESSES = 65_536, 16_384
_START_S, _END_S = 60.0, 10.0
_REPORT_BYTES = 65_536

GUEST = "guest"
"""The part of a job folder that the guest may write to; plait reads it only through `guest_folder`."""


def program() -> Path:
    """Return the path of plait-contain."""
    return CONTAIN


@dataclass(frozen=True)
class Policy:
    """What the user allows a guest."""

    unconfined: bool = False
    """Code of strangers runs even where layers are missing."""
    disk_bytes: int = DISK_BYTES
    """What a guest may write to its folder."""
    without: Sequence[str] = ()
    """Layers to leave out (only tests do, to show what each of them stops)."""


DEFAULT_POLICY = Policy()


@dataclass(frozen=True)
class Sandbox:
    """What one guest gets of this machine."""

    kernel: Path
    arguments: Sequence[str]
    folder: Path
    """The job folder. The guest writes to `guest` in it, and reads the files that `inputs` names."""
    inputs: Sequence[str] = ()
    host_files: bool = False
    writable: Sequence[Path] = ()
    untrusted_code: bool = False
    """Whether code that is neither plait's nor its kernel's runs in the guest."""
    policy: Policy = DEFAULT_POLICY
    memory_mib: int = 0
    """The guest's memory, which is a file of its process (memfd_create(2)) and no file of its folder."""

    def specification(self, report: int) -> Mapping[str, object]:
        """Return what plait-contain reads (mirrored by contain/src/spec.rs)."""
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
        """`process`: the supervisor, which ends with the guest and has its exit code; `pid`: the guest's kernel."""
        self.process = process
        self.pid = pid
        self.missing = missing
        """Layers that this machine does not offer, and why."""
        self._handle: int | None = None
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            self._handle = os.pidfd_open(pid)  # unlike its number, this names nobody else after its end

    def end(self) -> None:
        """End everything in the sandbox, and wait until nothing of it is left."""
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
        """Stop the guest, and with it its clock when that is virtual. A guest that has ended is left alone."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let the guest go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)


def start(sandbox: Sandbox, console: IO[bytes], orders: int = subprocess.DEVNULL) -> Guest:
    """Start a guest; its console's log goes to `console`, and `orders` is its descriptor 0.

    Raises MachineError when this machine lacks a layer that the guest must have, TrialError when it cannot be started
    for another reason.
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
            start_new_session=True,  # Ctrl-C is for plait
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
    """Return the line that plait-contain writes before any code of the guest runs; empty when none comes."""
    if not select.select([report], [], [], _START_S)[0]:
        return b""
    return report.read(_REPORT_BYTES)


def _advice(error: str) -> str:
    """Return what to do about an error of plait-contain, which ends with the number of the system's error."""
    number = re.search(r"\(os error (\d+)\)", error)
    return remedy(OSError(int(number[1]) if number else 0, error), "`plait doctor` says what is missing")


def _started(process: subprocess.Popen[bytes], line: bytes) -> Guest:
    if line:
        report = json.loads(line)
        if "pid" in report:
            return Guest(process, report["pid"], dict(report["missing"]))
    process.kill()
    process.wait()
    if not line:
        raise TrialError("starting the guest's sandbox: plait-contain ended without a report")
    layer = report["layer"]
    if layer is None:
        raise TrialError(f"starting the guest: {report['error']}; {_advice(report['error'])}")
    raise MachineError(
        f"containing the guest: {report['error']}. This machine does not offer the layer {layer_title(layer)}, "
        f"without which {LAYERS[layer]}; a guest that runs code of others is started only with it. Allow it "
        "(in a container: allow user namespaces), or add --unconfined if you trust all that runs in the guest"
    )


def probe() -> dict[str, str | None]:
    """Return for each layer why this machine does not offer it; None where it does.

    Raises MachineError or TrialError where no sandbox can be started at all.
    """
    with tempfile.TemporaryDirectory(prefix="plait-probe-") as name:
        folder = Path(name)
        (folder / GUEST).mkdir()
        with (folder / "console.log").open("wb") as console:
            guest = start(Sandbox(program(), (), folder), console)  # as a kernel it only says how to call it
            guest.process.wait(_START_S)
            guest.end()
    return {layer: guest.missing.get(layer) for layer in LAYERS}


def layer_title(layer: str) -> str:
    """Return a layer's name as a person reads it."""
    return layer.replace("_", " ")


def caution(missing: Mapping[str, str]) -> str:
    """Return a sentence for each layer that is missing, and what its absence means."""
    sentences = [f"{layer_title(layer)}: {LAYERS[layer]} ({reason})" for layer, reason in missing.items()]
    return "this machine lacks layers of containment. " + ". ".join(sentences)
