"""Estimate how long a study takes before it starts: a range, based on earlier studies on this machine.

The model of a trial's wall time is the sum of a boot, a cost per frame and link, and a cost per row of samples. plait
learns from every study how this machine compares with the model, and how large the errors of earlier estimates were.
It keeps both in the user's cache. The costs are those of the engine `virtual`; plait has no estimate for another engine
before its first study. The range is a split-conformal prediction interval: it is as wide as the error that
nine of ten earlier studies did not exceed (Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from plait.errors import RequestError
from plait.files import Folder, json_of
from plait.frames import DEFAULT_MTU
from plait.plan.model.links import LinkDirection
from plait.plan.model.plan import Flow, Plan
from plait.plan.network.framing import full_segment
from plait.seeds import trial_seed
from plait.study.engines import StudyEngines
from plait.study.study import PlannedStudy, StudyOutcome

MOST_TRIALS = 10_000
"""Larger studies run only if the user confirms them."""
BOOT_S, HOP_S, ROW_S = 0.15, 5e-6, 1e-5
"""Wall seconds per trial (a boot and other fixed costs), per frame on a link, and per row of samples."""
REPORT_S, TRIAL_REPORT_S = 4.0, 0.1
"""Wall seconds per report, and per trial that it reads."""
MODELLED = "virtual"
"""The engine that these costs describe; a machine of QEMU takes some 200 times as long, a real clock its own time."""
COVERAGE = 0.9
"""The share of studies whose time should fall into the range."""
INITIAL_ERROR = math.log(3)
"""The error to assume, up or down, until enough studies have run: the logarithm of a ratio."""
_MIN_ERRORS = 9
"""The least number of errors with a 90 % quantile."""
_MAX_STUDIES = 40
_MAX_CREDIBLE = math.log(1e6)
"""A record with a larger number, or with NaN, is damaged."""
_MAX_SAMPLED_CASES = 40
_UNLIMITED_BPS = 1e9
_SEGMENT_BITS = 8 * DEFAULT_MTU
"""The segment of the rate under random loss (Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997)."""
_ACKS = 0.5
"""ACK frames per data frame; Linux acknowledges every second one."""


@dataclass(frozen=True)
class Pace:
    """How this machine compares with the costs above, from the latest studies."""

    trials: tuple[float, ...] = ()
    """For each study, the logarithm of the ratio of its trials' time to the time by the costs alone."""
    errors: tuple[float, ...] = ()
    """For each study whose trials all ran, the logarithm of the ratio of their total time to the estimate."""

    @property
    def factor(self) -> float:
        """The median ratio of a trial's time on this machine to the time by the costs alone."""
        return math.exp(median(self.trials)) if self.trials else 1.0

    @property
    def spread(self) -> float:
        """The factor by which a study may take longer or shorter than the estimate."""
        if len(self.errors) < _MIN_ERRORS:
            return math.exp(max((INITIAL_ERROR, *map(abs, self.errors))))
        rank = min(len(self.errors), math.ceil((len(self.errors) + 1) * COVERAGE))
        return math.exp(sorted(map(abs, self.errors))[rank - 1])


@dataclass(frozen=True)
class DurationEstimate:
    """The size of a study and its expected wall time."""

    cases: int
    repeat: int
    running_s: float
    """Wall seconds of the trials with the given number of jobs, if none comes from the store."""
    report_s: float
    spread: float
    """The factor by which the study may take longer or shorter."""
    learned: bool
    """Whether the estimate is based on studies on this machine."""
    programs: bool = False
    """Whether programs run in the study; plait cannot estimate their time."""
    unknown: tuple[str, ...] = ()
    """The engines whose cost plait does not know, because no study has run on them on this machine."""

    @property
    def low_s(self) -> float:
        """Lower end of the range: a report whose figures are in the cache takes next to no time."""
        return self.running_s / self.spread

    @property
    def high_s(self) -> float:
        """The upper end of the range."""
        return (self.running_s + self.report_s) * self.spread

    @property
    def sentence(self) -> str:
        """The estimate as a sentence for the terminal."""
        trials = self.cases * self.repeat
        text = f"{trials} trial{'s' * (trials != 1)}"
        if self.cases > 1 and self.repeat > 1:
            text += f" ({self.cases} cases, {self.repeat} repeats each)"
        if self.programs:
            return f"{text}; plait cannot estimate how long their programs take"
        if self.unknown:
            names = " and ".join(self.unknown)
            return f"{text}; no estimate yet, because no study has run on the engine {names} on this machine"
        basis = "" if self.learned else " (a rough guess: no study has run on this machine yet)"
        return f"{text}, {_format_range(self.low_s, self.high_s)} including the report{basis}"


