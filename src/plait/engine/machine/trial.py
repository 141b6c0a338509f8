"""The machine engine: one stock kernel in QEMU per trial, in virtual time that counts instructions.

    job folder                                 QEMU, in its sandbox (`plait.engine.virtual.containment`)
      the state after a boot (`boots`)  -->   the agent (PID 1) and the modules of every plan, in memory
      job.cpio, emulator/               -->   the plan, its inputs and modules, and files of programs
      guest/progress, results.frames    <--   two virtio ports: progress meanwhile, results after the trial
      guest/console                     <--   what its kernel says

A stock kernel has no folder in common with its host: file systems that QEMU offers answer asynchronously, which is not
repeatable. So the job also has copies of the files that programs need (`needed_files`). Results stay in the machine's
memory until the trial has ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from plait.binaries import AGENT
from plait.engine import inventory
from plait.engine.engine import Clock, Engine, EngineIdentity, Job, preparing
from plait.engine.inventory import Inventory, Setting
from plait.engine.machine.boots import METHOD as BOOT_METHOD
from plait.engine.machine.boots import Boot
from plait.engine.machine.modules import PARAMETERS, ModuleTree, wanted_modules
from plait.engine.machine.needed_files import (
    ProgramFiles,
    bpf_archive,
    files_of,
    no_mptcp,
    offered_algorithms,
)
from plait.engine.machine.qemu import (
    BOOT,
    CONSOLE,
    FOLDER,
    IMAGE,
    JOB,
    PROCESSOR,
    RESULTS,
    Emulator,
    command_line,
    find_emulator,
    trial_arguments,
)
from plait.engine.request import DEFAULT_POLICY, EngineRequest, Policy
from plait.engine.support import Feature, Unsupported, lacking
from plait.engine.virtual.boot_inputs import EMPTY_PLAN, initramfs_of
from plait.engine.virtual.containment import GUEST, MAX_ENTRIES, Sandbox
from plait.engine.virtual.guest_folder import GuestFolder
from plait.engine.virtual.initramfs import ArchiveEntry, pack
from plait.engine.virtual.outcome import CONSOLE as LOG
from plait.engine.virtual.outcome import MAX_CONSOLE_BYTES, judge
from plait.engine.virtual.trial import RESULT_NAMES
from plait.engine.virtual.watch import GuestRunner, TrialLimits
from plait.errors import RequestError, TrialError
from plait.files import Folder
from plait.kernel import built_by_default, find, stock
from plait.kernel.recipe import DEFAULT_SERIES
from plait.kernel.stock import StockKernel
from plait.plan.identity import plan_bytes
from plait.plan.links.chain import METHOD, with_chains
from plait.plan.model.plan import Plan
from plait.plan.model.programs import Program
from plait.plan.modules import algorithms_of

LACKS: Mapping[Feature, str] = {
    "traces": "has a stock kernel, without the queue that replays traces (plait_trace)",
    "plait_red": "has a stock kernel, without the queue plait_red",
    "bucket events": "has a stock kernel, whose token buckets fill up when they change",
    "modules": "has a stock kernel, for which plait builds no added algorithms",
    "pauses": "has no prompt, because nothing may enter the machine while it runs",
    "processors": "has one processor, because QEMU repeats a run of one processor only",
    "system call time": "counts the instructions of a system call instead",
}
_STALL_S = 900.0
_KERNEL_MIB = 192
"""Memory beyond the plan's: a stock kernel is larger than the laboratory's, and unpacks an initramfs."""
_MAX_RESULTS = 2 << 30


class _MachineEngine(Engine):
    """The engine that runs plans on a stock kernel in QEMU."""

    name = "machine"
    repeatable = True
    clock: Clock = "virtual"
    max_jobs: int | None = None

    def __init__(
        self,
        kernel: StockKernel,
        emulator: Emulator,
        agent: Path,
        limits: TrialLimits | None = None,
        *,
        policy: Policy = DEFAULT_POLICY,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """The engine calls `warn` once if this machine lacks layers of the sandbox."""
        self._kernel, self._emulator = kernel, emulator
        self._policy = policy
        self._runner = GuestRunner(limits or TrialLimits(stall_s=_STALL_S), warn)
        self._initramfs, self._agent_sha256 = initramfs_of(agent)
        self._modules = ModuleTree(kernel.modules)
        self._by_bpf = offered_algorithms(kernel)
        self._loaded: dict[frozenset[str], dict[str, bytes]] = {}
        self._files: dict[tuple[Program, ...], ProgramFiles] = {}

    def identity(self) -> EngineIdentity:
        """Return the identities of kernel, agent, QEMU with its arguments, the way to make links, and BPF programs."""
        settings = (
            f"qemu {self._emulator.version} {self._emulator.identity} {PROCESSOR} {' '.join(BOOT)}",
            f"boot {BOOT_METHOD}",
            f"chains {METHOD}",
            f"bpf {hashlib.sha256(bpf_archive(self._by_bpf)).hexdigest()}",
        )
        return EngineIdentity(
            self.name, self._kernel.identity, self._kernel.version, self._agent_sha256, settings
        )

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Return what in `plan` needs another engine."""
        files = self._files_for(plan)
        return [*lacking(plan, LACKS), *files.lacks, *no_mptcp(plan, self._kernel.version)]

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory:
        """Return what the kernel has (see Engine)."""
        identity = " ".join(self.identity().parts)
        return inventory.take(identity, settings, self._boot_for_inventory).with_programs(self._by_bpf)

    def _boot_for_inventory(self, folder: Path) -> None:
        self.execute(Job(EMPTY_PLAN, {}, folder))

    def execute(self, job: Job) -> None:
        """Run one trial (see Engine)."""
        guest = job.folder / GUEST
        try:
            self._fill(job)
            self._run(job)
        finally:
            GuestFolder(guest).collect(RESULT_NAMES, job.folder)
            GuestFolder(guest).remove()
            for name in (JOB, IMAGE, FOLDER):
                (job.folder / name).unlink(missing_ok=True)

    def _fill(self, job: Job) -> None:
        """Write what the machine starts from to its folder."""
        request = job.folder / inventory.REQUEST
        with preparing(job):
            (job.folder / GUEST).mkdir()
            inputs = {"plan.json": plan_bytes(with_chains(job.plan))}
            Folder(job.folder).write("plan.json", inputs["plan.json"])
            inputs |= {f"input/{name}": path.read_bytes() for name, path in job.inputs.items()}
            if request.exists():
                inputs[inventory.REQUEST] = request.read_bytes()
            files = self._files_for(job.plan)
            loaded = self._modules_for(EMPTY_PLAN)
            modules = {
                name: module for name, module in self._modules_for(job.plan).items() if name not in loaded
            }
            programs = bpf_archive(sorted(set(algorithms_of(job.plan)) & set(self._by_bpf)))
            content = archives(files.archive(), programs, job_archive(modules, inputs))
            Folder(job.folder).write(JOB, content)
            Folder(job.folder).link(IMAGE, self._kernel.image.resolve())
            Folder(job.folder).link(FOLDER, self._emulator.folder.resolve())

    def _modules_for(self, plan: Plan) -> dict[str, bytes]:
        wanted = list(wanted_modules(plan, self._modules))
        key = frozenset(wanted)
        if key not in self._loaded:
            self._loaded[key] = self._modules.load_order(wanted)
        return self._loaded[key]

    def _files_for(self, plan: Plan) -> ProgramFiles:
        if plan.programs not in self._files:
            self._files[plan.programs] = files_of(plan.programs, self._policy.readable)
        return self._files[plan.programs]

    def _boot(self, plan: Plan) -> Boot:
        """Return the machine whose state a trial continues from; the BPF programs of a plan come later."""
        root = archives(self._initramfs.read_bytes(), job_archive(self._modules_for(EMPTY_PLAN)))
        image, memory_mib = self._kernel.image.read_bytes(), self._memory_mib(plan)
        line = [*machine_command(plan, memory_mib), *BOOT]
        instruction_ns = plan.machine.instruction_ns
        return Boot(self._emulator, image, root, line, memory_mib, instruction_ns, self._policy)

    def _memory_mib(self, plan: Plan) -> int:
        return plan.machine.memory_mib + _KERNEL_MIB + self._files_for(plan).memory_mib

    def _run(self, job: Job) -> None:
        line = machine_command(job.plan, self._memory_mib(job.plan))
        sandbox = Sandbox(
            self._emulator.loader,
            [*line, *trial_arguments(job.plan.seed)],
            job.folder,
            (IMAGE, JOB, FOLDER),
            untrusted_code=bool(job.plan.programs),
            emulator=True,
            policy=self._policy,
        )
        try:
            state = self._boot(job.plan).state(job.stop)
        except OSError as error:
            raise TrialError(f"booting a machine: {error.strerror}: {error.filename}") from error
        try:
            ended = self._runner.run(sandbox, job, state)
        finally:
            os.close(state)
        Folder(job.folder).append(LOG, GuestFolder(job.folder / GUEST).tail(CONSOLE, MAX_CONSOLE_BYTES))
        received = job.folder / "received"
        unpack_results(job.folder / GUEST, received, min(self._policy.disk_bytes, _MAX_RESULTS))
        GuestFolder(job.folder / GUEST).remove()
        Folder(job.folder).take(received, GUEST)
        judge(job.folder, *ended)


