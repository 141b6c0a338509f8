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
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from plait.cache import ContentCache, alone, cache_root, scratch
from plait.engine.engine import Interrupted, unless
from plait.engine.machine.qemu import CONSOLE, FOLDER, IMAGE, PROGRESS, ROOT, Emulator
from plait.engine.request import Policy
from plait.engine.virtual.containment import GUEST, Sandbox
from plait.engine.virtual.guest import Guest, start
from plait.engine.virtual.guest_folder import GuestFolder
from plait.errors import MachineError, TrialError, printable
from plait.files import Folder, json_of

METHOD = "1"
"""The version of what plait does to a state before it keeps it."""
_KEPT = ContentCache("machines", most=8, most_bytes=1 << 30)
"""The states, 90 MB each."""
_DISK, _READY = "disk", b"ready\n"
_ANSWERS = "answers"
_LIMIT_S, _POLL_S = 900.0, 0.1
"""A boot takes 12 s of processor time."""
_TAIL_BYTES, _TAIL_LINES = 65_536, 12
_UNKNOWN = (
    "booting a machine: this QEMU saves its state in a way that plait does not know; use another version"
)
_PAUSED, _RUNNING = (struct.pack(">I15s", len(name) + 1, name) for name in (b"guest-panicked", b"running"))
"""What the state says of the machine (`globalstate`); QEMU continues a machine that runs."""
_CLOCK = struct.Struct(">13sIqQ")
"""The name of the clock's state, its version, nanoseconds beside those of instructions, and instructions."""
_CLOCK_NAME = b"\x0ctimer/icount"
_MARK, _BEFORE = b"plait@\x05\x05", 6
"""What R8 has when the machine stops (agent/src/machine/job.rs), and how long before that R9 is the clock."""
_CLUSTER_BITS = 16
_CLUSTER = 1 << _CLUSTER_BITS
_ENTRIES = _CLUSTER // 8
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
    image: bytes
    """The kernel."""
    root: bytes
    """The initramfs."""
    arguments: Sequence[str]
    """The command line of the emulator."""
    memory_mib: int
    instruction_ns: int
    policy: Policy

    def state(self, stop: threading.Event) -> int:
        """Return a descriptor with the state, to read from; boot the machine if no state is kept.

        Raises TrialError if the machine does not boot, MachineError if this computer cannot save it, OSError, and
        Interrupted if `stop` is set meanwhile.
        """
        contents = (hashlib.sha256(content).hexdigest() for content in (self.image, self.root))
        key = hashlib.sha256(
            "\n".join([METHOD, self.emulator.identity, *contents, *self.arguments]).encode()
        ).hexdigest()
        content = _KEPT.get(key) or self._booted(key, stop)
        descriptor = os.memfd_create("state")
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            os.lseek(descriptor, 0, os.SEEK_SET)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _booted(self, key: str, stop: threading.Event) -> bytes:
        with alone("machines", wait=unless(stop)):
            content = _KEPT.get(key)
            if content is None:
                content = self._boot(stop)
                _KEPT.put(key, content)
                _KEPT.prune()
        return content

    def _boot(self, stop: threading.Event) -> bytes:
        with scratch(cache_root() / _KEPT.name, ".booting-") as folder:
            (folder / GUEST).mkdir()
            Folder(folder).write(ROOT, self.root)
            Folder(folder).write(IMAGE, self.image)
            Folder(folder).link(FOLDER, self.emulator.folder.resolve())
            most_bytes = (self.memory_mib << 20) * 2
            inputs = (IMAGE, ROOT, FOLDER)
            policy = replace(self.policy, disk_bytes=most_bytes)
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
                    state = _saved(guest, folder, monitor.fileno(), stop, most_bytes)
                    return _at_its_stop(state, self.instruction_ns.bit_length() - 1)
                except (TrialError, struct.error) as error:
                    raise TrialError(f"booting a machine: {error}") from error
                finally:
                    guest.end()
                    GuestFolder(folder / GUEST).remove()


