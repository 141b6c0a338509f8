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
    from collections.abc import Callable
    from pathlib import Path

    from plait.dataset.study_file import StudyFile
    from plait.engine.engine import Engine
    from plait.study.pauses import PausedTrial
    from plait.study.store import Store
    from plait.study.study import Observer


class Runner:
    """Runs studies on one engine, with one store."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        staging: Path,
        *,
        jobs: int,
        fresh: bool = False,
        ask: Callable[[PausedTrial], bool] | None = None,
    ) -> None:
        """Create a runner that runs `jobs` trials at once.

        `staging` is a folder on the store's file system. `fresh` runs trials even if the store has them. `ask` opens a
        prompt in a halted trial and returns whether to halt again.
        """
        self._engine = engine
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
        identity = self._engine.identity()
        pauses = Pauses(self._ask if study.paused else None, len(keys))
        finished: list[TrialOutcome] = []
        futures: list[Future[TrialOutcome]] = []
        interrupted: signal.Signals | None = None
        with (
            Workspace(out, ".work-") as work,
            Workspace(self._staging, ".stage-") as stage,
            ThreadPoolExecutor(self._jobs) as pool,
        ):
            trial = TrialTask(
                self._engine, self._store, identity, study, out, work, stage, self._stop, observer, pauses
            )
            try:
                while keys and pauses.active:  # in this thread, which owns the terminal
                    finished.append(trial.run(*keys[0], fresh=self._fresh))
                    del keys[0]
                futures = [pool.submit(trial.run, case, key, fresh=self._fresh) for case, key in keys]
                for future in as_completed(futures):
                    future.result()
            except (KeyboardInterrupt, Ended) as end:
                interrupted = end.signal if isinstance(end, Ended) else signal.SIGINT
                self._stop_all(futures)
            except OSError as error:
                self._stop_all(futures)
                raise MachineError(cannot_write(out, error)) from error
            except BaseException:
                self._stop_all(futures)
                raise
        ended = [future for future in futures if not future.cancelled()]
        finished += [future.result() for future in ended if future.exception() is None]
        return StudyOutcome(pauses.total, finished, interrupted is not None, interrupted or signal.SIGINT)

    def _stop_all(self, futures: list[Future[TrialOutcome]]) -> None:
        """Stop running trials, and cancel waiting ones."""
        self._stop.set()
        for future in futures:
            future.cancel()
