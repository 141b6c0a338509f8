"""The figure of a sweep: a metric against what varies in steps (a rate, a delay, a size), a line per other setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plait.analysis.metrics.catalogue import title_of
from plait.analysis.model import CaseSummary
from plait.analysis.rows import CaseRows
from plait.analysis.values import axis_title, scale_of, show
from plait.report.figures.axes import Factor, factor_of, factors, labels_without, steps
from plait.report.figures.case_values import crossed, interval_ends, means_of, trials_table
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec
from plait.report.figures.marks import (
    SCHEMA,
    distinct,
    field,
    layer,
    number_axis,
    numbers,
    what_dots_are,
    with_dots,
)
from plait.report.figures.roles import MOST_SERIES, CaseLabels, panel_labels

TICK = ".10~g"
"""The value itself: a format that follows from the axis' own steps makes 1 of 0.5."""
_SOLID = {"value": [1, 0]}
LOGARITHMIC = 30
"""From this ratio of greatest to least value on, the axis is logarithmic."""


@dataclass(frozen=True)
class Sweep:
    """A swept setting: its value at each case, and the label of each case's line."""

    axis: Factor
    values: dict[str, float]
    lines: CaseLabels


@dataclass(frozen=True)
class Scale:
    """The scale that the panels of one figure share: the unit and top of the metric's axis, and the lines' order."""

    divisor: float
    unit: str
    least: float
    top: float
    order: tuple[str, ...]
    lowest: float | None = None
    """The least value, where values are so far apart that equal ratios, not equal differences, should look alike."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each metric; of a grid with a panel for each step of its shorter side, if they are few."""
    sweep = sweep_of(content.rows)
    requests = []
    for file, metric in content.measured():
        grid = crossed(content, metric)
        name = f"{file}-sweep"
        if grid is not None and grid[1].steps <= MOST_SERIES:
            requests.append(FigureRequest(name, "line", metric, grid[0].setting, facets=grid[1].setting))
        elif grid is None and sweep is not None:
            requests.append(FigureRequest(name, "line", metric, sweep.axis.setting))
    return requests


