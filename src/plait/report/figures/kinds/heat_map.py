"""The heat map of two things that vary: a metric in each cell, or its ratio to the case that it is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plait.report.figures.axes import factor_of, factors, steps
from plait.report.figures.case_values import cells_of, cells_table
from plait.report.figures.kind import FigureKind, FigureRequest
from plait.report.figures.kinds.cases import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.analysis.model import Summary
    from plait.report.figures.axes import Factor
    from plait.report.figures.case_values import Cells
    from plait.report.figures.kind import Content, Spec, TableRows

MOST_CELLS = 400
MOST_PANELS = 6
CELL = 46
LABELLED = 150
"""In more cells numbers would not be readable."""
EVEN = 1.02
"""A ratio nearer to 1 than this is drawn in the middle colour."""


class HeatMapFigure(FigureKind):
    """A cell for each case; a study has it in which two things vary in steps."""

    name = "heat-map"

    def selected(self, content: Content) -> list[FigureRequest]:
        """Return a figure of each metric that was measured at the points of a grid."""
        grids = [(file, metric, crossed(content, metric)) for file, metric in content.measured()]
        return [
            FigureRequest(f"{file}-heat-map", self.name, metric, grid[0].setting, grid[1].setting)
            for file, metric, grid in grids
            if grid is not None
        ]

    def completed(self, wanted: FigureRequest, content: Content) -> FigureRequest:
        """Return the figure with both axes."""
        grid = grid_of(factors(content.rows))
        if grid is None:
            return wanted
        settings = [factor.setting for factor in grid]
        x = wanted.x or next((setting for setting in settings if setting != wanted.y), None)
        y = wanted.y or next((setting for setting in settings if setting != x), None)
        return replace(wanted, x=x, y=y)

    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return a panel for each further setting."""
        x, y = factor_of(content.rows, wanted.x), factor_of(content.rows, wanted.y)
        cells = _cells(wanted, content)
        if cells is None or x is None or y is None:
            return []
        return heat_map(content.summary, cells, x, y)

    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return the value of each case."""
        cells = _cells(wanted, content)
        return cells_table(cells, wanted.metric, content.summary) if cells is not None else []

    def caption(self, wanted: FigureRequest, content: Content) -> str:
        """Return what a cell means."""
        cells = _cells(wanted, content)
        if cells is not None and cells.compared:
            return "Each cell is the ratio of two means over trials with the same seed; 1 means equal."
        return "Each cell is the mean over its trials."


HEAT_MAP = HeatMapFigure()


def _cells(wanted: FigureRequest, content: Content) -> Cells | None:
    x, y = factor_of(content.rows, wanted.x), factor_of(content.rows, wanted.y)
    if x is None or y is None:
        return None
    return cells_of(content.summary, wanted.metric, (x, y), plain=wanted.plain)


def crossed(content: Content, metric: str) -> tuple[Factor, Factor] | None:
    """Return the two factors of a grid at whose points `metric` was measured; None without such a grid."""
    grid = grid_of(steps(content.rows))
    return grid if grid is not None and cells_of(content.summary, metric, grid) is not None else None


def grid_of(varied: Sequence[Factor]) -> tuple[Factor, Factor] | None:
    """Return the first two factors that form a grid of at most `MOST_CELLS` cells, the one with more steps first."""
    pairs = [(x, y) for x in varied for y in varied if x is not y]
    for x, y in pairs:
        cells = len(set(zip(x.texts, y.texts, strict=True)))
        if 1.5 * max(x.steps, y.steps) <= cells <= MOST_CELLS and x.steps >= y.steps:
            return x, y
    return None


def heat_map(summary: Summary, cells: Cells, x: Factor, y: Factor) -> list[Spec]:
    """Return a panel for each further setting (at most six), all in the same colours."""
    at = {case.name: (x.texts[i], y.texts[i]) for i, case in enumerate(summary.cases)}
    shown = list(dict.fromkeys(cells.labels.values()))[:MOST_PANELS]
    colour = _colour([value for value, _ in cells.values.values()], cells)
    return [
        {
            **_panel(
                [(at[name], *cells.values[name]) for name, kind in cells.labels.items() if kind == label],
                x,
                y,
                colour,
            ),
            **({"title": label} if len(shown) > 1 else {}),
        }
        for label in shown
    ]


def _panel(
    cells: Sequence[tuple[tuple[str, str], float, str]], x: Factor, y: Factor, colour: Mapping[str, Any]
) -> Spec:
    data = [{"x": place[0], "y": place[1], "v": value, "shown": text} for place, value, text in cells]
    low, high = colour["scale"]["domain"][0], colour["scale"]["domain"][-1]
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "@surface", "strokeWidth": 1},
            "encoding": {
                "color": colour,
                "tooltip": [
                    {"field": "x", "title": x.title},
                    {"field": "y", "title": y.title},
                    {"field": "shown", "title": "value"},
                ],
            },
        }
    ]
    if len(data) <= LABELLED:
        dark = f"datum.v > {low + (high - low) * 0.62:.6g}"
        if len(colour["scale"]["domain"]) == 3:
            dark = f"datum.v > {1 + (high - 1) * 0.55:.6g} || datum.v < {1 - (1 - low) * 0.55:.6g}"
        layers.append(
            {
                "mark": {"type": "text", "fontSize": 11.5},
                "encoding": {
                    "text": {"field": "shown"},
                    "color": {"condition": {"test": dark, "value": "#ffffff"}, "value": "#1c2024"},
                },
            }
        )
    return {
        "$schema": SCHEMA,
        "width": max(120, CELL * x.steps),
        "height": max(60, 34 * y.steps),
        "data": {"values": data},
        "encoding": {
            "x": _axis("x", x, x.order),
            "y": _axis("y", y, y.order[::-1]),
        },
        "layer": layers,
    }


def _axis(field: str, factor: Factor, order: Sequence[str]) -> Spec:
    return {
        "field": field,
        "type": "ordinal",
        "sort": list(order),
        "scale": {"domain": list(order)},
        "axis": {"title": factor.title, "labelAngle": 0, "grid": False, "domain": False, "ticks": False},
    }


def _colour(values: Sequence[float], cells: Cells) -> Spec:
    """Return the colours: for ratios from orange (less) over the page's own (as much) to blue (more), else one hue."""
    low, high = min(values), max(values)
    if cells.ratio:
        far = max(high, 1 / low if low > 0 else high, EVEN)
        scale: Spec = {
            "domain": [1 / far, 1, far],
            "range": ["@less", "@even", "@more"],
            "interpolate": "lab",
        }
    else:
        scale = {
            "domain": [low, high if high > low else low + 1],
            "range": ["@faintest", "@more"],
            "interpolate": "lab",
        }
    return {
        "field": "v",
        "type": "quantitative",
        "scale": scale,
        "legend": {
            "title": cells.title,
            "orient": "top",
            "gradientLength": 180,
            "titleLimit": 420,
            "direction": "horizontal",
        },
    }
