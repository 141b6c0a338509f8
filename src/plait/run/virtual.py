"""The virtual engine: one User-Mode Linux guest per trial, in virtual time.

    job folder                         the guest process (working directory: the job folder)
      plan.json, input/, modules/  -->   kernel --initrd--> plait-agent (PID 1), /job = the job folder
      data/*.arrow, status.json  <----   hostfs, no virtual time passes while it writes
      progress  <---------------------   read here to tell "slow" from "stuck"

The kernel command line is the same on every machine (no host paths: everything is relative to the working
directory, or goes through /proc/self), because the kernel mixes it into its random generator. The seed's parameter
is taken off the line by the kernel itself. Address-space randomisation is off (setarch -R): 6.12 lets it reach the
guest's memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plait.errors import MachineError, RequestError, TrialError
from plait.kernel import additions
from plait.plan.identity import plan_bytes
from plait.plan.model import Machine, Network, Plan
from plait.run import crash, initramfs, inventory, launch
from plait.run.engine import EngineIdentity, Interrupted, Job
from plait.run.files import cache_root

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator

    from plait.kernel import Kernel
    from plait.plan.model import Module
    from plait.run.inventory import Inventory, Setting
    from plait.run.pausing import PausingGuest

EPOCH_NS = 1_700_000_000_000_000_000
"""The guest's date at boot (2023-11-14), the same always."""

_POLL_S = 0.25
NOTHING = Plan(
    seed=0,
    machine=Machine(),
    sample_interval_us=1000,
    end_us=0,
    network=Network(namespaces=(), veths=()),
    links=(),
    flows=(),
)
"""The plan of a guest that runs no trial."""
_CONSOLE_LINES = 12


@dataclass(frozen=True)
class Limits:
    """When a trial is given up, in seconds of wall time."""

    total_s: float = 3600.0
    """The whole trial."""
    stall_s: float = 120.0
    """Since virtual time last advanced by a second (the grain at which the agent reports it)."""
    node_s: float = 0.1
    """So much more for each namespace until virtual time first stands: many times what making one takes."""

    def patience_s(self, namespaces: int, *, up: bool) -> float:
        """How long virtual time may stand still: longer while a large network is made."""
        return self.stall_s + (0.0 if up else self.node_s * namespaces)


class VirtualEngine:
    """Runs plans in the laboratory kernel under virtual time."""

    emulates_links = True

    def __init__(
        self,
        kernel: Kernel,
        agent: Path,
        limits: Limits | None = None,
        build: Callable[[Module], Path] | None = None,
    ) -> None:
        """`build` gives a module for this kernel; without it, those that were added (`plait kernel add`) are."""
        self._kernel = kernel
        self._build = build or partial(additions.object_of, kernel)
        self._limits = limits or Limits()
        self._launcher = launch.launcher()
        self._initramfs, self._agent_sha256 = initramfs_of(agent)

    def identity(self) -> EngineIdentity:
        """Returns the kernel's and the agent's identities."""
        return EngineIdentity("virtual", self._kernel.identity, self._kernel.version, self._agent_sha256)

    def execute(self, job: Job) -> None:
        """Runs one trial (see Engine)."""
        _fill(job, self._initramfs)
        self._add_modules(job)
        if job.plan.pause:
            from plait.run import pausing

            pausing.execute(self._kernel, job, self._limits)
            return
        started = time.monotonic()
        with (job.folder / "console.log").open("wb") as console:
            confiner = launch.confiner([job.folder]) if job.plan.programs else []
            command = [*confiner, *self._launcher, str(self._kernel.binary), *kernel_parameters(job.plan)]
            guest = launch.spawn(command, job.folder, console)
            try:
                verdict = Watch(job, self._limits, started).until_exit(guest)
            finally:
                launch.end(guest)
        judge(job.folder, guest.returncode, verdict)

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory:
        """Returns what the kernel has with all that was added to it (see Engine)."""
        modules = tuple(self._added())
        identity = " ".join([self._kernel.identity, self._agent_sha256, *(one.sha256 for one in modules)])
        machine = NOTHING.machine.model_copy(update={"modules": modules})
        plan = NOTHING.model_copy(update={"machine": machine})
        return inventory.take(identity, settings, lambda folder: self.execute(Job(plan, {}, folder)))

    def _added(self) -> Iterator[Module]:
        """The modules that were added and can be built for this kernel; a scenario that needs another is refused."""
        for module in sorted(set(additions.known().values()), key=lambda module: module.name):
            with contextlib.suppress(RequestError, MachineError):
                self._build(module)
                yield module

    def _add_modules(self, job: Job) -> None:
        """Puts the plan's modules, built for this kernel, into the trial's folder."""
        for module in job.plan.machine.modules:
            try:
                built = self._build(module)
            except (RequestError, MachineError) as error:
                raise TrialError(f"the plan needs the module {module.name}: {error}") from error
            (job.folder / "modules").mkdir(exist_ok=True)
            shutil.copyfile(built, job.folder / "modules" / f"{module.name}.ko")


