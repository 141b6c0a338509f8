"""Points for cases that fill a space of several things (a Latin hypercube): a panel for each of those things.

Every panel shows every case, at its value there, so that readers see which thing matters.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.analysis.labels.cases import NamedCase
from plait.analysis.model import Summary
from plait.report.figures.axes import Factor, factors, steps
from plait.report.figures.case_values import Cells, cells_of, cells_table, crossed
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec, TableRows
from plait.report.figures.kinds.sweep import LOGARITHMIC, sweep_of
from plait.report.figures.marks import SCHEMA, distinct, field, layer, levels, number_axis, numbers
from plait.report.figures.roles import MOST_SERIES, CaseLabels, level_labels, panel_labels

EDGE = 8
"""Space between the outermost points and the edges of a panel, in pixels."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each metric that neither a heat map nor lines show."""
    if sweep_of(content.rows) is not None or len(steps(content.rows)) < 2:
        return []
    return [
        FigureRequest(f"{file}-scatter", "scatter", metric)
        for file, metric in content.measured()
        if crossed(content, metric) is None
    ]


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return a panel for each setting that varies; of a name, points have a place for each value."""
    points = _points(request, content)
    if points is None:
        return []
    cells, kinds, panels = points
    axes = [axis for axis in axes_of(content.cases, request.x) if axis.setting != request.facets]
    return [
        {**panel, **({"title": title} if title else {})}
        for title, names in panels.groups
        for panel in scatter(content.summary, cells, axes, kinds, set(names))
    ]


def _table(request: FigureRequest, content: Content) -> TableRows:
    """Return the value of each case."""
    points = _points(request, content)
    return cells_table(points[0], request.metric, content.summary) if points is not None else []


def _caption(request: FigureRequest, content: Content) -> str:
    """Return what a point means."""
    points = _points(request, content)
    if points is not None and points[0].compared:
        return (
            "Each point is the ratio of two cases' means over trials with the same seed, in the panel of each "
            "varied setting; 1 means equal."
        )
    return "Each point is a case, the mean over its trials; the panel of each varied setting shows it."


SCATTER = FigureKind("scatter", _panels, _table, _caption, selected=_selected)
"""Points in a panel for each thing that varies; a study has it whose cases fill a space without forming a grid."""


def _points(request: FigureRequest, content: Content) -> tuple[Cells, CaseLabels, CaseLabels] | None:
    """Return the value of each case, what its colour and shape distinguish, and its panel; None without any value.

    Kinds are the values of `color`, if it is given. Where there are more kinds than colours, each has a panel.
    """
    cases = content.cases
    axes = [*steps(cases), *axes_of(cases, request.x)]
    roles = [*axes, *(factor for factor in factors(cases) if factor.setting == request.color)]
    cells = cells_of(content.summary, request.metric, roles, plain=request.plain)
    if cells is None:
        return None

    def labels_by(*roles: str | None) -> CaseLabels:
        """Return the labels of the cases that have a value by their levels of these settings."""
        factor = next((factor for factor in factors(cases) if [factor.setting] == [*roles]), None)
        labels = panel_labels(
            cases, [other.setting for other in factors(cases) if other.setting not in roles]
        )
        if factor is not None and factor.setting != request.facets:
            labels = level_labels(cases, factor)
        return CaseLabels(
            labels.title, {name: label for name, label in labels.of.items() if name in cells.values}
        )

    taken = {axis.setting for axis in axes} | {request.facets}
    remaining = [factor.setting for factor in factors(cases) if factor.setting not in taken]
    kinds = labels_by(*remaining) if request.color is None else labels_by(request.color)
    if request.color is None and len(kinds.order) > MOST_SERIES:
        return cells, labels_by(), labels_by(*remaining, request.facets)
    return cells, kinds, labels_by(request.facets)


def axes_of(cases: Sequence[NamedCase], x: str | None = None) -> list[Factor]:
    """Return the factors that have a panel: `x`, or those that are numbers with enough steps, or else all."""
    varied = factors(cases)
    if x is not None:
        return [factor for factor in varied if factor.setting == x]
    numeric = {factor.setting for factor in steps(cases)}
    return [factor for factor in varied if factor.setting in numeric] or varied


def scatter(
    summary: Summary, cells: Cells, axes: Sequence[Factor], kinds: CaseLabels, names: set[str]
) -> list[Spec]:
    """Return a panel for each of `axes`, the summary's own factors, with the cases in `names`.

    All have the vertical scale that holds every value of `cells`.
    """
    order = kinds.order
    values = [value for value, _ in cells.values.values()]
    wide = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC
    largest = max(*values, 1.0) if cells.ratio else max(values)
    scale = {"type": "log"} if wide else {"domain": [min(0.0, *values), largest * 1.05], "nice": True}
    key = {"title": kinds.title or None, "orient": "top", "labelLimit": 260, "symbolSize": 60}
    shared = {
        "y": numbers("y", scale=scale, axis=number_axis(cells.title)),
        **distinct("kind", order, "shape", key if len(order) > 1 else None, first=int(cells.compared)),
    }
    points = {"type": "point", "filled": True, "size": 34, "opacity": 0.75}
    rule = {"type": "rule", "strokeDash": [4, 3], "color": "@muted"}
    even = [layer([{}], rule, y={"datum": 1, "type": "quantitative"})] if cells.ratio else []
    panels: list[Spec] = []
    for axis in axes:
        data = [
            {"x": place, "y": cells.values[case.name][0], "kind": kinds.of[case.name], "case": case.name,
             "shown": cells.values[case.name][1]}
            for case, place in zip(summary.cases, axis.numbers or axis.texts, strict=True)
            if case.name in names and case.name in cells.values
        ]  # fmt: skip
        tooltip = [field("case", "case"), field("x", axis.title), field("shown", cells.title)]
        layers = [layer(data, points, x=_x(axis), **shared, tooltip=tooltip), *even]
        panels.append({"$schema": SCHEMA, "width": 240, "height": 200, "layer": layers})
    return panels


def _x(axis: Factor) -> Spec:
    """Return the horizontal axis: of numbers, or with a place for each name."""
    if axis.numbers is None:
        names = {"title": axis.title, "labelAngle": 0, "ticks": False, "grid": False}
        return {**levels("x", axis.order), "axis": names}
    apart = min(axis.numbers) > 0 and max(axis.numbers) / min(axis.numbers) >= LOGARITHMIC
    return numbers(
        "x",
        scale={"padding": EDGE} | ({"type": "log", "nice": False} if apart else {"zero": False}),
        axis=number_axis(axis.title, count=4, labelSeparation=6),
    )
