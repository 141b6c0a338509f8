"""All figures of a study, by the name of their file below figures/ (without its ending)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from plait.analysis.gaps import part
from plait.analysis.wording import micros, plain, rate
from plait.report.drawing.layout import distinct_paths
from plait.report.drawing.link_labels import link_label
from plait.report.drawing.network import DrawnPath, draw
from plait.report.figures.cases import SCHEMA
from plait.report.figures.delay import delay_figures
from plait.report.figures.draw import CaseFigure, case_figures
from plait.report.figures.over_time import KINDS, Frame, Panel, chart
from plait.report.figures.panels import SIDE_BY_SIDE, frames_of, panel_of
from plait.report.render.paper import COLUMN_MM, PAGE_MM, fitted, together
from plait.report.render.theme import LIGHT, PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plait.analysis.model import Summary
    from plait.report.representatives import Representative
    from plait.results.read import StudyData

Spec = dict[str, Any]

NAMES = {
    "goodput": "goodput-over-time",
    "rtt": "rtt-over-time",
    "cwnd": "cwnd-over-time",
    "queue": "queue-over-time",
}


def static_figures(
    study: StudyData, summary: Summary, shown: Sequence[Representative], width_mm: float = PAGE_MM
) -> dict[str, Spec | str]:
    """Return the figures that are kept as files: Vega-Lite specifications, and the network as SVG.

    They are laid out for `width_mm`, and those that the scenario wants as narrow as a column for that.
    """
    drawn = most_paths(shown)
    cases = part("figures of cases", lambda: case_figures(study, summary, shown), {})
    delays = part("figures of delays", lambda: delay_figures(shown), {})
    makers: dict[str, Callable[[], Spec | str | None]] = {
        **({"network": partial(_network, drawn)} if drawn is not None else {}),
        **{name: partial(laid_out, figure, width_mm) for name, figure in cases.items()},
        **{name: partial(fitted, spec, width_mm) for name, spec in delays.items()},
        **{NAMES[kind]: partial(_over_time, shown, kind, width_mm) for kind in KINDS},
    }
    made = {name: part(f"figure {name}", make, None) for name, make in makers.items()}
    return {name: figure for name, figure in made.items() if figure is not None}


def _network(drawn: Representative) -> str:
    return draw(drawn.plan, coloured_paths(drawn, LIGHT), LIGHT, legend=True)


def _over_time(shown: Sequence[Representative], kind: str, width_mm: float) -> Spec | None:
    """Return one kind of chart over time for the first cases; None when none has it."""
    panels = [panel_of(one) for one in shown[:SIDE_BY_SIDE]]
    return side_by_side(panels, kind, frames_of(shown)[:SIDE_BY_SIDE], width_mm)


def laid_out(figure: CaseFigure, width_mm: float) -> Spec:
    """Return a figure of cases as one specification for a file."""
    width = min(width_mm, COLUMN_MM) if figure.wanted.column else width_mm
    if len(figure.panels) == 1:
        return fitted(figure.panels[0], width)
    over_time = figure.wanted.kind == "over-time"
    return together(SCHEMA, figure.panels, width, own_colours=over_time)


def side_by_side(
    panels: Sequence[Panel], kind: str, frames: Sequence[Frame], width_mm: float = PAGE_MM
) -> Spec | None:
    """Return one kind of chart for several cases side by side; None when none has it."""
    charts = []
    for panel, frame in zip(panels, frames, strict=True):
        spec = chart(panel, kind, frame, legend=True)
        if spec is not None:
            charts.append({**spec, "title": {"text": panel.label, "subtitle": spec["title"]}})
    if not charts:
        return None
    if len(charts) == 1:
        return fitted({"$schema": SCHEMA, **charts[0]}, width_mm)
    return together(SCHEMA, charts, width_mm, own_colours=True)


def most_paths(shown: Sequence[Representative]) -> Representative | None:
    """Return the representative whose flows use most paths: its drawing shows those of the others too."""
    return max(shown, key=lambda one: len(distinct_paths(one.plan)), default=None)


def coloured_paths(one: Representative, colours: Mapping[str, str]) -> list[DrawnPath]:
    """Return the paths of a plan in the colours that their subflows have in the charts."""
    by_path = {series.path: series.colour for series in one.series.subflows}
    several = len(one.plan.flows) > 1
    found = []
    for number, (_, path) in enumerate(distinct_paths(one.plan)):
        # With several flows the colours of the charts tell flows apart, and paths have none of their own.
        token = "muted" if several else f"path{by_path.get(path.name, number) % PATHS}"
        facts = [
            plain(rate(path.rate_bps)) if path.rate_bps is not None else "",
            f"base RTT {plain(micros(path.base_rtt_us))}",
        ]
        found.append(
            DrawnPath(
                directions=path.forward,
                colour=colours[token],
                label=path.name,
                facts=", ".join(fact for fact in facts if fact),
            )
        )
    return found


def links_differ(shown: Sequence[Representative]) -> bool:
    """Return whether the links are not the same in all cases: then the drawing is that of one case."""
    return len({tuple(link_label(link) for link in one.plan.links) for one in shown}) > 1