def _completed(request: FigureRequest, content: Content) -> FigureRequest:
    """Return the figure with its horizontal axis."""
    if request.x is not None:
        return request
    sweep = sweep_of(content.rows)
    if sweep is not None and request.facets is None and request.color is None:
        return replace(request, x=sweep.axis.setting)
    taken = {request.facets, request.color}
    free = [factor.setting for factor in steps(content.rows) if factor.setting not in taken]
    return replace(request, x=next(iter(free), None))


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return one panel; with facets, one for each value of another setting, on the same scales."""
    groups = _groups(request, content)
    drawn = _scale(content.rows, content.cases, request.metric, [sweep for *_, sweep in groups])
    if drawn is None:
        return []
    shares = request.facets is not None or request.color is not None
    several = len(groups) > 1
    size = (240, 200) if several else (520, 280)
    return [
        {
            **_panel(rows, cases, request.metric, sweep, drawn, size=size, shares=shares),
            **({"title": title} if several else {}),
        }
        for title, rows, cases, sweep in groups
        if any(case.measured(request.metric) for case in rows)
    ]


LINES = FigureKind(
    "line",
    _panels,
    lambda request, content: trials_table(content, request.metric),
    lambda _, content: (
        f"{what_dots_are(content.rows)}; lines join the means; vertical bars are 95 % intervals."
    ),
    selected=_selected,
    completed=_completed,
    draws_intervals=True,
)
"""Lines over one thing; a study has it in which one thing varies in steps, or two in a grid."""
Group = tuple[str, list["CaseRows"], list["CaseSummary"], "Sweep"]
"""Title, trials, summaries and sweep of a panel."""


def _groups(request: FigureRequest, content: Content) -> list[Group]:
    """Return the panels: one for each value of `facets`; with `color`, of what neither the axis nor lines have."""
    rows = content.rows
    if request.facets is None and request.color is None:
        sweep = sweep_of(rows, request.x)
        return [] if sweep is None else [("", list(rows), list(content.cases), sweep)]
    lines, x = factor_of(rows, request.color), factor_of(rows, request.x)
    facets = factor_of(rows, request.facets)
    if lines is not None and x is not None and x.numbers is not None:
        panels = panel_labels(rows, [x.setting, lines.setting], request.facets)
        names = [case.name for case in rows]
        values, texts = dict(zip(names, x.numbers, strict=True)), dict(zip(names, lines.texts, strict=True))
        whole: Sweep | None = Sweep(x, values, CaseLabels(lines.title, texts))
    elif facets is not None:
        panels = panel_labels(
            rows, [factor.setting for factor in factors(rows) if factor.setting != request.facets]
        )
        whole = None
    else:
        return []
    groups: list[Group] = []
    for title, members in panels.groups:
        group_rows = [case for case in rows if case.name in set(members)]
        sweep = whole or sweep_of(group_rows, request.x)
        if sweep is not None:
            groups.append(
                (title, group_rows, [case for case in content.cases if case.name in set(members)], sweep)
            )
    return groups


def sweep_of(cases: Sequence[CaseRows | CaseSummary], x: str | None = None) -> Sweep | None:
    """Return the sweep over `x`, or over the setting with most steps that are numbers; None when none can be drawn."""
    varied = factors(cases)
    for factor in steps(cases) if x is None else [f for f in varied if f.setting == x]:
        sweep = _sweep(cases, factor, varied)
        if sweep is not None:
            return sweep
    return None


def _sweep(cases: Sequence[CaseRows | CaseSummary], factor: Factor, varied: Sequence[Factor]) -> Sweep | None:
    if factor.numbers is None:
        return None
    lines = labels_without(cases, [factor.setting])
    further = [companion for companion in varied if companion.setting != factor.setting]
    pairs = set(zip(factor.numbers, lines.values(), strict=True))
    kinds = len(set(lines.values()))
    if kinds > MOST_SERIES or 2 * kinds > len(cases) or len(pairs) < len(cases):
        return None
    names = [case.name for case in cases]
    key = ""
    if len(further) == 1:
        key, lines = further[0].title, dict(zip(names, further[0].texts, strict=True))
    return Sweep(factor, dict(zip(names, factor.numbers, strict=True)), CaseLabels(key, lines))


def _scale(
    rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], metric: str, sweeps: Sequence[Sweep]
) -> Scale | None:
    """Return the scale on which all `rows` and their intervals can be drawn; None when no trial has the metric."""
    values = [value for case in rows for _, value in case.measured(metric)]
    if not values:
        return None
    ends = interval_ends(summaries, metric)
    top = max([*values, *ends])
    divisor, unit = scale_of(metric, max(values))
    order = tuple(dict.fromkeys(line for sweep in sweeps for line in sweep.lines.of.values()))
    lowest = min(values) / divisor if min(values) > 0 and max(values) / min(values) >= LOGARITHMIC else None
    if lowest is not None:
        lowest = min([lowest, *(end / divisor for end in ends if end > 0)])
    return Scale(divisor, unit, min(0.0, min(values) / divisor), top / divisor, order, lowest)


def _panel(
    rows: Sequence[CaseRows],
    summaries: Sequence[CaseSummary],
    metric: str,
    sweep: Sweep,
    drawn: Scale,
    *,
    size: tuple[int, int],
    shares: bool,
) -> Spec:
    """Return the panel of `metric` over a sweep; `shares` says whether others have its vertical axis."""
    least, largest = min(sweep.values.values()), max(sweep.values.values())
    axis = {"type": "log"} if least > 0 and largest / least >= LOGARITHMIC else {"zero": False}
    domain = {"domain": [drawn.least, drawn.top * 1.05]} if shares and drawn.top > 0 else {}
    upwards: Spec = {"zero": True, **domain}
    if drawn.lowest is not None and "type" in axis:  # what grows in proportion is a straight line then
        upwards = {"type": "log", "domain": [drawn.lowest / 1.3, drawn.top * 1.3]}
    steps_along = sorted(set(sweep.values.values()))
    ticks = {"title": sweep.axis.title, "values": steps_along, "format": TICK, "labelOverlap": True}
    legend = {"symbolType": "stroke", "symbolOpacity": 1, "labelLimit": 260, "columns": 3}
    legend |= {"title": sweep.lines.title or None}
    return {
        "$schema": SCHEMA,
        "width": size[0],
        "height": size[1],
        "encoding": {
            "x": numbers("x", scale={**axis, "nice": False, "padding": 14}, axis=ticks),
            "y": numbers(scale=upwards, axis=number_axis(axis_title(metric, drawn.unit))),
            **distinct("line", drawn.order, "strokeDash", legend if len(drawn.order) > 1 else None),
        },
        "layer": [
            _trials(rows, metric, drawn.divisor, sweep),
            *_means(summaries, metric, drawn.divisor, sweep),
        ],
    }


def _trials(rows: Sequence[CaseRows], metric: str, divisor: float, sweep: Sweep) -> Spec:
    data = [
        {
            "x": sweep.values[case.name],
            "line": sweep.lines.of[case.name],
            "y": value / divisor,
            "shown": show(metric, value),
            "trial": f"{row.index:03d}",
        }
        for case in rows
        for row, value in with_dots(case, metric)
    ]
    titles = {"line": "case", "x": sweep.axis.title, "trial": "trial", "shown": title_of(metric)}
    return layer(
        data,
        {"type": "circle", "size": 26, "opacity": 0.45},
        y=field("y"),
        strokeDash=_SOLID,
        tooltip=[field(name, title) for name, title in titles.items()],
    )


def _means(summaries: Sequence[CaseSummary], metric: str, divisor: float, sweep: Sweep) -> list[Spec]:
    """Return the line through the means, and their intervals."""
    data = []
    for case, mean, ci95 in means_of(summaries, metric):
        ends = {"mean": mean, **dict(zip(("low", "high"), ci95 or (mean, mean), strict=True))}
        scaled = {name: value / divisor for name, value in ends.items()}
        data.append({"x": sweep.values[case.name], "line": sweep.lines.of[case.name], **scaled})
    bars = {"type": "rule", "strokeWidth": 2, "clip": True}  # of two trials they may be very wide
    return [
        layer(data, "line", y=field("mean")),
        layer(data, bars, y=field("low"), y2=field("high"), strokeDash=_SOLID),
    ]
