"""The virtual engine: one User-Mode Linux guest per trial, in virtual time.

    job folder                         the guest, in its sandbox (`containment`)
      plan.json, input/, modules/  -->   kernel --initrd--> plait-agent (PID 1), read-only below /job
      guest/                             /job, all that the guest can write to
        data/*.arrow, status.json  <--   hostfs, no virtual time passes while it writes
        progress  <-------------------   read here to distinguish a slow guest from a stuck one

While the guest runs, plait reads `guest/` through `guest_folder` alone. After its end, plait moves what a trial leaves
from there to the job folder, once it is known to be nothing but plain files.

The kernel command line is the same on every machine (no host paths), because the kernel mixes it into its random
generator. The seed's parameter is taken off the line by the kernel itself. Address-space randomisation is off: 6.12
lets it reach the guest's memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plait.cache import cache_root
from plait.engine import inventory
from plait.engine.engine import EngineIdentity, Interrupted, Job
from plait.engine.uml import crash, initramfs
from plait.engine.uml.containment import GUEST, USUAL, Guest, Policy, Sandbox, caution, start
from plait.engine.uml.guest_folder import GuestFolder
from plait.errors import MachineError, RequestError, TrialError, printable
from plait.kernel import additions
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import Machine, Network, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plait.engine.inventory import Inventory, Setting
    from plait.engine.uml.pause import PausingGuest
    from plait.kernel import Kernel
    from plait.plan.model.plan import Module

EPOCH_NS = 1_700_000_000_000_000_000
"""The guest's date at boot (2023-11-14), the same always."""

