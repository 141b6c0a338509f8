"""The trials of a study reduced to their metrics: what summaries, comparisons and figures are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plait.analysis.cautions.mptcp import Observation
from plait.analysis.model import Exclusion
from plait.metrics import Metrics


@dataclass(frozen=True)
class TrialRow:
    """A completed trial, reduced to what the summary needs."""

    index: int
    seed: int
    digest: str
    metrics: Metrics
    observed: tuple[Observation, ...] = ()
    """What makes its data doubtful."""


@dataclass(frozen=True)
class FailedTrial:
    """A trial that failed, and why."""

    index: int
    error: str


@dataclass(frozen=True)
class CaseRows:
    """A case with all its trials."""

    name: str
    settings: dict[str, Any]
    rows: tuple[TrialRow, ...]
    failed: tuple[FailedTrial, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    seeded: bool = True
    """Whether the seed decides a trial; without that, trials of one seed are no pair."""
    label: str | None = None
    """Its label, if the scenario has one."""

    def measured(self, metric: str) -> list[tuple[TrialRow, float]]:
        """Return the trials that have a value of the metric, in their order, with it."""
        return [(row, value) for row in self.rows if (value := row.metrics.get(metric)) is not None]

    def by_seed(self, metric: str) -> dict[int, float]:
        """Return the values of a metric by the seed of the trial."""
        return {row.seed: value for row, value in self.measured(metric)}

    @property
    def trials(self) -> int:
        """The number of trials that were run."""
        return len(self.rows) + len(self.failed) + len(self.excluded)
