"""The virtual engine: one User-Mode Linux guest per trial, in virtual time.

    job folder                         the guest, in its sandbox (`containment`)
      plan.json, input/, modules/  -->   kernel --initrd--> plait-agent (PID 1), read-only below /job
      guest/                             /job, all that the guest can write to
        data/*.arrow, status.json  <--   hostfs, no virtual time passes while it writes
        progress  <-------------------   plait reads it to distinguish a slow guest from a stuck one

While the guest runs, plait reads `guest/` only through `guest_folder`. After its end, plait moves the results of the
trial from there to the job folder, once it has checked that they are plain files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.cache import used_folder
from plait.engine import inventory
from plait.engine.engine import Clock, Engine, EngineIdentity, Job, preparing, write_inputs
from plait.engine.host_view import view_for_programs
from plait.engine.inventory import Inventory, Setting
from plait.engine.recipe import ShippedFile, shipped_file
from plait.engine.request import DEFAULT_POLICY, EngineRequest, Policy
from plait.engine.support import Feature, Unsupported, lacking, uses
from plait.engine.virtual import pause
from plait.engine.virtual.boot_inputs import (
    EMPTY_PLAN,
    add_modules,
    initramfs_of,
    kernel_parameters,
    module_builder,
    present_inputs,
)
from plait.engine.virtual.containment import GUEST, Sandbox
from plait.engine.virtual.guest_folder import GuestFolder
from plait.engine.virtual.outcome import judge
from plait.engine.virtual.watch import GuestRunner, TrialLimits
from plait.errors import MachineError, RequestError
from plait.files import Folder
from plait.kernel import Kernel, additions
from plait.plan.links.chain import chained, with_chains
from plait.plan.model.plan import LinksAs, Module, Plan

RESULT_NAMES = ("data", "pcap", "programs", "status.json", inventory.ANSWER)
"""The results of a trial in the guest's folder."""


LACKS: Mapping[Feature, str] = {
    "processors": "has one processor, because User-Mode Linux has no more in virtual time",
    "instruction time": "computes in no time at all",
    "offloads": "computes in no time at all, so offloads cannot save any",
}
_FILLS = "and Linux fills the token bucket of a chain when it changes"
_NO_DEVICES = (
    f"makes links chains of qdiscs here (PLAIT_LINKS, or a kernel without links as devices), {_FILLS}"
)
_STAYS_CHAIN = (
    f"makes a link with a middlebox, a shared bucket or a recorded trace a chain of qdiscs, {_FILLS}"
)


