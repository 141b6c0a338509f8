"""How a metric is distributed over the trials of each case: which share of them has at most a value (ECDF)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plait.analysis.labels.cases import short_labels
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.values import axis_title, scale_of, show
from plait.analysis.wording import percent
from plait.report.figures.kind import FigureKind, FigureRequest, number
from plait.report.figures.kinds.cases import SCHEMA
from plait.report.figures.roles import MOST_SERIES, CaseLabels, panels_of
from plait.report.render.paper import with_narrow_keys
from plait.report.render.theme import case_token, dashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.rows import CaseRows
    from plait.report.figures.kind import Content, Spec, TableRows
    from plait.report.figures.roles import Roles

Points = list[tuple[float, float]]
"""(value, share of the observations that are at most so large)."""

DISTRIBUTED = ("completion_s", "page_load_s")
LEAST = 5
"""Fewer observations say nothing of a distribution."""
MOST_POINTS = 400
NEAR = 0.01
"""Lines that are apart by at most this part of their axis cover each other."""
WIDTH, WIDER = 2.0, 1.6
"""Width of a line in pixels, and what a line has more for each line above it that covers it."""
_BY_WIDTH = {"strokeWidth": {"field": "width", "type": "quantitative", "scale": None}}
PANEL = 240
"""Width of a panel on the page."""


class EcdfFigure(FigureKind):
    """A line for each case; a study has it whose times to complete were repeated often enough."""

    name = "distribution"

    def selected(self, content: Content) -> list[FigureRequest]:
        """Return a figure of each time that was measured often enough."""
        return [
            FigureRequest(f"{file}-distribution", self.name, metric)
            for file, metric in content.measured()
            if metric in DISTRIBUTED and distributed(content.rows, metric)
        ]

    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return one panel; of many cases, a panel for each value of what lines do not distinguish."""
        roles = panels_of(content.rows, wanted, MOST_SERIES)
        if roles is None:
            spec = ecdf_spec(content.rows, wanted.metric)
            return [spec] if spec is not None else []
        lines = distributed(content.rows, wanted.metric)
        most = max((points[-1][0] for points in lines.values()), default=0)
        least = min((points[0][0] for points in lines.values()), default=0)
        if not content.is_part:
            roles = replace(roles, x=joined(roles, lines, most - least))
        panels = []
        for label, names in roles.panels():
            rows = [case for case in content.rows if case.name in names]
            spec = ecdf_spec(rows, wanted.metric, roles, (least, most))
            if spec is not None:
                panels.append(
                    {**with_narrow_keys(spec, PANEL), "title": label, "width": PANEL, "height": 150}
                )
        return panels

    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return the points of every line."""
        rows: TableRows = [["case", wanted.metric, "share"]]
        for case, points in distributed(content.rows, wanted.metric).items():
            rows += [[case, number(value), number(share)] for value, share in points]
        return rows

    def caption(self, wanted: FigureRequest, content: Content) -> str:  # noqa: ARG002 - it is always the same
        """Return what a line means."""
        return "For each value, the share of trials with at most that value."


DISTRIBUTION = EcdfFigure()


def distributed(cases: Sequence[CaseRows], metric: str) -> dict[str, Points]:
    """Return the distribution of each case by name, over trials and, where there are several, over flows.

    Empty unless some case has enough observations; of many, quantiles at equal distances.
    """
    by_case = {}
    for case in cases:
        values = sorted(value for row in case.rows for value in _observations(row.metrics, metric))
        if len(values) >= LEAST:
            by_case[case.name] = _points(values)
    return by_case


def _observations(metrics: dict[str, float | None], metric: str) -> list[float]:
    """Return the metric of each flow, where a trial has several, else that of the trial."""
    end = f".{metric}"
    of_flows = [value for name, value in metrics.items() if value is not None and name.endswith(end)]
    whole = metrics.get(metric)
    return of_flows or ([whole] if whole is not None else [])


def _points(values: list[float]) -> Points:
    count = len(values)
    ranks: Sequence[int] = range(count)
    if count > MOST_POINTS:
        ranks = sorted({round(i * (count - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)})
    return [(values[rank], (rank + 1) / count) for rank in ranks]


def ecdf_spec(
    cases: Sequence[CaseRows],
    metric: str,
    roles: Roles | None = None,
    span: tuple[float, float] | None = None,
) -> Spec | None:
    """Return the figure of these cases; None when no case has enough observations.

    As a panel of several it has the labels of `roles`, and an axis that holds the values in `span`.
    """
    by_case = distributed(cases, metric)
    if not by_case:
        return None
    names = short_labels(cases) if roles is None else roles.x.of
    least, most = span or (0.0, max(points[-1][0] for points in by_case.values()))
    divisor, unit = scale_of(metric, most)
    lines: dict[str, Points] = {}
    for case, points in by_case.items():  # cases with one label have one line
        lines.setdefault(names[case], points)
    widths = _widths(lines, most - least)
    data = [
        {
            "case": case,
            "width": widths[case],
            "x": value / divisor,
            "share": share,
            "shown": show(metric, value),
            "part": percent(share),
        }
        for case, points in lines.items()
        # It begins at no share, so that the step to the first observation is seen.
        for value, share in [(points[0][0], 0.0), *points]
    ]
    order = [names[case] for case in by_case] if roles is None else roles.x.order
    scale: Spec = {"zero": False, "padding": 14}
    if span is not None:
        room = (most - least) * 0.05
        scale = {"domain": [(least - room) / divisor, (most + room) / divisor], "nice": False}
    title, name = axis_title(metric, unit), title_of(metric)
    key_title = roles.x.title if roles is not None else ""  # the lines are levels of one factor
    return steps_spec(
        data,
        order,
        scale,
        title=title,
        share_title="Share with at most this",
        name=name,
        key_title=key_title,
    )


def joined(roles: Roles, lines: dict[str, Points], span: float) -> CaseLabels:
    """Return the labels of lines, where those that no panel shows apart have one label: `reno = lia`."""
    panels: dict[str, dict[str, Points]] = {}
    for case, points in lines.items():
        panels.setdefault(roles.x.of[case], {})[roles.panel.of[case]] = points
    groups: list[list[str]] = []
    for level in (level for level in roles.x.order if level in panels):
        for group in groups:
            first = panels[group[0]]
            if first.keys() == panels[level].keys() and all(
                coincide(first[panel], points, span) for panel, points in panels[level].items()
            ):
                group.append(level)
                break
        else:
            groups.append([level])
    labels = {level: " = ".join(group) for group in groups for level in group}
    return CaseLabels(roles.x.title, {case: labels.get(level, level) for case, level in roles.x.of.items()})


def coincide(first: Points, second: Points, span: float) -> bool:
    """Return whether two lines over `span` cover each other."""
    return len(first) == len(second) and all(
        abs(a - b) <= NEAR * span for (a, _), (b, _) in zip(first, second, strict=True)
    )


def _widths(lines: dict[str, Points], span: float) -> dict[str, float]:
    """Return the width of each line in pixels: of those that coincide, one above another is narrower."""
    widths = {}
    for name, points in lines.items():
        later = list(lines)[list(lines).index(name) + 1 :]
        above = sum(coincide(points, lines[other], span) for other in later)
        widths[name] = WIDTH + WIDER * above
    return widths


def steps_spec(
    data: list[dict[str, Any]],
    order: Sequence[str],
    scale: Spec,
    *,
    title: str,
    share_title: str,
    name: str,
    key_title: str = "",
) -> Spec:
    """Return a figure of shares that rise in steps, one line for each case in `order`.

    A row of `data` has `case`, `x` (in the axis' unit), `share` (0 to 1), and `shown` and `part`, both in words;
    `scale` is the horizontal axis', and `name` says in its tooltip what is distributed. A row may have the `width` of
    its line.
    """
    legend = {"title": key_title or None, "orient": "top", "labelLimit": 260} if len(order) > 1 else None
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": 200,
        "data": {"values": data},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": WIDTH},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": scale,
                "axis": {"title": title, "grid": True, "tickCount": 6},
            },
            "y": {
                "field": "share",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "axis": {
                    "title": share_title,
                    "labelExpr": "format(datum.value * 100, 'd') + ' %'",
                    "tickCount": 5,
                },
            },
            **_by_case(list(order), legend),
            **(_BY_WIDTH if any("width" in row for row in data) else {}),
            "tooltip": [
                {"field": "case", "title": "case"},
                {"field": "shown", "title": name},
                {"field": "part", "title": "share"},
            ],
        },
    }


def _by_case(order: list[str], legend: Spec | None) -> Spec:
    """Return colours and dashes of cases: in black and white, and for whoever sees no colours, lines differ, too."""
    by_case = {"field": "case", "type": "nominal", "sort": order, "legend": legend}
    colours = [case_token(number) for number in range(len(order))]
    return {
        "color": {**by_case, "scale": {"domain": order, "range": colours}},
        "strokeDash": {**by_case, "scale": {"domain": order, "range": dashes(len(order))}},
    }
