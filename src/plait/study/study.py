"""The records of a study: what to run, what happens meanwhile, and how it ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from plait.dataset.trial import trial_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plait.plan.case_plan import CasePlan


@dataclass(frozen=True)
class TrialKey:
    """Which trial: the name of its case, and its number within the case (from 0)."""

    case: str
    index: int

    def folder(self, out: Path) -> Path:
        """Returns the trial's folder in the result folder `out`."""
        return trial_folder(out, self.case, self.index).path


@dataclass(frozen=True)
class TrialOutcome:
    """How one trial ended."""

    key: TrialKey
    error: str | None
    """What failed; None for a good trial."""
    reused: bool
    """It came from the store."""
    wall_s: float
    virtual_s: float | None
    """Virtual time that passed in it now; None when none did (reused) or nobody knows (failed)."""


class Observer(Protocol):
    """Is told what happens while a study runs, from any thread."""

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """A running trial has come so far."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        """A trial ended, was found in the store, or failed."""


@dataclass(frozen=True)
class PlannedStudy:
    """Everything that a study is: what to run, and where to put it."""

    name: str
    cases: Sequence[CasePlan]
    seed: int
    repeat: int
    inputs: dict[str, Path] = field(default_factory=dict)
    """Files that plans transfer, by their name in the plan."""
    until: float | None = None
    """Half of every 95 % interval is to be at most this share of its mean; `repeat` is then the most."""
    start: int = 0
    """The first repeat to run; those before it are there already."""
    paused: bool = False
    """Its trials are halted for a prompt, one after the other."""

    @property
    def total(self) -> int:
        """Returns the number of trials."""
        return len(self.cases) * (self.repeat - self.start)

    def keys(self) -> Iterator[tuple[CasePlan, TrialKey]]:
        """Yields every trial, repeat by repeat, so that an early end leaves the cases balanced."""
        for index in range(self.start, self.repeat):
            for case in self.cases:
                yield case, TrialKey(case.name, index)


@dataclass(frozen=True)
class StudyOutcome:
    """How a study ended. `interrupted`: the user stopped it; what had finished is kept."""

    total: int
    finished: list[TrialOutcome]
    interrupted: bool
    signal: signal.Signals = signal.SIGINT
    """What interrupted it."""

    @property
    def failed(self) -> list[TrialOutcome]:
        """Returns the trials that failed."""
        return [outcome for outcome in self.finished if outcome.error is not None]

    @property
    def reused(self) -> int:
        """Returns how many trials came from the store."""
        return sum(outcome.reused for outcome in self.finished)
