"""A guest in which programs of the host run because somebody asks for them, one or many, in virtual or in real time.

    job folder                                 the guest, in its sandbox (`containment`)
      session.json, input/  ---------------->   plait-agent: what it starts with; read-only
      descriptor 0, a line an order  ------->   its console tty1 (signals, input, further programs)
      guest/output  <------------------------   frames, read here while the file grows

Nothing is sent to the console of a session in virtual time unless a person interferes, so it stays repeatable.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import select
import socket
import struct
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from plait.engine.interactive import READY, TAKEN, OutputFrame
from plait.engine.uml.boot import initramfs_of, kernel_parameters, present_inputs
from plait.engine.uml.containment import DEFAULT_POLICY, GUEST, Policy, Sandbox, start
from plait.engine.uml.outcome import console_lines, disk_is_full, disk_used, judge
from plait.errors import MachineError, TrialError
from plait.plan.identity import plan_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plait.engine.interactive import ProgramStart
    from plait.kernel import Kernel
    from plait.plan.model.plan import Plan

_HEADER = struct.Struct("<III")
_FRAME_BYTES = 1 << 20
"""The longest content of a frame: the agent sends at most 64 KiB of output at once."""
_IN_MODIFY = 2
_PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
_FREE_ABOVE_BYTES = 16 << 20
_READ_BYTES = 1 << 20
_CONSOLE_INPUT_BYTES = 256
_ORDER_TIMEOUT_S = 60.0
_POLL_S = 0.25
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Service:
    """A step of what is made ready before anything else; it must succeed."""

    name: str
    argv: Sequence[str]
    environment: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class SessionRequest:
    """What a session is booted with."""

    start: ProgramStart | None = None
    writable: Sequence[Path] = ()
    processes_max: int = 2000
    network: bool = False
    """Whether the plan's network is made."""
    before: Sequence[Service] = ()
    time_limit_us: int | None = None

    def record(self) -> dict[str, object]:
        """As the agent reads it."""
        return {
            "start": None if self.start is None else self.start.record(),
            "writable": [str(folder) for folder in self.writable],
            "processes_max": self.processes_max,
            "network": self.network,
            "before": [asdict(service) for service in self.before],
            "time_limit_us": self.time_limit_us,
        }