def machine_command(plan: Plan, memory_mib: int) -> list[str]:
    """Return the command line for the machine of a plan, as far as a boot and a trial have it in common."""
    return command_line(memory_mib, plan.machine.processors, plan.machine.instruction_ns)


def create(request: EngineRequest) -> Engine:
    """Return the engine with the requested kernel (RequestError, MachineError)."""
    emulator = find_emulator()
    limits = TrialLimits(total_s=request.trial_timeout_s, stall_s=_STALL_S)
    return _MachineEngine(_kernel(request), emulator, AGENT, limits, policy=request.policy, warn=request.warn)


def _kernel(request: EngineRequest) -> StockKernel:
    """Return the requested kernel; without a request, the distribution's that is nearest to the laboratory's."""
    if request.kernel is None:
        built = built_by_default()
        version = DEFAULT_SERIES if built is None else built.version
        return stock.nearest(version, request.progress)
    if request.kernel.startswith(stock.SCHEME):
        return stock.of_distribution(request.kernel.removeprefix(stock.SCHEME), request.progress)
    if "/" not in request.kernel and not Path(request.kernel).exists():
        built = find(request.kernel, "machine")
        if request.modules is not None:
            raise RequestError(f"--modules {request.modules}: the kernel {built.name} has none; leave it out")
        return stock.of_build(built)
    return stock.of_files(Path(request.kernel), request.modules)


