"""Check figures: existing metrics, fields that vary, and unique names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plait.metric_names import FIGURE_METRICS
from plait.scenario.fields.figures import OVER_TIME, RESERVED
from plait.scenario.read.wording import nearest
from plait.scenario.vary.text import varied_fields
from plait.scenario.vary.unvaried import field_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plait.scenario.fields.figures import FigureSpec
    from plait.scenario.mistakes import FieldMistake, Where


def check_figures(figures: Sequence[FigureSpec], vary: dict[str, Any]) -> Iterator[FieldMistake]:
    """Yield every mistake: unknown metrics, fields that do not vary, duplicate names."""
    varied = list(dict.fromkeys(key for _, key, _ in varied_fields(vary)))
    seen: set[str] = set()
    for i, figure in enumerate(figures):
        here: Where = ("figures", i)
        if figure.name in seen:
            yield (*here, "name"), f"'{figure.name}' is the name of two figures; rename one"
        elif RESERVED.fullmatch(figure.name):
            yield (
                (*here, "name"),
                f"'{figure.name}' is the name of a figure that plait draws anyway; choose another name",
            )
        seen.add(figure.name)
        yield from _metric(figure, here)
        yield from _fields(figure, here, varied)


def _metric(figure: FigureSpec, here: Where) -> Iterator[FieldMistake]:
    metric = figure.metric
    if metric is None:
        return
    choices = OVER_TIME if figure.kind == "over-time" else FIGURE_METRICS
    name = metric.rpartition(".")[2] if figure.kind != "over-time" else metric
    if name not in choices and not re.fullmatch(r"observed_\d+path_share", name):
        right = nearest(name, choices) or "docs/reference/results.md lists them"
        yield (*here, "metric"), f"there is no metric '{metric[:60]}'; {right}"


def _fields(figure: FigureSpec, here: Where, varied: Sequence[str]) -> Iterator[FieldMistake]:
    for part in ("x", "y", "facets", "color"):
        name = getattr(figure, part)
        if name is not None and field_named(varied, name) is None:
            yield (*here, part), _not_varied(name, varied)
    for name in figure.only:
        if field_named(varied, name) is None:
            yield (*here, "only", name), _not_varied(name, varied)
    allowed = {
        "intervals": ("x", "color", "facets"),
        "cases": ("x", "facets"),
        "distribution": ("color", "facets"),
        "line": ("x", "facets"),
        "heat-map": ("x", "y"),
        "scatter": ("x",),
        None: ("x", "y", "facets"),
    }.get(figure.kind, ())
    for part in ("x", "y", "facets", "color"):
        if getattr(figure, part) is not None and part not in allowed:
            yield (*here, part), f"a figure of kind {figure.kind} has no {part}; remove it"
    if figure.kind in {"intervals", "line", "heat-map", "scatter"} and not varied:
        yield (
            (*here, "kind"),
            f"a {figure.kind} needs a field that varies, and none does; add vary",
        )


def _not_varied(name: str, varied: Sequence[str]) -> str:
    if not varied:
        return f"'{name[:60]}' does not vary, nor does any other field; add vary"
    return f"'{name[:60]}' does not vary, or is ambiguous; {nearest(name, varied) or 'write the whole path'}"
