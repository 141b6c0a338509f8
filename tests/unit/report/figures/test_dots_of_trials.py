"""Trials that have a dot: the size of a figure depends on its cases, not on how often each was repeated."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from plait.analysis.compare.summary import summarise
from plait.analysis.published import Published
from plait.analysis.rows import CaseRows, TrialRow
from plait.report.figures.kind import Content, FigureKind, FigureRequest
from plait.report.figures.marks import MOST_DOTS, with_dots
from plait.report.figures.selection import KINDS, resolved
from plait.report.figures.study_figures import drawn_figure

METRIC = "goodput_bps"


def case_of(trials: int, delay: str = "5ms") -> CaseRows:
    values = [1e6 + i * 1e3 for i in range(trials)]
    random.Random(1).shuffle(values)
    rows = [TrialRow(i, i, f"sha256:{i}", {METRIC: value}) for i, value in enumerate(values)]
    return CaseRows(f"delay={delay}", {"network.links.a-b.delay": delay}, tuple(rows))


@pytest.mark.parametrize("trials", [0, 1, MOST_DOTS - 1, MOST_DOTS])
def test_of_few_trials_each_has_a_dot(trials: int) -> None:
    case = case_of(trials)
    assert with_dots(case, METRIC) == [(row, row.metrics[METRIC]) for row in case.rows]


@pytest.mark.parametrize("trials", [MOST_DOTS + 1, 7 * MOST_DOTS + 3])
def test_of_many_trials_those_at_equal_distances_by_rank_have_one(trials: int) -> None:
    case = case_of(trials)
    shown = with_dots(case, METRIC)
    assert len(shown) == len({row.index for row, _ in shown}) == MOST_DOTS
    assert [row.index for row, _ in shown] == sorted(row.index for row, _ in shown)
    values = sorted(value for _, value in shown)
    assert (values[0], values[-1]) == (1e6, 1e6 + (trials - 1) * 1e3)
    steps = [later - earlier for earlier, later in pairwise(values)]
    assert max(steps) - min(steps) <= 1e3


@pytest.mark.parametrize("kind", ["cases", "line"])
def test_a_figure_and_its_caption_say_what_has_a_dot_and_its_table_has_all(kind: str) -> None:
    kinds: dict[str, FigureKind] = dict(KINDS.items())
    size = {}
    for trials in (MOST_DOTS, 4 * MOST_DOTS):
        cases = tuple(case_of(trials, delay) for delay in ("5ms", "10ms", "20ms"))
        content = Content(cases, summarise(cases, scenario="s", digest="", baseline=None), (), Published())
        request = resolved(FigureRequest(name="f", kind=kind, metric=METRIC), content)
        figure = drawn_figure(request, content)
        assert figure is not None
        size[trials] = len(json.dumps(figure.panels))
        explained = f"{MOST_DOTS} have one" in figure.marks
        assert explained == (trials > MOST_DOTS)
        assert len(kinds[kind].table(request, content)) == 1 + 3 * trials + 3
    assert size[4 * MOST_DOTS] < 1.1 * size[MOST_DOTS]


@pytest.mark.parametrize(("trials", "is_cut"), [(2, True), (4, False)])
def test_a_caption_says_that_an_axis_cuts_an_interval(trials: int, is_cut: bool) -> None:
    """Student's t of two trials is 12.7: their interval is 6.4 times their range to each side, the axis shows 2.5."""
    cases = (case_of(trials, "5ms"), case_of(trials, "10ms"))
    content = Content(cases, summarise(cases, scenario="s", digest="", baseline=None), (), Published())
    figure = drawn_figure(resolved(FigureRequest(name="f", kind="cases", metric=METRIC), content), content)
    assert figure is not None
    assert ("extends beyond it; f.csv has it whole" in figure.marks) == is_cut
