"""The trial of each case that represents it in figures over time: the one with the median of the main metric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from plait.analysis.compare.factors import main_factor, other_settings
from plait.analysis.delays import Points, distributions
from plait.analysis.gaps import part
from plait.analysis.labels.cases import labels
from plait.analysis.labels.labelled import labelled
from plait.analysis.labels.study_labels import StudyLabels
from plait.analysis.metrics.catalogue import primary_metric
from plait.analysis.metrics.ideal import ideal_goodput_bps
from plait.analysis.metrics.programs import with_connections, without_control
from plait.analysis.model import Summary
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.series import TrialSeries, trial_series
from plait.dataset.model import Tables
from plait.dataset.trial import read_trial, trial_folder
from plait.explain import explain_trial
from plait.explain.model import FlowExplanation
from plait.explain.unrestricted_paths import unrestricted_paths_of_case
from plait.plan.model.plan import Plan
from plait.report.cached import kept_explanation
from plait.results.read import StudyData
from plait.traffic.kinds import GREEDY

MOST_TRIALS = 12
"""Cases that are drawn over time; a page with more would be neither read nor small. `spread` chooses among more."""


@dataclass(frozen=True)
class Representative:
    """One case, by its median trial."""

    case: str
    label: str
    group: str
    """Cases that agree in this differ in the main factor alone, and are drawn on the same scales."""
    index: int
    of: int
    """Completed trials that the median was taken of."""
    plan: Plan
    """With labels in place of the names of links, paths and flows."""
    series: TrialSeries
    """With labels, too, and with the goodput that the links allow."""
    explained: tuple[FlowExplanation, ...]
    """Why its flows were not faster."""
    distributions: dict[str, Points]
    """The distributions of its messages' delays, by the kind of message; empty when it has none."""
    by_name: TrialSeries | None = None
    """The series with names, for data that programs read; None where nothing has a label."""
    labels: StudyLabels | None = None
    """The labels of nodes."""
    value: float | None = None
    """The value of the main metric in this trial; None if it was not measured."""


def representatives(study: StudyData, summary: Summary) -> list[Representative]:
    """Return a representative of each case with a completed trial, of at most `MOST_TRIALS` (DataError)."""
    names = labels(summary.cases)
    metric = primary_metric(summary)
    rows = [(case, median_row(case.rows, metric)) for case in study.cases if case.rows]
    chosen = []
    for position in spread([row.metrics.get(metric) for _, row in rows], MOST_TRIALS):
        case, row = rows[position]
        representative = part(
            f"figures over time of case {case.name}",
            partial(_representative, study, summary, case, row, names[case.name]),
            None,
        )
        chosen += [representative] if representative is not None else []
    return chosen


def spread(values: Sequence[float | None], limit: int) -> list[int]:
    """Return the positions of at most `limit` of these values, which show best what lies between the extremes.

    They are the first one, the least and the greatest one, and others at equal distances in rank. The order remains.
    """
    if len(values) <= limit:
        return list(range(len(values)))
    measured = sorted((value, rank) for rank, value in enumerate(values) if value is not None and rank)
    ranked = [rank for _, rank in measured]
    if len(ranked) < limit - 1:
        ranked += [rank for rank, value in enumerate(values) if value is None and rank]
        return sorted([0, *ranked[: limit - 1]])
    last = max(1, limit - 2)
    return sorted({0, *(ranked[round(i * (len(ranked) - 1) / last)] for i in range(limit - 1))})


def _representative(
    study: StudyData, summary: Summary, case: CaseRows, row: TrialRow, label: str
) -> Representative:
    """Return the representative of a case by one of its trials."""
    constant_settings = other_settings(case, main_factor(summary.cases, summary.strata), summary.zipped)
    folder = trial_folder(study.folder, case.name, row.index)
    trial = read_trial(folder)
    called, tables = labelled(trial.plan, trial.tables, study.labels)
    plan = with_connections(called, tables)
    explained = part(
        f"explanation of case {case.name}",
        lambda: kept_explanation(
            study, case.name, folder, lambda: _explained(study, case.name, trial.plan, called, tables)
        ),
        (),
    )
    return Representative(
        case=case.name,
        label=label,
        group=json.dumps(constant_settings, sort_keys=True, default=str),
        index=row.index,
        of=len(case.rows),
        plan=without_control(plan),
        series=replace(_marked(trial_series(plan, tables), explained), ideal_bps=ideal_bps(plan)),
        explained=explained,
        distributions=part(
            f"distributions of delays of case {case.name}", lambda: distributions(plan, tables), {}
        ),
        by_name=trial_series(with_connections(trial.plan, trial.tables), trial.tables)
        if study.labels
        else None,
        labels=study.labels,
        value=row.metrics.get(primary_metric(summary)),
    )


def _explained(
    study: StudyData, case: str, plan: Plan, called: Plan, tables: Tables
) -> tuple[FlowExplanation, ...]:
    """Return why the flows of a trial were not faster, in terms of its plan with labels."""
    unrestricted = part(
        f"paths that case {case} leaves out",
        lambda: unrestricted_paths_of_case(study.about.scenario, case, plan, study.labels),
        {},
    )
    return explain_trial(called, tables, unrestricted)


def _marked(series: TrialSeries, explained: tuple[FlowExplanation, ...]) -> TrialSeries:
    """Return the series with the moments at which the first flow's causes began, apart from the marks it has."""
    if len(explained) != 1:
        return series
    marked = [t_s for t_s, _ in series.marks]
    moments = [
        ((moment.t_us - explained[0].start_us) / 1e6, moment.text)
        for moment in explained[0].moments
        if moment.t_us > explained[0].start_us
    ]
    # The words of an event are not repeated.
    apart = series.duration_s / 50
    fresh = [(t_s, text) for t_s, text in moments if all(abs(t_s - mark) > apart for mark in marked)]
    return replace(series, marks=tuple(sorted((*series.marks, *fresh))))


def ideal_bps(plan: Plan) -> float | None:
    """Return the goodput in bit/s that the links allow the only flow; None for several flows and for other kinds.

    The flow's kind must be one of `GREEDY`, because goodputs of other kinds do not measure the links.
    """
    alone = len(plan.flows) == 1 and plan.flows[0].measured_as in GREEDY
    return ideal_goodput_bps(plan, plan.flows[0]) if alone else None


def median_row(rows: Sequence[TrialRow], metric: str) -> TrialRow:
    """Return the row with the (lower) median of `metric`; the first row when no row has it."""
    measured = [(value, row.index, row) for row in rows if (value := row.metrics.get(metric)) is not None]
    if not measured:
        return rows[0]
    return sorted(measured, key=lambda entry: entry[:2])[(len(measured) - 1) // 2][2]
