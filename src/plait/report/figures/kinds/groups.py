"""Figures of groups in each case: goodput and slowdown by group of flows, utilisation by layer of links.

Goodput is what each flow of a group gets, beside what others have published.
A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from plait.analysis.labels.cases import short_labels
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.metrics.groups import STEADY, group_names
from plait.analysis.model import CaseSummary
from plait.analysis.published import Published
from plait.analysis.rows import CaseRows
from plait.analysis.values import scale_of, show
from plait.report.figures.case_values import interval_ends, trials_table
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec
from plait.report.figures.kinds.cases import DIAMOND, MOST_CASES, case_axis, height_of
from plait.report.figures.marks import SCHEMA, field, layer, number_axis, numbers, what_dots_are, with_dots
from plait.report.render.theme import path_token

Values = list[dict[str, Any]]


class _Words(NamedTuple):
    """The name of the figure of a metric, what its mark for a group is, and the metric's title if it is another one."""

    name: str
    mark: str
    axis: str = ""


METRICS = {
    "goodput_bps": _Words("goodput-by-group", "the mean over the flows of a group", "Goodput of each flow"),
    "slowdown_p99": _Words(
        "slowdown-by-group",
        "the mean of the slowdown that one transfer in a hundred of a group exceeds",
        "99th percentile of slowdown",
    ),
    "link_utilisation": _Words("utilisation-by-layer", "the mean over the links of a layer"),
}
APART = 0.36
"""Distance of the first and the last group from the middle of their row, in rows."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return the figure of each metric that groups of flows, or layers of links, have."""
    return [
        FigureRequest(words.name, "groups", metric)
        for metric, words in METRICS.items()
        if groups_of(content.cases, metric)
    ]


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return one panel, or one for every `MOST_CASES` cases."""
    panels = []
    for start in range(0, len(content.rows), MOST_CASES):
        rows = content.rows[start : start + MOST_CASES]
        spec = group_spec(rows, content.cases[start : start + MOST_CASES], content.published, request.metric)
        title = f"Cases {start + 1} to {start + len(rows)}"
        if spec is not None:
            panels.append({**spec, "title": title} if len(rows) < len(content.rows) else spec)
    return panels


def _caption(request: FigureRequest, content: Content) -> str:
    """Return what the marks mean."""
    source = content.published.source if request.metric == "goodput_bps" else ""
    diamonds = f"; diamonds are the published figures ({source})" if source else ""
    return f"{what_dots_are(content.rows)}, the vertical mark {METRICS[request.metric].mark}{diamonds}."


GROUPS = FigureKind(
    "groups",
    _panels,
    lambda request, content: trials_table(content, request.metric, groups_of(content.cases, request.metric)),
    _caption,
    selected=_selected,
    draws_intervals=True,
)
"""A row for each case with each group of flows; a study has it whose flows form groups."""


def group_spec(
    rows: Sequence[CaseRows],
    summaries: Sequence[CaseSummary],
    published: Published,
    metric: str = "goodput_bps",
) -> Spec | None:
    """Return the figure of a metric of `METRICS`; None without groups or layers, and when nothing was measured."""
    groups = groups_of(summaries, metric)
    marks = list(_marks(rows, summaries, published, metric))
    values = [mark["value"] for mark in marks]
    if not groups or not values:
        return None
    divisor, unit = scale_of(metric, max(values))
    ends = [end for name in groups.values() for end in interval_ends(summaries, name)]
    largest = max([*values, *ends]) / divisor
    names = short_labels(summaries)
    order = [names[case.name] for case in summaries]
    domain = list(groups)
    for mark in marks:
        mark["x"] = mark["value"] / divisor
        mark["shown"] = show(metric, mark["value"])
        for end in ("low", "high"):
            if end in mark:
                mark[end] = mark[end] / divisor
    parts = {
        kind: [mark for mark in marks if mark["what"] == kind] for kind in ("trial", "mean", "published")
    }
    colours = [path_token(place) for place in range(len(domain))]
    legend = {
        "title": None,
        "orient": "top",
        "symbolType": "circle",
        "symbolSize": 100,
        "symbolStrokeWidth": 0,
    }
    title = METRICS[metric].axis or title_of(metric)
    if any(name.endswith(STEADY) for name in groups.values()):
        title = f"Steady {title[0].lower()}{title[1:]}"
    words = title.lower() if metric == "goodput_bps" else title_of(metric).lower()
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": height_of(order),
        "encoding": {
            "y": {**field("label"), **case_axis(order, label_limit=260, grid=True)},
            "yOffset": numbers("place", scale={"domain": [-0.5, 0.5]}),
            "x": numbers(
                "x",
                scale={"domain": [0, largest * 1.04], "nice": False},
                axis=number_axis(", ".join(filter(None, (title, unit))), grid=True),
            ),
            "color": {
                **field("group"),
                "type": "nominal",
                "scale": {"domain": domain, "range": colours},
                "legend": legend,
            },
        },
        "layer": _layers(parts, published.source, words),
    }


def groups_of(summaries: Sequence[CaseSummary], metric: str = "goodput_bps") -> dict[str, str]:
    """Return the metric of each group or layer, by its name."""
    names = dict.fromkeys(name for case in summaries for name in case.metrics)
    if metric == "goodput_bps":
        return group_names(names)
    return {name.removesuffix(f".{metric}"): name for name in names if name.endswith(f".{metric}")}


def _marks(
    rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], published: Published, metric: str
) -> Iterator[dict[str, Any]]:
    """Yield, in base units, trials' values of each group, their mean with its interval, and what was published."""
    groups = groups_of(summaries, metric)
    names = short_labels(summaries)
    for case, summary in zip(rows, summaries, strict=True):
        for place_number, (group, name) in enumerate(groups.items()):
            place = APART * (2 * place_number / (len(groups) - 1) - 1) if len(groups) > 1 else 0.0
            base = {"case": case.name, "label": names[case.name], "group": group, "place": place}
            for row, value in with_dots(case, name):
                yield {**base, "what": "trial", "trial": row.index, "seed": row.seed, "value": value}
            stats = summary.metrics.get(name)
            if stats is not None and stats.mean is not None:
                low, high = stats.ci95 or (stats.mean, stats.mean)
                yield {**base, "what": "mean", "value": stats.mean, "low": low, "high": high}
            goodput = published.goodput_bps(case.settings, group) if metric == "goodput_bps" else None
            if goodput is not None:
                yield {**base, "what": "published", "value": goodput}


def _layers(parts: dict[str, Values], source: str, words: str) -> list[Spec]:
    tooltip = [field("label", "case"), field("group", "group"), field("shown", words)]
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