def kernel_parameters(plan: Plan, *, real_time: bool = False, orders: bool = False) -> list[str]:
    """Returns the command line of the guest's kernel for `plan`, without host paths.

    With `real_time` its clock is the host's; with `orders` its console tty1 is the descriptor 0 of its process.
    """
    virtual_time = [
        "time-travel=inf-cpu",
        f"time-travel-start={EPOCH_NS}",
        f"time-travel-syscall-ns={plan.machine.syscall_ns}",
    ]
    return [
        f"mem={plan.machine.memory_mib}M",
        "initrd=initramfs.cpio",
        "hostfs=/proc/self/cwd",  # hostfs wants an absolute path; this one is the same everywhere
        "rdinit=/init",
        *([] if real_time else virtual_time),
        f"um_rng_seed={plan.seed}",
        "con=null",
        "con0=null,fd:1",
        *(["con1=fd:0"] if orders else []),
        "uml_dir=.",
        "umid=guest",
        "panic=-1",
        "quiet",
    ]


class Watch:
    """Waits for the guest's end, its stall, its time limit, or the user's interrupt, whichever comes first."""

    def __init__(self, job: Job, limits: Limits, started: float) -> None:
        self._job = job
        self._limits = limits
        self._started = started
        self._virtual_us = -1
        self._advanced = started

    def until_exit(self, guest: subprocess.Popen[bytes], paused: PausingGuest | None = None) -> str | None:
        """Returns None when the guest ended by itself, or pauses; else why it was given up. Raises Interrupted."""
        descriptor = os.pidfd_open(guest.pid)
        watched = [descriptor] if paused is None else [descriptor, paused.grows]
        try:
            while True:
                ready, _, _ = select.select(watched, [], [], _POLL_S)
                if descriptor in ready:
                    guest.wait()
                    return None
                if paused is not None and paused.has_come_to_rest():
                    return None
                if self._job.stop.is_set():
                    raise Interrupted
                verdict = self._verdict(guest.pid)
                if verdict is not None:
                    return verdict
        finally:
            os.close(descriptor)

    def _verdict(self, pid: int) -> str | None:
        now = time.monotonic()
        reached_us = virtual_us(self._job.folder)
        if reached_us > self._virtual_us:
            self._virtual_us, self._advanced = reached_us, now
            self._job.progress(reached_us)
        stalled = now - self._advanced
        namespaces = len(self._job.plan.network.namespaces)
        if stalled > self._limits.patience_s(namespaces, up=self._virtual_us >= 0):
            return (
                f"no virtual progress: {self._where()} for {stalled:.0f} s of wall time "
                f"(the guest used {cpu_s(pid):.0f} s of processor time in all); "
                "something in the guest polls without sleeping or waits for what never comes"
            )
        if now - self._started > self._limits.total_s:
            return (
                f"too slow: {self._where()} after {self._limits.total_s:.0f} s of wall time, and still advancing; "
                "shorten the trial, lower its rates, or raise --trial-timeout"
            )
        return None

    def _where(self) -> str:
        if self._virtual_us < 0:
            return "the guest did not come up"
        return f"virtual time stands at {self._virtual_us / 1e6:.1f} s"