def job_archive(modules: Mapping[str, bytes], inputs: Mapping[str, bytes] | None = None) -> bytes:
    """Return an archive with modules, to load in order, and `inputs` by path below /job."""
    inputs = inputs or {}
    order = "".join(f"{name} {PARAMETERS.get(name, '')}".rstrip() + "\n" for name in modules)
    entries = [ArchiveEntry("modules", stat.S_IFDIR | 0o755), _file("modules/order", order.encode())]
    entries += [_file(f"modules/{name}.ko", content) for name, content in modules.items()]
    folders = {f"job/{path.rpartition('/')[0]}" for path in inputs if "/" in path}
    entries += [ArchiveEntry(folder, stat.S_IFDIR | 0o755) for folder in sorted(folders)]
    entries += [_file(f"job/{path}", content) for path, content in inputs.items()]
    return pack(entries)


def archives(*contents: bytes) -> bytes:
    """Return one archive of several, as the kernel and the agent read them."""
    return b"".join(content + bytes(-len(content) % 512) for content in contents)


def _file(name: str, content: bytes) -> ArchiveEntry:
    return ArchiveEntry(name, stat.S_IFREG | 0o644, content)


_HEADER = struct.Struct("<II")
_MAX_PATH = 512
_NAME = re.compile(r"^[A-Za-z0-9_.@:+,=-]{1,200}(/[A-Za-z0-9_.@:+,=-]{1,200}){0,5}$")


def unpack_results(guest: Path, target: Path, max_bytes: int) -> None:
    """Write the files that the guest sent to the new folder `target`; `guest` is the folder that it wrote to.

    The guest must have ended. Raises TrialError for anything that no intact agent sends.
    """
    target.mkdir()
    content = GuestFolder(guest).read(RESULTS, max_bytes) or b""
    files: dict[str, list[memoryview]] = {}
    for name, part in _frames(memoryview(content)):
        if not _NAME.match(name) or ".." in name.split("/"):
            raise TrialError(f"reading the machine's results: it sent a file with an invalid name: {name!r}")
        files.setdefault(name, []).append(part)
        if len(files) > MAX_ENTRIES:
            raise TrialError(f"reading the machine's results: it sent more than {MAX_ENTRIES} files")
    for name, parts in files.items():
        *folders, last = name.split("/")
        try:
            with os.fdopen(Folder(target, tuple(folders)).new(last), "wb") as file:
                file.writelines(parts)
        except OSError as error:
            raise TrialError(f"reading the machine's results: {name}: {error.strerror}") from error


def _frames(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Yield the path and the content of each frame; a machine that ended early has an incomplete last one."""
    position = 0
    while position + _HEADER.size <= len(content):
        path_bytes, part_bytes = _HEADER.unpack_from(content, position)
        start = position + _HEADER.size + path_bytes
        position = start + part_bytes
        if path_bytes == 0 or position > len(content):
            return
        if path_bytes > _MAX_PATH:
            raise TrialError("reading the machine's results: it sent a path that is too long")
        yield str(content[start - path_bytes : start], "utf-8", "replace"), content[start:position]
