"""The figure of cases: one line per case, with every trial, the mean with its interval, and what the links allow.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plait.analysis.compare.factors import main_factor
from plait.analysis.labels.cases import short_labels
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.model import CaseSummary, Statistics
from plait.analysis.published import STEADY, Published, is_beside_published
from plait.analysis.rows import CaseRows
from plait.analysis.values import axis_title, scale_of, show
from plait.report.figures.axes import factor_of
from plait.report.figures.case_values import ideals_of, interval_ends, means_of, span_of, trials_table
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec
from plait.report.figures.marks import SCHEMA, field, layer, numbers, spanning, what_dots_are, with_dots
from plait.report.figures.roles import CaseLabels, panels_of
from plait.report.render.theme import case_token

ROW = 46
DENSE_ROW = 22
PANEL_ROW = 19
MOST_ROWS = 12
"""In one panel, where several things vary: then rows of a panel differ in one of them."""
FEW_CASES = 24
MOST_CASES = 120
BOX = 5
"""Trials from which on a case has a box."""
ROOM = 0.2
"""The part of a chart's width that a number takes."""
DIAMOND = {"type": "point", "shape": "diamond", "size": 90, "filled": False}
GOLDEN = 0.618034
"""Multiples of the golden ratio spread points evenly without any that repeat."""


@dataclass(frozen=True)
class _Look:
    """Properties of all layers: labels and choices by case, the metric, its divisor, and where the left part ends."""

    names: dict[str, str]
    picks: dict[str, int]
    metric: str
    divisor: float
    middle: float
    top: float
    """The right end of the axis."""
    row: float = ROW
    """The height of a row."""

    def colour(self, case: str) -> str:
        """Return the token of a case's colour."""
        return case_token(self.picks[case])

    @property
    def box(self) -> float:
        """The height of a box."""
        return 24 if self.row >= ROW else 12


def _selected(content: Content) -> list[FigureRequest]:
    """Return one figure of each metric, and that of what was published."""
    requests = [FigureRequest(file, "cases", metric) for file, metric in content.measured()]
    known = {request.metric for request in requests}
    if (
        STEADY not in known
        and content.has(STEADY)
        and any(content.published.goodput_bps(case.settings) is not None for case in content.cases)
    ):
        requests.append(FigureRequest("steady-goodput", "cases", STEADY))
    return requests


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return one panel; diamonds mark what was published.

    Of many cases that several things distinguish, there is a panel for each value of what rows do not distinguish.
    """
    published = content.published if _has_published(request, content) else None
    roles = panels_of(content.rows, request, MOST_ROWS, MOST_CASES)
    hues = hues_of(content.rows, request.color)
    if roles is None:
        spec = cases_spec(content.rows, content.cases, request.metric, published, hues=hues)
        return [spec] if spec is not None else []
    panels = []
    span = span_of(content.rows, content.cases, request.metric)
    for label, names in roles.panel.groups:
        part = content.with_names(set(names))
        spec = cases_spec(
            part.rows, part.cases, request.metric, published, entries=roles.x, span=span, hues=hues
        )
        if spec is not None:
            panels.append({**spec, "title": label, "width": 240})
    return panels


def _caption(request: FigureRequest, content: Content) -> str:
    """Return what the marks mean that the figure has."""
    metrics = [case.metrics.get(request.metric) for case in content.cases]
    caption = f"{what_dots_are(content.rows)}, the vertical mark the mean"
    if any(stats is not None and stats.ci95 is not None for stats in metrics):
        caption += ", the bar its 95 % interval"
    if any(stats is not None and stats.n >= BOX for stats in metrics):
        caption += "; the box extends from the first to the third quartile, with a line at the median"
    if request.metric == "goodput_bps" and ideals_of(content.cases):
        caption += "; the thin grey line is what the links allow"
    if content.published.source and _has_published(request, content):
        caption += f"; diamonds are the published figures ({content.published.source})"
    return f"{caption}."


def _has_published(request: FigureRequest, content: Content) -> bool:
    """Return whether the figure has what was published."""
    return is_beside_published(request.metric, {name for case in content.cases for name in case.metrics})


CASES = FigureKind(
    "cases",
    _panels,
    lambda request, content: trials_table(content, request.metric),
    _caption,
    selected=_selected,
    draws_intervals=True,
)
"""A row for each case; every study has it, of each metric."""


def choices(cases: Sequence[CaseRows | CaseSummary]) -> dict[str, int]:
    """Return, for each case by name, which choice of the compared factor it makes; the first case makes choice 0."""
    factor = main_factor(cases)
    order: list[Any] = []
    numbers = {}
    for case in cases:
        value = case.settings.get(factor) if factor is not None else None
        if value not in order:
            order.append(value)
        numbers[case.name] = order.index(value)
    return numbers


def hues_of(cases: Sequence[CaseRows], setting: str | None) -> dict[str, int] | None:
    """Return the number of each case's colour by a setting; None without one, or where it does not vary."""
    factor = factor_of(cases, setting)
    if factor is None:
        return None
    return {case.name: factor.order.index(text) for case, text in zip(cases, factor.texts, strict=True)}


