"""All figures of a study: their panels, their specifications as files, and the data behind them as CSV.

A figure's name is that of its files below figures/, without the ending.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from plait.analysis.gaps import part
from plait.analysis.metrics.catalogue import is_of_all_flows, title_of
from plait.analysis.model import Summary
from plait.report.drawing.network import coloured_paths, draw, most_paths
from plait.report.figures import networks
from plait.report.figures.case_values import exceed_axes
from plait.report.figures.kind import Content, FigureRequest, Spec
from plait.report.figures.kinds.distribution import DELAYS
from plait.report.figures.kinds.over_time import OVER_TIME, SIDE_BY_SIDE
from plait.report.figures.marks import SCHEMA
from plait.report.figures.selection import KINDS, content_of, of_trials, wanted
from plait.report.render.fonts import family_of, stack_of
from plait.report.render.grid import together
from plait.report.render.paper import COLUMN_MM, PAGE_MM, PAPERS, fitted
from plait.report.render.theme import FONT, LIGHT
from plait.report.representatives import Representative
from plait.results.read import StudyData

PAGE = 12
"""Most panels in one file; more are on further pages."""
MOST_PANELS = 48
"""Most panels of one figure; its caption says what it leaves out."""


@dataclass(frozen=True)
class DrawnFigure:
    """One figure: what was asked for, its panels, left to right, and the words around it."""

    request: FigureRequest
    panels: tuple[Spec, ...]
    metric: str
    """The title of its metric; empty where panels have titles."""
    marks: str
    """The meaning of its marks, in plait's words."""
    note: str = ""
    """The note of its file above the panels."""
    pages: tuple[int, ...] = (1,)
    """The number of panels in each of its files."""

    @property
    def places(self) -> list[str]:
        """The names of the places of its panels on the page."""
        name = self.request.name
        return [name if number == 0 else f"{name}.{number}" for number in range(len(self.panels))]


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
            name if page == 0 else f"{name}-page-{page + 1}": partial(
                laid_out, figure, width_mm, column_mm, style, page
            )
            for name, figure in {**cases, **trials}.items()
            for page in range(len(figure.pages))
        },
    }
    drawn_figures = {name: part(f"figure {name}", maker, None) for name, maker in makers.items()}
    return {name: figure for name, figure in drawn_figures.items() if figure is not None}


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
    drawn_figures = {
        figure.name: part(f"figure {figure.name}", partial(drawn_figure, figure, content.part(figure)), None)
        for figure in figures
    }
    return {name: figure for name, figure in drawn_figures.items() if figure is not None}


def drawn_figure(request: FigureRequest, content: Content) -> DrawnFigure | None:
    """Return one figure; None when nothing was measured for it."""
    kind = KINDS[request.kind]
    content = _with_shown(request, content)
    by_network = networks.panels(kind, request, content)
    pages = pages_of([len(panels) for panels in by_network])
    every = [panel for panels in by_network for panel in panels]
    panels = every[: sum(pages)]
    if not panels:
        return None
    labels = content.summary.labels
    if labels and "." in request.metric:
        titles = title_of(request.metric), title_of(request.metric, labels)
        panels = [_retitled(panel, *titles) for panel in panels]
    if request.caption:  # screen readers and vector files have it
        panels = [{**panel, "description": request.caption} for panel in panels]
    metric = "" if kind is OVER_TIME else request.metric  # its panels have titles
    marks = [kind.caption(request, networks.networks(content, request)[0][1])]
    if is_of_all_flows(content.summary, request.metric):
        marks.append("It is the goodput of all flows together.")
    notes = [kind.note(request, content)]
    if kind.draws_intervals and exceed_axes(content.cases, request.metric):
        marks.append(f"An interval that reaches the edge extends beyond it; {request.name}.csv has it whole.")
    if len(by_network) > 1:
        marks.append("Each network has scales of its own.")
    if len(panels) < len(every):
        notes.append(f"{len(panels)} of {len(every)} panels")
        marks.append(
            f"These are {notes[-1]}; {request.name}.csv has all cases, and `only` in a figure of the scenario selects "
            "others."
        )
    return DrawnFigure(
        request,
        tuple(panels),
        title_of(metric, labels) if metric else "",
        " ".join(filter(None, marks)),
        "; ".join(filter(None, notes)),
        pages,
    )


def _with_shown(request: FigureRequest, content: Content) -> Content:
    """Return the content with the trials that a figure over time shows: some of each network."""
    return networks.with_few_shown(content, SIDE_BY_SIDE) if KINDS[request.kind] is OVER_TIME else content


def pages_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the number of panels in each file, given that of each network: a network is divided only if it must be."""
    pages: list[int] = []
    room = 0
    for size in sizes:
        for start in range(0, size, PAGE):
            count = min(PAGE, size - start, MOST_PANELS - sum(pages))
            if count > room:
                pages.append(0)
                room = PAGE
            if count:
                pages[-1] += count
                room -= count
    return tuple(page for page in pages if page)


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
    figure: DrawnFigure, width_mm: float, column_mm: float = COLUMN_MM, style: str = "plain", page: int = 0
) -> Spec:
    """Return a figure as one specification for a file; of several pages one, which counts from 0."""
    start = sum(figure.pages[:page])
    panels = figure.panels[start : start + figure.pages[page]]
    note = figure.note
    if len(figure.pages) > 1:
        note = "; ".join(filter(None, (f"page {page + 1} of {len(figure.pages)}", note)))
    paper = PAPERS.get(figure.request.style or "")
    if paper is not None:
        width_mm, column_mm = paper.page_mm, paper.column_mm
    width = min(width_mm, column_mm) if figure.request.width == "column" else width_mm
    spec = fitted(panels[0], width, note) if len(panels) == 1 else together(SCHEMA, panels, width, note)
    family = family_of(figure.request.style or style)
    return spec if family is None else {**spec, "usermeta": {**spec["usermeta"], "font": family}}


def _network_svg(drawn: Representative, style: str) -> str:
    paths = coloured_paths(drawn.plan, drawn.series, LIGHT)
    svg = draw(drawn.plan, paths, LIGHT, legend=True, called=drawn.labels)
    return svg.replace(f'font-family="{FONT}"', f'font-family="{stack_of(style)}"', 1)


def _data(figure: FigureRequest, content: Content) -> str:
    shown = _with_shown(figure, content.part(figure))
    text_file = io.StringIO()
    rows = networks.table(KINDS[figure.kind], figure, shown)
    csv.writer(text_file, lineterminator="\n").writerows(rows)
    return text_file.getvalue()
