"""Check what a study reports: figures, `judge`, `across` and published values.

Metrics exist and have a better direction, fields vary, and nothing occurs twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plait.metrics import FIGURE_METRICS, JUDGED_METRICS, is_judged, judged_metric
from plait.scenario.fields.figures import OVER_TIME, RESERVED, FigureSpec
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.model import ScenarioModel
from plait.scenario.vary.text import setting_names
from plait.scenario.vary.unvaried import field_named
from plait.scenario.wording import closest, nearest
from plait.units import Ratio

NO_Y = {"y": "its other axis is the metric; remove it"}
OF_MEDIANS = "its panels are the median trials of cases, which `only` chooses; remove it"
NO_ROLE: dict[str | None, dict[str, str]] = {
    "intervals": NO_Y,
    "cases": NO_Y,
    "line": NO_Y,
    "scatter": NO_Y,
    "distribution": {
        "x": "that axis is the metric; write color or facets",
        "y": "that axis is the share of trials",
    },
    "heat-map": {"color": "colours are the values of the metric; write facets"},
    "over-time": dict.fromkeys(("x", "y", "facets", "color"), OF_MEDIANS),
    None: {"color": "plait chooses its kind; write the kind, too"},
}
"""Why a kind of figure lacks a role."""


def check_figures(figures: Sequence[FigureSpec], vary: dict[str, Any]) -> Iterator[FieldMistake]:
    """Yield every mistake: unknown metrics, fields that do not vary, duplicate names."""
    varied = setting_names(vary)
    seen: set[str] = set()
    for i, figure in enumerate(figures):
        place: Where = ("figures", i)
        if figure.name in seen:
            yield (*place, "name"), f"'{figure.name}' is the name of two figures; rename one"
        elif RESERVED.fullmatch(figure.name):
            yield (
                (*place, "name"),
                f"'{figure.name}' is the name of a figure that plait draws anyway; choose another name",
            )
        seen.add(figure.name)
        yield from _metric(figure, place)
        yield from _fields(figure, place, varied)


def _metric(figure: FigureSpec, place: Where) -> Iterator[FieldMistake]:
    metric = figure.metric
    if metric is None:
        return
    choices = OVER_TIME if figure.kind == "over-time" else FIGURE_METRICS
    name = metric.rpartition(".")[2] if figure.kind != "over-time" else metric
    if name not in choices and not re.fullmatch(r"observed_\d+path_share", name):
        right = nearest(name, choices) or "docs/reference/results.md lists them"
        yield (*place, "metric"), f"there is no metric '{metric[:60]}'; {right}"


def _fields(figure: FigureSpec, place: Where, varied: Sequence[str]) -> Iterator[FieldMistake]:
    for part in ("x", "y", "facets", "color"):
        name = getattr(figure, part)
        if name is not None and field_named(varied, name) is None:
            yield (*place, part), _not_varied(name, varied)
    for name in figure.only:
        if field_named(varied, name) is None:
            yield (*place, "only", name), _not_varied(name, varied)
    yield from _roles(figure, place, varied)
    if figure.kind in {"intervals", "line", "heat-map", "scatter"} and not varied:
        yield (
            (*place, "kind"),
            f"a {figure.kind} needs a field that varies, and none does; add vary",
        )


def _roles(figure: FigureSpec, place: Where, varied: Sequence[str]) -> Iterator[FieldMistake]:
    """Yield roles that a kind of figure has no use for, and fields that have two roles."""
    roles: dict[str, str] = {}
    for part in ("x", "y", "facets", "color"):
        name = getattr(figure, part)
        if name is None:
            continue
        reason = NO_ROLE.get(figure.kind, {}).get(part)
        field = field_named(varied, name)
        if reason is not None:
            yield (*place, part), f"a figure of kind {figure.kind} has no {part}: {reason}"
        elif field is not None and field in roles:
            yield (
                (*place, part),
                f"'{name[:60]}' is the figure's {roles[field]} already; choose another field",
            )
        elif field is not None:
            roles[field] = part


def _not_varied(name: str, varied: Sequence[str]) -> str:
    if not varied:
        return f"'{name[:60]}' does not vary, nor does any other field; add vary"
    return f"'{name[:60]}' does not vary, or is ambiguous; {nearest(name, varied) or 'write the whole path'}"


MOST = 0.5
"""Greatest difference that can be the smallest one of interest."""


def check_judge(metrics: Mapping[str, Ratio | None]) -> Iterator[FieldMistake]:
    """Yield every mistake."""
    seen: set[str] = set()
    for text, margin in metrics.items():
        if margin is not None and margin > MOST:
            yield ("judge", text), f"{margin} is no small difference; write 0% to 50%, for example 1%"
        name = judged_metric(text)
        last = name.rpartition(".")[2]
        if name in seen:
            yield ("judge", text), f"'{text[:60]}' occurs twice; remove one"
        elif last in FIGURE_METRICS and not is_judged(name):
            better = "neither more nor less of it is better"
            yield (
                ("judge", text),
                f"plait cannot judge by '{text[:60]}', because {better}; use figures to show it",
            )
        elif not is_judged(name):
            near = closest(last, JUDGED_METRICS)
            right = f"did you mean '{near}'?" if near else "docs/reference/compare.md lists those to judge by"
            yield ("judge", text), f"there is no metric '{text[:60]}'; {right}"
        seen.add(name)


def check_across(names: Sequence[str], strata: Sequence[str]) -> Iterator[FieldMistake]:
    """Yield the names in `across` of what is no named factor of the network."""
    for i, name in enumerate(names):
        if name not in strata:
            there = nearest(name, strata) or "no named factor under vary changes the network; remove it"
            yield (
                ("across", i),
                f"'{name[:60]}' is no named factor whose levels set fields of the network; {there}",
            )


def check_published(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Yield settings that do not vary, and groups that no flow has."""
    if scenario.published is None:
        return
    varied = setting_names(scenario.vary)
    groups = {entry.flow.group for entry in scenario.traffic if entry.flow.group is not None}
    for i, value in enumerate(scenario.published.values):
        place: Where = ("published", "values", i)
        for name in value.case:
            if name not in varied:
                message = f"'{name[:60]}' does not vary; {nearest(name, varied) or 'remove it'}"
                yield (*place, "case", name), message
        for group in value.each:
            if group not in groups:
                message = f"no flow has the group '{group[:40]}'; {nearest(group, groups) or 'add group to the flows'}"
                yield (*place, "each", group), message