class InteractiveGuest:
    """A guest that is told what to do, and tells frames. Use it in a `with` block; it ends with the block."""

    def __init__(
        self,
        kernel: Kernel,
        folder: Path,
        plan: Plan,
        *,
        writable: Sequence[Path] = (),
        real_time: bool = False,
        orders: bool = True,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """Boots the guest in `folder`, which has what its agent reads.

        Of the host it can change `guest` in `folder`, and `writable`. With `orders` its console takes some. Raises
        TrialError or MachineError when it cannot be started.
        """
        self.folder = folder
        self.numbers = itertools.count(1)
        """For the runs of those who share it."""
        self._pieces_sent = 0
        self._pieces_read = 0
        self._disk_bytes = policy.disk_bytes
        self._disk_measured = 0.0
        (folder / GUEST).mkdir(exist_ok=True)
        output = folder / GUEST / "output"
        self._output = os.open(output, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.output_event = _watch(f"/proc/self/fd/{self._output}")
        self._read = self._freed = 0
        self._unparsed = b""
        self._held_orders: list[bytes] | None = []
        self._orders, inside = socket.socketpair()
        self._orders.settimeout(_ORDER_TIMEOUT_S)
        sandbox = Sandbox(
            kernel.binary,
            kernel_parameters(plan, real_time=real_time, orders=orders),
            folder,
            present_inputs(folder),
            host_files=True,
            writable=writable,
            untrusted_code=True,
            policy=policy,
            memory_mib=plan.machine.memory_mib,
        )
        with (folder / "console.log").open("wb") as console, inside:
            self.guest = start(sandbox, console, inside.fileno())
        self.end_event = os.pidfd_open(self.guest.process.pid)

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for descriptor in (self.end_event, self.output_event, self._output):
            os.close(descriptor)
        self._orders.close()

    def end(self) -> None:
        """End the guest's process."""
        self.guest.end()

    def run_clock(self, *, needed: bool) -> float:  # noqa: ARG002 - for those whose clock can stand
        """Lets its clock run if that is `wanted`. Returns in how many seconds to ask again, at the latest."""
        return _POLL_S

    def run_clock_briefly(self) -> None:
        """Lets its clock run a little, where it can stand, for what nobody waits for."""

    def send_order(self, order: dict[str, object]) -> None:
        """Sends an order, as soon as the guest listens. One that has ended is told nothing."""
        line = json.dumps(order).encode() + b"\n"
        if self._held_orders is not None:
            self._held_orders.append(line)
        elif self.guest.process.poll() is None:
            self._send(line)

    def feed(self, run: int, data: bytes) -> None:
        """Gives a program input; no bytes say that there is no more. Much of it goes by a file: a console is slow."""
        order: dict[str, object] = {"do": "input", "run": run}
        if len(data) > _CONSOLE_INPUT_BYTES:
            self._pieces_sent += 1
            name = f"piece-{self._pieces_sent}"
            (self.folder / "input" / name).write_bytes(data)
            order["file"] = name
        elif data:
            order["data"] = data.decode("latin-1")  # each character stands for a byte
        self.send_order(order)

    def has_unread_input(self) -> bool:
        """Whether there is input that the guest has not taken yet, so that no more should be given."""
        return self._pieces_read < self._pieces_sent

    def _send(self, line: bytes) -> None:
        try:
            self._orders.sendall(line)
        except OSError as error:
            if self.guest.process.poll() is None:
                raise TrialError(f"the guest does not take orders any more: {error}") from error

    def frames(self) -> Iterator[OutputFrame]:
        """Yields what the guest has told since the last call."""
        if select.select([self.output_event], [], [], 0)[0]:
            os.read(self.output_event, 65536)
        while chunk := os.pread(self._output, _READ_BYTES, self._read):
            self._read += len(chunk)
            yield from self._split(chunk)
            if self._read - self._freed > _FREE_ABOVE_BYTES:
                _free(self._output, self._freed, self._read - self._freed)
                self._freed = self._read

    @property
    def output_bytes(self) -> int:
        """How many bytes the guest has told."""
        return os.fstat(self._output).st_size

    def console(self) -> list[str]:
        """Returns the lines that the guest's kernel has written."""
        return console_lines(self.folder)

    def backlog(self) -> int:
        """Returns how many bytes of the guest's telling are still to be read."""
        return self.output_bytes - self._read

    def _split(self, chunk: bytes) -> Iterator[OutputFrame]:
        data = self._unparsed + chunk
        offset = 0
        while len(data) - offset >= _HEADER.size:
            run, kind, length = _HEADER.unpack_from(data, offset)
            if length > _FRAME_BYTES:
                raise TrialError(
                    f"reading the guest's output: a frame of {length} bytes, which the agent never sends"
                )
            if len(data) - offset < _HEADER.size + length:
                break
            offset += _HEADER.size
            if kind == READY:
                held, self._held_orders = self._held_orders or [], None
                for line in held:
                    self._send(line)
            elif kind == TAKEN:
                self._remove_read_piece()
            yield OutputFrame(run, kind, data[offset : offset + length])
            offset += length
        self._unparsed = data[offset:]

    def _remove_read_piece(self) -> None:
        """Removes the next piece of input, which the guest has read."""
        if self._pieces_read < self._pieces_sent:
            self._pieces_read += 1
            (self.folder / "input" / f"piece-{self._pieces_read}").unlink(missing_ok=True)

    def check_disk(self) -> None:
        """Raises TrialError when the guest has written more than it may. Looks once in a while."""
        now = time.monotonic()
        if now - self._disk_measured > _POLL_S:
            self._disk_measured = now
            if disk_used(self.folder) > self._disk_bytes:
                raise TrialError(disk_is_full(self._disk_bytes))

    def wait(self, others: Sequence[int] = (), timeout_s: float = _POLL_S) -> list[int]:
        """Waits until the guest tells something or ends, one of `others` is ready to be read, or time is up.

        Returns those of `others` that are ready.
        """
        ready, _, _ = select.select([self.output_event, self.end_event, *others], [], [], timeout_s)
        return [descriptor for descriptor in others if descriptor in ready]

    def has_ended(self) -> bool:
        """Whether the guest has gone, and all that it told has been read."""
        return self.guest.process.poll() is not None and self.backlog() == 0

    def explain_end(self, verdict: str | None = None) -> None:
        """Raises TrialError unless the agent ended as it should; `verdict`: why the guest was given up."""
        code = self.guest.process.wait()
        judge(self.folder, code, verdict)


class Session(InteractiveGuest):
    """A guest that holds a session."""

    def __init__(
        self,
        kernel: Kernel,
        agent: Path,
        folder: Path,
        plan: Plan,
        request: SessionRequest,
        *,
        real_time: bool = False,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """Boots the guest in `folder`, which has `input/stdin` if that is asked for.

        Raises TrialError when it cannot be started.
        """
        self.request = request
        (folder / "input").mkdir(exist_ok=True)
        (folder / "initramfs.cpio").symlink_to(initramfs_of(agent)[0])
        (folder / "plan.json").write_bytes(plan_bytes(plan))
        (folder / "session.json").write_text(json.dumps(request.record()), encoding="utf-8")
        super().__init__(
            kernel,
            folder,
            plan,
            writable=request.writable,
            real_time=real_time,
            policy=policy,
        )


def _watch(path: str) -> int:
    """Returns a descriptor that can be read when `path` has been written to (inotify(7))."""
    descriptor = int(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0 or _libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        raise MachineError(f"watching {path}: {os.strerror(ctypes.get_errno())}")
    return descriptor


def _free(descriptor: int, start: int, length: int) -> None:
    """Gives back the room of what has been read. Where the file system cannot, the file only grows."""
    _libc.fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(length))
