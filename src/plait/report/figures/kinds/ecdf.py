"""How a metric is distributed over the trials of each case: which share of them has at most a value (ECDF)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.analysis.labels.cases import short_labels
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.values import axis_title, scale_of, show
from plait.analysis.wording import percent
from plait.report.figures.kind import FigureKind, FigureRequest, number
from plait.report.figures.kinds.cases import SCHEMA
from plait.report.figures.roles import panels_of
from plait.report.render.paper import with_narrow_keys
from plait.report.render.theme import DASHES, case_token

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
MOST_LINES = 6
"""In one panel; more would not be distinguishable."""
MOST_POINTS = 400
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
        roles = panels_of(content.rows, wanted, MOST_LINES)
        if roles is None:
            spec = ecdf_spec(content.rows, wanted.metric)
            return [spec] if spec is not None else []
        lines = distributed(content.rows, wanted.metric).values()
        most = max((points[-1][0] for points in lines), default=0)
        least = min((points[0][0] for points in lines), default=0)
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
    """Return the figure of the first cases; None when no case has enough observations.

    As a panel of several it has the labels of `roles`, and an axis that holds the values in `span`.
    """
    by_case = dict(list(distributed(cases, metric).items())[:MOST_LINES])
    if not by_case:
        return None
    names = short_labels(cases) if roles is None else roles.x.of
    least, most = span or (0.0, max(points[-1][0] for points in by_case.values()))
    divisor, unit = scale_of(metric, most)
    data = [
        {
            "case": names[case],
            "x": value / divisor,
            "share": share,
            "shown": show(metric, value),
            "part": percent(share),
        }
        for case, points in by_case.items()
        # It begins at no share, so that the step to the first observation is seen.
        for value, share in [(points[0][0], 0.0), *points]
    ]
    order = [names[case] for case in by_case] if roles is None else roles.x.order
    scale: Spec = {"zero": False, "padding": 14}
    if span is not None:
        room = (most - least) * 0.05
        scale = {"domain": [(least - room) / divisor, (most + room) / divisor], "nice": False}
    title, name = axis_title(metric, unit), title_of(metric)
    spec = steps_spec(data, order, scale, title=title, share_title="Share with at most this", name=name)
    for channel in ("color", "strokeDash"):
        legend = spec["encoding"][channel]["legend"]
        if roles is not None and legend is not None:  # the lines are levels of one factor
            spec["encoding"][channel]["legend"] = {**legend, "title": roles.x.title}
    return spec


def steps_spec(
    data: list[dict[str, Any]], order: Sequence[str], scale: Spec, *, title: str, share_title: str, name: str
) -> Spec:
    """Return a figure of shares that rise in steps, one line for each case in `order`.

    A row of `data` has `case`, `x` (in the axis' unit), `share` (0 to 1), and `shown` and `part`, both in words;
    `scale` is the horizontal axis', and `name` says in its tooltip what is distributed.
    """
    order = list(order)
    by_case = {"field": "case", "type": "nominal", "sort": order}
    legend = {"title": None, "orient": "top", "labelLimit": 260} if len(order) > 1 else None
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": 200,
        "data": {"values": data},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
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
            "color": {
                **by_case,
                "scale": {"domain": order, "range": [case_token(number) for number in range(len(order))]},
                "legend": legend,
            },
            # In black and white, and for whoever sees no colours, lines differ in their dashes.
            "strokeDash": {
                **by_case,
                "scale": {"domain": order, "range": [DASHES[n % len(DASHES)] for n in range(len(order))]},
                "legend": legend,
            },
            "tooltip": [
                {"field": "case", "title": "case"},
                {"field": "shown", "title": name},
                {"field": "part", "title": "share"},
            ],
        },
    }
