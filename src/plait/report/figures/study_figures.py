"""All figures of a study: their panels, their specifications as files, and the data behind them as CSV.

A figure's name is that of its files below figures/, without the ending.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from plait.analysis.gaps import part
from plait.analysis.metrics.catalogue import title_of
from plait.report.drawing.network import draw
from plait.report.drawing.paths import coloured_paths, most_paths
from plait.report.figures.caption import caption_of, with_description
from plait.report.figures.kinds.cases import SCHEMA
from plait.report.figures.kinds.delay import DELAYS
from plait.report.figures.selection import KINDS, content_of, of_trials, wanted
from plait.report.render.fonts import family_of, stack_of
from plait.report.render.grid import together
from plait.report.render.paper import COLUMN_MM, PAGE_MM, PAPERS, fitted
from plait.report.render.theme import FONT, LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plait.analysis.model import Summary
    from plait.report.figures.caption import Caption
    from plait.report.figures.kind import Content, FigureRequest, Spec, TableRows
    from plait.report.representatives import Representative
    from plait.results.read import StudyData


@dataclass(frozen=True)
class DrawnFigure:
    """One figure: what was wanted, its panels, left to right, and the words around it."""

    wanted: FigureRequest
    panels: tuple[Spec, ...]
    caption: Caption
    note: str = ""
    """What its file says above the panels."""


def case_figures(
    study: StudyData, summary: Summary, shown: Sequence[Representative] = ()
) -> dict[str, DrawnFigure]:
    """Return every figure of cases by name; those for which nothing was measured are left out.

    `shown` are drawn in figures over time that the scenario asks for.
    """
    return _figures(wanted(study, summary), content_of(study, summary, shown))


def delay_figures(
    study: StudyData, summary: Summary, shown: Sequence[Representative]
) -> dict[str, DrawnFigure]:
    """Return every figure of delays by name."""
    content = content_of(study, summary, shown)
    return _figures(DELAYS.selected(content), content)


def static_figures(
    study: StudyData,
    summary: Summary,
    shown: Sequence[Representative],
    width_mm: float = PAGE_MM,
    column_mm: float = COLUMN_MM,
    *,
    style: str = "plain",
    cases: Mapping[str, DrawnFigure] | None = None,
) -> dict[str, Spec | str]:
    """Return the figures that are kept as files: Vega-Lite specifications, and the network as SVG.

    `cases` are the figures of cases if they were made already.

    They are laid out for `width_mm`, and those that the scenario wants as narrow as a column for `column_mm`. Where
    the scenario names a publisher for a figure, its widths and fonts count, otherwise the fonts of `style`.
    """
    drawn = most_paths(shown)
    if cases is None:
        cases = part("figures of cases", lambda: case_figures(study, summary, shown), {})
    content = content_of(study, summary, shown)
    trials = part("figures of trials", lambda: _figures(of_trials(content), content), {})
    makers: dict[str, Callable[[], Spec | str]] = {
        **({"network": partial(_network_svg, drawn, style)} if drawn is not None else {}),
        **{
            name: partial(laid_out, figure, width_mm, column_mm, style)
            for name, figure in {**cases, **trials}.items()
        },
    }
    made = {name: part(f"figure {name}", make, None) for name, make in makers.items()}
    return {name: figure for name, figure in made.items() if figure is not None}


def figure_data(
    names: Iterable[str], study: StudyData, summary: Summary, shown: Sequence[Representative]
) -> dict[str, str]:
    """Return the CSV of each of these figures by name; a drawing of the network has none."""
    content = content_of(study, summary, shown)
    figures = {figure.name: figure for figure in (*of_trials(content), *wanted(study, summary))}
    texts = {
        name: part(f"data of figure {name}", partial(_data, figures[name], content), None)
        for name in names
        if name in figures
    }
    return {name: text for name, text in texts.items() if text is not None}


def _figures(figures: Sequence[FigureRequest], content: Content) -> dict[str, DrawnFigure]:
    made = {
        figure.name: part(f"figure {figure.name}", partial(drawn_figure, figure, content.part(figure)), None)
        for figure in figures
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def drawn_figure(wanted: FigureRequest, content: Content) -> DrawnFigure | None:
    """Return one figure; None when nothing was measured for it."""
    kind = KINDS[wanted.kind]
    panels = kind.panels(wanted, content)
    if not panels:
        return None
    labels = content.summary.labels
    if labels and "." in wanted.metric:
        titles = title_of(wanted.metric), title_of(wanted.metric, labels)
        panels = [_retitled(panel, *titles) for panel in panels]
    caption = caption_of(kind, wanted, content)
    note = kind.note(wanted, content)
    return DrawnFigure(wanted, with_description(panels, caption), caption, note)


def _retitled(spec: Any, old: str, new: str) -> Any:
    """Return a specification in which titles that begin with `old` begin with `new`."""
    if isinstance(spec, dict):
        return {
            key: new + value[len(old) :]
            if key == "title" and isinstance(value, str) and value.startswith(old)
            else _retitled(value, old, new)
            for key, value in spec.items()
        }
    return [_retitled(inner, old, new) for inner in spec] if isinstance(spec, list) else spec


def laid_out(
    figure: DrawnFigure, width_mm: float, column_mm: float = COLUMN_MM, style: str = "plain"
) -> Spec:
    """Return a figure as one specification for a file."""
    paper = PAPERS.get(figure.wanted.style or "")
    if paper is not None:
        width_mm, column_mm = paper.page_mm, paper.column_mm
    width = min(width_mm, column_mm) if figure.wanted.column else width_mm
    spec = (
        fitted(figure.panels[0], width, figure.note)
        if len(figure.panels) == 1
        else together(SCHEMA, figure.panels, width, figure.note)
    )
    family = family_of(figure.wanted.style or style)
    return spec if family is None else {**spec, "usermeta": {**spec["usermeta"], "font": family}}


def _network_svg(drawn: Representative, style: str) -> str:
    paths = coloured_paths(drawn, LIGHT)
    svg = draw(drawn.plan, paths, LIGHT, legend=True, called=drawn.labels)
    return svg.replace(f'font-family="{FONT}"', f'font-family="{stack_of(style)}"', 1)


def _data(figure: FigureRequest, content: Content) -> str:
    return _csv(KINDS[figure.kind].table(figure, content.part(figure)))


def _csv(rows: TableRows) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