def cases_spec(
    rows: Sequence[CaseRows],
    summaries: Sequence[CaseSummary],
    metric: str,
    published: Published | None = None,
    *,
    entries: CaseLabels | None = None,
    span: tuple[float, float] | None = None,
    hues: dict[str, int] | None = None,
) -> Spec | None:
    """Return the figure of `metric` ("goodput_bps", "completion_s") over cases; None when no trial has it.

    Diamonds mark what was published. As a panel of several it has the labels of `entries`, an axis over `span`, in base
    units, and no numbers beside the points. `hues` has the number of each case's colour; without it, colours follow
    from what is compared.
    """
    names = short_labels(summaries) if entries is None else entries.of
    values = [value for case in rows for _, value in case.measured(metric)]
    if not values:
        return None
    ideals = ideals_of(summaries) if metric == "goodput_bps" else {}
    goodputs = {case.name: published.goodput_bps(case.settings) for case in summaries} if published else {}
    diamonds = {name: value for name, value in goodputs.items() if value is not None}
    ends = interval_ends(summaries, metric)
    least, largest = span or (0.0, max([*values, *ideals.values(), *diamonds.values(), *ends]))
    divisor, unit = scale_of(metric, largest)
    domain = least / divisor, (largest + 0.04 * (largest - least)) / divisor
    top = largest / divisor
    if entries is None:
        order = [names[case.name] for case in summaries]
        picks, row, height = hues or choices(summaries), ROW, height_of(order)
    else:
        order = entries.order
        picks, row, height = hues or dict.fromkeys(names, 1), PANEL_ROW, PANEL_ROW * len(order)
    look = _Look(names, picks, metric, divisor, top * 0.6, top * 1.04, row)
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": height,
        "encoding": {
            "y": case_axis(order, label_limit=220, grid=False),
            "x": spanning(*domain, axis_title(metric, unit)),
        },
        "layer": [
            _ideal_layer(ideals, names, divisor, unit),
            *_boxes(rows, summaries, look),
            _trial_layer(rows, look),
            _interval_layer(summaries, look),
            _mean_layer(summaries, look, diamonds, numbers=entries is None),
            *([_published_layer(diamonds, look)] if diamonds else []),
        ],
    }


def case_axis(order: Sequence[str], *, label_limit: int, grid: bool) -> Spec:
    """Return the vertical axis with a row for each case, by label."""
    axis = {"title": None, "labelLimit": label_limit, "labelColor": "@ink", "labelFontSize": 12, "grid": grid}
    return {"type": "nominal", "sort": list(order), "scale": {"domain": list(order)}, "axis": axis}


def height_of(order: Sequence[str]) -> int:
    """Return the height of a figure with a row for each case."""
    return (ROW if len(order) <= FEW_CASES else DENSE_ROW) * len(order)


_Y = {"field": "case"}
_COLOUR = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
"""The encoding that takes the colour named in the data."""


def _published_layer(diamonds: dict[str, float], look: _Look) -> Spec:
    data = [
        {"case": look.names[name], "x": value / look.divisor, "shown": show(look.metric, value)}
        for name, value in diamonds.items()
    ]
    tooltip = [field("case", "case"), field("shown", "published")]
    return layer(data, DIAMOND | {"stroke": "@ink"}, y=_Y, x=field("x"), tooltip=tooltip)


def _ideal_layer(ideals: dict[str, float], names: dict[str, str], divisor: float, unit: str) -> Spec:
    data = [
        {"case": names[name], "x": value / divisor, "shown": show("goodput_bps", value)}
        for name, value in ideals.items()
    ]
    return layer(
        data,
        {"type": "tick", "thickness": 1.5, "size": 34, "color": "@faint"},
        y=_Y,
        x=field("x", f"Goodput, {unit}"),
        tooltip=[field("case", "case"), field("shown", "the links allow")],
    )


def _boxes(rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], look: _Look) -> list[Spec]:
    """Return a box from quartile to quartile with whiskers, behind the points of cases that have enough of them.

    Whiskers end at the last trials within 1.5 times the box's length (Tukey, Exploratory Data Analysis, 1977).
    """
    data = []
    for case, summary in zip(rows, summaries, strict=True):
        stats = summary.metrics.get(look.metric)
        if stats is None or stats.n < BOX or stats.quartiles is None or stats.median is None:
            continue
        low, high = stats.quartiles
        reach = 1.5 * (high - low)
        inside = [value for _, value in case.measured(look.metric) if low - reach <= value <= high + reach]
        ends = {"low": low, "median": stats.median, "high": high, "least": min(inside), "most": max(inside)}
        data.append(
            {"case": look.names[case.name]} | {key: value / look.divisor for key, value in ends.items()}
        )
    if not data:
        return []
    whisker = {"type": "rule", "color": "@faint", "strokeWidth": 1}
    box = {"type": "bar", "size": look.box, "color": "@grid", "stroke": "@faint", "strokeWidth": 1}
    median = {"type": "tick", "size": look.box, "thickness": 1.5, "color": "@muted"}
    return [
        layer(data, whisker, y=_Y, x=field("least"), x2=field("most")),
        layer(data, box, y=_Y, x=field("low"), x2=field("high")),
        layer(data, median, y=_Y, x=field("median")),
    ]


