"""The figure of groups of flows: what each flow of a group gets in each case, beside what others have published.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plait.analysis.labels.cases import short_labels
from plait.analysis.metrics.groups import group_names
from plait.analysis.model import CaseSummary
from plait.analysis.published import Published
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.values import scale_of, show
from plait.report.figures.case_values import interval_ends
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec, TableRows, number
from plait.report.figures.kinds.cases import DIAMOND, MOST_CASES, case_axis, height_of
from plait.report.figures.marks import SCHEMA, field, layer, number_axis, what_dots_are, with_dots
from plait.report.render.theme import path_token

Values = list[dict[str, Any]]

FIGURE = "goodput-by-group"
APART = 0.36
"""Distance of the first and the last group from the middle of their row, in rows."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return the one figure of all groups."""
    return [FigureRequest(FIGURE, "groups", "goodput_bps")] if groups_of(content.cases) else []


def _panels(_: FigureRequest, content: Content) -> list[Spec]:
    """Return one panel, or one for every `MOST_CASES` cases."""
    panels = []
    for start in range(0, len(content.rows), MOST_CASES):
        rows = content.rows[start : start + MOST_CASES]
        spec = group_spec(rows, content.cases[start : start + MOST_CASES], content.published)
        title = f"Cases {start + 1} to {start + len(rows)}"
        if spec is not None:
            panels.append({**spec, "title": title} if len(rows) < len(content.rows) else spec)
    return panels


def _table(_: FigureRequest, content: Content) -> TableRows:
    """Return every trial's value of each group, their mean with the 95 % interval, and what was published."""
    settings = list(dict.fromkeys(name for case in content.cases for name in case.settings))
    head = ["case", *settings, "group", "what", "trial", "seed", "goodput_bps", "ci95_low", "ci95_high"]
    settings_of = {case.name: [case.settings.get(name, "") for name in settings] for case in content.cases}
    rows: TableRows = [head]
    for mark in observations(
        content.rows, content.cases, content.published, lambda case, metric: case.measured(metric)
    ):
        value = [number(mark.get(name)) for name in ("goodput_bps", "low", "high")]
        trial = [mark.get(name, "") for name in ("trial", "seed")]
        rows.append([mark["case"], *settings_of[mark["case"]], mark["group"], mark["what"], *trial, *value])
    return rows


def _caption(_: FigureRequest, content: Content) -> str:
    """Return what the marks mean."""
    source = content.published.source
    diamonds = f"; diamonds are the published figures ({source})" if source else ""
    return f"{what_dots_are(content.rows)}, the vertical mark the mean over the flows of a group{diamonds}."


GROUPS = FigureKind("groups", _panels, _table, _caption, selected=_selected)
"""A row for each case with each group of flows; a study has it whose flows form groups."""


def group_spec(
    rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], published: Published
) -> Spec | None:
    """Return the figure; None when no flow has a group, or nothing was measured."""
    groups = groups_of(summaries)
    marks = list(observations(rows, summaries, published, with_dots))
    values = [mark["goodput_bps"] for mark in marks]
    if not groups or not values:
        return None
    divisor, unit = scale_of("goodput_bps", max(values))
    ends = [end for metric in groups.values() for end in interval_ends(summaries, metric)]
    largest = max([*values, *ends]) / divisor
    names = short_labels(summaries)
    order = [names[case.name] for case in summaries]
    domain = list(groups)
    for mark in marks:
        mark["x"] = mark["goodput_bps"] / divisor
        mark["shown"] = show("goodput_bps", mark["goodput_bps"])
        for end in ("low", "high"):
            if end in mark:
                mark[end] = mark[end] / divisor
    parts = {
        kind: [mark for mark in marks if mark["what"] == kind] for kind in ("trial", "mean", "published")
    }
    colours = [path_token(place) for place in range(len(domain))]
    legend = {"title": None, "orient": "top", "symbolType": "circle", "symbolStrokeWidth": 0}
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": height_of(order),
        "encoding": {
            "y": {**field("label"), **case_axis(order, label_limit=260, grid=True)},
            "yOffset": {**field("place"), "type": "quantitative", "scale": {"domain": [-0.5, 0.5]}},
            "x": {
                **field("x"),
                "type": "quantitative",
                "scale": {"domain": [0, largest * 1.04], "nice": False},
                "axis": number_axis(f"Goodput of each flow, {unit}", grid=True),
            },
            "color": {
                **field("group"),
                "type": "nominal",
                "scale": {"domain": domain, "range": colours},
                "legend": legend,
            },
        },
        "layer": _layers(parts, published.source),
    }


def groups_of(summaries: Sequence[CaseSummary]) -> dict[str, str]:
    """Return the metric of each group, by its name."""
    return group_names(name for case in summaries for name in case.metrics)


def observations(
    rows: Sequence[CaseRows],
    summaries: Sequence[CaseSummary],
    published: Published,
    trials_of: Callable[[CaseRows, str], Sequence[tuple[TrialRow, float]]],
) -> Iterator[dict[str, Any]]:
    """Yield, in bit/s, trials' values of each group, their mean with its interval, and what was published.

    `trials_of` returns the trials of a case that count for a metric.
    """
    groups = groups_of(summaries)
    names = short_labels(summaries)
    for case, summary in zip(rows, summaries, strict=True):
        for place_number, (group, metric) in enumerate(groups.items()):
            place = APART * (2 * place_number / (len(groups) - 1) - 1) if len(groups) > 1 else 0.0
            base = {"case": case.name, "label": names[case.name], "group": group, "place": place}
            for row, value in trials_of(case, metric):
                trial = {"what": "trial", "trial": row.index, "seed": row.seed}
                yield {**base, **trial, "goodput_bps": value}
            stats = summary.metrics.get(metric)
            if stats is not None and stats.mean is not None:
                low, high = stats.ci95 or (stats.mean, stats.mean)
                yield {**base, "what": "mean", "goodput_bps": stats.mean, "low": low, "high": high}
            if (goodput := published.goodput_bps(case.settings, group)) is not None:
                yield {**base, "what": "published", "goodput_bps": goodput}


def _layers(parts: dict[str, Values], source: str) -> list[Spec]:
    tooltip = [field("label", "case"), field("group", "group"), field("shown", "goodput of each flow")]
    dots = {"type": "circle", "size": 26, "opacity": 0.45}
    bars = {"type": "rule", "strokeWidth": 3, "clip": True}
    layers = [
        layer(parts["trial"], dots, tooltip=[*tooltip, field("trial", "trial")]),
        layer(parts["mean"], bars, x=field("low"), x2=field("high")),
        layer(parts["mean"], {"type": "tick", "thickness": 2.5, "size": 15}, tooltip=tooltip),
    ]
    if parts["published"]:
        data = [{**mark, "source": source} for mark in parts["published"]]
        published = [*tooltip, field("source", "published")]
        layers.append(layer(data, DIAMOND | {"strokeWidth": 1.8}, tooltip=published))
    return layers
