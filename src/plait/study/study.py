"""A study: its plan from a scenario, its observer, its outcome, and the study.json that describes it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plait.dataset.study_file import CaseEntry, StudyFile
from plait.dataset.trial import trial_folder
from plait.errors import RequestError
from plait.kernel.additions import modules_by_name
from plait.plan.case_plan import CasePlan, resolve_case
from plait.plan.lint.lint import lint_cases
from plait.scenario import Scenario
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from plait.study.engines import StudyEngines
from plait.study.shard import Shard, StudyPart
from plait.version import __version__


@dataclass(frozen=True)
class TrialKey:
    """A trial: the name of its case, and its number within the case, from 0."""

    case: str
    index: int

    def folder(self, target: Path) -> Path:
        """Return the trial's folder in the result folder `target`."""
        return trial_folder(target, self.case, self.index).path


@dataclass(frozen=True)
class TrialOutcome:
    """How one trial ended."""

    key: TrialKey
    error: str | None
    """The reason for the failure; None for a good trial."""
    reused: bool
    """Whether it came from the store."""
    wall_s: float


Observer = Callable[[TrialOutcome], None]
"""The callback of a study, in one thread at a time, for a trial that has completed, came from the store, or failed."""


@dataclass(frozen=True)
class PlannedStudy:
    """A study whose cases are resolved: which trials to run."""

    name: str
    cases: Sequence[CasePlan]
    seed: int
    repeat: int
    inputs: dict[str, Path] = field(default_factory=dict)
    """Files that plans transfer, by their name in the plan."""
    until: float | None = None
    """The largest half-width of every 95 % interval, as a share of its mean; `repeat` is then the maximum."""
    start: int = 0
    """The first repeat to run; earlier ones have run already."""
    paused: bool = False
    """Whether its trials halt for a prompt, one after the other."""
    shard: StudyPart | None = None
    """The part of the trials to run; None: all of them."""

    @property
    def total(self) -> int:
        """Return the number of trials."""
        return sum(1 for _ in self.keys())

    def keys(self) -> Iterator[tuple[CasePlan, TrialKey]]:
        """Yield every trial, repeat by repeat, so that an early end leaves the cases balanced."""
        for index in range(self.start, self.repeat):
            for number, case in enumerate(self.cases):
                if self.shard is None or self.shard.holds(index * len(self.cases) + number):
                    yield case, TrialKey(case.name, index)


@dataclass(frozen=True)
class StudyOutcome:
    """How a study ended. If the user interrupted it, plait keeps the finished trials."""

    total: int
    finished: list[TrialOutcome]
    interrupted: bool
    signal: signal.Signals = signal.SIGINT
    """The signal that interrupted it."""

    @property
    def failed(self) -> list[TrialOutcome]:
        """Return the trials that failed."""
        return [outcome for outcome in self.finished if outcome.error is not None]

    @property
    def reused(self) -> int:
        """Return how many trials came from the store."""
        return sum(outcome.reused for outcome in self.finished)


def plan_study(
    scenario: Scenario,
    name: str,
    *,
    seed: int | None = None,
    repeat: int | None = None,
    shard: StudyPart | None = None,
) -> PlannedStudy:
    """Return the study of `scenario`; `seed` and `repeat` replace the scenario's own.

    With `shard`, it has only these trials. Resolves every case once, so that nothing runs if one case is impossible.
    Raises RequestError.
    """
    additions = modules_by_name()
    cases = []
    for case in expand(scenario):
        try:
            cases.append(resolve_case(case, additions))
        except RequestError as error:
            raise RequestError(f"case {case.name}: {error}") from error
    study = PlannedStudy(
        name=name,
        cases=cases,
        seed=scenario.seed if seed is None else seed,
        repeat=scenario.repeat if repeat is None else repeat,
        inputs=scenario.input_files(),
        until=float(scenario.repeat.until) if repeat is None and scenario.repeat.until else None,
        paused=bool(scenario.pause),
        shard=shard,
    )
    if shard is not None and study.until is not None:
        raise RequestError(
            "--shard: the scenario repeats until its means are precise, which needs all results; state the number of "
            "repeats (--repeat N)"
        )
    cases[0].plan(trial_seed(study.seed, 0))  # raises RequestError for a seed out of range
    return study


def describe(scenario: Scenario, study: PlannedStudy, engines: StudyEngines, command: str) -> StudyFile:
    """Return the content of study.json: the resolved study, and what a user needs to run it again."""
    first = next(iter(engines.identities.values()))
    return StudyFile(
        name=study.name,
        title=scenario.title,
        description=scenario.description,
        command=command,
        seed=study.seed,
        repeat=study.repeat,
        until=study.until,
        plait_version=__version__,
        engine=engines.title(),
        kernel=engines.kernel(),
        agent_sha256=first.agent_sha256,
        engines=tuple(engines.facts()),
        shard=str(study.shard) if isinstance(study.shard, Shard) else None,
        baseline=study.cases[0].name,
        cases=tuple(CaseEntry(name=case.name, settings=case.settings) for case in study.cases),
        cautions=tuple(lint_cases(study.cases, study.seed)),
        scenario=scenario.model_dump(mode="json", exclude_none=True),
    )
