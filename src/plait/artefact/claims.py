"""The claims of a study or a benchmark: each has a value with a tolerance, and the trials that measure it again.

artefact.json of a bundle holds them. A bundle may come from a stranger; plait reads the file with bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from plait.analysis.compare.cases import compare
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import heading_of, judged_metrics, primary_metric
from plait.analysis.model import Comparison
from plait.analysis.rows import CaseRows
from plait.analysis.statistics.intervals import describe
from plait.analysis.values import show
from plait.analysis.wording import significant
from plait.benchmark.results_file import Results, measured, published
from plait.benchmark.score import MARGIN, ClassScore, floor_of, scores
from plait.benchmark.suite import Cell
from plait.errors import RequestError
from plait.report.assemble import summary_of
from plait.results.read import StudyData

FILE = "artefact.json"
MOST_BYTES = 64 << 20
MOST_CLAIMS = 200
_Text = Annotated[str, Field(max_length=4000)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _ArtefactPart(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class Claim(_ArtefactPart):
    """A number of the study, and how far it may be off."""

    number: int = Field(ge=1)
    kind: Literal["mean", "ratio", "difference", "score"]
    """Of the mean of a case, of a case against its baseline, or of a class of the benchmark."""
    sentence: _Text
    cases: tuple[_Text, ...] = Field(min_length=1)
    """The cases whose trials measure it; of a comparison the case and its baseline."""
    metric: _Text
    """The metric, or the title of the class."""
    value: _Number
    low: _Number
    high: _Number
    """The tolerance: a repeat holds from `low` to `high`."""

    @model_validator(mode="after")
    def _is_within(self) -> Claim:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"claim {self.number}: its value is not within its tolerance")
        return self

    def holds(self, value: float | None) -> bool:
        """Return whether a repeated value is within the tolerance."""
        return value is not None and self.low <= value <= self.high

    def show(self, value: float | None) -> str:
        """Return a value of the claim in words."""
        if self.kind == "mean" or value is None:
            return show(self.metric, value)
        return significant(value, 4)


class Artefact(_ArtefactPart):
    """artefact.json."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    claims: tuple[Claim, ...]
    values: dict[_Text, dict[_Text, tuple[_Number, _Number]]]
    """By case and metric: the range that the values of the trials have, widened by the smallest difference."""


def artefact_of(study: StudyData, results: Results | None) -> tuple[Artefact, int]:
    """Return the claims of a study, or of a benchmark with its results, and how many more there would be."""
    claims = _of_study(study) if results is None else _of_benchmark(study, results)
    chosen = tuple(
        claim.model_copy(update={"number": number}) for number, claim in enumerate(claims[:MOST_CLAIMS], 1)
    )
    return Artefact(claims=chosen, values=_values(study, results)), len(claims) - len(chosen)


def _of_study(study: StudyData) -> list[Claim]:
    """Return the comparisons that show something, and the mean of each case."""
    summary = summary_of(study)
    metric, words = primary_metric(summary), labels(summary.cases)
    claims = [claim for comparison in summary.comparisons if (claim := _of_comparison(comparison))]
    for case in summary.cases:
        measured_values = case.metrics.get(metric)
        if measured_values is None or measured_values.mean is None:
            continue
        mean = measured_values.mean
        sentence = f"{words[case.name]}: {heading_of(metric)} {show(metric, mean)}."
        margin = study.design.margin_of(metric)
        claims.append(_claim("mean", sentence, (case.name,), metric, (mean, measured_values.ci95, margin)))
    return claims


def _of_comparison(comparison: Comparison) -> Claim | None:
    """Return the claim of a comparison; None if it shows nothing."""
    estimate = comparison.ratio or comparison.difference
    if comparison.verdict == "unclear" or estimate is None:
        return None
    return _claim(
        "ratio" if comparison.ratio else "difference",
        comparison.sentence,
        (comparison.case, comparison.baseline),
        comparison.metric,
        (estimate.value, estimate.ci95, comparison.margin),
    )


def _of_benchmark(study: StudyData, results: Results) -> list[Claim]:
    """Return the score of each class."""
    claims = []
    for score in scores_of(results):
        if score.score is not None:
            title = score.cell_class.title
            sentence = f"{title}: score {significant(score.score)} (1 is TCP on the better path)."
            names = tuple(case.name for case in study.cases if _cell(case).cell_class == score.cell_class)
            claims.append(_claim("score", sentence, names, title, (score.score, score.ci95, MARGIN)))
    return claims


def _claim(
    kind: Literal["mean", "ratio", "difference", "score"],
    sentence: str,
    cases: tuple[str, ...],
    metric: str,
    estimate: tuple[float, tuple[float, float] | None, float],
) -> Claim:
    """Return a claim. Its tolerance is the interval of its value, or the smallest difference if that is wider."""
    value, ci95, margin = estimate
    low, high = ci95 or (value, value)
    low, high = min(low, value - margin * abs(value)), max(high, value + margin * abs(value))
    return Claim(
        number=1, kind=kind, sentence=sentence, cases=cases, metric=metric, value=value, low=low, high=high
    )


def _values(study: StudyData, results: Results | None) -> dict[str, dict[str, tuple[float, float]]]:
    """Return by case and judged metric the range of its trials, which a repeat with other bytes may have."""
    judged = () if results is not None else judged_metrics(summary_of(study))
    ranges: dict[str, dict[str, tuple[float, float]]] = {}
    for case in study.cases:
        for metric in judged or (_cell(case).cell_class.metric,):
            values = [value for _, value in case.measured(metric)]
            margin = study.design.margin_of(metric)
            if values:
                low, high = min(values), max(values)
                ranges.setdefault(case.name, {})[metric] = (
                    low - margin * abs(low), high + margin * abs(high),
                )  # fmt: skip
    return ranges


def _cell(case: CaseRows) -> Cell:
    return Cell(str(case.settings["network"]), str(case.settings["traffic"]))


def scores_of(results: Results) -> list[ClassScore]:
    """Return the scores of a benchmark (RequestError if this installation has nothing to compare with)."""
    floor = floor_of(published())
    if floor is None:
        raise RequestError(
            "scoring the benchmark: this installation lacks the published result of TCP; install plait again"
        )
    return scores(results, floor, results.subset)


def repeated_value(claim: Claim, study: StudyData, results: Results | None) -> float | None:
    """Return what a repeat of a claim's trials measured; None if it measured nothing.

    Args:
        claim: the claim.
        study: the repeat; it may lack other cases.
        results: those of the benchmark that the claim is about; None for a study.
    """
    cases = [case for name in claim.cases for case in study.cases if case.name == name]
    if len(cases) < len(claim.cases):
        return None
    if claim.kind == "mean":
        return describe([row.metrics.get(claim.metric) for row in cases[0].rows]).mean
    if claim.kind == "score":
        return _repeated_score(claim, study, results, cases)
    case, baseline = cases[0], cases[-1]
    compared = compare([baseline, case], baseline.name, (claim.metric,), study.design)
    for comparison in compared:
        if (comparison.case, comparison.metric) == (case.name, claim.metric):
            estimate = comparison.ratio if claim.kind == "ratio" else comparison.difference
            return None if estimate is None else estimate.value
    return None


def _repeated_score(
    claim: Claim, study: StudyData, results: Results | None, cases: Sequence[CaseRows]
) -> float | None:
    if results is None:
        return None
    repeated = measured(study, [_cell(case) for case in cases], results.seeds)
    now = results.model_copy(update={"cells": {**results.cells, **repeated}})
    of_class = {score.cell_class.title: score for score in scores_of(now)}
    return of_class[claim.metric].score if claim.metric in of_class else None
