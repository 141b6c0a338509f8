"""report.html: one page that needs nothing else, with the result in words, the figures, and where they come from.

The templates escape everything that a person wrote (titles, names, errors); what the page's script needs is JSON in
which no tag can begin. The page carries no time of its own making: the same data give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from plait.analysis.gaps import noted, part
from plait.report.figures.study_figures import delay_figures
from plait.report.headline import headline, path_counts, sentences
from plait.report.page import case_tables, matrix, sections, split_table
from plait.report.page.calibration import calibration
from plait.report.page.case_figures import by_case, panel_name
from plait.report.page.over_time import network, over_time
from plait.report.page.template import fill
from plait.report.render.theme import DARK, LIGHT, config
from plait.report.table import flow_rows, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plait.analysis.model import Summary
    from plait.report.figures.study_figures import DrawnFigure
    from plait.report.representatives import Representative
    from plait.results.read import StudyData

PAGE_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Liberation Sans, Arial, sans-serif"

Spec = dict[str, Any]


@dataclass(frozen=True)
class ReportPage:
    """The whole page."""

    title: str
    header: Markup
    sections: tuple[Markup | str, ...]
    footer: Markup
    light: tuple[tuple[str, str], ...]
    """The colours of the themes by name."""
    dark: tuple[tuple[str, str], ...]
    css: Markup
    data: dict[str, Any]
    """Colours and figures, for the page's code."""
    library: Markup
    """The JavaScript that draws charts."""
    code: Markup
    """The page's own JavaScript."""


def page(
    study: StudyData,
    summary: Summary,
    shown: Sequence[Representative],
    script: str,
    cases: Mapping[str, DrawnFigure],
) -> str:
    """Return the whole page.

    `script` is the JavaScript of the charts' library, and `cases` are the figures of cases.
    """
    delays = part("figures of delays", lambda: delay_figures(study, summary, shown), {})
    charts, over_time_figures = part("figures over time", lambda: over_time(shown, summary), ("", {}))
    about = study.about
    makers: dict[str, Callable[[], Markup | str]] = {
        "result": lambda: sections.result(headline(summary, path_counts(summary)), sentences(summary)),
        "network and cases": lambda: _side_by_side(network(shown), by_case(list(cases.values())), cases),
        "delays": lambda: sections.delays(list(delays.values())),
        "over time": lambda: charts,
        "table": lambda: case_tables.cases(rows(summary), summary),
        "matrix": lambda: matrix.section(summary),
        "flows": lambda: case_tables.flows(flow_rows(summary), rows(summary)),
        "split": lambda: split_table.section(summary.cases, rows(summary)),
        "cautions": lambda: sections.cautions((*noted(), *study.cautions)),
        "failures": lambda: sections.failures(study.cases),
        "calibration": lambda: calibration(study.folder),
        "reproduce": lambda: sections.reproduce(study),
        "terms": sections.terms,
    }
    made = {name: part(f"section {name} of the page", make, "") for name, make in makers.items()}
    made["cautions"] = makers["cautions"]()  # with the gaps of the other sections
    figures = {name: _fluid(spec) for name, spec in (_specs({**cases, **delays}) | over_time_figures).items()}
    assets = files("plait.report") / "assets"
    view = ReportPage(
        title=about.heading,
        header=sections.header(about),
        sections=tuple(section for section in made.values() if section),
        footer=sections.footer(about),
        light=tuple(LIGHT.items()),
        dark=tuple(DARK.items()),
        css=_trusted((assets / "page.css").read_text(encoding="utf-8")),
        data={"themes": {"light": LIGHT, "dark": DARK}, "config": config(PAGE_FONT), "figures": figures},
        library=_trusted(script),
        code=_trusted((assets / "page.js").read_text(encoding="utf-8")),
    )
    return f"{fill('page', view)}\n"


def _trusted(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - a file of this package, or the charts' library


def _fluid(spec: Spec) -> Spec:
    """Return the specification with the width of the element that contains it."""
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def _side_by_side(
    network: Markup | str, by_case: Markup | str, figures: Mapping[str, DrawnFigure]
) -> Markup | str:
    """Return the network and the figures of cases beside each other, or above where those need the whole width."""
    wide = len(figures) > 2 or any(len(figure.panels) > 1 for figure in figures.values())
    if wide:
        return Markup("{}\n{}").format(network, by_case)
    return Markup('<div class="pair">{}{}</div>').format(network, by_case)


def _specs(figures: Mapping[str, DrawnFigure]) -> dict[str, Spec]:
    """Return the panels of figures by the names of the places into which they are drawn."""
    return {
        panel_name(name, number): panel
        for name, figure in figures.items()
        for number, panel in enumerate(figure.panels)
    }
