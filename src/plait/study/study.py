"""The records of a study: its plan, its observer, and its outcome."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plait.dataset.trial import trial_folder
from plait.plan.case_plan import CasePlan
from plait.study.shard import Shard


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
    virtual_s: float | None
    """Virtual time that passed in this run; None if none did (reused) or it is unknown (failed)."""


Observer = Callable[[TrialOutcome], None]
"""The callback of a running study, in any thread, for a trial that has completed, came from the store, or failed."""


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
    shard: Shard | None = None
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
