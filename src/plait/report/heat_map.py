"""The heat map of two things that vary: a metric in each cell, or its ratio to the case that it is compared with.

Where a study varies the transport, the cells are MPTCP over TCP; else, of MPTCP alone, over what the best path allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.analysis.factors import main_factor
from plait.analysis.titles import axis_title, scale_of, title_of
from plait.analysis.wording import case_label, significant
from plait.report.cases_chart import SCHEMA
from plait.report.factors import Factor, factors, label_without
from plait.report.headline import matched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.analysis.model import Summary

Spec = dict[str, Any]

MOST_CELLS = 400
MOST_PANELS = 6
CELL = 46
LABELLED = 150
"""In more cells numbers would not be readable."""
EVEN = 1.02
"""A ratio nearer to 1 than this is drawn in the middle colour."""


@dataclass(frozen=True)
class Cells:
    """What stands in the cells: by case its value and text, the panel it belongs to, and what the colours mean."""

    title: str
    values: dict[str, tuple[float, str]]
    panels: dict[str, str]
    ratio: bool
    """The values are ratios: as much is 1."""
    compared: bool = False
    """They are ratios to the case compared with, not the metric itself."""
    divisor: float = 1.0


def grid_of(found: Sequence[Factor]) -> tuple[Factor, Factor] | None:
    """Return the two factors with most steps that form a grid, and not only a line of points through it."""
    pairs = [(x, y) for x in found for y in found if x is not y]
    for x, y in pairs:
        cells = len(set(zip(x.texts, y.texts, strict=True)))
        if 1.5 * max(x.steps, y.steps) <= cells <= MOST_CELLS and x.steps >= y.steps:
            return x, y
    return None


def cells_of(summary: Summary, metric: str, x: Factor, y: Factor, *, plain: bool = False) -> Cells | None:
    """Return what the cells show; with `plain`, the mean of the metric whatever it could be compared with."""
    compared = main_factor(summary.cases)
    ratios = {
        one.case: one.ratio.value
        for one in matched(summary)
        if one.metric == metric and one.ratio is not None
    }
    known = factors(summary.cases)
    if compared not in {x.setting, y.setting, None} and ratios and not plain:
        names = {c.name: label_without(c, [x.setting, y.setting], known) for c in summary.cases}
        base = next(c for c in summary.cases if c.name not in ratios)
        against = case_label("", {compared: base.settings.get(compared)}) if compared else ""
        values = {name: (ratio, significant(ratio)) for name, ratio in ratios.items()}
        panels = {name: names[name] for name in values}
        over = f": {next(iter(panels.values()))}" if len(set(panels.values())) == 1 else ""
        return Cells(f"{title_of(metric)}{over} / {against}", values, panels, ratio=True, compared=True)
    means = _means(summary, metric)
    if not means:
        return None
    divisor, unit = scale_of(metric, max(means.values()))
    values = {name: (value / divisor, significant(value / divisor)) for name, value in means.items()}
    panels = {
        c.name: label_without(c, [x.setting, y.setting], known) for c in summary.cases if c.name in values
    }
    ratio = metric == "best_path_ratio"
    return Cells(axis_title(metric, unit), values, panels, ratio=ratio, divisor=divisor)


def heat_map(summary: Summary, cells: Cells, x: Factor, y: Factor) -> list[Spec]:
    """Return a panel for each further setting (at most six), all in the same colours."""
    at = {case.name: (x.texts[i], y.texts[i]) for i, case in enumerate(summary.cases)}
    shown = list(dict.fromkeys(cells.panels.values()))[:MOST_PANELS]
    colour = _colour([value for value, _ in cells.values.values()], cells)
    return [
        {
            **_panel(
                [(at[name], *cells.values[name]) for name, own in cells.panels.items() if own == label],
                x,
                y,
                colour,
            ),
            **({"title": label} if len(shown) > 1 else {}),
        }
        for label in shown
    ]


def _panel(
    found: Sequence[tuple[tuple[str, str], float, str]], x: Factor, y: Factor, colour: Mapping[str, Any]
) -> Spec:
    data = [{"x": place[0], "y": place[1], "v": value, "shown": text} for place, value, text in found]
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


def _means(summary: Summary, metric: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for case in summary.cases:
        stats = case.metrics.get(metric)
        if stats is not None and stats.mean is not None:
            found[case.name] = stats.mean
    return found
