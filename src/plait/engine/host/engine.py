"""The host engine: one agent process per trial on this machine's own kernel, in real time.

The agent makes all namespaces of the plan, and the links stay in the namespace `wire`: netem on a sender's own
interface would orphan packets and disable TCP small queues. Nothing of a trial outlives the agent.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from plait.bpf import programs as bpf
from plait.engine import inventory
from plait.engine.engine import Engine, EngineIdentity, Job, unless
from plait.engine.host import agent, fidelity, settings
from plait.engine.host.probe import Prober, features_of, veth_flow, veth_plan
from plait.engine.inventory import Inventory, Setting
from plait.engine.request import EngineRequest
from plait.engine.support import Feature, Unsupported, lacking
from plait.engine.virtual.boot_inputs import EMPTY_PLAN
from plait.errors import MachineError, TrialError, shell_command
from plait.janitor import locked_for_all
from plait.plan.model.plan import Plan
from plait.plan.modules import algorithms_of

LACKS: Mapping[Feature, str] = {
    "traces": "has no queue that replays a trace, because that queue is a module of plait's kernel",
    "plait_red": "has no plait_red, which is a module of plait's kernel",
    "bucket events": "uses this machine's kernel, whose token buckets fill up when they change",
    "modules": "loads no kernel modules into this machine's kernel",
    "programs": "runs no programs, because they would run as your processes without a guest around them",
    "trace events": "traces no kernel that others use",
    "pauses": "cannot halt a trial, because its time is real",
    "system call time": "cannot let system calls take a stated time, because its time is real",
}
_BURST_US = 200_000
_BURSTS = 3
"""How often plait tries a burst: a busy machine may connect none within its time."""
_INVENTORY_S = 60.0


class _HostEngine(Engine):
    """The engine that runs plans on this machine's kernel in real time."""

    name = "host"

    def __init__(
        self,
        *,
        limit_s: float = 3600.0,
        allow_settings: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`limit_s`: the wall time of a trial; `allow_settings`: write settings that all namespaces share."""
        self._identity = agent.identity(self.name)
        self._limit_s = limit_s
        self._allow_settings = allow_settings
        self._warn = warn
        self._waited = False
        self._prober = Prober()

    def identity(self) -> EngineIdentity:
        """Return the identities of this machine's kernel and of the agent."""
        return self._identity

    def inventory(self, tried: Iterable[Setting] = ()) -> Inventory:
        """Return what the kernel has at this moment (see Engine)."""
        self._require(set())
        present = inventory.ask(sorted(set(tried)), self._take_inventory)
        return present.with_programs(bpf.loadable())

    def _take_inventory(self, folder: Path) -> None:
        agent.run(Job(EMPTY_PLAN, {}, folder), _INVENTORY_S)

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Return what in `plan` no machine's own kernel can do.

        Raises MachineError, with the remedy, if this machine lacks or forbids what the plan needs.
        """
        missing = lacking(plan, LACKS)
        if not missing:
            self._require(features_of(plan))
            self._check_settings(plan)
        return missing

    def _require(self, features: set[str]) -> None:
        lacks = self._prober.lacks(sorted(features))
        if lacks:
            lines = "\n".join(f"  {lack}" for lack in lacks)
            raise MachineError(f"the engine host cannot run this study on this machine:\n{lines}")

    def _check_settings(self, plan: Plan) -> None:
        unmet = settings.differences(plan, set(self._programs(plan)) - set(bpf.available()))
        if unmet and not self._allow_settings:
            lines = "\n".join(f"  {difference}" for difference in unmet)
            command = shell_command(
                "sysctl", "-w", *(f"{setting.name}={setting.needed}" for setting in unmet)
            )
            raise MachineError(
                f"settings of this machine differ from those of the study:\n{lines}\n"
                f"plait does not change them by itself: run `{command}` as root, or add "
                "--allow-host-settings (as root; plait restores them afterwards)"
            )

    def execute(self, job: Job) -> None:
        """Run one trial between two bursts, which show how fast the machine is (see Engine)."""
        take = partial(locked_for_all, notice=self._report_once, wait=unless(job.stop))
        unmet: list[settings.Difference] = []
        with ExitStack() as stack:
            stack.enter_context(bpf.loaded_for_a_trial(self._programs(job.plan), take))
            if self._allow_settings:
                differing = partial(settings.differences, job.plan)
                unmet = stack.enter_context(settings.written(differing, take))
            burst_before = self._burst(job)
            agent.run(job, self._limit_s)
            burst_after = self._burst(job)
        record = fidelity.read_record(job.folder)
        for name, value in fidelity.facts(record, burst_before, burst_after).items():
            job.note(name, value)
        for difference in unmet:
            job.note(f"set {difference.name}", difference.needed)
        for reason in fidelity.disturbances(record, burst_before, burst_after, _rate_bps(job.plan)):
            job.exclude(reason)

    def _report_once(self, holder: str) -> None:
        """Report the process whose trial lasts until one here can begin."""
        if not self._waited:
            self._waited = True
            self._warn(f"waiting for {holder} that changes this machine's settings or programs for a trial")

    def _programs(self, plan: Plan) -> list[str]:
        return sorted(set(algorithms_of(plan)) & set(bpf.loadable()))

    def _burst(self, job: Job) -> fidelity.Burst:
        """Measure TCP over a veth pair, and timers meanwhile (TrialError, Interrupted)."""
        for _ in range(_BURSTS):
            measured = self._try_burst(job)
            if isinstance(measured, fidelity.Burst):
                return measured
        raise TrialError(
            f"measuring what this machine can carry: {_BURSTS} bursts failed, the last one because {measured}"
        )

    def _try_burst(self, job: Job) -> fidelity.Burst | str:
        """Return a burst, or why it failed (TrialError, Interrupted)."""
        import polars as pl

        folder = job.folder / "burst"
        folder.mkdir()
        try:
            plan = veth_plan(flows=(veth_flow("tcp", _BURST_US),))
            burst = replace(job, plan=plan, inputs={}, folder=folder, progress=lambda _: None)
            agent.run(burst, self._limit_s)
            flow = pl.read_ipc_stream(folder / "data" / "flows.arrow").row(0, named=True)
            record = fidelity.read_record(folder)
        except TrialError as error:
            raise TrialError(f"measuring what this machine can carry: {error}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not flow["completed"] or flow["received_bytes"] is None:
            return str(flow["error"] or "it did not end in time; try again when the machine is at rest")
        lasted_us = flow["end_us"] - flow["start_us"]
        return fidelity.Burst(flow["received_bytes"] * 8e6 / lasted_us, record.lateness_p99_us)


def _rate_bps(plan: Plan) -> int | None:
    """Return what the flows of a plan can reach together, in bit/s; None: no link limits one of them."""
    rates = [flow.ideal_rate_bps for flow in plan.flows]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def create(request: EngineRequest) -> Engine:
    """Return the engine for `request`."""
    return _HostEngine(
        limit_s=request.trial_timeout_s, allow_settings=request.allow_host_settings, warn=request.warn
    )