def _fill(job: Job, archive: Path) -> None:
    """Puts everything that the guest reads into its folder."""
    try:
        (job.folder / "plan.json").write_bytes(plan_bytes(job.plan))
        (job.folder / "initramfs.cpio").symlink_to(archive)
        (job.folder / "data").mkdir()
        packages = cache_root() / "npm"
        if job.plan.programs and packages.is_dir():
            (job.folder / "npm").symlink_to(packages)
        (job.folder / "input").mkdir()
        for name, path in job.inputs.items():
            shutil.copyfile(path, job.folder / "input" / name)
    except OSError as error:
        raise TrialError(f"preparing {job.folder}: {error.strerror}: {error.filename}") from error


def judge(folder: Path, exit_code: int, verdict: str | None) -> None:
    """Raises TrialError unless the agent reported success, MachineError when the guest could not be confined."""
    launch.refuse_unconfined(_console(folder))
    if verdict is not None:
        raise TrialError("\n".join([verdict, *_printed(folder), _console_tail(folder)]))
    status = folder / "status.json"
    if not status.exists():
        raise TrialError(_crash(folder, exit_code))
    report = json.loads(status.read_text(encoding="utf-8"))
    if not report["ok"]:
        raise TrialError("\n".join([f"{report['phase']}: {report['error']}", *_short(folder)]))


def _short(folder: Path) -> Iterator[str]:
    """What a trial that failed was short of."""
    if crash.ran_out_of_memory(_console(folder)):
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        yield (
            f"the guest's memory ({plan['machine']['memory_mib']} MiB) was used up, and its kernel killed a program; "
            "give the scenario more (memory: SIZE)"
        )


def _printed(folder: Path) -> Iterator[str]:
    """What programs printed last, of those that printed anything."""
    for log in sorted(folder.glob("programs/*.log")):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_CONSOLE_LINES:]
        if lines:
            yield "\n".join([f"last lines of {log.name}:", *(f"  {line[:200]}" for line in lines)])


def _crash(folder: Path, exit_code: int) -> str:
    reason = crash.panic(_console(folder))
    if reason is None:
        ended = (
            f"the guest ended without a report (exit code {exit_code}); was it killed, or is the disk full?"
        )
        return f"{ended}\n{_console_tail(folder)}"
    calls = "\n".join(f"  {call}" for call in crash.trace(_console(folder), folder / "modules"))
    return f"the guest's kernel panicked: {reason}\n{calls or _console_tail(folder)}"


def _console(folder: Path) -> list[str]:
    return (folder / "console.log").read_text(encoding="utf-8", errors="replace").splitlines()


def _console_tail(folder: Path) -> str:
    lines = _console(folder)[-_CONSOLE_LINES:]
    return (
        "\n".join(["last lines of the guest's console:", *(f"  {line}" for line in lines)]) if lines else ""
    )


def virtual_us(folder: Path) -> int:
    """Returns the virtual time that the agent last reported, in us; -1 before its first report."""
    try:
        lines = (folder / "progress").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return -1
    return int(lines[-1].split()[0]) if lines and lines[-1].split() else -1


def cpu_s(pid: int) -> float:
    """Returns the processor time used by process `pid` so far in seconds (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def initramfs_of(agent: Path) -> tuple[Path, str]:
    """Returns the guest's root with this agent, and the agent's SHA-256 (MachineError when there is none)."""
    try:
        content = agent.read_bytes()
    except OSError as error:
        raise MachineError(f"reading plait-agent at {agent}: {error.strerror}; run `make setup`") from error
    digest = hashlib.sha256(content).hexdigest()
    try:
        return initramfs.ensure(content, digest, cache_root()), digest
    except OSError as error:
        raise MachineError(f"writing the guest's root below {cache_root()}: {error.strerror}") from error
