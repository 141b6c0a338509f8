"""Points for cases that fill a space of several things (a Latin hypercube): a panel for each of those things.

Every panel shows every case, at its value there, so that readers see which thing matters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plait.report.figures.axes import factor_of, factors, steps
from plait.report.figures.case_values import cells_of, cells_table
from plait.report.figures.kind import FigureKind, FigureRequest
from plait.report.figures.kinds.cases import SCHEMA
from plait.report.figures.kinds.heat_map import crossed
from plait.report.figures.kinds.sweep import LOGARITHMIC, sweep_of
from plait.report.render.theme import SHAPES, case_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.compare.factors import HasSettings
    from plait.analysis.model import Summary
    from plait.report.figures.axes import Factor
    from plait.report.figures.case_values import Cells
    from plait.report.figures.kind import Content, Spec, TableRows

MOST_PANELS = 6
MOST_KINDS = 6
"""More kinds of points would not be distinguishable."""


EDGE = 8
"""Space between the outermost points and the edges of a panel, in pixels."""


class ScatterFigure(FigureKind):
    """Points in a panel for each thing that varies; a study has it whose cases fill a space without forming a grid."""

    name = "scatter"

    def selected(self, content: Content) -> list[FigureRequest]:
        """Return a figure of each metric that neither a heat map nor lines show."""
        if sweep_of(content.rows) is not None or len(axes_of(content.rows)) < 2:
            return []
        return [
            FigureRequest(f"{file}-scatter", self.name, metric)
            for file, metric in content.measured()
            if crossed(content, metric) is None and points_of(content.summary, metric) is not None
        ]

    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return a panel for each setting that varies."""
        cells = _points(wanted, content)
        if cells is None:
            return []
        facets = factor_of(content.cases, wanted.facets)
        axes = [axis for axis in axes_of(content.cases, wanted.x) if axis is not facets]
        if facets is None:
            return scatter(content.summary, cells, axes)
        panels = []
        for text in facets.order:
            names = {case.name for case, own in zip(content.cases, facets.texts, strict=True) if own == text}
            part = replace(cells, values={name: v for name, v in cells.values.items() if name in names})
            title = facets.labelled(text)
            panels += [{**panel, "title": title} for panel in scatter(content.summary, part, axes, cells)]
        return panels[:MOST_PANELS]

    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return the value of each case."""
        cells = _points(wanted, content)
        return cells_table(cells, wanted.metric, content.summary) if cells is not None else []

    def caption(self, wanted: FigureRequest, content: Content) -> str:
        """Return what a point means."""
        cells = _points(wanted, content)
        if cells is not None and cells.compared:
            return (
                "Each point is the ratio of two cases' means over trials with the same seed, in the panel of each "
                "varied setting; 1 means equal."
            )
        return "Each point is a case, the mean over its trials; the panel of each varied setting shows it."


SCATTER = ScatterFigure()


def _points(wanted: FigureRequest, content: Content) -> Cells | None:
    """Return the value of each case, and what colour and shape distinguish: the values of `color`, if it is given."""
    colour = factor_of(content.cases, wanted.color)
    if colour is None and wanted.facets is None:
        return points_of(content.summary, wanted.metric, plain=wanted.plain)
    cells = cells_of(content.summary, wanted.metric, steps(content.cases), plain=wanted.plain)
    if cells is None:
        return None
    texts = {
        case.name: (colour.labelled(text) if colour.numbers else text) if colour is not None else ""
        for case, text in zip(content.cases, (colour or factors(content.cases)[0]).texts, strict=True)
    }
    return replace(cells, labels={name: texts[name] for name in cells.labels})


def axes_of(cases: Sequence[HasSettings], x: str | None = None) -> list[Factor]:
    """Return the factors that have a panel: `x`, or up to `MOST_PANELS` numeric ones with enough steps for an axis."""
    numeric = {factor.setting for factor in steps(cases)}
    return [factor for factor in factors(cases) if factor.setting in numeric and x in {None, factor.setting}][
        :MOST_PANELS
    ]


def points_of(summary: Summary, metric: str, *, plain: bool = False) -> Cells | None:
    """Return the value of each case; None when there is nothing, or there are more kinds of points than colours."""
    cells = cells_of(summary, metric, steps(summary.cases), plain=plain)
    return cells if cells is not None and len(set(cells.labels.values())) <= MOST_KINDS else None


def scatter(
    summary: Summary, cells: Cells, axes: Sequence[Factor], scaled_for: Cells | None = None
) -> list[Spec]:
    """Return a panel for each of `axes`, the summary's own factors, all on the same vertical scale.

    `scaled_for` has the cells of all panels where `cells` are those of some.
    """
    kinds = list(dict.fromkeys(cells.labels.values()))
    values = [value for value, _ in (scaled_for or cells).values.values()]
    wide = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC
    most = max(*values, 1.0) if cells.ratio else max(values)
    scale = {"type": "log"} if wide else {"domain": [min(0.0, *values), most * 1.05], "nice": True}
    several = len(kinds) > 1
    by_kind = {"field": "kind", "type": "nominal", "sort": kinds}
    legend = {"title": None, "orient": "top", "labelLimit": 260} if several else None
    shared = {
        "y": {
            "field": "y",
            "type": "quantitative",
            "scale": scale,
            "axis": {"title": cells.title, "tickCount": 6},
        },
        "color": {
            **by_kind,
            "scale": {"domain": kinds, "range": [case_token(i + cells.compared) for i in range(len(kinds))]},
            "legend": legend,
        },
        "shape": {
            **by_kind,
            "scale": {"domain": kinds, "range": list(SHAPES[: len(kinds)])},
            "legend": legend,
        },
    }
    return [_panel(summary, cells, axis, shared) for axis in axes]


def _panel(summary: Summary, cells: Cells, axis: Factor, shared: Spec) -> Spec:
    numbers = axis.numbers or ()
    data = [
        {"x": number, "y": cells.values[case.name][0], "kind": cells.labels[case.name], "case": case.name,
         "shown": cells.values[case.name][1]}
        for case, number in zip(summary.cases, numbers, strict=True)
        if case.name in cells.values
    ]  # fmt: skip
    apart = min(numbers) > 0 and max(numbers) / min(numbers) >= LOGARITHMIC
    layers: list[Spec] = [
        {
            "data": {"values": data},
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 0.75},
            "encoding": {
                "x": {
                    "field": "x",
                    "type": "quantitative",
                    "scale": {"padding": EDGE}
                    | ({"type": "log", "nice": False} if apart else {"zero": False}),
                    "axis": {
                        "title": axis.title,
                        "tickCount": 4,
                        "labelOverlap": "greedy",
                        "labelSeparation": 6,
                    },
                },
                **shared,
                "tooltip": [
                    {"field": "case", "title": "case"},
                    {"field": "x", "title": axis.title},
                    {"field": "shown", "title": cells.title},
                ],
            },
        }
    ]
    if cells.ratio:
        rule = {"type": "rule", "strokeDash": [4, 3], "color": "@muted"}
        line = {"y": {"datum": 1, "type": "quantitative"}}
        layers.append({"data": {"values": [{}]}, "mark": rule, "encoding": line})
    return {"$schema": SCHEMA, "width": 240, "height": 200, "layer": layers}
