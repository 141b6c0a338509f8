"""Runs a study from its scenario to its result folder: for the command line and for Python alike."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plait.calibration.calibrate import calibrate, keep
from plait.errors import RequestError
from plait.plan.expand import trial_seed
from plait.plan.sweep import rows
from plait.run.estimate import estimate, keep_pace, learn, read_pace, refuse_too_many
from plait.run.files import cache_root
from plait.run.preflight import refuse_what_is_missing
from plait.run.request import describe, study_of
from plait.run.store import Store
from plait.run.study import Runner, StudyOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from plait.run.engine import Engine
    from plait.run.halts import Halt
    from plait.run.study import Observer, Study, TrialOutcome
    from plait.scenario import Scenario


@dataclass(frozen=True)
class Options:
    """How to run; none of it decides what the data are, but for `seed` and `repeat`."""

    seed: int | None = None
    repeat: int | None = None
    """Both replace the scenario's own."""
    jobs: int | None = None
    """Trials at once; None: as many as there are processors."""
    fresh: bool = False
    """Run even what is in the store."""
    confirmed: bool = False
    """Run however many trials there are."""
    calibrate: bool = True
    """Measure the settings of links first, and refuse to run where one is not as it is meant."""
    command: str = ""
    """What gives the same data, for study.json."""


def perform(
    scenario: Scenario,
    name: str,
    engine: Callable[[], Engine],
    options: Options,
    *,
    folder: Path | None,
    watch: Callable[[int], AbstractContextManager[Observer]],
    tell: Callable[[str], None],
    ask: Callable[[Halt], bool] | None = None,
) -> tuple[Path, StudyOutcome]:
    """Runs the study of `scenario` into `folder` (results/NAME), and returns the folder and how it ended.

    `engine` is called when the request is known to be right; `watch` gives the observer of so many trials, `tell` is
    told how much there is to do. `ask` gives a prompt in a trial that is halted (`pause`), and returns whether to halt
    again. Raises RequestError, MachineError.
    """
    from pathlib import Path

    if scenario.pause and ask is None:
        raise RequestError(
            f"pause: {', '.join(scenario.pause)}: trials are halted for a prompt, which only `plait run` gives; leave "
            "pause out here"
        )
    # Counted before ten thousand cases are made, and a kernel is built for them.
    repeat = scenario.repeat if options.repeat is None else options.repeat
    refuse_too_many(len(rows(scenario)), repeat, confirmed=options.confirmed)
    study = study_of(scenario, name, seed=options.seed, repeat=options.repeat)
    out = folder or Path("results") / study.name
    jobs = options.jobs or len(os.sched_getaffinity(0))
    cache = cache_root()
    place = engine()
    refuse_what_is_missing(study.cases, place.inventory)
    identity = place.identity()
    calibration = None
    if options.calibrate and place.emulates_links:
        plans = (study.resolve(case, trial_seed(study.seed, 0)) for case in study.cases)
        calibration = calibrate(plans, place, identity, cache, jobs=jobs, fresh=options.fresh)
        tell(calibration.sentence)
    pace = read_pace(cache, identity.engine)
    tell(estimate(study, jobs, pace).sentence)
    trials = cache / "trials"
    runner = Runner(place, Store(trials), trials, jobs=jobs, fresh=options.fresh, ask=ask)
    finished: list[TrialOutcome] = []
    for part in _parts(study, scenario.repeat.least, out):
        with watch(part.total) as observer:
            outcome = runner.run(part, out, describe(scenario, part, identity, options.command), observer)
        finished += outcome.finished
        keep(calibration, out)
        if outcome.interrupted:
            break
    total = len(study.cases) * part.repeat
    outcome = StudyOutcome(total, finished, outcome.interrupted, outcome.signal)
    if not study.paused:
        keep_pace(cache, identity.engine, learn(pace, study, outcome))
    return out, outcome


def _parts(study: Study, least: int, out: Path) -> Iterator[Study]:
    """Yields the study as a whole; or, `until` means are known, first its least repeats and then further ones."""
    if study.until is None:
        yield study
        return
    from plait.analysis.precision import next_repeat
    from plait.report.study import read_study

    done = 0
    repeat: int | None = least
    while repeat is not None:
        yield replace(study, start=done, repeat=repeat)
        done = repeat
        repeat = next_repeat(read_study(out).cases, done, until=study.until, most=study.repeat)
