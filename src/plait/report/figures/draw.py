"""Draws the figures of cases that are wanted: each as panels, which the page sets out and files put together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from plait.analysis import gaps
from plait.analysis.published import is_of_goodput
from plait.report.figures.axes import Factor, factors
from plait.report.figures.case_values import cells_of
from plait.report.figures.cases import MOST_CASES, cases_spec
from plait.report.figures.ecdf import ecdf_spec
from plait.report.figures.groups import group_spec
from plait.report.figures.heat_map import heat_map
from plait.report.figures.over_time import chart
from plait.report.figures.panels import SIDE_BY_SIDE, frames_of, panel_of
from plait.report.figures.scatter import axes_of, points_of, scatter
from plait.report.figures.selection import MOST_FACETS, Wanted, wanted
from plait.report.figures.sweep import scale, sweep_of, sweep_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import CaseSummary, Summary
    from plait.analysis.published import Published
    from plait.analysis.rows import CaseRows
    from plait.report.figures.case_values import Cells
    from plait.report.representatives import Representative
    from plait.results.read import StudyData

Spec = dict[str, Any]


@dataclass(frozen=True)
class CaseFigure:
    """One figure: what was wanted, and its panels, left to right."""

    wanted: Wanted
    panels: tuple[Spec, ...]
    compared: bool = False
    """It shows ratios to the case compared with, not the metric itself."""


@dataclass(frozen=True)
class Part:
    """The cases that a figure shows."""

    rows: tuple[CaseRows, ...]
    summary: Summary

    @property
    def cases(self) -> Sequence[CaseSummary]:
        """What was found of each."""
        return self.summary.cases


def case_figures(
    study: StudyData, summary: Summary, shown: Sequence[Representative] = ()
) -> dict[str, CaseFigure]:
    """Return every figure of cases by name; those for which nothing was measured are left out.

    `shown` are drawn in figures over time that the scenario asks for.
    """
    made = {
        one.name: gaps.part(f"figure {one.name}", partial(_figure, one, study, summary, shown), None)
        for one in wanted(study, summary)
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def _figure(
    one: Wanted, study: StudyData, summary: Summary, shown: Sequence[Representative]
) -> CaseFigure | None:
    """Return one figure; None when nothing was measured for it."""
    part = part_of(one, study, summary)
    cells = cells_shown(one, part)
    panels = _panels(one, part, cells, shown, study.published)
    if not panels:
        return None
    compared = cells is not None and cells.compared
    return CaseFigure(one, tuple(_described(panel, one) for panel in panels), compared)


def part_of(one: Wanted, study: StudyData, summary: Summary) -> Part:
    """Return the cases that a figure shows, and what was found of them."""
    rows = tuple(case for case in study.cases if one.shows(case.settings))
    names = {case.name for case in rows}
    cases = tuple(case for case in summary.cases if case.name in names)
    compared = tuple(found for found in summary.comparisons if {found.case, found.baseline} <= names)
    return Part(rows, summary.model_copy(update={"cases": cases, "comparisons": compared}))


def _panels(
    one: Wanted, part: Part, cells: Cells | None, shown: Sequence[Representative], published: Published
) -> list[Spec]:
    if one.kind == "line":
        return _lines(one, part)
    if one.kind in {"heat-map", "scatter"}:
        return _of_cells(one, part, cells) if cells is not None else []
    if one.kind == "over-time":
        return _over_time(one, part, shown)
    if one.kind == "distribution":
        draw = ecdf_spec(part.rows, one.metric)
    elif one.kind == "groups":
        draw = group_spec(part.rows, part.cases, published)
    else:
        known = published if is_of_goodput(one.metric) else None
        draw = cases_spec(part.rows, part.cases, one.metric, known)
    return [draw] if draw is not None else []


def _lines(one: Wanted, part: Part) -> list[Spec]:
    """Return the lines over one factor; with facets, a panel for each value of another, on the same scales."""
    facets = _factor(part, one.facets)
    if facets is None:
        sweep = sweep_of(part.rows, one.x)
        spec = sweep_spec(part.rows, part.cases, one.metric, sweep) if sweep is not None else None
        return [spec] if spec is not None else []
    groups = []
    for value in facets.order[:MOST_FACETS]:
        names = {case.name for case, text in zip(part.rows, facets.texts, strict=True) if text == value}
        rows = [case for case in part.rows if case.name in names]
        sweep = sweep_of(rows, one.x)
        if sweep is not None:
            groups.append((value, rows, [case for case in part.cases if case.name in names], sweep))
    shared = scale(part.rows, one.metric, [sweep for *_, sweep in groups])
    if shared is None:
        return []
    panels = []
    for value, rows, cases, sweep in groups:
        spec = sweep_spec(rows, cases, one.metric, sweep, shared, width=240)
        if spec is not None:
            panels.append({**spec, "title": f"{facets.name} {value} {facets.unit}".rstrip()})
    return panels


def cells_shown(one: Wanted, part: Part) -> Cells | None:
    """Return what a heat map or a scatter shows of each case."""
    if one.kind == "scatter":
        return points_of(part.summary, one.metric, plain=one.plain)
    x, y = _factor(part, one.x), _factor(part, one.y)
    if one.kind != "heat-map" or x is None or y is None:
        return None
    return cells_of(part.summary, one.metric, (x, y), plain=one.plain)


def _of_cells(one: Wanted, part: Part, cells: Cells) -> list[Spec]:
    if one.kind == "scatter":
        return scatter(part.summary, cells, axes_of(part.cases, one.x))
    x, y = _factor(part, one.x), _factor(part, one.y)
    return heat_map(part.summary, cells, x, y) if x is not None and y is not None else []


def _over_time(one: Wanted, part: Part, shown: Sequence[Representative]) -> list[Spec]:
    names = {case.name for case in part.rows}
    chosen = [other for other in shown if other.case in names][:SIDE_BY_SIDE]
    panels = []
    for other, frame in zip(chosen, frames_of(chosen), strict=True):
        spec = chart(panel_of(other), one.metric, frame, legend=True)
        if spec is not None:
            panels.append({**spec, "title": {"text": other.label, "subtitle": spec["title"]}})
    return panels


def _factor(part: Part, setting: str | None) -> Factor | None:
    return next((one for one in factors(part.rows) if one.setting == setting), None)


def _described(panel: Spec, one: Wanted) -> Spec:
    """Return the panel with its caption, which readers of the screen hear and vector files carry."""
    return {**panel, "description": one.caption} if one.caption else panel


def most_cases(one: Wanted) -> int | None:
    """Return how many cases a figure shows at most; None when it shows all."""
    return MOST_CASES if one.kind == "cases" else None
