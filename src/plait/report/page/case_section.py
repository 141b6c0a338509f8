"""The section of the page with the figures of cases: what each shows, its panels, and its caption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.metrics.catalogue import title_of
from plait.analysis.published import is_of_goodput
from plait.report.figures.cases import BOX, MOST_CASES
from plait.report.page.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from plait.analysis.model import Summary
    from plait.report.figures.draw import CaseFigure

_NOTES = {
    "line": "Each dot is a trial, lines join the means, upright bars are 95 % intervals.",
    "heat-map": "Each cell is the mean over its trials.",
    "scatter": "Each point is a case, the mean over its trials; it stands in the panel of each thing that varies.",
    "distribution": "For each value, the share of the trials that had at most so much.",
}
_COMPARED = {
    "heat-map": "Each cell is the ratio of two means over trials with the same seed: 1 is as much.",
    "scatter": "Each point is the ratio of two cases' means over trials with the same seed, in the panel of each thing "
    "that varies: 1 is as much.",
}


@dataclass(frozen=True)
class FigureView:
    """One figure: the places of its panels, and the words around them."""

    heading: str
    note: str
    charts: tuple[str, ...]
    caption: str


@dataclass(frozen=True)
class CaseSection:
    """All figures of cases."""

    title: str
    figures: tuple[FigureView, ...]


def by_case(figures: Sequence[CaseFigure], summary: Summary, source: str = "") -> Markup | str:
    """Return the section; `source` is of the figures that were published and are drawn beside those of the study."""
    if not figures:
        return ""
    alone = len(figures) == 1 and figures[0].wanted.metric == "goodput_bps"
    title = "Goodput by case" if alone and not figures[0].wanted.caption else "By case"
    views = tuple(_view(figure, summary, source, titled=not alone) for figure in figures)
    return fill("by_case", CaseSection(title, views))


def panel_name(name: str, number: int) -> str:
    """Return the name of the place of a panel of a figure."""
    return name if number == 0 else f"{name}.{number}"


def _view(figure: CaseFigure, summary: Summary, source: str, *, titled: bool) -> FigureView:
    wanted = figure.wanted
    return FigureView(
        heading=title_of(wanted.metric) if titled and wanted.kind != "over-time" else "",
        note=_note(figure, summary, source),
        charts=tuple(panel_name(wanted.name, number) for number in range(len(figure.panels))),
        caption=wanted.caption,
    )


def _note(one: CaseFigure, summary: Summary, source: str) -> str:
    """Return what the marks of a figure mean."""
    asked = one.wanted
    if one.compared:
        return _COMPARED[asked.kind]
    if asked.kind == "groups":
        known = f"; diamonds are the published figures ({source})" if source else ""
        return f"Each dot is a trial, the upright mark the mean over the flows of a group{known}."
    if asked.kind != "cases":
        return _NOTES.get(asked.kind, "")
    metrics = [case.metrics.get(asked.metric) for case in summary.cases]
    note = "Each dot is a trial, the upright mark the mean"
    if any(stats is not None and stats.ci95 is not None for stats in metrics):
        note += ", the bar its 95 % interval"
    if any(stats is not None and stats.n >= BOX for stats in metrics):
        note += "; the box behind them reaches from quartile to quartile, with the median in it"
    ideals = [case.metrics.get("ideal_goodput_bps") for case in summary.cases]
    if asked.metric == "goodput_bps" and any(stats is not None and stats.n for stats in ideals):
        note += "; the thin grey line is what the links allow"
    if source and is_of_goodput(asked.metric):
        note += f"; diamonds are the published figures ({source})"
    if len(summary.cases) > MOST_CASES:
        note += f"; the first {MOST_CASES} of {len(summary.cases)} cases"
    return f"{note}."
