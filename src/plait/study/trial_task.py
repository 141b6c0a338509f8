"""Fetch one trial of a study from the store, or execute it, and put it into the result folder."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.dataset.provenance import Provenance
from plait.dataset.trial import RUNNING_TRIAL, trial_folder
from plait.engine.engine import Interrupted, Job
from plait.errors import DataError, TrialError
from plait.files import Folder, UnfitError, json_of
from plait.plan.identity import plan_bytes, trial_identity
from plait.plan.model.applications import Transfer
from plait.plan.model.qdiscs import PlaitTrace
from plait.seeds import trial_seed
from plait.study.engines import StudyEngines, host_facts
from plait.study.study import TrialKey, TrialOutcome
from plait.version import __version__

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from plait.engine.engine import Fact
    from plait.engine.workspace import Workspace
    from plait.plan.case_plan import CasePlan
    from plait.plan.model.plan import Plan
    from plait.study.pauses import Pauses
    from plait.study.store import Store
    from plait.study.study import Observer, PlannedStudy


@dataclass(frozen=True)
class TrialTask:
    """Runs single trials of a study; the threads of the pool call `run`."""

    engines: StudyEngines
    store: Store
    study: PlannedStudy
    out: Path
    work: Workspace
    stage: Workspace
    stop: threading.Event
    observer: Observer
    pauses: Pauses

    def run(self, case: CasePlan, key: TrialKey, *, fresh: bool) -> TrialOutcome:
        """Run or fetch one trial and put it into the result folder. Raise Interrupted or OSError."""
        if self.stop.is_set():
            raise Interrupted
        started = time.monotonic()
        seed = trial_seed(self.study.seed, key.index)
        plan = self.pauses.effective_plan(case.plan(seed))
        engine = self.engines.by_name[case.engine]
        identity = trial_identity(plan, *self.engines.identities[case.engine].parts)
        result = self.work.job()
        # Commands at the prompt may change a trial, and a trial in real time differs from every other.
        kept = engine.repeatable and not plan.pause
        if kept and not fresh and self.store.fetch(identity, result):
            _publish(result, key, self.out)
            outcome = TrialOutcome(key, None, True, time.monotonic() - started, None)
        else:
            provenance = self._execute(case.engine, plan, key, identity, result)
            if provenance.error is None and kept:
                self.store.put(identity, result, self.stage.job())
            _publish(result, key, self.out)
            wall_s = time.monotonic() - started
            outcome = TrialOutcome(key, provenance.error, False, wall_s, provenance.virtual_s)
        self.observer.trial_ended(outcome)
        return outcome

    def _execute(self, name: str, plan: Plan, key: TrialKey, identity: str, result: Path) -> Provenance:
        """Execute the plan on the engine `name`, fill `result`, and return the content of its provenance.json."""
        engine, origin = self.engines.by_name[name], self.engines.identities[name]
        folder = self.work.job()
        running = {"case": key.case, "number": key.index}
        Folder(folder).write(RUNNING_TRIAL, json.dumps(running).encode())
        host: dict[str, Fact] = host_facts() if engine.clock == "real" else {}
        exclusions: list[str] = []
        started = time.monotonic()
        error: str | None = None
        digest: str | None = None
        try:
            engine.execute(
                Job(
                    plan,
                    self._inputs(plan),
                    folder,
                    self.stop,
                    lambda us: self.observer.trial_advanced(key, us),
                    self.pauses.callback(key.case, key.index, plan),
                    host.__setitem__,
                    exclusions.append,
                )
            )
            digest = trial_digest(convert(folder / "data", result))
        except (TrialError, DataError) as failure:
            error = str(failure)
        wall_s = time.monotonic() - started
        kept = Folder(result)
        kept.write("plan.json", plan_bytes(plan))
        for unfit in _keep_files(Folder(folder), kept):
            error = error or f"plait discards {unfit.filename}, which the guest left: {unfit.strerror}"
        provenance = Provenance(
            status="ok" if error is None else "failed",
            error=error,
            excluded="; ".join(exclusions) or None if error is None else None,
            digest=digest,
            seed=plan.seed,
            identity=identity,
            engine=origin.engine,
            kernel_identity=origin.kernel,
            kernel_version=origin.kernel_version,
            agent_sha256=origin.agent_sha256,
            plait_version=__version__,
            wall_s=round(wall_s, 4),
            virtual_s=_virtual_s(Folder(folder)),
            host=host,
        )
        kept.write("provenance.json", (provenance.model_dump_json(indent=1) + "\n").encode())
        shutil.rmtree(folder)
        return provenance

    def _inputs(self, plan: Plan) -> dict[str, Path]:
        transfers = [flow.application for flow in plan.flows if isinstance(flow.application, Transfer)]
        names = [transfer.file.name for transfer in transfers if transfer.file is not None]
        options = [qdisc.options for qdisc in plan.network.qdiscs]
        names += [option.file.name for option in options if isinstance(option, PlaitTrace)]
        names += [file.input for program in plan.programs for file in program.files if file.input is not None]
        return {name: self.study.inputs[name] for name in names}


def _publish(result: Path, key: TrialKey, out: Path) -> None:
    """Move a finished trial into the result folder, in one step. Raise OSError."""
    *above, name = trial_folder(out, key.case, key.index).inside
    target = Folder(out, tuple(above))
    if target.has(name):
        target.give(name, result.with_suffix(".old"))  # the workspace removes it
    target.take(result, name)


def _keep_files(job: Folder, result: Folder) -> list[UnfitError]:
    """Keep what a trial leaves beside its tables. Return an error for each file that plait discards. Raise OSError."""
    unfit = []
    for name in ("console.log", "status.json", "pcap", "programs"):
        try:
            if not job.has(name):
                continue
            if name.endswith((".log", ".json")):
                job.copy_file(name, result / "logs")
            else:
                (job / name).files()  # raises UnfitError for links, devices and too much data
                result.take(job.path / name, name)
        except UnfitError as error:
            unfit.append(error)
    return unfit


def _virtual_s(job: Folder) -> float | None:
    try:
        return float(json_of(job.read("status.json"))["virtual_us"]) / 1e6
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return None  # the trial ended before the guest wrote its status