def _trial_layer(rows: Sequence[CaseRows], look: _Look) -> Spec:
    data = [
        {
            "case": look.names[case.name],
            "x": value / look.divisor,
            "shown": show(look.metric, value),
            "trial": f"{row.index:03d}",
            "seed": str(row.seed),
            "jitter": row.index * GOLDEN % 1,
            "colour": look.colour(case.name),
        }
        for case in rows
        for row, value in with_dots(case, look.metric)
    ]
    titles = {"case": "case", "trial": "trial", "seed": "seed", "shown": title_of(look.metric)}
    return layer(
        data,
        {"type": "circle", "size": 34 if look.row >= ROW else 14, "fillOpacity": 0.5, "strokeWidth": 0},
        y=_Y,
        x=field("x"),
        yOffset=numbers("jitter", scale={"domain": [-0.6, 1.6]}),
        color=_COLOUR,
        tooltip=[field(name, title) for name, title in titles.items()],
    )


def _interval_layer(summaries: Sequence[CaseSummary], look: _Look) -> Spec:
    data = [
        {
            "case": look.names[case.name],
            "low": ci95[0] / look.divisor,
            "high": ci95[1] / look.divisor,
            "colour": look.colour(case.name),
        }
        for case, _, ci95 in means_of(summaries, look.metric)
        if ci95 is not None
    ]
    # The interval of two trials may be very wide.
    mark = {"type": "rule", "strokeWidth": 3 if look.row >= ROW else 2, "clip": True}
    return layer(data, mark, y=_Y, x=field("low"), x2=field("high"), color=_COLOUR)


def _mean_layer(
    summaries: Sequence[CaseSummary], look: _Look, diamonds: dict[str, float], *, numbers: bool
) -> Spec:
    """Return the means, and their numbers where nothing else is: neither marks nor `diamonds`."""
    data = [
        {
            "case": look.names[case.name],
            "x": stats.mean / look.divisor,
            **_ends(stats, look, diamonds.get(case.name)),
            "shown": show(look.metric, stats.mean),
            "colour": look.colour(case.name),
        }
        for case in summaries
        if (stats := case.metrics.get(look.metric)) is not None
        and stats.mean is not None
        and stats.min is not None
        and stats.max is not None
    ]
    mean = {
        "mark": {"type": "tick", "thickness": 2.5, "size": look.box - 3},
        "encoding": {"y": _Y, "x": field("x"), "color": _COLOUR},
    }
    return {"data": {"values": data}, "layer": [mean, *(_number_layers(look) if numbers else ())]}


def _ends(stats: Statistics, look: _Look, diamond: float | None) -> dict[str, float]:
    """Return where the marks of a row begin and end, with a diamond if a number beside them would cover it."""
    low, high = stats.ci95 or (math.inf, -math.inf)
    left = min(value for value in (stats.min, low) if value is not None) / look.divisor
    right = max(value for value in (stats.max, high) if value is not None) / look.divisor
    reach = ROOM * look.top
    if diamond is not None and left - reach <= diamond / look.divisor <= right + reach:
        left, right = min(left, diamond / look.divisor), max(right, diamond / look.divisor)
    return {"left": max(0.0, left), "right": min(look.top, right)}


def _number_layers(look: _Look) -> list[Spec]:
    """Return the numbers where there is room: right of the dots in the left half, else left of them."""
    room = f"{ROOM * look.top:.6g}"
    middle = f"{look.middle:.6g}"
    return [
        _number_layer("right", "left", f"datum.right <= {middle}"),
        _number_layer("left", "right", f"datum.right > {middle} && datum.left >= {room}"),
        # An interval as wide as the chart leaves room above it only.
        _number_layer("x", "center", f"datum.right > {middle} && datum.left < {room}"),
    ]


def _number_layer(name: str, align: str, test: str) -> Spec:
    dx, dy = {"left": (10, 0), "right": (-10, 0), "center": (0, -16)}[align]
    mark = {"type": "text", "align": align, "dx": dx, "dy": dy, "fontSize": 12.5, "fontWeight": 600}
    return {
        "name": f"number-{name}",
        "transform": [{"filter": test}],
        "mark": mark,
        "encoding": {"y": _Y, "x": field(name), "text": field("shown")},
    }
