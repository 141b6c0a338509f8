"""The figure of grouped intervals: a point with its 95 % bar for each case, in groups along a varied setting.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.analysis.metrics.catalogue import title_of
from plait.analysis.model import CaseSummary
from plait.analysis.values import axis_title, scale_of, with_interval
from plait.report.figures.axes import steps
from plait.report.figures.case_values import FROM_ZERO, shown_ends, trials_table
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec
from plait.report.figures.marks import SCHEMA, distinct, field, levels, numbers, spanning
from plait.report.figures.roles import Roles, roles_of
from plait.report.render.theme import case_token, shapes

GROUPED = 8
"""From this number of cases on, groups are clearer than a row for each case."""
_SIZES = (38, 31, 46, 50, 46, 46, 60, 90)
"""For each shape, the `size` at which it looks as large as the others."""
_MOST_CASES = 240


def _selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each metric, of a study in which several things vary and give many cases."""
    if len(content.rows) < GROUPED or steps(content.rows):  # what takes steps has lines, or a heat map
        return []
    roles = roles_of(content.rows, FigureRequest("", "intervals", ""))
    if roles is None or not len(roles.x.order) < len(content.rows) <= _MOST_CASES:
        return []  # no groups, or too many
    return [FigureRequest(f"{file}-intervals", "intervals", metric) for file, metric in content.measured()]


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return a panel for each value of what has neither the axis nor a colour."""
    roles = roles_of(content.rows, request)
    ends = [
        end
        for case in content.cases
        if (stats := case.metrics.get(request.metric)) is not None and stats.mean is not None
        for end in (stats.mean, *shown_ends(stats))
    ]
    if roles is None or not ends:
        return []
    divisor, unit = scale_of(request.metric, max(ends))
    low = min(ends) if min(ends) > FROM_ZERO * max(ends) else min(0.0, *ends)
    room = (max(ends) - low) * 0.05 or abs(max(ends)) * 0.05 or 1.0
    bottom = low - room if low != 0 else low
    y = spanning(bottom / divisor, (max(ends) + room) / divisor, axis_title(request.metric, unit))
    by_name = {case.name: case for case in content.cases}
    panels = roles.panel.groups
    return [
        {
            **_panel(
                _points([by_name[name] for name in names], roles, request.metric, divisor),
                roles,
                title_of(request.metric),
                y,
            ),
            **({"title": label} if len(panels) > 1 else {}),
        }
        for label, names in panels
    ]


INTERVALS = FigureKind(
    "intervals",
    _panels,
    lambda request, content: trials_table(content, request.metric),
    lambda _, __: "Each point is the mean over the trials of a case; the bar is its 95 % interval.",
    selected=_selected,
    draws_intervals=True,
)
"""Points with intervals, grouped by what varies; a study has it of many cases that choices distinguish."""


def _points(
    cases: Sequence[CaseSummary], roles: Roles, metric: str, divisor: float
) -> list[dict[str, object]]:
    """Return the mean of each case that has one, with the ends of its interval."""
    data: list[dict[str, object]] = []
    for case in cases:
        stats = case.metrics.get(metric)
        if stats is None or stats.mean is None:
            continue
        low, high = stats.ci95 or (stats.mean, stats.mean)
        colour = roles.colour.of[case.name]
        data.append(
            {
                "x": roles.x.of[case.name],
                "colour": colour,
                "size": _SIZES[roles.colour.order.index(colour) % len(_SIZES)],
                "mean": stats.mean / divisor,
                "low": low / divisor,
                "high": high / divisor,
                "shown": with_interval(metric, stats.mean, stats.ci95),
                "trials": stats.n,
            }
        )
    return data


def _panel(data: Sequence[dict[str, object]], roles: Roles, metric: str, y: Spec) -> Spec:
    is_alone = len(roles.panel.order) == 1
    channels = _by_colour(roles)
    several = len(roles.colour.order) > 1
    titles = {"x": roles.x.title, "colour": roles.colour.title, "shown": metric, "trials": "trials"}
    means = {
        "y": field("mean"),
        "shape": channels["shape"],
        "size": numbers("size", scale=None),
        "tooltip": [field(name, title) for name, title in titles.items() if several or name != "colour"],
    }
    return {
        "$schema": SCHEMA,
        "width": 520 if is_alone else 240,
        "height": 220 if is_alone else 170,
        "data": {"values": list(data)},
        "encoding": {
            "x": {
                **levels("x", roles.x.order, padding=0.2),
                "axis": {"title": roles.x.title, "labelAngle": 0, "ticks": False, "grid": False},
            },
            **({"xOffset": levels("colour", roles.colour.order, paddingOuter=0.3)} if several else {}),
            "y": y,
            "color": channels["color"],
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1.5, "clip": True},
                "encoding": {"y": field("low"), "y2": field("high")},
            },
            {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": means},
        ],
    }


def _by_colour(roles: Roles) -> Spec:
    """Return the encoding of what colours distinguish; shapes distinguish it, too, in black and white."""
    order = roles.colour.order
    if len(order) < 2:
        return {"color": {"value": case_token(1)}, "shape": {"value": shapes(1)[0]}}
    legend = {"title": roles.colour.title, "symbolSize": 60, "symbolStrokeWidth": 0}
    return distinct("colour", order, "shape", legend)
