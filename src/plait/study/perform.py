"""Run a study from its scenario to its result folder, for the command line and for Python alike."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from plait.cache import cache_root
from plait.dataset.agreement import measured_digest
from plait.dataset.trial import read_trial
from plait.engine.engine import Engine
from plait.errors import RequestError
from plait.plan.chance import nothing_drawn
from plait.scenario import Scenario
from plait.scenario.vary.combinations import rows
from plait.seeds import trial_seed
from plait.study.engines import StudyEngines, make_engines
from plait.study.estimate import Paces, refuse_too_many
from plait.study.executors.executor import TrialExecutor
from plait.study.executors.local import LocalExecutor
from plait.study.pauses import PausedTrial
from plait.study.preflight.engines import refuse_what_engines_lack
from plait.study.progress import silent
from plait.study.result_folder import add_cautions, refuse_unusable
from plait.study.runner import run_study
from plait.study.shard import Shard, StudyPart
from plait.study.store import Store
from plait.study.study import Observer, PlannedStudy, StudyOutcome, TrialOutcome, describe, plan_study

CHECK_REPEATS = 2
"""Repeats of a study without randomness: the second one shows whether the first is enough."""
ONE_IS_ENOUGH = (
    "nothing in this scenario is random, so one trial of each case is enough; plait runs a second one to "
    "check this (--repeat {repeat} runs all of them): "
)

STEADY_SHARD = (
    "--shard: nothing in this scenario is random, so plait would look at the first trials of each case before it "
    "decides on the others; state the number of repeats (--repeat {repeat})"
)


@dataclass(frozen=True)
class Options:
    """How to run a study; only `seed` and `repeat` affect the data."""

    seed: int | None = None
    repeat: int | None = None
    """Replaces the scenario's own, like `seed`."""
    jobs: int | None = None
    """Trials at once; None means one for each processor."""
    fresh: bool = False
    """Run trials even if the store has them."""
    confirmed: bool = False
    """Run the study even if it has more than MOST_TRIALS trials."""
    shard: StudyPart | None = None
    """Run this part of the trials only."""
    command: str = ""
    """The command that gives the same data, for study.json."""


def perform(
    scenario: Scenario,
    name: str,
    make_engine: Callable[[str], Engine],
    options: Options,
    *,
    folder: Path | None = None,
    watch: Callable[[int], AbstractContextManager[Observer]] = silent,
    notify: Callable[[str], None] = lambda _: None,
    ask: Callable[[PausedTrial], bool] | None = None,
    executor: TrialExecutor | None = None,
) -> tuple[Path, StudyOutcome]:
    """Run the study of `scenario` into `folder` (default: results/NAME). Return the folder and the outcome.

    Calls `make_engine` with the name of each engine of the cases once the request is valid. `watch` takes a number of
    trials and returns their observer. `notify` shows a message: the estimate of the time. `ask` opens a prompt in a
    halted trial (`pause`) and returns whether to halt again. `executor` carries out the trials; by default, this
    machine does. Raises RequestError, MachineError.
    """
    _refuse_pauses_without_prompt(scenario, ask)
    _refuse_pauses_elsewhere(scenario, executor, options.shard)
    # Count the trials before plait makes thousands of cases and builds a kernel.
    repeat = scenario.repeat if options.repeat is None else options.repeat
    refuse_too_many(len(rows(scenario)), repeat, confirmed=options.confirmed)
    study = plan_study(scenario, name, seed=options.seed, repeat=options.repeat, shard=options.shard)
    target = folder or Path("results") / study.name
    refuse_unusable(target, study.name)
    cache = cache_root()
    engines = StudyEngines.named(make_engines(study.cases, make_engine))
    refuse_what_engines_lack(study, engines.by_name)
    steady = _checks_first(study, engines, options)
    planned = replace(study, repeat=CHECK_REPEATS) if steady else study
    paces = Paces.read(cache, engines)
    with executor or LocalExecutor(_jobs(options)) as workers:
        expected = paces.estimate(planned, workers.workers)
        if study.shard is None:
            notify((ONE_IS_ENOUGH.format(repeat=study.repeat) if steady else "") + expected.sentence)
        elif isinstance(study.shard, Shard):
            notify(f"shard {study.shard}: {study.total} of {len(study.cases) * study.repeat} trials")
        started = time.monotonic()
        store = Store(cache / "trials")
        finished: list[TrialOutcome] = []
        parts = (
            _steady_parts(study, target, notify) if steady else _parts(study, scenario.repeat.least, target)
        )
        for part in parts:
            study_file = describe(scenario, part, engines, options.command)
            with watch(part.total) as observer:
                outcome = run_study(
                    part, target, study_file, observer,
                    engines=engines, store=store, executor=workers, fresh=options.fresh, ask=ask,
                )  # fmt: skip
            finished += outcome.finished
            add_cautions(target, study_file, workers.cautions)
            if outcome.interrupted:
                break
    outcome = StudyOutcome(replace(part, start=0).total, finished, outcome.interrupted, outcome.signal)
    if not study.paused and executor is None:  # workers elsewhere show nothing about this machine
        paces.learn(cache, study, outcome, expected, time.monotonic() - started)
    return target, outcome


