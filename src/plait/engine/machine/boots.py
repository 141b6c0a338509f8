"""A machine boots once, and plait keeps its state: each trial continues from there.

The agent pauses the machine when it has loaded what every plan needs (agent/src/machine/job.rs). QEMU saves a machine
that it records (`-icount rr=record`) to a disk image only, so plait takes the state out of that image. The state is
the stream that QEMU's `-incoming` reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plait.cache import ContentCache, locked
from plait.engine.engine import Interrupted
from plait.engine.machine.qemu import CONSOLE, FOLDER, IMAGE, PROGRESS, ROOT, Emulator
from plait.engine.request import Policy
from plait.engine.virtual.containment import GUEST, Sandbox
from plait.engine.virtual.guest import Guest, start
from plait.engine.virtual.guest_folder import GuestFolder
from plait.errors import MachineError, TrialError, printable
from plait.files import Folder

_KEPT = ContentCache("machines", most=8)
"""The states, 90 MB each."""
_DISK, _READY = "disk", b"ready\n"
_ANSWERS = "answers"
_LIMIT_S, _POLL_S = 900.0, 0.1
"""A boot takes 12 s of processor time."""
_TAIL_BYTES, _TAIL_LINES = 8192, 12
_PAUSED, _RUNNING = (struct.pack(">I15s", len(name) + 1, name) for name in (b"guest-panicked", b"running"))
"""What the state says of the machine (`globalstate`); QEMU continues a machine that runs."""
_CLOCK = struct.Struct(">13sIqQ")
"""The name of the clock's state, its version, nanoseconds beside those of instructions, and instructions."""
_CLOCK_NAME = b"\x0ctimer/icount"
_MARK, _BEFORE = b"plait@\x05\x05", 6
"""What R8 has when the machine stops (agent/src/machine/job.rs), and how long before that R9 is the clock."""
_CLUSTER_BITS = 16
_CLUSTER = 1 << _CLUSTER_BITS
_PLACE = (1 << 56) - 512
"""The bits of an entry that say where a cluster is."""
_HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQII")
"""Magic, version, backing file (2), cluster bits, size, encryption, L1 entries and place, place and clusters of the
table of references, snapshots and their place, features (3), reference order, length (docs/interop/qcow2.rst)."""
_SNAPSHOT = struct.Struct(">QIHHIIQII")
"""L1 place and entries, lengths of id and name, time (3), size of the state in an old image, length of what follows."""


@dataclass(frozen=True)
class Boot:
    """A machine, by all that its state after the boot follows from."""

    emulator: Emulator
    image: Path
    kernel: str
    """The identity of the image."""
    root: bytes
    """The initramfs."""
    arguments: Sequence[str]
    """The command line of the emulator."""
    memory_mib: int
    instruction_ns: int
    policy: Policy

    def state(self, stop: threading.Event) -> int:
        """Return a descriptor with the state, to read from; boot the machine if no state is kept.

        Raises MachineError if the machine does not boot, Interrupted if `stop` is set meanwhile.
        """
        root = hashlib.sha256(self.root).hexdigest()
        parts = self.emulator.identity, self.kernel, root, *self.arguments
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        lock = locked("machines")
        try:
            content = _KEPT.get(key)
            if content is None:
                content = self._boot(stop)
                _KEPT.put(key, content)
                _KEPT.prune()
        finally:
            os.close(lock)
        descriptor = os.memfd_create("state")
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def _boot(self, stop: threading.Event) -> bytes:
        with tempfile.TemporaryDirectory(prefix="plait-machine-") as name:
            folder = Path(name)
            (folder / GUEST).mkdir()
            Folder(folder).write(ROOT, self.root)
            Folder(folder).link(IMAGE, self.image.resolve())
            Folder(folder).link(FOLDER, self.emulator.folder.resolve())
            policy = replace(self.policy, disk_bytes=(self.memory_mib << 20) * 2)
            inputs = (IMAGE, ROOT, FOLDER)
            sandbox = Sandbox(
                self.emulator.loader, self.arguments, folder, inputs, emulator=True, policy=policy
            )
            theirs, orders = os.pipe()
            new = Folder(folder).new(_ANSWERS)
            with os.fdopen(new, "wb") as answers, os.fdopen(orders, "wb") as monitor:
                try:
                    guest = start(sandbox, answers, theirs)
                finally:
                    os.close(theirs)
                try:
                    state = _saved(guest, folder, monitor.fileno(), stop)
                    return _at_its_stop(state, self.instruction_ns.bit_length() - 1)
                except (TrialError, struct.error) as error:
                    raise MachineError(f"booting a machine: {error}") from error
                finally:
                    guest.end()
                    GuestFolder(folder / GUEST).remove()