def _saved(guest: Guest, folder: Path, monitor: int, stop: threading.Event, most_bytes: int) -> bytes:
    """Return the state of a machine that boots, once it pauses."""
    deadline = time.monotonic() + _LIMIT_S
    files = GuestFolder(folder / GUEST)
    with os.fdopen(files.open(_DISK), "wb") as disk:
        disk.write(_empty_disk())
    file = {"driver": "file", "filename": _DISK, "locking": "off"}
    _order(monitor, "qmp_capabilities")
    _order(monitor, "blockdev-add", {"driver": "qcow2", "node-name": _DISK, "file": file})
    while b'"GUEST_PANICKED"' not in _answers(folder):
        if _ends(guest, stop, deadline):
            raise TrialError(_last_lines("its kernel ended", folder))
    if files.read(PROGRESS, _TAIL_BYTES) != _READY:
        raise TrialError(_last_lines("its kernel stopped", folder))
    _order(monitor, "human-monitor-command", {"command-line": "savevm boot"})
    _order(monitor, "quit")
    while not _ends(guest, stop, deadline):
        pass
    descriptor = files.open(_DISK)
    try:
        state = _state_in(descriptor, most_bytes)
    except TrialError as error:
        refused = "; ".join(filter(None, map(_refusal, _answers(folder).splitlines())))
        raise TrialError(_last_lines(f"{error}{f': {refused}' if refused else ''}", folder)) from error
    finally:
        os.close(descriptor)
    if state.count(_PAUSED) != 1:
        raise MachineError(_UNKNOWN)
    return state.replace(_PAUSED, _RUNNING)


def _at_its_stop(state: bytes, shift: int) -> bytes:
    """Return the state with the clock of the instruction at which the machine stopped.

    QEMU's clock jumps to the next timer if its main loop looks between the stop of the processor and that of the
    machine: nearly always on a computer at rest, and seldom on a busy one.
    """
    if state.count(_MARK) != 1 or state.count(_CLOCK_NAME) != 1:
        raise MachineError(_UNKNOWN)
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


def _answers(folder: Path) -> bytes:
    """Return the last of what QEMU has said."""
    return Folder(folder).tail(_ANSWERS, _TAIL_BYTES)


def _answer(line: bytes) -> dict[str, object] | None:
    """Return an answer of QEMU to an order; None if the line is something else."""
    try:
        answer = json_of(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _refusal(line: bytes) -> str:
    """Return what an answer says against an order; empty if it says nothing."""
    answer = _answer(line) or {}
    said = answer.get("error", answer.get("return"))
    return printable(str(said))[:400].strip() if isinstance(said, str) or "error" in answer else ""


def _last_lines(problem: str, folder: Path) -> str:
    """Return a problem with what QEMU has said beside its answers, and the last lines of the machine's console."""
    said = [line for line in _answers(folder).splitlines() if _answer(line) is None]
    console = GuestFolder(folder / GUEST).tail(CONSOLE, _TAIL_BYTES).splitlines()
    lines = [
        f"  {printable(line.decode('utf-8', errors='replace'))[:200]}"
        for line in [*said, *console][-_TAIL_LINES:]
    ]
    return "\n".join([f"{problem}; last lines of QEMU and its console:", *lines] if lines else [problem])


def _empty_disk() -> bytes:
    """Return an image of a disk of one cluster, with nothing on it."""
    header = _HEADER.pack(
        *(b"QFI\xfb", 3, 0, 0, _CLUSTER_BITS, _CLUSTER, 0, 1, 3 * _CLUSTER, _CLUSTER, 1, 0, 0),
        *(0, 0, 0, 4, _HEADER.size),
    )
    clusters = header, struct.pack(">Q", 2 * _CLUSTER), struct.pack(">4H", 1, 1, 1, 1), b""
    return b"".join(content.ljust(_CLUSTER, b"\0") for content in clusters)


def _state_in(disk: int, most_bytes: int) -> bytes:
    """Return the state that an image of `_empty_disk` has got (TrialError): it follows the disk's own cluster."""
    header = _HEADER.unpack(os.pread(disk, _HEADER.size, 0))
    snapshots, place = header[11], header[12] & _PLACE
    if snapshots != 1:
        raise TrialError("QEMU has saved no state")
    snapshot = _SNAPSHOT.unpack(os.pread(disk, _SNAPSHOT.size, place))
    (size,) = struct.unpack(">Q", os.pread(disk, 8, place + _SNAPSHOT.size))
    count = -(-size // _CLUSTER)
    if size > most_bytes:
        raise TrialError("QEMU has saved a state that is larger than its machine")
    tables = _entries(disk, snapshot[0] & _PLACE, 1 + -(-count // _ENTRIES))[1:]
    clusters = (cluster for table in tables for cluster in _entries(disk, table, _ENTRIES))
    parts = (
        os.pread(disk, _CLUSTER, cluster) if cluster else bytes(_CLUSTER)
        for cluster in islice(clusters, count)
    )
    return b"".join(parts)[:size]


def _entries(disk: int, place: int, count: int) -> list[int]:
    """Return where the clusters of a table are."""
    table = os.pread(disk, 8 * count, place)
    return [entry & _PLACE for entry in struct.unpack(f">{count}Q", table)]
