"""The heat map of two things that vary: a metric in each cell, or its ratio to the case that it is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from plait.analysis.model import Summary
from plait.analysis.wording import significant
from plait.report.figures.axes import Factor, factor_of, factors, grid_of
from plait.report.figures.case_values import Cells, cells_of, cells_table, crossed
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec, TableRows
from plait.report.figures.marks import SCHEMA, field, levels, numbers
from plait.report.render.theme import LIGHT, luminance

CELL = 46
_EVEN_CONTRAST = 0.179
"""The relative luminance that contrasts with black as much as with white: (L + 0.05)^2 = 1.05 * 0.05."""
LABELLED = 150
"""In more cells numbers would not be readable."""
EVEN = 1.02
"""A ratio nearer to 1 than this is drawn in the middle colour."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each metric that was measured at the points of a grid."""
    grids = [(file, metric, crossed(content, metric)) for file, metric in content.measured()]
    return [
        FigureRequest(f"{file}-heat-map", "heat-map", metric, grid[0].setting, grid[1].setting)
        for file, metric, grid in grids
        if grid is not None
    ]


def _completed(request: FigureRequest, content: Content) -> FigureRequest:
    """Return the figure with both axes."""
    grid = grid_of([factor for factor in factors(content.rows) if factor.setting != request.facets])
    if grid is None:
        return request
    settings = [factor.setting for factor in grid]
    x = request.x or next((setting for setting in settings if setting != request.y), None)
    y = request.y or next((setting for setting in settings if setting != x), None)
    return replace(request, x=x, y=y)


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return a panel for each further setting."""
    x, y = factor_of(content.rows, request.x), factor_of(content.rows, request.y)
    cells = _cells(request, content)
    if cells is None or x is None or y is None:
        return []
    return heat_map(content.summary, cells, x, y)


def _table(request: FigureRequest, content: Content) -> TableRows:
    """Return the value of each case."""
    cells = _cells(request, content)
    return cells_table(cells, request.metric, content.summary) if cells is not None else []


def _caption(request: FigureRequest, content: Content) -> str:
    """Return what a cell means."""
    cells = _cells(request, content)
    if cells is not None and cells.compared:
        return "Each cell is the ratio of two means over trials with the same seed; 1 means equal."
    if cells is not None and cells.bounds:
        return "Each cell is the mean over its trials, with half its 95 % interval below."
    return "Each cell is the mean over its trials."


HEAT_MAP = FigureKind("heat-map", _panels, _table, _caption, selected=_selected, completed=_completed)
"""A cell for each case; a study has it in which two things vary in steps."""


def _cells(request: FigureRequest, content: Content) -> Cells | None:
    x, y = factor_of(content.rows, request.x), factor_of(content.rows, request.y)
    if x is None or y is None:
        return None
    return cells_of(content.summary, request.metric, (x, y), request.facets, plain=request.plain)


def heat_map(summary: Summary, cells: Cells, x: Factor, y: Factor) -> list[Spec]:
    """Return a panel for each further setting, all in the same colours."""
    place_of = {case.name: {"x": x.texts[i], "y": y.texts[i]} for i, case in enumerate(summary.cases)}
    colour = _colour([value for value, _ in cells.values.values()], cells)
    panels: dict[str, list[dict[str, Any]]] = {}
    for name, label in cells.labels.items():
        value, text = cells.values[name]
        words = {"shown": text, "bound": cells.bounds.get(name, ""), "ink": _ink(value, colour["scale"])}
        panels.setdefault(label, []).append({**place_of[name], "v": value, **words})
    return [
        {**_panel(data, x, y, colour), **({"title": label} if len(panels) > 1 else {})}
        for label, data in panels.items()
    ]


def _panel(data: Sequence[dict[str, Any]], x: Factor, y: Factor, colour: Mapping[str, Any]) -> Spec:
    titles = {"x": x.title, "y": y.title, "shown": "value", "bound": "95 % interval"}
    tooltip = [field(name, title) for name, title in titles.items()]
    rect = {"type": "rect", "stroke": "@surface", "strokeWidth": 1}
    layers: list[Spec] = [{"mark": rect, "encoding": {"color": colour, "tooltip": tooltip}}]
    if len(data) <= LABELLED:
        bounded = any(row["bound"] for row in data)
        texts = [("shown", 11.5, -5), ("bound", 8.5, 7)] if bounded else [("shown", 11.5, 0)]
        layers += [
            {
                "mark": {"type": "text", "fontSize": size, "dy": dy, "fill": {"expr": "datum.ink"}},
                "encoding": {"text": field(name)},
            }
            for name, size, dy in texts
        ]
    return {
        "$schema": SCHEMA,
        "width": max(120, CELL * x.steps),
        "height": max(60, 34 * y.steps),
        "data": {"values": list(data)},
        "encoding": {
            "x": _axis("x", x, x.order),
            "y": _axis("y", y, y.order if y.numbers is None else y.order[::-1]),
        },
        "layer": layers,
    }


def _ink(value: float, scale: Mapping[str, Any]) -> str:
    """Return black or white, whichever contrasts more with the colour of a cell (WCAG 2.2, 1.4.3).

    Both themes have nearly the same colours of cells; the ends and the middle of the light theme's are taken as mixed
    linearly.
    """
    domain, colours = scale["domain"], [LIGHT[token[1:]] for token in scale["range"]]
    pairs = list(zip(pairwise(domain), pairwise(colours), strict=True))
    (low, high), ends = next((pair for pair in pairs if value <= pair[0][1]), pairs[-1])
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    channels = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in ends]
    mixed = [first + share * (last - first) for first, last in zip(*channels, strict=True)]
    return "#000000" if luminance(mixed) > _EVEN_CONTRAST else "#ffffff"


def _axis(name: str, factor: Factor, order: Sequence[str]) -> Spec:
    axis = {"title": factor.title, "labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    return {**levels(name, order, "ordinal"), "axis": axis}


def _colour(values: Sequence[float], cells: Cells) -> Spec:
    """Return the colours: for ratios from orange (less) over the page's own (as much) to blue (more), else one hue."""
    low, high = min(values), max(values)
    domain, colours = [low, high if high > low else low + 1], ["@faintest", "@more"]
    if cells.ratio:
        far = max(high, 1 / low if low > 0 else high, EVEN)
        domain, colours = [1 / far, 1, far], ["@less", "@even", "@more"]
    legend = {"title": cells.title, "orient": "top", "gradientLength": 180, "gradientThickness": 10}
    legend |= {"titleLimit": 420, "direction": "horizontal"}
    # Ticks of a scale are round numbers; the ends of the colours have the digits of the cells.
    ends = [domain[0], domain[-1]]
    legend |= {"values": ends, "labelExpr": f"{json.dumps([significant(end) for end in ends])}[datum.index]"}
    return numbers("v", scale={"domain": domain, "range": colours, "interpolate": "lab"}, legend=legend)