_POLL_S = 0.25
INPUTS = ("plan.json", "initramfs.cpio", "input", "modules", "session.json", inventory.REQUEST)
"""What the guest reads of its job folder, where it is there."""
LEFT = ("data", "pcap", "programs", "status.json", inventory.ANSWER)
"""What a trial leaves."""
_STATUS_BYTES, _PROGRESS_BYTES, _CONSOLE_BYTES = 1 << 20, 4096, 8 << 20
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
        *,
        policy: Policy = USUAL,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`build` gives a module for this kernel; without it, those that were added (`plait kernel add`) are.

        `warn` is called once with the layers of containment that this machine lacks, and what that means.
        """
        self._kernel = kernel
        self._build = build or partial(additions.object_of, kernel)
        self._limits = limits or Limits()
        self._policy = policy
        self._warn = warn
        self._initramfs, self._agent_sha256 = initramfs_of(agent)
        self._warned = False

    def identity(self) -> EngineIdentity:
        """Returns the kernel's and the agent's identities."""
        return EngineIdentity("virtual", self._kernel.identity, self._kernel.version, self._agent_sha256)

    def execute(self, job: Job) -> None:
        """Runs one trial (see Engine)."""
        _fill(job, self._initramfs)
        self._add_modules(job)
        guest_folder = GuestFolder(job.folder / GUEST)
        try:
            if job.plan.pause:
                from plait.engine.uml import pause

                pause.execute(self._kernel, job, self._limits, self._policy)
            else:
                self._run(job)
        finally:
            guest_folder.collect(LEFT, job.folder)
            guest_folder.remove()

    def _run(self, job: Job) -> None:
        sandbox = Sandbox(
            self._kernel.binary,
            kernel_parameters(job.plan),
            job.folder,
            present_inputs(job.folder),
            host_files=bool(job.plan.programs),
            strangers=bool(job.plan.programs or job.plan.machine.modules),
            policy=self._policy,
            memory_mib=job.plan.machine.memory_mib,
        )
        started = time.monotonic()
        with (job.folder / "console.log").open("wb") as console:
            guest = start(sandbox, console)
            if guest.missing and not self._warned:
                self._warned = True
                self._warn(caution(guest.missing))
            try:
                verdict = Watch(job, self._limits, started, self._policy.disk_bytes).until_exit(guest)
            finally:
                guest.end()
        judge(job.folder, guest.process.returncode, verdict)

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

    def __init__(self, job: Job, limits: Limits, started: float, disk_bytes: int) -> None:
        self._job = job
        self._limits = limits
        self._disk_bytes = disk_bytes
        self._started = started
        self._virtual_us = -1
        self._advanced = started

    def until_exit(self, guest: Guest, paused: PausingGuest | None = None) -> str | None:
        """Returns None when the guest ended by itself, or pauses; else why it was given up. Raises Interrupted."""
        descriptor = os.pidfd_open(guest.process.pid)
        watched = [descriptor] if paused is None else [descriptor, paused.grows]
        try:
            while True:
                ready, _, _ = select.select(watched, [], [], _POLL_S)
                if descriptor in ready:
                    guest.process.wait()
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
        if disk_used(self._job.folder) > self._disk_bytes:
            return disk_is_full(self._disk_bytes)
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
        (job.folder / GUEST).mkdir()
        packages = cache_root() / "npm"
        if job.plan.programs and packages.is_dir():
            (job.folder / GUEST / "npm").symlink_to(packages)
        (job.folder / "input").mkdir()
        for name, path in job.inputs.items():
            shutil.copyfile(path, job.folder / "input" / name)
    except OSError as error:
        raise TrialError(f"preparing {job.folder}: {error.strerror}: {error.filename}") from error


def present_inputs(folder: Path) -> list[str]:
    """Returns the names of what the guest reads of its job folder."""
    return [name for name in INPUTS if (folder / name).exists()]


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$")]


class _Brought(BaseModel):
    schedulers: tuple[_Name, ...] = ()
    congestion_controls: tuple[_Name, ...] = ()


class _Status(BaseModel):
    """What the agent says at the end (agent/src/status.rs)."""

    model_config = ConfigDict(strict=False, extra="forbid")
    ok: bool
    phase: str
    error: str | None
    virtual_us: int
    boot_us: int
    brought: _Brought = _Brought()


def judge(folder: Path, exit_code: int, verdict: str | None) -> None:
    """Raises TrialError unless the agent reported success. `verdict`: why the guest was given up."""
    if verdict is not None:
        raise TrialError("\n".join([verdict, *_printed(folder), _console_tail(folder)]))
    content = GuestFolder(folder / GUEST).read("status.json", _STATUS_BYTES)
    if content is None:
        raise TrialError(_crash(folder, exit_code))
    try:
        report = _Status.model_validate_json(content)
    except ValidationError as error:
        (folder / GUEST / "status.json").unlink(missing_ok=True)  # so that nobody else has to read it
        raise TrialError(
            "reading the guest's status.json: it is not what the agent writes; see the trial's console log"
        ) from error
    if not report.ok:
        raise TrialError(printable("\n".join([f"{report.phase}: {report.error}", *_short(folder)])))


def _short(folder: Path) -> Iterator[str]:
    """What a trial that failed was short of."""
    if crash.ran_out_of_memory(console_lines(folder)):
        plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
        yield (
            f"the guest's memory ({plan.machine.memory_mib} MiB) was used up, and its kernel killed a program; "
            "give the scenario more (memory: SIZE)"
        )


def _printed(folder: Path) -> Iterator[str]:
    """What programs printed last, of those that printed anything."""
    plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
    for program in plan.programs:
        log = GuestFolder(folder / GUEST).tail(f"programs/{program.name}.log", 1 << 16)
        lines = printable(log.decode("utf-8", errors="replace")).splitlines()[-_CONSOLE_LINES:]
        if lines:
            yield "\n".join([f"last lines of {program.name}.log:", *(f"  {line[:200]}" for line in lines)])


def _crash(folder: Path, exit_code: int) -> str:
    if exit_code == 128 + signal.SIGXFSZ:
        return "the guest wrote a file that is larger than its limit; --disk-limit SIZE allows more"
    reason = crash.panic(console_lines(folder))
    if reason is None:
        ended = (
            f"the guest ended without a report (exit code {exit_code}); was it killed, or is the disk full?"
        )
        return f"{ended}\n{_console_tail(folder)}"
    calls = "\n".join(f"  {call}" for call in crash.trace(console_lines(folder), folder / "modules"))
    return f"the guest's kernel panicked: {reason}\n{calls or _console_tail(folder)}"


def console_lines(folder: Path) -> list[str]:
    """Returns what the guest's kernel said last, without control characters."""
    with (folder / "console.log").open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _CONSOLE_BYTES))
        return printable(file.read(_CONSOLE_BYTES).decode("utf-8", errors="replace")).splitlines()


def _console_tail(folder: Path) -> str:
    lines = [line[:400] for line in console_lines(folder)[-_CONSOLE_LINES:]]
    return (
        "\n".join(["last lines of the guest's console:", *(f"  {line}" for line in lines)]) if lines else ""
    )


def disk_used(folder: Path) -> int:
    """Returns how many bytes of the disk the guest has taken (TrialError: more files than it may leave)."""
    console = (folder / "console.log").stat().st_blocks * 512
    return GuestFolder(folder / GUEST).used_bytes() + console


def disk_is_full(limit: int) -> str:
    """Returns why a guest that wrote more than `limit` bytes was given up."""
    return f"the guest wrote more than {limit >> 20} MiB to its folder; --disk-limit SIZE allows more"


def virtual_us(folder: Path) -> int:
    """Returns the virtual time that the agent last reported, in us; -1 before its first report."""
    words = GuestFolder(folder / GUEST).tail("progress", _PROGRESS_BYTES).splitlines()[-1:]
    if not words:
        return -1
    number = words[0].split()[:1]
    if not number or not number[0].isdigit():
        raise TrialError("reading the guest's progress: it is not what the agent writes")
    return int(number[0])


def cpu_s(pid: int) -> float:
    """Returns the processor time used by process `pid` so far in seconds (proc_pid_stat(5), fields 14 and 15)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0.0
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
