"""The trials that have a dot in a figure: all of a case, or of very many those at equal distances by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.rows import CaseRows, TrialRow

MOST = 300
"""Dots of one case; more cover each other, and a figure of 10 000 takes 100 MB to draw."""


def measured(case: CaseRows, metric: str) -> list[tuple[TrialRow, float]]:
    """Return the trials of a case that have a value of the metric, in their order, with it."""
    return [(row, value) for row in case.rows if (value := row.metrics.get(metric)) is not None]


def with_dots(case: CaseRows, metric: str) -> list[tuple[TrialRow, float]]:
    """Return the trials of a case that have a dot, in their order, with their values of the metric.

    Of more than MOST trials, these are the ones with the least and the largest value, and those between at equal
    distances by rank.
    """
    trials = measured(case, metric)
    if len(trials) > MOST:
        trials.sort(key=lambda trial: (trial[1], trial[0].index))
        last = len(trials) - 1
        trials = [trials[round(place * last / (MOST - 1))] for place in range(MOST)]
        trials.sort(key=lambda trial: trial[0].index)
    return trials


def what_dots_are(cases: Sequence[CaseRows]) -> str:
    """Return the words of a caption for the dots."""
    if all(len(case.rows) <= MOST for case in cases):
        return "Each dot is a trial"
    return f"Each dot is a trial; of more than {MOST} trials of a case, {MOST} have one, at equal distances by rank"
