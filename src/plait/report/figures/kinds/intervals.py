"""The figure of grouped intervals: a point with its 95 % bar for each case, in groups along a varied setting.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.metrics.catalogue import title_of
from plait.analysis.values import axis_title, scale_of, with_interval
from plait.report.figures.axes import steps
from plait.report.figures.case_values import shown_ends, trials_table
from plait.report.figures.kind import FigureKind, FigureRequest
from plait.report.figures.kinds.cases import SCHEMA
from plait.report.figures.roles import Roles, roles_of
from plait.report.render.theme import case_token, shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import CaseSummary
    from plait.report.figures.kind import Content, Spec, TableRows

GROUPED = 8
"""From this number of cases on, groups are clearer than a row for each case."""
FROM_ZERO = 0.25
"""The axis begins at zero unless all values are above this part of the greatest one."""


@dataclass(frozen=True)
class _Panel:
    """What the panels of one figure share."""

    roles: Roles
    metric: str
    divisor: float
    unit: str
    domain: tuple[float, float]


class IntervalsFigure(FigureKind):
    """Points with intervals, grouped by what varies; a study has it of many cases that choices distinguish."""

    name = "intervals"

    def selected(self, content: Content) -> list[FigureRequest]:
        """Return a figure of each metric, of a study in which several things vary and give many cases."""
        if len(content.rows) < GROUPED or steps(content.rows):  # what takes steps has lines, or a heat map
            return []
        figures = [
            FigureRequest(f"{file}-intervals", self.name, metric) for file, metric in content.measured()
        ]
        return figures if is_grouped(content) else []

    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return a panel for each value of what has neither the axis nor a colour."""
        roles = roles_of(content.rows, wanted)
        ends = [
            end
            for case in content.cases
            if (stats := case.metrics.get(wanted.metric)) is not None and stats.mean is not None
            for end in (stats.mean, *shown_ends(stats))
        ]
        if roles is None or not ends:
            return []
        divisor, unit = scale_of(wanted.metric, max(ends))
        low = min(ends) if min(ends) > FROM_ZERO * max(ends) else min(0.0, *ends)
        room = (max(ends) - low) * 0.05 or abs(max(ends)) * 0.05 or 1.0
        bottom = low - room if low != 0 else low
        shared = _Panel(roles, wanted.metric, divisor, unit, (bottom / divisor, (max(ends) + room) / divisor))
        by_name = {case.name: case for case in content.cases}
        panels = roles.panels()
        return [
            {
                **_panel([by_name[name] for name in names], shared),
                **({"title": label} if len(panels) > 1 else {}),
            }
            for label, names in panels
        ]

    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return every trial's value, and the means."""
        return trials_table(content, wanted.metric)

    def caption(self, wanted: FigureRequest, content: Content) -> str:  # noqa: ARG002 - it is always the same
        """Return what the marks mean."""
        return "Each point is the mean over the trials of a case; the bar is its 95 % interval."


INTERVALS = IntervalsFigure()


def is_grouped(content: Content) -> bool:
    """Return whether the cases fall into groups: at least two things vary, and few of all cases share a place."""
    roles = roles_of(content.rows, FigureRequest("", "intervals", ""))
    return roles is not None and len(roles.x.order) < len(content.rows) <= _MOST


_MOST = 240


def _panel(cases: Sequence[CaseSummary], shared: _Panel) -> Spec:
    roles = shared.roles
    data = []
    for case in cases:
        stats = case.metrics.get(shared.metric)
        if stats is None or stats.mean is None:
            continue
        low, high = stats.ci95 or (stats.mean, stats.mean)
        data.append(
            {
                "x": roles.x.of[case.name],
                "colour": roles.colour.of[case.name],
                "size": _SIZES[roles.colour.order.index(roles.colour.of[case.name]) % len(_SIZES)],
                "mean": stats.mean / shared.divisor,
                "low": low / shared.divisor,
                "high": high / shared.divisor,
                "shown": with_interval(shared.metric, stats.mean, stats.ci95),
                "trials": stats.n,
            }
        )
    several = roles.hues > 1
    x = {
        "field": "x",
        "type": "nominal",
        "sort": roles.x.order,
        "scale": {"domain": roles.x.order, "padding": 0.2},
    }
    offset = {
        "field": "colour",
        "type": "nominal",
        "sort": roles.colour.order,
        "scale": {"domain": roles.colour.order, "paddingOuter": 0.3},
    }
    return {
        "$schema": SCHEMA,
        "width": 520 if len(roles.panels()) == 1 else 240,
        "height": 220 if len(roles.panels()) == 1 else 170,
        "data": {"values": data},
        "encoding": {
            "x": {**x, "axis": {"title": roles.x.title, "labelAngle": 0, "ticks": False, "grid": False}},
            **({"xOffset": offset} if several else {}),
            "y": {
                "type": "quantitative",
                "scale": {"domain": list(shared.domain), "nice": False, "zero": False},
                "axis": {"title": axis_title(shared.metric, shared.unit), "tickCount": 6},
            },
            "color": _by_colour(roles, "color"),
        },
        "layer": _layers(shared),
    }


def _layers(shared: _Panel) -> list[Spec]:
    """Return the bars of the intervals, and the points of the means above them."""
    roles = shared.roles
    several = roles.hues > 1
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "clip": True},
            "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "y": {"field": "mean"},
                "shape": _by_colour(roles, "shape"),
                "size": {"field": "size", "type": "quantitative", "scale": None},
                "tooltip": [
                    {"field": "x", "title": roles.x.title},
                    *([{"field": "colour", "title": roles.colour.title}] if several else []),
                    {"field": "shown", "title": title_of(shared.metric)},
                    {"field": "trials", "title": "trials"},
                ],
            },
        },
    ]


_SIZES = (38, 31, 46, 50, 46, 46, 60, 90)
"""For each shape, the `size` at which it looks as large as the others."""


def _by_colour(roles: Roles, channel: str) -> Spec:
    """Return the encoding of what colours distinguish; shapes distinguish it, too, in black and white."""
    order = roles.colour.order
    if len(order) < 2:
        return {"value": case_token(1)} if channel == "color" else {"value": shapes(1)[0]}
    values = [case_token(n) for n in range(len(order))] if channel == "color" else shapes(len(order))
    return {
        "field": "colour",
        "type": "nominal",
        "sort": order,
        "scale": {"domain": order, "range": values},
        "legend": {"title": roles.colour.title, "symbolSize": 60, "symbolStrokeWidth": 0},
    }
