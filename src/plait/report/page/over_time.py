"""The sections of the page that show representative trials: the network with its paths, and charts over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from plait.analysis.metrics.catalogue import compared_metric, primary_metric
from plait.plan.network.ifnames import renamed_interfaces
from plait.report.drawing.network import draw
from plait.report.drawing.overview import is_crowded
from plait.report.drawing.paths import coloured_paths, links_differ, most_paths
from plait.report.figures.kinds.over_time import frames_of, panel_of
from plait.report.figures.kinds.over_time_chart import KINDS, chart
from plait.report.page.explanation import why
from plait.report.page.template import fill
from plait.report.render.theme import LIGHT, PATHS
from plait.report.representatives import MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import Summary
    from plait.report.drawing.network import DrawnPath
    from plait.report.representatives import Representative

OPEN_PANELS = 4
"""Cases over time that are open at first; buttons open the others."""
MOST_INTERFACES = 12
"""Nodes whose interfaces have shortened names; the plan has all."""


@dataclass(frozen=True)
class NetworkSection:
    """The drawing of the network, and the key to its colours."""

    case: str
    """The case that is drawn, where the links of cases differ."""
    drawing: Markup
    paths: tuple[DrawnPath, ...]
    interfaces: str


@dataclass(frozen=True)
class PanelView:
    """The charts of one case."""

    label: str
    trial: str
    key: tuple[tuple[int, str], ...]
    """Colours of subflows, by the numbers of their paths, and their labels."""
    charts: tuple[str, ...]
    left_out: int
    explanation: Markup | str
    is_hidden: bool


@dataclass(frozen=True)
class Panels:
    """All panels."""

    note: str
    has_buttons: bool
    panels: tuple[PanelView, ...]


def network(shown: Sequence[Representative]) -> Markup | str:
    """Return the section with the drawing of the network and the key to its colours."""
    drawn = most_paths(shown)
    if drawn is None:
        return ""
    colours = {name: f"var(--{name})" for name in LIGHT}
    paths = coloured_paths(drawn, colours)
    view = NetworkSection(
        drawn.label if links_differ(shown) else "",
        Markup(draw(drawn.plan, paths, colours, legend=False, called=drawn.labels)),  # noqa: S704 - drawing.svg escapes its texts
        () if is_crowded(drawn.plan) else tuple(paths),
        " ".join(f"{line}." for line in renamed_interfaces(drawn.plan)[:MOST_INTERFACES]),
    )
    return fill("network", view)


def over_time(
    shown: Sequence[Representative], summary: Summary
) -> tuple[Markup | str, dict[str, dict[str, Any]]]:
    """Return the section with a panel of charts per case, all on the same axes, and the charts by name."""
    if not shown:
        return "", {}
    figures: dict[str, dict[str, Any]] = {}
    panels = []
    for number, (representative, frame) in enumerate(zip(shown, frames_of(shown), strict=True)):
        charts = {}
        for kind in KINDS:
            spec = chart(
                panel_of(representative), kind, frame, legend=kind == "queue" and _needs_key(representative)
            )
            if spec is not None:
                charts[f"{kind}-{number}"] = spec
        figures |= charts
        panels.append(_panel(representative, tuple(charts), is_hidden=number >= OPEN_PANELS))
    return fill("over_time", Panels(_note(shown, summary), len(shown) > OPEN_PANELS, tuple(panels))), figures


def _panel(representative: Representative, charts: tuple[str, ...], *, is_hidden: bool) -> PanelView:
    trial = f"trial {representative.index:03d}" + (
        f", the median of {representative.of}" if representative.of > 1 else ""
    )
    several = len(representative.plan.flows) > 1
    key = (
        tuple((series.colour % PATHS, series.label) for series in representative.series.subflows)
        if several
        else ()
    )
    return PanelView(
        representative.label,
        trial,
        key,
        charts,
        representative.series.left_out,
        why(representative.explained),
        is_hidden,
    )


def _note(shown: Sequence[Representative], summary: Summary) -> str:
    """Return what the charts show."""
    scales = (
        "the same scales"
        if len({representative.group for representative in shown}) == 1
        else "the same scales where cases are compared"
    )
    hint = (
        " Colours are those of the paths in the drawing."
        if all(len(representative.plan.flows) == 1 for representative in shown)
        else ""
    )
    left_out = len(summary.cases) - len(shown)
    choice = (
        f"These are {len(shown)} of {len(summary.cases)} cases: the first one, and others between the extremes of "
        f"the {compared_metric(primary_metric(summary)).noun}. "
        if left_out > 0 and len(shown) == MOST
        else ""
    )
    return (
        f"{choice}Each case shows its trial with the median result, on {scales}. "
        f"Goodput is payload that arrived in order, stacked by subflow, in bins of {bin_widths(shown)}: a lost segment "
        "shows as a gap, followed by a peak with all bytes that waited for it. Round-trip time (smoothed) and "
        f"congestion window are the sender's. Queues wait for the rate of a link.{hint}"
    )


def _needs_key(representative: Representative) -> bool:
    """Return whether colours of paths do not identify the queues: paths share a queue, or a path has several."""
    colours = [queue.colour for queue in representative.series.queues]
    return len(representative.plan.flows) > 1 or None in colours or len(set(colours)) < len(colours)


def bin_widths(shown: Sequence[Representative]) -> str:
    """Return the width of the goodput bins in words."""
    widths = sorted({representative.series.bin_s for representative in shown if representative.series.bin_s})
    texts = [f"{width:g} s" for width in widths]
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}" if texts else "one sample"