@dataclass(frozen=True)
class Paces:
    """The pace of each engine of a study on this machine, by the name that the cases give."""

    by_engine: Mapping[str, Pace]
    engines: StudyEngines

    @classmethod
    def read(cls, cache: Path, engines: StudyEngines) -> Paces:
        """Return the paces that earlier studies left in the cache."""
        paces = {name: read_pace(cache, identity.engine) for name, identity in engines.identities.items()}
        return cls(paces, engines)

    def estimate(self, study: PlannedStudy, jobs: int) -> DurationEstimate:
        """Return the expected wall time of `study`, whose engines run one after the other if they must."""
        expected = [self._expected(study, name, jobs) for name in self.by_engine]
        first, *rest = expected
        if not rest:
            return first
        return DurationEstimate(
            len(study.cases),
            study.repeat,
            sum(part.running_s for part in expected),
            sum(part.report_s for part in expected),
            max(part.spread for part in expected),
            learned=all(part.learned for part in expected),
            programs=any(part.programs for part in expected),
            unknown=tuple(name for part in expected for name in part.unknown),
        )

    def _expected(self, study: PlannedStudy, engine: str, jobs: int) -> DurationEstimate:
        part, pace = _on_engine(study, engine), self.by_engine[engine]
        expected = estimate(part, self.engines.jobs(part.cases[0], jobs), pace)
        kind = self.engines.identities[engine].engine
        return expected if pace.trials or kind == MODELLED else replace(expected, unknown=(kind,))

    def learn(
        self,
        cache: Path,
        study: PlannedStudy,
        outcome: StudyOutcome,
        expected: DurationEstimate,
        took_s: float,
    ) -> None:
        """Keep in the cache what this study shows, whose trials took `took_s` in total."""
        for name, pace in self.by_engine.items():
            part = _on_engine(study, name)
            names = {case.name for case in part.cases}
            ended = [trial for trial in outcome.finished if trial.key.case in names]
            learned = learn(pace, part, replace(outcome, finished=ended), expected, took_s)
            keep_pace(cache, self.engines.identities[name].engine, learned)


def _on_engine(study: PlannedStudy, name: str) -> PlannedStudy:
    """Return the study with only the cases of one engine."""
    return replace(study, cases=[case for case in study.cases if case.engine == name])


