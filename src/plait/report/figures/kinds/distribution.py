"""Distributions as steps (ECDF): of a metric over the trials of each case, and of the delays of single messages.

A line says for each value which share of the observations is at most so large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from plait.analysis.labels.cases import short_labels
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.rows import CaseRows
from plait.analysis.values import axis_title, scale_of, show
from plait.analysis.wording import micros, percent
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec, TableRows, number
from plait.report.figures.marks import SCHEMA, distinct, field, number_axis, numbers
from plait.report.figures.roles import MOST_SERIES, CaseLabels, Roles, panels_of
from plait.report.figures.shown_labels import few_trials, note_of, shown_labels
from plait.report.render.paper import with_narrow_keys
from plait.report.representatives import Representative

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
PANEL = 240
"""Width of a panel on the page."""
DELAY_TITLES = {
    "message_delay": "Message delay",
    "request_latency": "Request latency",
    "udp_delay": "UDP delay",
}
MOST_CASES = 6
"""Cases whose delays have a line: as many as there are distinguishable colours."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each time that was measured often enough."""
    return [
        FigureRequest(f"{file}-distribution", "distribution", metric)
        for file, metric in content.measured()
        if metric in DISTRIBUTED and distributed(content.rows, metric)
    ]


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return one panel; of many cases, a panel for each value of what lines do not distinguish."""
    roles = panels_of(content.rows, request, MOST_SERIES)
    if roles is None:
        spec = _ecdf(content.rows, request.metric)
        return [spec] if spec is not None else []
    lines = distributed(content.rows, request.metric)
    largest = max((points[-1][0] for points in lines.values()), default=0)
    least = min((points[0][0] for points in lines.values()), default=0)
    if not content.is_part:
        roles = replace(roles, x=_joined(roles, lines, largest - least))
    panels = []
    for label, names in roles.panel.groups:
        rows = [case for case in content.rows if case.name in names]
        spec = _ecdf(rows, request.metric, roles, (least, largest))
        if spec is not None:
            panels.append({**with_narrow_keys(spec, PANEL), "title": label, "width": PANEL, "height": 150})
    return panels


def _table(request: FigureRequest, content: Content) -> TableRows:
    """Return the points of every line."""
    rows: TableRows = [["case", request.metric, "share"]]
    for case, points in distributed(content.rows, request.metric).items():
        rows += [[case, number(value), number(share)] for value, share in points]
    return rows


DISTRIBUTION = FigureKind(
    "distribution",
    _panels,
    _table,
    lambda request, content: (
        f"For each value, the share of {_observed(request, content)} with at most that value."
    ),
    selected=_selected,
)
"""A line for each case; a study has it whose times to complete were repeated often enough."""


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
    of_flows = [value for name, value in metrics.items() if value is not None and name.endswith(f".{metric}")]
    of_trial = metrics.get(metric)
    return of_flows or ([of_trial] if of_trial is not None else [])


def _observed(request: FigureRequest, content: Content) -> str:
    """Return what a line counts."""
    rows = (row for case in content.rows for row in case.rows)
    of_flows = any(len(_observations(row.metrics, request.metric)) > 1 for row in rows)
    return "flows of all trials" if of_flows else "trials"


def _points(values: list[float]) -> Points:
    count = len(values)
    ranks: Sequence[int] = range(count)
    if count > MOST_POINTS:
        ranks = sorted({round(i * (count - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)})
    return [(values[rank], (rank + 1) / count) for rank in ranks]


def _ecdf(
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
    least, largest = span or (0.0, max(points[-1][0] for points in by_case.values()))
    divisor, unit = scale_of(metric, largest)
    lines: dict[str, Points] = {}
    for case, points in by_case.items():  # cases with one label have one line
        lines.setdefault(names[case], points)
    widths = _widths(lines, largest - least)
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
        room = (largest - least) * 0.05
        scale = {"domain": [(least - room) / divisor, (largest + room) / divisor], "nice": False}
    key_title = roles.x.title if roles is not None else ""  # the lines are levels of one factor
    titles = (axis_title(metric, unit), "Share with at most this", title_of(metric), key_title)
    return _steps(data, order, scale, titles)


def _joined(roles: Roles, lines: dict[str, Points], span: float) -> CaseLabels:
    """Return the labels of lines, where those that no panel shows apart have one label: `reno = lia`."""
    panels: dict[str, dict[str, Points]] = {}
    for case, points in lines.items():
        panels.setdefault(roles.x.of[case], {})[roles.panel.of[case]] = points
    groups: list[list[str]] = []
    for level in (level for level in roles.x.order if level in panels):
        for group in groups:
            first = panels[group[0]]
            if first.keys() == panels[level].keys() and all(
                _coincide(first[panel], points, span) for panel, points in panels[level].items()
            ):
                group.append(level)
                break
        else:
            groups.append([level])
    labels = {level: " = ".join(group) for group in groups for level in group}
    return CaseLabels(roles.x.title, {case: labels.get(level, level) for case, level in roles.x.of.items()})


def _coincide(first: Points, second: Points, span: float) -> bool:
    """Return whether two lines over `span` cover each other."""
    return len(first) == len(second) and all(
        abs(a - b) <= NEAR * span for (a, _), (b, _) in zip(first, second, strict=True)
    )


def _widths(lines: dict[str, Points], span: float) -> dict[str, float]:
    """Return the width of each line in pixels: of those that coincide, one above another is narrower."""
    widths = {}
    for name, points in lines.items():
        later = list(lines)[list(lines).index(name) + 1 :]
        covering = sum(_coincide(points, lines[line], span) for line in later)
        widths[name] = WIDTH + WIDER * covering
    return widths


def _steps(
    data: list[dict[str, Any]], order: Sequence[str], scale: Spec, titles: tuple[str, str, str, str]
) -> Spec:
    """Return a figure of shares that rise in steps, one line for each case in `order`.

    A row of `data` has `case`, `x` (in the axis' unit), `share` (0 to 1), and `shown` and `part`, both in words, and
    possibly the `width` of its line; `scale` is the horizontal axis'. `titles` are those of the axes, what is
    distributed in words, and the title of the key.
    """
    legend = {"title": titles[3] or None, "orient": "top", "labelLimit": 260} if len(order) > 1 else None
    share = number_axis(titles[1], count=5, labelExpr="format(datum.value * 100, 'd') + ' %'")
    widths = {"strokeWidth": numbers("width", scale=None)}
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": 200,
        "data": {"values": data},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": WIDTH},
        "encoding": {
            "x": numbers("x", scale=scale, axis=number_axis(titles[0], grid=True)),
            "y": numbers("share", scale={"domain": [0, 1]}, axis=share),
            **distinct("case", order, "strokeDash", legend),
            **(widths if any("width" in row for row in data) else {}),
            "tooltip": [field("case", "case"), field("shown", titles[2]), field("part", "share")],
        },
    }


def _delays_selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each kind of delay that was measured."""
    return [
        FigureRequest(f"{delay.replace('_', '-')}-distribution", "delays", delay)
        for delay in DELAY_TITLES
        if _recorded(delay, content)
    ]


def _recorded(delay: str, content: Content) -> list[Representative]:
    return few_trials([trial for trial in content.shown if delay in trial.distributions], MOST_CASES)


def _delay_panels(request: FigureRequest, content: Content) -> list[Spec]:
    delay, shown = request.metric, _recorded(request.metric, content)
    if not shown:
        return []
    names, _ = shown_labels(shown, content)
    divisor, unit = scale_of(f"{delay}_us", max(trial.distributions[delay][-1][0] for trial in shown))
    data = [
        {
            "case": names.of[trial.case],
            "x": delay_us / divisor,
            "share": share,
            "shown": micros(delay_us),
            "part": percent(share),
        }
        for trial in shown
        for delay_us, share in trial.distributions[delay]
    ]
    titles = (f"{DELAY_TITLES[delay]}, {unit}", "Share with at most this delay", "delay", names.title)
    order = [names.of[trial.case] for trial in shown]
    return [_steps(data, order, {"zero": True, "nice": False}, titles)]


def _delay_table(request: FigureRequest, content: Content) -> TableRows:
    """Return the points of every line."""
    rows: TableRows = [["case", "trial", f"{request.metric}_us", "share"]]
    for trial in _recorded(request.metric, content):
        points = trial.distributions[request.metric]
        rows += [[trial.case, trial.index, number(us), number(share)] for us, share in points]
    return rows


def _delay_caption(request: FigureRequest, content: Content) -> str:
    """Return what a line means, and which part of the cases has one."""
    caption = (
        "For each delay, the share of messages with at most that delay, in the median trial of each case."
    )
    count = len(_recorded(request.metric, content))
    return caption + (f" The lines are those of {count} cases." if count < len(content.rows) else "")


DELAYS = FigureKind(
    "delays",
    _delay_panels,
    _delay_table,
    _delay_caption,
    selected=_delays_selected,
    note=lambda request, content: note_of(_recorded(request.metric, content), content),
    shows_trials=True,
)
"""A line for each case; a study has it whose messages were recorded."""
