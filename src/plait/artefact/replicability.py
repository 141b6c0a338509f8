"""How far the results of a study depend on its seeds, by TriScale's scores (`plait.analysis.statistics.triscale`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import compared_metric, judged_metrics
from plait.analysis.series import trial_series
from plait.analysis.statistics import triscale
from plait.analysis.values import show
from plait.analysis.wording import significant
from plait.artefact.claims import scores_of
from plait.benchmark.results_file import Results
from plait.dataset.trial import read_trial, trial_folder
from plait.report.assemble import summary_of
from plait.results.read import StudyData

_LONG_TERM = "goodput_bps"
"""The metric that estimates a rate which a longer run would have too."""


@dataclass(frozen=True)
class Replicability:
    """TriScale's estimates of one metric of a case, or of the score of a class."""

    title: str
    metric: str
    """Empty for a score."""
    values: tuple[float, ...]
    more_is_better: bool
    converged: tuple[bool, ...] | None
    """Of each run; None for a metric to which convergence does not apply."""

    @property
    def kpi(self) -> float | None:
        """The bound of the median run."""
        return triscale.kpi(self.values, more_is_better=self.more_is_better)

    @property
    def variability(self) -> tuple[float, float] | None:
        """The interval of the KPIs of the series."""
        kpis = [
            bound
            for series in triscale.series_of(self.values)
            if (bound := triscale.kpi(series, more_is_better=self.more_is_better)) is not None
        ]
        return triscale.variability(kpis)

    def show(self, value: float | None) -> str:
        """Return a value of the metric in words."""
        if self.metric or value is None:
            return show(self.metric, value)
        return significant(value)


def replicability(folder: Path, study: StudyData, results: Results | None) -> Iterator[Replicability]:
    """Yield the estimates of each judged metric of each case, or of the scores of a benchmark (DataError)."""
    if results is not None:
        for score in scores_of(results):
            if score.runs:
                yield Replicability(score.cell_class.title, "", score.runs, True, None)
        return
    summary = summary_of(study)
    words = labels(summary.cases)
    for case in study.cases:
        for metric in judged_metrics(summary):
            values = tuple(value for _, value in case.measured(metric))
            if values:
                numbers = [row.index for row, _ in case.measured(metric)]
                runs = _converged(folder, case.name, numbers) if metric == _LONG_TERM else None
                yield Replicability(
                    words[case.name], metric, values, compared_metric(metric).more_is_better, runs
                )


def _converged(folder: Path, case: str, numbers: Sequence[int]) -> tuple[bool, ...] | None:
    """Return for each trial whether its goodput had converged; None if its samples are too few."""
    known = []
    for number in numbers:
        trial = read_trial(trial_folder(folder, case, number))
        bins: dict[float, float] = {}
        for path in trial_series(trial.plan, trial.tables).by_path:
            for begin_s, rate in path.goodput_bps:
                bins[begin_s] = bins.get(begin_s, 0.0) + rate
        converged = triscale.has_converged([bins[begin_s] for begin_s in sorted(bins)])
        if converged is None:
            return None
        known.append(converged)
    return tuple(known)
