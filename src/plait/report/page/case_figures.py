"""The section of the page with the figures of cases: where their panels and the words of their captions go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.report.page.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from plait.report.figures.study_figures import DrawnFigure


@dataclass(frozen=True)
class FigureView:
    """One figure: the places of its panels, and the words around them."""

    metric: str
    marks: str
    charts: tuple[str, ...]
    author_text: str


@dataclass(frozen=True)
class CaseSection:
    """All figures of cases."""

    title: str
    figures: tuple[FigureView, ...]


def by_case(figures: Sequence[DrawnFigure]) -> Markup | str:
    """Return the section; nothing without figures."""
    if not figures:
        return ""
    alone = len(figures) == 1 and figures[0].wanted.metric == "goodput_bps"
    title = "Goodput by case" if alone and not figures[0].caption.author else "By case"
    views = tuple(_view(figure, titled=not alone) for figure in figures)
    return fill("by_case", CaseSection(title, views))


def panel_name(name: str, number: int) -> str:
    """Return the name of the place of a panel of a figure."""
    return name if number == 0 else f"{name}.{number}"


def _view(figure: DrawnFigure, *, titled: bool) -> FigureView:
    return FigureView(
        metric=figure.caption.metric if titled else "",
        marks=figure.caption.marks,
        charts=tuple(panel_name(figure.wanted.name, number) for number in range(len(figure.panels))),
        author_text=figure.caption.author,
    )
