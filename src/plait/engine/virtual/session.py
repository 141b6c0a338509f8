"""A guest that runs programs of the host on request, in virtual or in real time.

    job folder                                 the guest, in its sandbox (`containment`)
      session.json, input/  ---------------->   plait-agent: the request, read-only
      descriptor 0, one order per line  ---->   its console tty1 (signals, input, further programs)
      guest/output  <------------------------   frames; plait reads them while the file grows

In virtual time, plait sends orders only when a person interferes, so that a session is repeatable otherwise.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from plait.engine.host_view import HostView, view_for
from plait.engine.interactive import READY, TAKEN, OutputFrame, ProgramStart
from plait.engine.one_processor import OneProcessor
from plait.engine.request import DEFAULT_POLICY, Policy
from plait.engine.virtual.boot_inputs import (
    add_modules,
    initramfs_of,
    kernel_parameters,
    module_builder,
    present_inputs,
)
from plait.engine.virtual.containment import GUEST, Sandbox
from plait.engine.virtual.guest import start
from plait.engine.virtual.guest_folder import GuestFolder
from plait.engine.virtual.outcome import console_lines, folder_is_full, judge
from plait.engine.virtual.watch import cpu_s, virtual_us, waited_s
from plait.errors import MachineError, TrialError, printable
from plait.files import Folder
from plait.kernel import Kernel
from plait.plan.identity import plan_bytes
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
_CAPTURES, _CAPTURE_SUFFIX, _CAPTURES_S = "pcap", ".pcapng", 60.0
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class SessionRequest:
    """The parameters of a session."""

    start: ProgramStart | None = None
    writable: Sequence[Path] = ()
    processes_max: int = 2000
    network: bool = False
    """Whether the agent sets up the plan's network."""
    before: Sequence[tuple[str, Sequence[str]]] = ()
    """The steps before the program, in its environment, which must succeed: what each is for, and its command."""
    time_limit_us: int | None = None
    capture_bytes: int | None = None
    """How much to capture of each packet in network namespaces with names, in bytes; None: capture nothing."""
    at_end: Callable[[GuestFolder], None] | None = None
    """Called after the guest has ended, with what it wrote to its folder in memory, before that is gone."""

    def record(self) -> dict[str, object]:
        """Return the record that the agent reads."""
        environment = () if self.start is None else self.start.environment
        return {
            "start": None if self.start is None else self.start.record(),
            "writable": [str(folder) for folder in self.writable],
            "processes_max": self.processes_max,
            "network": self.network,
            "before": [
                {"name": name, "argv": argv, "environment": environment} for name, argv in self.before
            ],
            "time_limit_us": self.time_limit_us,
            "capture_bytes": self.capture_bytes,
        }


