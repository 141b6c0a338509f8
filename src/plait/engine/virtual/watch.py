"""Runs a trial's guest until it ends, stalls, exceeds a limit of time or disk space, or the user interrupts."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plait.engine.engine import Interrupted, Job
from plait.engine.host_view import unseen
from plait.engine.one_processor import OneProcessor, threads_and_children
from plait.engine.virtual.containment import GUEST, Sandbox, caution
from plait.engine.virtual.guest import Guest, start
from plait.engine.virtual.guest_folder import GuestFolder
from plait.engine.virtual.outcome import folder_is_full
from plait.errors import TrialError
from plait.files import Folder

_POLL_S = 0.25
_PROGRESS_BYTES, _PROGRESS_DIGITS = 4096, 18


@dataclass(frozen=True)
class TrialLimits:
    """The limits at which plait ends a trial, in seconds of wall time."""

    total_s: float = 3600.0
    """The whole trial."""
    stall_s: float = 120.0
    """Time since virtual time last advanced by a second (the agent reports each second).

    Time in which the guest waits for a processor of the machine does not count.
    """
    node_s: float = 0.1
    """Additional time per namespace until virtual time starts: many times what creating one takes."""
    question_s: float = 120.0
    """The least for a guest without nodes, which plait asks what its kernel has: it is no trial of the user's."""

    def whole_s(self, namespaces: int) -> float:
        """Return the timeout for a whole guest."""
        return self.total_s if namespaces else max(self.total_s, self.question_s)

    def patience_s(self, namespaces: int, *, is_booted: bool) -> float:
        """Return the timeout for virtual time that does not advance: longer while the agent sets up a large network."""
        return self.stall_s + (0.0 if is_booted else self.node_s * namespaces)


