"""report.html: one page that needs nothing else, with the result in words, the figures, and where they come from.

The templates escape everything that a person wrote (titles, names, errors); what the page's script needs is JSON in
which no tag can begin. The page carries no time of its own making: the same data give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from plait.analysis.gaps import noted, part
from plait.analysis.model import Summary
from plait.report.figures.study_figures import DrawnFigure, delay_figures
from plait.report.headline import headline, sentences
from plait.report.page import sections, tables
from plait.report.page.over_time import network, over_time
from plait.report.page.template import fill
from plait.report.render.theme import DARK, LIGHT, PAGE_FONT, config
from plait.report.representatives import Representative
from plait.results.read import StudyData


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
    study_file = study.about
    makers: dict[str, Callable[[], Markup | str]] = {
        "result": lambda: fill("result", phrases=headline(summary), sentences=sentences(summary)),
        "network and cases": lambda: _side_by_side(network(shown), sections.by_case(cases), cases),
        "delays": lambda: fill("delays", figures=delays) if delays else "",
        "over time": lambda: charts,
        "table": lambda: tables.cases(summary),
        "matrix": lambda: tables.crossed(summary),
        "flows": lambda: tables.flows(summary),
        "split": lambda: tables.split(summary),
        "cautions": lambda: sections.cautions((*noted(), *study.cautions)),
        "failures": lambda: sections.failures(study.cases),
        "reproduce": lambda: sections.reproduce(study),
        "terms": lambda: fill("terms", terms=sections.TERMS),
    }
    made_sections = {name: part(f"section {name} of the page", maker, "") for name, maker in makers.items()}
    made_sections["cautions"] = makers["cautions"]()  # with the gaps of the other sections
    panels = {
        name: panel
        for figure in ({**cases, **delays}).values()
        for name, panel in zip(figure.places, figure.panels, strict=True)
    }
    assets = files("plait.report") / "assets"
    fluid = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    figures = {name: {**spec, **fluid} for name, spec in {**panels, **over_time_figures}.items()}
    html = fill(
        "page",
        title=study_file.heading,
        header=sections.header(study_file),
        sections=[section for section in made_sections.values() if section],
        footer=fill("footer", version=study_file.plait_version),
        light=LIGHT,
        dark=DARK,
        css=_trusted((assets / "page.css").read_text(encoding="utf-8")),
        data={"themes": {"light": LIGHT, "dark": DARK}, "config": config(PAGE_FONT), "figures": figures},
        library=_trusted(script),
        code=_trusted((assets / "page.js").read_text(encoding="utf-8")),
    )
    return f"{html}\n"


def _trusted(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - a file of this package, or the charts' library


def _side_by_side(network: Markup | str, by_case: Markup | str, figures: Mapping[str, Any]) -> Markup | str:
    """Return the network and the figures of cases beside each other, or above where those need the whole width."""
    wide = len(figures) > 2 or any(len(figure.panels) > 1 for figure in figures.values())
    if wide:
        return Markup("{}\n{}").format(network, by_case)
    return Markup('<div class="pair">{}{}</div>').format(network, by_case)
