"""How long a study will take, said before it starts: a range, from what studies took on this machine before.

The wall time of a trial is taken for a boot, a price for each frame on each link, and a price for each row of samples.
How much slower or faster this machine is, and how far off earlier estimates were, is kept in the user's cache and
learned from every study. The range is a split-conformal one: as wide as the error below which nine of ten earlier
studies stayed (Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from plait.errors import RequestError
from plait.files import Folder, json_of
from plait.seeds import trial_seed
from plait.study.work import expected_work

if TYPE_CHECKING:
    from pathlib import Path

    from plait.study.study import PlannedStudy, StudyOutcome
    from plait.study.work import Work

MOST_TRIALS = 10_000
"""More are run only when they are confirmed."""
BOOT_S, HOP_S, ROW_S = 0.15, 5e-6, 1e-5
"""Wall seconds of a boot with what belongs to any trial, of a frame on a link, and of a row of samples."""
REPORT_S, TRIAL_REPORT_S = 4.0, 0.1
"""Of a report, and of each trial that it reads."""
COVERAGE = 0.9
"""The share of studies that are to take a time in the range."""
INITIAL_ERROR = math.log(3)
"""How far off an estimate may be, up or down, as the logarithm of the ratio, while little is known."""
_MIN_ERRORS = 9
"""Fewer errors than these have no value below which nine of ten are."""
_MAX_STUDIES = 40
_MAX_CREDIBLE = math.log(1e6)
"""A record with a greater number, or one that is none, is damaged."""
_MAX_SAMPLED_CASES = 40


@dataclass(frozen=True)
class Pace:
    """How this machine compares with the prices above, from the last studies."""

    trials: tuple[float, ...] = ()
    """Of each study, the logarithm of what its trials took over what was expected by the prices alone."""
    errors: tuple[float, ...] = ()
    """Of each study whose trials all ran, the logarithm of the time they took together over what was estimated."""

    @property
    def factor(self) -> float:
        """How many times as long as by the prices alone a trial takes here: the median."""
        return math.exp(_median(self.trials)) if self.trials else 1.0

    @property
    def spread(self) -> float:
        """How many times longer or shorter than estimated a study may take."""
        if len(self.errors) < _MIN_ERRORS:
            return math.exp(max((INITIAL_ERROR, *map(abs, self.errors))))
        rank = min(len(self.errors), math.ceil((len(self.errors) + 1) * COVERAGE))
        return math.exp(sorted(map(abs, self.errors))[rank - 1])


@dataclass(frozen=True)
class DurationEstimate:
    """How much a study is."""

    cases: int
    repeat: int
    running_s: float
    """Of the trials, with as many at once as asked for, and none of them in the store."""
    report_s: float
    spread: float
    """How many times longer or shorter it may be."""
    learned: bool
    """It rests on studies of this machine."""
    programs: bool = False
    """Programs run in it, of which nobody knows how long they take."""

    @property
    def low_s(self) -> float:
        """The lower end of the range."""
        return (self.running_s + self.report_s) / self.spread

    @property
    def high_s(self) -> float:
        """The upper end of the range."""
        return (self.running_s + self.report_s) * self.spread

    @property
    def sentence(self) -> str:
        """The estimate in words."""
        trials = self.cases * self.repeat
        text = f"{trials} trial{'s' * (trials != 1)}"
        if self.cases > 1 and self.repeat > 1:
            text += f" ({self.cases} cases, {self.repeat} times)"
        if self.programs:
            return f"{text}; how long their programs take is not known beforehand"
        basis = "" if self.learned else ", a guess: nothing has run here yet"
        return f"{text}, {_format_range(self.low_s, self.high_s)} with the report{basis}"


def work_per_case(study: PlannedStudy) -> list[Work]:
    """Returns the work of a trial of each case; of very many cases, of some that are spread evenly."""
    sampled = study.cases[:: -(-len(study.cases) // _MAX_SAMPLED_CASES)]
    seed = trial_seed(study.seed, 0)
    return [expected_work(case.plan(seed)) for case in sampled]


def estimate(study: PlannedStudy, jobs: int, pace: Pace) -> DurationEstimate:
    """Returns how much `study` is with `jobs` trials at once."""
    learned = bool(pace.trials)
    if _with_programs(study):
        return DurationEstimate(len(study.cases), study.repeat, 0.0, 0.0, 1.0, learned, programs=True)
    trials_s = [pace.factor * _trial_s(work) for work in work_per_case(study)]
    at_once = min(jobs, study.total)
    running_s = max(sum(trials_s) / len(trials_s) * study.total / at_once, *trials_s)
    report_s = pace.factor * (REPORT_S + TRIAL_REPORT_S * study.total)
    return DurationEstimate(len(study.cases), study.repeat, running_s, report_s, pace.spread, learned)


def refuse_too_many(cases: int, repeat: int, *, confirmed: bool) -> None:
    """Raises RequestError when there are more than MOST_TRIALS, unless they were confirmed."""
    if cases * repeat > MOST_TRIALS and not confirmed:
        raise RequestError(
            f"this is {cases * repeat} trials ({cases} cases, {repeat} times); more than {MOST_TRIALS} are run only "
            "with --yes. A latin_hypercube under vary covers a space with fewer."
        )


def learn(
    pace: Pace, study: PlannedStudy, outcome: StudyOutcome, expected: DurationEstimate, took_s: float
) -> Pace:
    """Returns the pace with this study, whose trials took `took_s` together.

    Trials from the store, failed ones and programs tell nothing; nor does the sum, unless all trials ran that were
    expected, by an estimate that was no guess.
    """
    measured_s = [trial.wall_s for trial in outcome.finished if not trial.reused and trial.error is None]
    if _with_programs(study) or not measured_s:
        return pace
    nominal_s = [_trial_s(work) for work in work_per_case(study)]
    ratio = (sum(measured_s) / len(measured_s)) / (sum(nominal_s) / len(nominal_s))
    learned = replace(pace, trials=(*pace.trials, math.log(ratio))[-_MAX_STUDIES:])
    if not expected.learned or len(measured_s) != expected.cases * expected.repeat:
        return learned
    error = math.log(took_s / expected.running_s)
    return replace(learned, errors=(*pace.errors, error)[-_MAX_STUDIES:])


def read_pace(cache: Path, engine: str) -> Pace:
    """Returns what is known of an engine on this machine; nothing when there is no record, or a damaged one."""
    try:
        entry = json_of(Folder(cache).read(_name(engine)))
        pace = Pace(tuple(map(float, entry["trials"])), tuple(map(float, entry["errors"])))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Pace()
    return pace if all(abs(value) < _MAX_CREDIBLE for value in (*pace.trials, *pace.errors)) else Pace()


def keep_pace(cache: Path, engine: str, pace: Pace) -> None:
    """Keeps the pace for the next study; a cache that cannot be written is no error."""
    try:
        Folder(cache).write(_name(engine), json.dumps(asdict(pace)).encode())
    except OSError:
        return


def _name(engine: str) -> str:
    return f"pace-{engine}.json"


def _trial_s(work: Work) -> float:
    """Returns the wall seconds of a trial by the prices alone."""
    return BOOT_S + HOP_S * work.frame_hops + ROW_S * work.rows


def _with_programs(study: PlannedStudy) -> bool:
    return any(case.scenario.programs for case in study.cases)


def _median(values: tuple[float, ...]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _format_range(low: float, high: float) -> str:
    """Returns a range as a person says it: "4 to 9 s", "2 to 5 min", "1 to 3 h"."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if high >= 2 * size:
            lower = f"{low / size:.0f}" if low >= size else f"{low / size:.1f}"
            return f"{lower} to {math.ceil(high / size)} {unit}"
    return f"{max(low, 1):.0f} to {max(math.ceil(high), 2)} s"