class InteractiveGuest:
    """An interactive guest: it accepts orders and emits output frames. It ends with its `with` block."""

    def __init__(
        self,
        kernel: Kernel,
        folder: Path,
        plan: Plan,
        *,
        view: HostView,
        directory: Path | None = None,
        writable: Sequence[Path] = (),
        real_time: bool = False,
        orders: bool = True,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """Boot the guest in `folder`, which holds the inputs of its agent.

        The guest can change only the folders `guest` in `folder` and `writable`. `view`: what programs see of this
        machine; `directory`: where they start. `orders`: the guest reads orders from its
        console. Raises TrialError or MachineError if the start fails.
        """
        self.folder = folder
        self.view = view
        self.numbers = itertools.count(1)
        """The next numbers for programs; all prompts of the guest share them."""
        self._pieces_sent = 0
        self._pieces_read = 0
        (folder / GUEST).mkdir(exist_ok=True)
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
            view=view,
            directory=directory,
            writable=writable,
            untrusted_code=True,
            policy=policy,
            executes_memory=kernel.executes_memory,
            memory_mib=plan.machine.memory_mib,
        )
        with os.fdopen(Folder(folder).new("console.log"), "wb") as console, inside:
            self.guest = start(sandbox, console, inside.fileno())
        try:
            self._output = GuestFolder(folder / GUEST).open("output")
        except TrialError:
            self.guest.end()
            raise
        self.output_event = _watch(f"/proc/self/fd/{self._output}")
        self._placed = time.monotonic()
        self._processor = OneProcessor(self.guest.pid, self._placed)
        self.end_event = os.pidfd_open(self.guest.process.pid)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for descriptor in (self.end_event, self.output_event, self._output):
            os.close(descriptor)
        self._orders.close()

    def end(self) -> None:
        """End the guest's process."""
        self.guest.end()

    def run_clock(self, *, needed: bool) -> float:  # noqa: ARG002 - for guests whose clock can stop
        """Return the longest time in s until the next call; this clock always runs."""
        return _POLL_S

    def run_clock_briefly(self) -> None:
        """Do nothing; this clock always runs."""

    def send_order(self, order: dict[str, object]) -> None:
        """Send an order as soon as the guest is ready; drop it if the guest has ended."""
        line = json.dumps(order).encode() + b"\n"
        if self._held_orders is not None:
            self._held_orders.append(line)
        elif self.guest.process.poll() is None:
            self._send(line)

    def feed(self, run: int, data: bytes) -> None:
        """Pass input to the program `run`; empty `data` ends it. Long input goes through a file: a console is slow."""
        order: dict[str, object] = {"do": "input", "run": run}
        if len(data) > _CONSOLE_INPUT_BYTES:
            self._pieces_sent += 1
            name = f"piece-{self._pieces_sent}"
            (Folder(self.folder) / "input").write(name, data)
            order["file"] = name
        elif data:
            order["data"] = data.decode("latin-1")  # one character per byte
        self.send_order(order)

    def has_unread_input(self) -> bool:
        """Return whether the guest has not yet read a piece of input; do not send more until then."""
        return self._pieces_read < self._pieces_sent

    def _send(self, line: bytes) -> None:
        try:
            self._orders.sendall(line)
        except OSError as error:
            if self.guest.process.poll() is None:
                raise TrialError(f"sending an order to the guest: {error}") from error

    def frames(self) -> Iterator[OutputFrame]:
        """Yield the frames that the guest has emitted since the last call."""
        self._place()
        if select.select([self.output_event], [], [], 0)[0]:
            os.read(self.output_event, 65536)
        while chunk := os.pread(self._output, _READ_BYTES, self._read):
            self._read += len(chunk)
            yield from self._split(chunk)
            if self._read - self._freed > _FREE_ABOVE_BYTES:
                _free(self._output, self._freed, self._read - self._freed)
                self._freed = self._read

    def _place(self) -> None:
        """Let a guest that waits for its processor move to another; check at most every 0.25 s."""
        now = time.monotonic()
        if now - self._placed > _POLL_S:
            self._placed = now
            self._processor.check(now, waited_s(self.guest.pid))

    @property
    def output_bytes(self) -> int:
        """Bytes of output frames that the guest has emitted."""
        return os.fstat(self._output).st_size

    def console(self) -> list[str]:
        """Return the last lines of the guest's console."""
        return console_lines(self.folder)

    def backlog(self) -> int:
        """Return how many bytes of the guest's output plait has not read yet."""
        return self.output_bytes - self._read

    def _split(self, chunk: bytes) -> Iterator[OutputFrame]:
        data = self._unparsed + chunk
        offset = 0
        while len(data) - offset >= _HEADER.size:
            run, kind, length = _HEADER.unpack_from(data, offset)
            if length > _FRAME_BYTES:
                raise TrialError(
                    f"reading the guest's output: a frame of {length} bytes; the agent sends at most {_FRAME_BYTES}"
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
        """Remove the next piece of input, which the guest has read."""
        if self._pieces_read < self._pieces_sent:
            self._pieces_read += 1
            (self.folder / "input" / f"piece-{self._pieces_read}").unlink(missing_ok=True)

    def processor_s(self) -> float:
        """Return the processor time in s that the guest's kernel has used so far; 0 after its end."""
        return cpu_s(self.guest.pid)

    def virtual_s(self) -> float:
        """Return the virtual time in s that the agent last reported; 0 before its first report."""
        return max(0, virtual_us(self.folder)) / 1e6

    def check_disk(self) -> None:
        """Raise TrialError if the guest has filled its folder."""
        full = folder_is_full(self.folder)
        if full is not None:
            raise TrialError(full)

    def wait(self, descriptors: Sequence[int] = (), timeout_s: float = _POLL_S) -> list[int]:
        """Wait until the guest emits output or ends, one of `descriptors` is readable, or the timeout expires.

        Returns those of `descriptors` that are readable.
        """
        ready, _, _ = select.select([self.output_event, self.end_event, *descriptors], [], [], timeout_s)
        return [descriptor for descriptor in descriptors if descriptor in ready]

    def has_ended(self) -> bool:
        """Return whether the guest has ended and plait has read all its output."""
        return self.guest.process.poll() is not None and self.backlog() == 0

    def explain_end(self, verdict: str | None = None) -> None:
        """Raise TrialError unless the agent reported success; `verdict`: why plait ended the guest, if it did."""
        code = self.guest.process.wait()
        judge(self.folder, code, verdict, self.view)


class Session(InteractiveGuest):
    """A guest that runs a session."""

    def keep_captures(self, target: Folder) -> None:
        """End the session, and copy its captures to the empty folder `target`, held open since before the session.

        Raises TrialError if the guest does not end, a capture has gaps, or the guest left anything but captures.
        """
        self.send_order({"do": "stop"})  # its program may still run, after an interrupt
        try:
            self.guest.process.wait(_CAPTURES_S)
        except subprocess.TimeoutExpired:
            raise TrialError(
                f"completing the captures: the guest did not end within {_CAPTURES_S:.0f} s"
            ) from None
        self.explain_end()
        GuestFolder(self.folder / GUEST).collect((_CAPTURES,), self.folder)
        captures = Folder(self.folder) / _CAPTURES
        try:
            names = captures.names()
            self._check_captures(names)
            for name in names:
                captures.copy_file(name, target)
        except OSError as error:
            raise TrialError(
                f"completing the captures: {printable(str(error.filename))}: {error.strerror}; "
                "name a folder with --pcap to which the program does not write"
            ) from error

    def _check_captures(self, names: Sequence[str]) -> None:
        """Raise TrialError unless the agent can have written the collected files (OSError)."""
        for name in names:
            if not name.endswith(_CAPTURE_SUFFIX):
                raise TrialError(
                    f"completing the captures: the guest left {name!r} among them, which is no capture, "
                    "so plait takes none of them; a program of the session interferes with its captures"
                )
            (Folder(self.folder) / _CAPTURES).require_file(name)

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
        """Boot the guest in `folder`, which holds `input/stdin` if the program reads it.

        Raises TrialError if the start fails, or if a module of the plan cannot be built.
        """
        self.request = request
        if plan.links:
            from plait.plan.links.chain import with_chains  # it imports scenarios

            plan = with_chains(plan, exact=False)
        (folder / "input").mkdir(exist_ok=True)
        add_modules(plan, folder, module_builder(kernel))
        Folder(folder).link("initramfs.cpio", initramfs_of(agent)[0])
        Folder(folder).write("plan.json", plan_bytes(plan))
        Folder(folder).write("session.json", json.dumps(request.record()).encode())
        directory = Path.cwd() if request.start is None else Path(request.start.directory)
        words = () if request.start is None else request.start.argv
        super().__init__(
            kernel,
            folder,
            plan,
            view=view_for(words, policy.readable, directory),
            directory=directory,
            writable=request.writable,
            real_time=real_time,
            policy=policy,
        )

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        left = GuestFolder(self.folder / GUEST)
        try:
            if self.request.at_end is not None:
                self.request.at_end(left)
        finally:
            left.remove()


def _watch(path: str) -> int:
    """Return a descriptor that is readable after a write to `path` (inotify(7))."""
    descriptor = int(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0 or _libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        raise MachineError(f"watching {path}: {os.strerror(ctypes.get_errno())}")
    return descriptor


def _free(descriptor: int, start: int, length: int) -> None:
    """Free the disk space of a part that plait has read. If the file system cannot, the file only grows."""
    _libc.fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(length))