class GuestRunner:
    """Runs the guests of an engine, one for each trial."""

    def __init__(self, limits: TrialLimits, warn: Callable[[str], None]) -> None:
        """The runner calls `warn` once if this machine lacks layers of the sandbox, or hides the current folder."""
        self.limits = limits
        self._warn = warn
        self._warned: set[str] = set()

    def run(self, sandbox: Sandbox, job: Job, orders: int = subprocess.DEVNULL) -> tuple[int, str | None]:
        """Run the guest of a trial to its end; return its exit code, and why plait ended it, if it did.

        `orders` is its descriptor 0.

        Raises TrialError or MachineError if the guest does not start, Interrupted if the job's `stop` is set.
        """
        started = time.monotonic()
        with os.fdopen(Folder(job.folder).new("console.log"), "wb") as console:
            guest = start(sandbox, console, orders)
            if guest.missing:
                self._warn_once("layers", caution(guest.missing))
            if sandbox.view is not None and not sandbox.view.shows(here := Path.cwd()):
                self._warn_once("folder", unseen(here))
            try:
                watch = Watch(job, self.limits, started, emulator=sandbox.emulator)
                verdict = watch.until_exit(guest)
            finally:
                guest.end()
        return guest.process.returncode, verdict

    def _warn_once(self, subject: str, text: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            self._warn(text)


class Standstill:
    """How long virtual time has stood still while the guest could run: not while it waited for a processor.

    The machine counts a wait when it is over, which may be seconds later, and those of all the guest's processes.
    """

    def __init__(self, now: float) -> None:
        """Begin with a new guest."""
        self.restart(now, 0.0)

    def restart(self, now: float, waited: float) -> None:
        """Virtual time advanced `now`; `waited` is what `waited_s` returns."""
        self._since, self._waited_s, self._excused_s = now, waited, 0.0

    def seconds(self, now: float, waited: float) -> float:
        """Return the seconds since virtual time advanced in which the guest could run."""
        waited_s = max(waited - self._waited_s, 0.0)  # less than before if a process of the guest has ended
        self._waited_s = waited
        self._excused_s = min(self._excused_s + waited_s, now - self._since)
        return now - self._since - self._excused_s


class Watch:
    """Waits for the guest's end, a stall, a limit, or the user's interrupt, whichever comes first."""

    def __init__(self, job: Job, limits: TrialLimits, started: float, *, emulator: bool = False) -> None:
        """`emulator`: the guest is a machine with several processors."""
        self._job = job
        self._emulator = emulator
        self._processor: OneProcessor | None = None
        self._limits = limits
        self._started = started
        self._virtual_us = -1
        self._standstill = Standstill(started)

    def until_exit(
        self, guest: Guest, output: int | None = None, reaches_pause: Callable[[], bool] = lambda: False
    ) -> str | None:
        """Return None if the guest ended by itself or is idle, else why plait must end it. Raises Interrupted.

        A guest with pauses has a descriptor that is readable after `output`, and becomes idle when it `reaches_pause`.
        """
        descriptor = os.pidfd_open(guest.process.pid)
        watched = [descriptor] if output is None else [descriptor, output]
        if output is None and not self._emulator:  # a guest with pauses does so itself
            self._processor = OneProcessor(guest.pid, time.monotonic())
        try:
            while True:
                ready, _, _ = select.select(watched, [], [], _POLL_S)
                if descriptor in ready:
                    guest.process.wait()
                    return None
                if reaches_pause():
                    return None
                if self._job.stop.is_set():
                    raise Interrupted
                verdict = self._verdict(guest.pid)
                if verdict is not None:
                    return verdict
        finally:
            os.close(descriptor)

    def _verdict(self, pid: int) -> str | None:
        now, waited = time.monotonic(), waited_s(pid)
        if self._processor is not None:
            self._processor.check(now, waited)
        reached_us = virtual_us(self._job.folder)
        if reached_us > self._virtual_us:
            self._virtual_us = reached_us
            self._standstill.restart(now, waited)
            self._job.progress(reached_us)
        full = folder_is_full(self._job.folder)
        if full is not None:
            return full
        stalled = self._standstill.seconds(now, waited)
        namespaces = len(self._job.plan.network.namespaces)
        if stalled > self._limits.patience_s(namespaces, is_booted=self._virtual_us >= 0):
            return (
                f"no virtual progress: {self._console_line()} for {stalled:.0f} s in which the guest could run "
                f"(it used {cpu_s(pid):.0f} s of processor time in all); "
                "something in the guest polls without sleeping, or waits for an event that never happens"
            )
        whole_s = self._limits.whole_s(namespaces)
        if now - self._started > whole_s:
            return (
                f"too slow: {self._console_line()} after {whole_s:.0f} s of wall time, and still "
                "advancing; shorten the trial, lower its rates, or raise --trial-timeout"
            )
        return None

    def _console_line(self) -> str:
        if self._virtual_us < 0:
            return "the guest did not boot"
        return f"virtual time stands at {self._virtual_us / 1e6:.1f} s"


def virtual_us(folder: Path) -> int:
    """Return the virtual time that the agent last reported, in us; -1 before its first report."""
    last_line = GuestFolder(folder / GUEST).tail("progress", _PROGRESS_BYTES).splitlines()[-1:]
    if not last_line:
        return -1
    number = last_line[0].split()[:1]
    if not number or not number[0].isdigit() or len(number[0]) > _PROGRESS_DIGITS:
        raise TrialError("reading the guest's progress: the agent did not write this content")
    return int(number[0])


def cpu_s(pid: int) -> float:
    """Return the processor time used by process `pid` so far in seconds (proc_pid_stat(5), fields 14 and 15)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:  # the process has just ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waited_s(pid: int, proc: Path = Path("/proc")) -> float:
    """Return how long process `pid` and its children have waited for a processor, in seconds.

    That is the second field of schedstat. It is 0 if the kernel of the machine does not count it.
    """
    total_ns = 0
    for process in threads_and_children(pid, proc):
        with suppress(OSError, IndexError, ValueError):
            total_ns += int((proc / str(process) / "schedstat").read_text(encoding="ascii").split()[1])
    return total_ns / 1e9
