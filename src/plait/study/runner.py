"""Run a study: every case with every seed, each trial at most once, into a result folder.

    OUT/study.json            written first, so that plait can report on an interrupted study and continue it
    OUT/trials/CASE/NNN/      appears by rename when its trial has ended, with or without success
    OUT/.work-*/              where guests run and trials take shape; removed even after kill -9

Finished trials also go to the store, and the next request for the same trial takes them from there. plait.report
builds the report.
"""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TYPE_CHECKING

from plait.engine.workspace import Workspace
from plait.errors import Ended, MachineError
from plait.study.pauses import Pauses
from plait.study.result_folder import cannot_write, open_result_folder
from plait.study.study import PlannedStudy, StudyOutcome, TrialOutcome
from plait.study.trial_task import TrialTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from plait.dataset.study_file import StudyFile
    from plait.plan.case_plan import CasePlan
    from plait.study.engines import StudyEngines
    from plait.study.pauses import PausedTrial
    from plait.study.store import Store
    from plait.study.study import Observer, TrialKey


class Runner:
    """Runs studies on their engines, with one store."""

    def __init__(
        self,
        engines: StudyEngines,
        store: Store,
        staging: Path,
        *,
        jobs: int,
        fresh: bool = False,
        ask: Callable[[PausedTrial], bool] | None = None,
    ) -> None:
        """Create a runner that runs `jobs` trials at once; fewer on an engine that limits them.

        `staging` is a folder on the store's file system. `fresh` runs trials even if the store has them. `ask` opens a
        prompt in a halted trial and returns whether to halt again.
        """
        self._engines = engines
        self._store = store
        self._staging = staging
        self._jobs = jobs
        self._fresh = fresh
        self._ask = ask
        self._stop = threading.Event()

    def run(self, study: PlannedStudy, out: Path, about: StudyFile, observer: Observer) -> StudyOutcome:
        """Run `study` into `out`, with `about` as its study.json.

        Raises MachineError if plait cannot write results, and RequestError if `out` holds anything else.
        """
        keys = list(study.keys())
        everything = replace(study, start=0)
        open_result_folder(out, about, {key for _, key in everything.keys()})  # noqa: SIM118 - no mapping
        pauses = Pauses(self._ask if study.paused else None, len(keys))
        finished: list[TrialOutcome] = []
        futures: list[Future[TrialOutcome]] = []
        interrupted: signal.Signals | None = None
        with Workspace(out, ".work-") as work, Workspace(self._staging, ".stage-") as stage:
            trial = TrialTask(
                self._engines, self._store, study, out, work, stage, self._stop, observer, pauses
            )
            try:
                while keys and pauses.active:  # in this thread, which owns the terminal
                    finished.append(trial.run(*keys[0], fresh=self._fresh))
                    del keys[0]
                for jobs, group in self._groups(keys):
                    self._run_group(trial, jobs, group, futures)
            except (KeyboardInterrupt, Ended) as end:
                interrupted = end.signal if isinstance(end, Ended) else signal.SIGINT
                self._stop_all(futures)
            except OSError as error:
                self._stop_all(futures)
                raise MachineError(cannot_write(out, error)) from error
        ended = [future for future in futures if not future.cancelled()]
        finished += [future.result() for future in ended if future.exception() is None]
        return StudyOutcome(pauses.total, finished, interrupted is not None, interrupted or signal.SIGINT)

    def _groups(
        self, keys: Iterable[tuple[CasePlan, TrialKey]]
    ) -> list[tuple[int, list[tuple[CasePlan, TrialKey]]]]:
        """Return the trials by how many of them may run at once, the largest number first.

        The groups run one after the other, so that nothing disturbs trials in real time.
        """
        groups: dict[int, list[tuple[CasePlan, TrialKey]]] = {}
        for case, key in keys:
            groups.setdefault(self._engines.jobs(case, self._jobs), []).append((case, key))
        return sorted(groups.items(), reverse=True)

    def _run_group(
        self,
        trial: TrialTask,
        jobs: int,
        keys: Iterable[tuple[CasePlan, TrialKey]],
        futures: list[Future[TrialOutcome]],
    ) -> None:
        """Run these trials, `jobs` at once, and add them to `futures`. Stop all of them if one raises."""
        with ThreadPoolExecutor(jobs) as pool:
            try:
                started = [pool.submit(trial.run, case, key, fresh=self._fresh) for case, key in keys]
                futures += started
                for future in as_completed(started):
                    future.result()
            except BaseException:
                self._stop_all(futures)
                raise

    def _stop_all(self, futures: list[Future[TrialOutcome]]) -> None:
        """Stop running trials, and cancel waiting ones."""
        self._stop.set()
        for future in futures:
            future.cancel()