def work_per_case(study: PlannedStudy) -> list[_Work]:
    """Return the work of a trial of each case, or of an evenly spaced sample of many cases."""
    sampled = study.cases[:: -(-len(study.cases) // _MAX_SAMPLED_CASES)]
    seed = trial_seed(study.seed, 0)
    return [expected_work(case.plan(seed)) for case in sampled]


def estimate(study: PlannedStudy, jobs: int, pace: Pace) -> DurationEstimate:
    """Return the expected wall time of `study` with `jobs` trials at once."""
    learned = bool(pace.trials)
    if _with_programs(study):
        return DurationEstimate(len(study.cases), study.repeat, 0.0, 0.0, 1.0, learned, programs=True)
    trials_s = [pace.factor * _trial_s(work) for work in work_per_case(study)]
    parallel = max(1, min(jobs, study.total))  # a shard may have no trial
    running_s = max(sum(trials_s) / len(trials_s) * study.total / parallel, *trials_s)
    report_s = REPORT_S + TRIAL_REPORT_S * study.total
    return DurationEstimate(len(study.cases), study.repeat, running_s, report_s, pace.spread, learned)


def refuse_too_many(cases: int, repeat: int, *, confirmed: bool) -> None:
    """Raise RequestError if there are more than MOST_TRIALS trials and the user did not confirm them."""
    if cases * repeat > MOST_TRIALS and not confirmed:
        raise RequestError(
            f"the study has {cases * repeat} trials ({cases} cases, {repeat} repeats each), more than {MOST_TRIALS}; "
            "confirm them with --yes, or cover the space with fewer cases (latin_hypercube under vary)"
        )


def learn(
    pace: Pace, study: PlannedStudy, outcome: StudyOutcome, expected: DurationEstimate, took_s: float
) -> Pace:
    """Return the pace after this study, whose trials took `took_s` in total.

    Ignores trials from the store, failed trials, and studies with programs. Records the estimate's error only if all
    expected trials ran, and if the estimate was based on earlier studies.
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
    """Return the pace of an engine on this machine; an empty one if the record is missing or damaged."""
    try:
        entry = json_of(Folder(cache).read(_name(engine)))
        pace = Pace(tuple(map(float, entry["trials"])), tuple(map(float, entry["errors"])))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Pace()
    return pace if all(abs(value) < _MAX_CREDIBLE for value in (*pace.trials, *pace.errors)) else Pace()


def keep_pace(cache: Path, engine: str, pace: Pace) -> None:
    """Keep the pace for the next study. Ignore a cache that plait cannot write to."""
    try:
        Folder(cache).write(_name(engine), json.dumps(asdict(pace)).encode())
    except OSError:
        return


def _name(engine: str) -> str:
    return f"pace-{engine}.json"


def _trial_s(work: _Work) -> float:
    """Return the wall seconds of a trial by the costs alone."""
    return BOOT_S + HOP_S * work.frame_hops + ROW_S * work.rows


def _with_programs(study: PlannedStudy) -> bool:
    return any(
        case.scenario.programs or any(entry.prototype for entry in case.scenario.traffic)
        for case in study.cases
    )


def _format_duration(seconds: float) -> str:
    """Return a duration in a readable unit: "40 s", "3 min"."""
    return f"{max(seconds, 1):.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _format_range(low: float, high: float) -> str:
    """Return a range in a readable unit: "4 to 9 s", "2 to 5 min", "1 to 3 h"."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if high >= 2 * size:
            lower = f"{low / size:.0f}" if low >= size else f"{low / size:.1f}"
            if lower == "0.0":
                lower = _format_duration(low)
            return f"{lower} to {math.ceil(high / size)} {unit}"
    return f"{max(low, 1):.0f} to {max(math.ceil(high), 2)} s"


@dataclass(frozen=True)
class _Work:
    """The work of a trial whose flows share the links evenly."""

    frame_hops: float
    """Frames, including ACKs, times the links that each frame crosses."""
    rows: float
    """Rows of samples."""


def expected_work(plan: Plan) -> _Work:
    """Return the work of one trial."""
    crossing = Counter(
        name for flow in plan.flows for name in {link for path in flow.paths for link in path.forward}
    )
    hops, longest_us = 0.0, 0.0
    for flow in plan.flows:
        rate = _rate_bps(flow, plan.directions, crossing)
        payload, frame = full_segment(plan, flow, transport=flow.transport)
        mean_hops = sum(len(path.forward) for path in flow.paths) / max(1, len(flow.paths))
        hops += flow.application.frames(flow, rate, payload, frame) * mean_hops * (1 + _ACKS)
        longest_us = max(longest_us, flow.start_us + _duration_us(flow, rate, payload, frame))
    sampled = [flow for flow in plan.flows if not flow.unsampled]
    rows = sum(2 * (1 + len(flow.paths)) for flow in sampled) + 2 * len(plan.links)
    return _Work(hops, rows * longest_us / plan.sample_interval_us)


def _rate_bps(flow: Flow, directions: dict[str, LinkDirection], crossing: Counter[str]) -> float:
    """Return the rate of a flow under even sharing of each link, bounded by random loss."""
    shares = []
    for path in flow.paths:
        links = [directions[name] for name in path.forward if name in directions]
        shares.append(
            min(
                (link.rate_bps / crossing[link.name] for link in links if link.rate_bps),
                default=_UNLIMITED_BPS,
            )
        )
        loss_ratio = 1 - math.prod(1 - link.loss_ratio for link in links)
        if loss_ratio and path.base_rtt_us:
            shares[-1] = min(shares[-1], _SEGMENT_BITS * 1e6 / path.base_rtt_us * math.sqrt(1.5 / loss_ratio))
    return min(sum(shares) or _UNLIMITED_BPS, flow.ideal_rate_bps or _UNLIMITED_BPS)


def _duration_us(flow: Flow, rate: float, payload: int, frame: int) -> float:
    """Return the approximate duration of a flow in virtual time."""
    sends_ns = flow.application.sends_ns
    if sends_ns is not None:
        return sends_ns / 1000
    return flow.application.frames(flow, rate, payload, frame) * frame * 8e6 / rate
