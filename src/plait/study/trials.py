"""Between a study and its executor: makes the tasks of trials that must run, and puts results into their place.

A trial that the store has needs no executor. A result goes to the store and, by rename, to the result folder. Only one
thread of plait does this, so that no trial counts twice.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from plait.dataset.finished import FinishedTrials
from plait.dataset.trial import trial_folder
from plait.engine.engine import Interrupted
from plait.engine.workspace import Workspace
from plait.errors import DataError
from plait.files import Folder
from plait.plan.case_plan import CasePlan
from plait.plan.identity import trial_identity
from plait.plan.model.plan import Plan
from plait.seeds import trial_seed
from plait.study.executors.execution import execute, write_records
from plait.study.executors.executor import StudyWork
from plait.study.executors.packed_folder import unpack
from plait.study.executors.task import TrialResult, TrialTask, pack_plan
from plait.study.pauses import Pauses
from plait.study.store import Store
from plait.study.study import PlannedStudy, TrialKey, TrialOutcome


class Trials:
    """The trials of one study, on their way to an executor and back."""

    def __init__(
        self,
        work: StudyWork,
        store: Store,
        stage: Workspace,
        study: PlannedStudy,
        target: Path,
        *,
        inputs: Mapping[str, str],
        fresh: bool,
    ) -> None:
        """`inputs` are the SHA-256 of the study's input files by name; `fresh` ignores what the store has."""
        self._on = work
        self._store = store
        self._stage = stage
        self._study = study
        self._out = target
        self._inputs = inputs
        self._fresh = fresh
        self._index = FinishedTrials(target)
        self._waiting: dict[TrialKey, TrialTask] = {}
        self.finished: list[TrialOutcome] = []
        """The trials that have ended, in the order in which they did."""

    def tasks(self, keys: Iterable[tuple[CasePlan, TrialKey]]) -> Iterator[TrialTask]:
        """Yield the task of each trial that neither the result folder nor the store has.

        Put those that the store has into the result folder.
        """
        for case, key in keys:
            if self._on.stop.is_set():
                return
            started = time.monotonic()
            plan = case.plan(trial_seed(self._study.seed, key.index))
            if plan.pause:  # the user has skipped the remaining pauses
                plan = plan.model_copy(update={"pause": ()})
            task = self._task(plan, case, key)
            if not self._fresh and self._kept(task) and (self._is_kept(task) or self._fetch(task)):
                self._ended(TrialOutcome(key, None, True, time.monotonic() - started))
                continue
            self._waiting[key] = task
            yield task

    def accept(self, result: TrialResult) -> None:
        """Put a result into the store and into the result folder: if one has no room, into the other. Raise OSError."""
        task = self._waiting.pop(result.key)
        folder = self._received(task, result)
        error = result.error
        if isinstance(folder, DataError):
            error, folder = str(folder), self._failed(task, str(folder))
        kept = error is None and self._kept(task)
        try:
            if kept:
                self._store.keep(task.identity, folder, self._stage.job())
        finally:
            self._publish(folder, result.key)
            if kept:
                self._index.add(task.key.case, task.key.index, task.identity)
            self._ended(TrialOutcome(result.key, error, False, result.wall_s))

    def run_paused(self, case: CasePlan, key: TrialKey, pauses: Pauses) -> None:
        """Run one trial in this thread, which owns the terminal, with its pauses. Raise Interrupted or OSError."""
        if self._on.stop.is_set():
            raise Interrupted
        plan = pauses.effective_plan(case.plan(trial_seed(self._study.seed, key.index)))
        self._waiting[key] = task = self._task(plan, case, key)
        engine = self._on.engines.by_name[task.engine]
        self.accept(
            execute(
                engine,
                task,
                self._on.inputs,
                self._on.work,
                stop=self._on.stop,
                prompt=pauses.callback(key.case, key.index, plan),
            )
        )

    def _task(self, plan: Plan, case: CasePlan, key: TrialKey) -> TrialTask:
        origin = self._on.engines.identities[case.engine]
        return TrialTask(
            key,
            trial_identity(plan, *origin.parts),
            case.engine,
            origin,
            tuple((name, self._inputs[name]) for name in input_names(plan)),
            plan.machine.memory_mib,
            pack_plan(plan),
            halted=bool(plan.pause),
        )

    def _kept(self, task: TrialTask) -> bool:
        """Return whether the store has such trials: commands at a prompt may change a trial, and so does real time."""
        return self._on.engines.by_name[task.engine].repeatable and not task.halted

    def _fetch(self, task: TrialTask) -> bool:
        folder = self._on.work.job()
        if not self._store.fetch(task.identity, folder):
            folder.rmdir()
            return False
        self._publish(folder, task.key)
        self._index.add(task.key.case, task.key.index, task.identity)
        return True

    def _is_kept(self, task: TrialTask) -> bool:
        return self._index.has(task.key.case, task.key.index, task.identity)

    def _received(self, task: TrialTask, result: TrialResult) -> Path | DataError:
        """Return the folder of a result, or why its content is of no use."""
        match result.content:
            case None:
                return self._failed(task, result.error or "")
            case bytes(content):
                folder = self._on.work.job()
                if result.identity != task.identity:
                    return DataError("a worker returned another trial than it was asked for")
                try:
                    unpack(content, folder)
                except DataError as error:
                    return error
                return folder
            case folder:
                return folder

    def _failed(self, task: TrialTask, error: str) -> Path:
        """Return a folder for a trial that left nothing."""
        folder = self._on.work.job()
        write_records(Folder(folder), task, task.plan, status="failed", error=error)
        return folder

    def _publish(self, folder: Path, key: TrialKey) -> None:
        """Move a finished trial into the result folder, in one step. Raise OSError."""
        *parents, name = trial_folder(self._out, key.case, key.index).inside
        target = Folder(self._out, tuple(parents))
        if target.has(name):
            old = folder.with_suffix(".old")
            target.give(name, old)
            target.take(folder, name)
            shutil.rmtree(old, ignore_errors=True)  # the workspace removes what remains
        else:
            target.take(folder, name)

    def _ended(self, outcome: TrialOutcome) -> None:
        self.finished.append(outcome)
        self._on.observer(outcome)


def input_names(plan: Plan) -> list[str]:
    """Return the names of the input files that a plan needs."""
    names = [name for flow in plan.flows for name in flow.application.input_files]
    traces = [side.trace for link in plan.links for side in link.directions]
    names += [trace.file.name for trace in traces if trace is not None]
    names += [file.input for program in plan.programs for file in program.files if file.input is not None]
    return names