class VirtualEngine(Engine):
    """The engine that runs plans in the laboratory kernel under virtual time."""

    name = "virtual"
    repeatable = True
    clock: Clock = "virtual"
    max_jobs: int | None = None

    def __init__(
        self,
        kernel: Kernel,
        agent: Path,
        limits: TrialLimits | None = None,
        build: Callable[[Module], Path] | None = None,
        *,
        policy: Policy = DEFAULT_POLICY,
        warn: Callable[[str], None] = lambda _: None,
        links: LinksAs | None = None,
    ) -> None:
        """`build` returns a module built for this kernel; the default knows the modules of `plait kernel add`.

        `links` says what the agent makes of a link: a chain of veth pairs and qdiscs, or a device of its own, which
        is the default for kernels that have it.

        The engine calls `warn` once if this machine lacks layers of the sandbox, and if the kernel lacks the device.

        Raises RequestError if `links` asks for devices that the kernel lacks.
        """
        self._kernel = kernel
        self._build = build or module_builder(kernel)
        self._policy = policy
        self._runner = GuestRunner(limits or TrialLimits(), warn)
        self._agent = agent
        self._links = _links_of(kernel, links, warn)
        self._initramfs, self._agent_sha256 = initramfs_of(agent)

    def identity(self) -> EngineIdentity:
        """Return the kernel's and the agent's identities."""
        return EngineIdentity(
            "virtual",
            self._kernel.identity,
            self._kernel.version,
            self._agent_sha256,
            (f"links {self._links}",),
        )

    def recipe(self) -> _VirtualRecipe:
        """Return what another machine needs to make this engine (see `plait.engine.recipe`)."""
        modules = {module.sha256: shipped_file(self._build(module)) for module in self._added()}
        return _VirtualRecipe(
            replace(self._kernel, binary=Path(self._kernel.binary.name)),
            shipped_file(self._kernel.binary),
            shipped_file(self._agent),
            modules,
            self._runner.limits,
            self._policy,
            self._links,
        )

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Return what in `plan` needs another engine."""
        missing = lacking(plan, LACKS)
        kept = chained(plan)
        names = {side.name: link.name for link in plan.links for side in link.directions}
        for use in uses(plan):
            if use.feature != "bucket events":
                continue
            if self._links == "chain":
                missing.append(Unsupported(use, _NO_DEVICES))
            elif names.get(use.name, use.name) in kept:
                missing.append(Unsupported(use, _STAYS_CHAIN))
        return missing

    def execute(self, job: Job) -> None:
        """Run one trial (see Engine)."""
        job = replace(job, plan=with_chains(job.plan, exact=False, devices=self._links == "device"))
        _fill(job, self._initramfs)
        add_modules(job.plan, job.folder, self._build)
        guest_folder = GuestFolder(job.folder / GUEST)
        try:
            if job.plan.pause:
                pause.execute(self._kernel, job, self._runner.limits, self._policy)
            else:
                self._run(job)
        finally:
            guest_folder.collect(RESULT_NAMES, job.folder)
            guest_folder.remove()

    def _run(self, job: Job) -> None:
        sandbox = Sandbox(
            self._kernel.binary,
            kernel_parameters(job.plan),
            job.folder,
            present_inputs(job.folder),
            view=view_for_programs(job.plan.programs, self._policy.readable) if job.plan.programs else None,
            untrusted_code=bool(job.plan.programs or job.plan.machine.modules),
            policy=self._policy,
            executes_memory=self._kernel.executes_memory,
            memory_mib=job.plan.machine.memory_mib,
        )
        judge(job.folder, *self._runner.run(sandbox, job), sandbox.view)

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory:
        """Return what the kernel has, including the added modules (see Engine)."""
        modules = tuple(self._added())
        identity = " ".join(
            [self._kernel.identity, self._agent_sha256, *(module.sha256 for module in modules)]
        )
        machine = EMPTY_PLAN.machine.model_copy(update={"modules": modules})
        plan = EMPTY_PLAN.model_copy(update={"machine": machine})
        return inventory.take(identity, settings, lambda folder: self.execute(Job(plan, {}, folder)))

    def _added(self) -> Iterator[Module]:
        """Yield the added modules that can be built for this kernel; a scenario that needs another one is refused."""
        for module in sorted(set(additions.modules_by_name().values()), key=lambda module: module.name):
            with contextlib.suppress(RequestError, MachineError):
                self._build(module)
                yield module


@dataclass(frozen=True)
class _VirtualRecipe:
    """The data from which another machine makes a virtual engine."""

    kernel: Kernel
    """The kernel, without the folder of its file."""
    binary: ShippedFile
    agent: ShippedFile
    modules: Mapping[str, ShippedFile]
    """The added modules, built for this kernel, by the SHA-256 of their source."""
    limits: TrialLimits
    policy: Policy
    links: LinksAs

    @property
    def files(self) -> tuple[ShippedFile, ...]:
        """The files that the engine needs."""
        return (self.binary, self.agent, *self.modules.values())

    def create(self, files: Mapping[str, Path]) -> VirtualEngine:
        """Return the engine (MachineError)."""
        built = {source: files[module.sha256] for source, module in self.modules.items()}

        def build(module: Module) -> Path:
            if module.sha256 not in built:
                raise RequestError(f"the worker did not get the module {module.name}")
            return built[module.sha256]

        kernel = replace(self.kernel, binary=files[self.binary.sha256])
        return VirtualEngine(
            kernel, files[self.agent.sha256], self.limits, build, policy=self.policy, links=self.links
        )


def create(request: EngineRequest) -> VirtualEngine:
    """Return the engine with the requested kernel (RequestError, MachineError)."""
    kernel = kernels.find(request.kernel) if request.kernel else request.build()
    limits = TrialLimits(total_s=request.trial_timeout_s)
    return VirtualEngine(kernel, AGENT, limits, policy=request.policy, warn=request.warn, links=request.links)


def _links_of(kernel: Kernel, asked: LinksAs | None, warn: Callable[[str], None]) -> LinksAs:
    """Return what links are in that kernel."""
    if asked == "device" and not kernel.has_link_devices:
        raise RequestError(
            f"PLAIT_LINKS=device: the kernel {kernel.name} has no links as devices; build it again "
            "(`plait kernel build`), or leave PLAIT_LINKS out"
        )
    if asked is None and not kernel.has_link_devices:
        warn(
            f"the kernel {kernel.name} has no links as devices, so links are chains of veth pairs and qdiscs, which "
            "are less exact; `plait kernel build` builds one that has them"
        )
    return asked or ("device" if kernel.has_link_devices else "chain")


def _fill(job: Job, archive: Path) -> None:
    """Write all inputs of the guest to its folder."""
    with preparing(job):
        write_inputs(job)
        Folder(job.folder).link("initramfs.cpio", archive)
        (job.folder / GUEST).mkdir()
        packages = used_folder("npm")
        if job.plan.programs and packages.is_dir():
            (Folder(job.folder) / GUEST).link("npm", packages)