def _jobs(options: Options) -> int:
    """Return how many trials may run at once."""
    return options.jobs or len(os.sched_getaffinity(0))


def _refuse_pauses_without_prompt(scenario: Scenario, ask: Callable[[PausedTrial], bool] | None) -> None:
    if scenario.pause and ask is None:
        raise RequestError(
            f"pause: {', '.join(scenario.pause)}: only `plait run` can open a prompt in a halted trial; leave out "
            "pause here"
        )


def _refuse_pauses_elsewhere(
    scenario: Scenario, executor: TrialExecutor | None, shard: StudyPart | None
) -> None:
    if scenario.pause and (executor is not None or shard is not None):
        raise RequestError(
            f"pause: {', '.join(scenario.pause)}: a trial that halts for a prompt runs on this machine; leave out "
            "--cluster and --shard"
        )


def _checks_first(study: PlannedStudy, engines: StudyEngines, options: Options) -> bool:
    """Return whether the first trials of each case decide on the others. Raise RequestError for a shard."""
    asked = options.repeat is not None or study.repeat <= CHECK_REPEATS
    if asked or not engines.repeatable or not is_steady(study):
        return False
    if options.shard is not None:
        raise RequestError(STEADY_SHARD.format(repeat=CHECK_REPEATS))
    return True


def is_steady(study: PlannedStudy) -> bool:
    """Return whether no case has any randomness (see `plait.plan.chance`)."""
    if study.paused or study.until is not None:
        return False
    seeds = [trial_seed(study.seed, number) for number in range(CHECK_REPEATS)]
    return all(nothing_drawn(*(case.plan(seed) for seed in seeds)) for case in study.cases)


def _steady_parts(study: PlannedStudy, target: Path, notify: Callable[[str], None]) -> Iterator[PlannedStudy]:
    """Yield the first repeats of a study without randomness, and the others only if the first ones differ."""
    yield replace(study, repeat=CHECK_REPEATS)
    differing = [
        case.name for case in study.cases if len(_measured_digests(target / "trials" / case.name)) > 1
    ]
    if differing:
        notify(
            f"random numbers that the kernel draws itself change the results of {_format_cases(differing)}; "
            f"plait runs all {study.repeat} repeats"
        )
        yield replace(study, start=CHECK_REPEATS)
    else:
        pending = study.repeat - CHECK_REPEATS
        further = "the further repeat" if pending == 1 else f"the {pending} further repeats"
        notify(f"both trials of each case measured the same; plait leaves out {further}")


def _measured_digests(folder: Path) -> set[str]:
    """Return the digests of the measurements of a case's first trials; each failed trial counts as different."""
    trials = [read_trial(folder / f"{number:03d}") for number in range(CHECK_REPEATS)]
    return {
        measured_digest(trial.tables) if trial.provenance.status == "ok" else f"failed {trial.path.name}"
        for trial in trials
    }


def _format_cases(cases: list[str]) -> str:
    return f"case {cases[0]}" + (f" and {len(cases) - 1} more" if len(cases) > 1 else "")


def _parts(study: PlannedStudy, least: int, target: Path) -> Iterator[PlannedStudy]:
    """Yield the whole study; with `until`, its least number of repeats and then more until means are precise."""
    if study.until is None:
        yield study
        return
    from plait.analysis.judge import judged_in
    from plait.analysis.statistics.precision import next_repeat
    from plait.report.assemble import read_partly

    repeats_done = 0
    repeat: int | None = least
    while repeat is not None:
        yield replace(study, start=repeats_done, repeat=repeat)
        repeats_done = repeat
        data = read_partly(target)
        judged = judged_in(data.about.scenario)
        repeat = next_repeat(
            data.cases, repeats_done, precision=study.until, limit=study.repeat, judged=judged
        )