def _saved(guest: Guest, folder: Path, monitor: int, stop: threading.Event) -> bytes:
    """Return the state of a machine that boots, once it pauses."""
    deadline = time.monotonic() + _LIMIT_S
    files, answers = GuestFolder(folder / GUEST), folder / _ANSWERS
    with os.fdopen(files.open(_DISK), "wb") as disk:
        disk.write(_empty_disk())
    file = {"driver": "file", "filename": _DISK, "locking": "off"}
    _order(monitor, "qmp_capabilities")
    _order(monitor, "blockdev-add", {"driver": "qcow2", "node-name": _DISK, "file": file})
    while b'"GUEST_PANICKED"' not in answers.read_bytes():
        if _ends(guest, stop, deadline):
            raise TrialError(_last_lines("its kernel ended", files))
    if files.read(PROGRESS, _TAIL_BYTES) != _READY:
        raise TrialError(_last_lines("its kernel stopped", files))
    _order(monitor, "human-monitor-command", {"command-line": "savevm boot"})
    _order(monitor, "quit")
    while not _ends(guest, stop, deadline):
        pass
    refused = [text for text in map(_refusal, answers.read_text("utf-8", "replace").splitlines()) if text]
    if refused:
        raise TrialError(f"QEMU does not save its state: {printable(refused[0])[:400]}")
    descriptor = files.open(_DISK)
    try:
        state = _state_in(descriptor)
    finally:
        os.close(descriptor)
    if state.count(_PAUSED) != 1:
        raise TrialError("QEMU saves its state in a way that plait does not know")
    return state.replace(_PAUSED, _RUNNING)


def _at_its_stop(state: bytes, shift: int) -> bytes:
    """Return the state with the clock of the instruction at which the machine stopped.

    QEMU's clock jumps to the next timer if its main loop looks between the stop of the processor and that of the
    machine: nearly always on a computer at rest, and seldom on a busy one.
    """
    if state.count(_MARK) != 1 or state.count(_CLOCK_NAME) != 1:
        raise TrialError("QEMU saves its clock in a way that plait does not know")
    (stamp,) = struct.unpack_from(">Q", state, state.index(_MARK) + len(_MARK))
    at = state.index(_CLOCK_NAME)
    name, version, _, instructions = _CLOCK.unpack_from(state, at)
    clock = _CLOCK.pack(name, version, stamp - ((instructions - _BEFORE) << shift), instructions)
    return state[:at] + clock + state[at + len(clock) :]


def _ends(guest: Guest, stop: threading.Event, deadline: float) -> bool:
    """Wait a moment, and return whether the emulator has ended (Interrupted; TrialError if it takes too long)."""
    if stop.is_set():
        raise Interrupted
    if time.monotonic() > deadline:
        raise TrialError(
            f"it was not ready after {_LIMIT_S:.0f} s; end other work on this computer, or try again"
        )
    try:
        guest.process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _order(monitor: int, command: str, arguments: Mapping[str, object] | None = None) -> None:
    """Give QEMU an order (docs/interop/qmp-spec.txt of QEMU)."""
    line = json.dumps({"execute": command, "arguments": arguments or {}}) + "\n"
    with contextlib.suppress(BrokenPipeError):  # it has ended, which its answers tell
        os.write(monitor, line.encode())


def _refusal(line: str) -> str | None:
    """Return what a line of QEMU says against an order."""
    try:
        answer = json.loads(line)
    except ValueError:
        return line  # no answer, but an error of QEMU itself
    if "error" in answer:
        return str(answer["error"])
    said = answer.get("return")
    return said if isinstance(said, str) else None


def _last_lines(problem: str, files: GuestFolder) -> str:
    text = printable(files.tail(CONSOLE, _TAIL_BYTES).decode("utf-8", errors="replace"))
    lines = [f"  {line[:200]}" for line in text.splitlines()[-_TAIL_LINES:]]
    return "\n".join([f"{problem}; last lines of its console:", *lines] if lines else [problem])


def _empty_disk() -> bytes:
    """Return an image of a disk of one cluster, with nothing on it."""
    header = _HEADER.pack(
        *(b"QFI\xfb", 3, 0, 0, _CLUSTER_BITS, _CLUSTER, 0, 1, 3 * _CLUSTER, _CLUSTER, 1, 0, 0),
        *(0, 0, 0, 4, _HEADER.size),
    )
    clusters = header, struct.pack(">Q", 2 * _CLUSTER), struct.pack(">4H", 1, 1, 1, 1), b""
    return b"".join(content.ljust(_CLUSTER, b"\0") for content in clusters)


def _state_in(disk: int) -> bytes:
    """Return the state that an image of `_empty_disk` has got (TrialError): it follows the disk's own cluster."""
    header = _HEADER.unpack(os.pread(disk, _HEADER.size, 0))
    snapshots, place = header[11:13]
    if snapshots != 1:
        raise TrialError("QEMU has saved no state")
    snapshot = _SNAPSHOT.unpack(os.pread(disk, _SNAPSHOT.size, place))
    (size,) = struct.unpack(">Q", os.pread(disk, 8, place + _SNAPSHOT.size))
    clusters = _entries(disk, snapshot[0], snapshot[1])[1:]
    state = b"".join(
        os.pread(disk, _CLUSTER, cluster) if cluster else bytes(_CLUSTER)
        for table in clusters
        for cluster in _entries(disk, table, _CLUSTER // 8)
    )
    return state[:size]


def _entries(disk: int, place: int, count: int) -> list[int]:
    """Return where the clusters of a table are."""
    table = os.pread(disk, 8 * count, place)
    return [entry & _PLACE for entry in struct.unpack(f">{count}Q", table)]
