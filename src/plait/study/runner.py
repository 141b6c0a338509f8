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
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from plait.dataset.study_file import StudyFile
from plait.engine.recipe import shipped_file
from plait.engine.workspace import Workspace
from plait.errors import Ended, MachineError
from plait.plan.case_plan import CasePlan
from plait.study.engines import StudyEngines
from plait.study.executors.executor import StudyWork, TrialExecutor
from plait.study.pauses import PausedTrial, Pauses
from plait.study.result_folder import cannot_write, open_result_folder
from plait.study.store import Store
from plait.study.study import Observer, PlannedStudy, StudyOutcome, TrialKey
from plait.study.trials import Trials

_LOOK_S = 0.25
"""How often the main thread looks for signals, in seconds."""


def run_study(
    study: PlannedStudy,
    target: Path,
    study_file: StudyFile,
    observer: Observer,
    *,
    engines: StudyEngines,
    store: Store,
    executor: TrialExecutor,
    fresh: bool = False,
    ask: Callable[[PausedTrial], bool] | None = None,
) -> StudyOutcome:
    """Run `study` into `target`, with `study_file` as its study.json, on `executor`.

    `fresh` runs trials even if the store has them. `ask` opens a prompt in a halted trial and returns whether to halt
    again. Raises MachineError if plait cannot write results or has no worker, and RequestError if `target` holds
    anything else.
    """
    keys = list(study.keys())
    everything = replace(study, start=0, shard=study.shard and study.shard.in_folder)
    kept = {key for _, key in everything.keys()}  # noqa: SIM118 - no mapping: it yields pairs
    pauses = Pauses(ask if study.paused else None, len(keys))
    hashes = {path: shipped_file(path).sha256 for path in {*study.inputs.values()}}
    paths = {sha256: path for path, sha256 in hashes.items()}
    inputs = {name: hashes[path] for name, path in study.inputs.items()}
    interrupted: signal.Signals | None = None
    with (
        open_result_folder(target, study_file, kept),
        Workspace(target, ".work-") as work,
        Workspace(store.root, ".stage-") as stage,
    ):
        study_work = StudyWork(engines, paths, work, observer, threading.Event())
        trials = Trials(study_work, store, stage, study, target, inputs=inputs, fresh=fresh)
        try:
            while keys and pauses.active:  # in this thread, which owns the terminal
                trials.run_paused(*keys[0], pauses)
                del keys[0]
            conduct = partial(_conduct, trials, keys, study_work, executor)
            interrupted = _wait_for(conduct, study_work.stop)
        except (KeyboardInterrupt, Ended) as end:
            interrupted = end.signal if isinstance(end, Ended) else signal.SIGINT
        except OSError as error:
            raise MachineError(cannot_write(target, error)) from error
    return StudyOutcome(pauses.total, trials.finished, interrupted is not None, interrupted or signal.SIGINT)


def _wait_for(conduct: Callable[[], None], stop: threading.Event) -> signal.Signals | None:
    """Do the work in another thread, which no signal interrupts. Return the signal that ended the study early."""
    interrupted: signal.Signals | None = None
    future: Future[None] | None = None
    with ThreadPoolExecutor(1, "plait-study") as thread:
        try:
            future = thread.submit(conduct)
            while not future.done():
                wait([future], timeout=_LOOK_S)  # a signal just before the wait shows after it
        except (KeyboardInterrupt, Ended) as end:
            interrupted = end.signal if isinstance(end, Ended) else signal.SIGINT
            stop.set()
    if future is not None:
        future.result()  # raises what failed
    return interrupted


def _conduct(
    trials: Trials, keys: Iterable[tuple[CasePlan, TrialKey]], work: StudyWork, executor: TrialExecutor
) -> None:
    """Run all trials, and put their results into their places as they come. Stop all of them if this fails.

    Trials of which more may run at once come first. Groups run one after the other, so that nothing disturbs trials in
    real time.
    """
    groups: dict[int, list[tuple[CasePlan, TrialKey]]] = {}
    for case, key in keys:
        groups.setdefault(work.engines.jobs(case, executor.workers), []).append((case, key))
    try:
        for limit, group in sorted(groups.items(), reverse=True):
            with closing(executor.run(trials.tasks(group), work, limit)) as results:
                for result in results:
                    trials.accept(result)
    except BaseException:
        work.stop.set()
        raise
