"""report.html: one page that needs nothing else, with the result in words, the figures, and where they come from.

Everything that a person wrote (titles, names, errors) is escaped; what the page's script needs is JSON in which
no tag can begin. The page carries no time of its own making: the same data give the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from plait.analysis.gaps import noted, part
from plait.plan.network.ifnames import told
from plait.report.drawing.network import draw
from plait.report.drawing.overview import is_crowded
from plait.report.figures.delay import delay_figures
from plait.report.figures.draw import case_figures
from plait.report.figures.files import coloured_paths, links_differ, most_paths
from plait.report.figures.over_time import KINDS, chart
from plait.report.figures.panels import frames_of, panel_of
from plait.report.headline import headline, path_counts, sentences
from plait.report.page import matrix, sections, split_table
from plait.report.page.calibration import calibration
from plait.report.page.case_section import by_case, panel_name
from plait.report.render.theme import DARK, LIGHT, config
from plait.report.table import flow_rows, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plait.analysis.model import Summary
    from plait.report.figures.draw import CaseFigure
    from plait.report.representatives import Representative
    from plait.results.read import StudyData

PAGE_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Liberation Sans, Arial, sans-serif"
OPEN_PANELS = 4
"""Cases over time that are open at first; the others open by a button."""
INTERFACES_TOLD = 12
"""Nodes whose interfaces have shortened names; the plan has all."""

# Nothing is loaded from anywhere: the browser itself refuses it.
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"


@dataclass(frozen=True)
class _Charts:
    """The panels' HTML, and the figures that the script draws into them."""

    html: str
    figures: dict[str, Any]


def page(study: StudyData, summary: Summary, shown: Sequence[Representative], script: str) -> str:
    """Return the whole page; `script` is the JavaScript of the charts' library."""
    cases = part("figures of cases", lambda: case_figures(study, summary, shown), {})
    delays = part("figures of delays", lambda: {n: _fluid(s) for n, s in delay_figures(shown).items()}, {})
    over_time = part("figures over time", lambda: _over_time(shown), _Charts("", {}))
    data = {
        "themes": {"light": LIGHT, "dark": DARK},
        "config": config(PAGE_FONT),
        "figures": _specs(cases) | delays | over_time.figures,
    }
    about = study.about
    makers: dict[str, Callable[[], str]] = {
        "result": lambda: sections.result(headline(summary, path_counts(summary)), sentences(summary)),
        "network and cases": lambda: _side_by_side(
            _network(shown), by_case(list(cases.values()), summary, study.published.source), cases
        ),
        "delays": lambda: sections.delays(list(delays), len(shown)),
        "over time": lambda: over_time.html,
        "table": lambda: sections.table(rows(summary)),
        "matrix": lambda: matrix.section(summary),
        "flows": lambda: sections.flows(flow_rows(summary), rows(summary)),
        "split": lambda: split_table.section(summary.cases, rows(summary)),
        "cautions": lambda: sections.cautions((*noted(), *study.cautions)),
        "failures": lambda: sections.failures(study.cases),
        "calibration": lambda: calibration(study.folder),
        "reproduce": lambda: sections.reproduce(study),
        "terms": sections.terms,
    }
    made = {name: part(f"section {name} of the page", make, "") for name, make in makers.items()}
    made["cautions"] = makers["cautions"]()  # with what the others could not say
    body = f"{sections.header(about)}<main>{''.join(made.values())}</main>{sections.footer(about)}"
    return _document(about.heading, body, data, script)


def _document(title: str, body: str, data: dict[str, Any], script: str) -> str:
    """Return the page around its body."""
    assets = files("plait.report") / "assets"
    css = (assets / "page.css").read_text(encoding="utf-8")
    own = (assets / "page.js").read_text(encoding="utf-8")
    light = ";".join(f"--{name}:{colour}" for name, colour in LIGHT.items())
    dark = ";".join(f"--{name}:{colour}" for name, colour in DARK.items())
    # A "<" in JSON strings could end the script element; as an escape it is the same string.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="plait">'
        f"<title>{escape(title)}</title>"
        f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n{css}</style></head>\n"
        f"<body>{body}\n"
        f'<script type="application/json" id="plait-data">{text}</script>\n'
        f"<script>{script}</script>\n"
        f"<script>{own}</script>\n"
        "</body></html>\n"
    )


def _fluid(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification at the width of whatever holds it."""
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def _side_by_side(network: str, by_case: str, figures: Mapping[str, CaseFigure]) -> str:
    """Return the network and the figures of cases beside each other, or above where those need the whole width."""
    wide = len(figures) > 2 or any(len(figure.panels) > 1 for figure in figures.values())
    return network + by_case if wide else f'<div class="pair">{network}{by_case}</div>'


def _specs(figures: Mapping[str, CaseFigure]) -> dict[str, dict[str, Any]]:
    """Return the panels of figures by the names of the places into which they are drawn."""
    return {
        panel_name(name, number): _fluid(panel)
        for name, figure in figures.items()
        for number, panel in enumerate(figure.panels)
    }


def _network(shown: Sequence[Representative]) -> str:
    """Return the section with the drawing of the network and the key to its colours."""
    drawn = most_paths(shown)
    if drawn is None:
        return ""
    colours = {name: f"var(--{name})" for name in LIGHT}
    paths = coloured_paths(drawn, colours)
    key = "".join(
        f'<li><i style="background:{path.colour}"></i>{escape(path.label)} <span>{escape(path.facts)}</span></li>'
        for path in ([] if is_crowded(drawn.plan) else paths)
    )
    words = f"As in case {escape(drawn.label)}; links differ between cases."
    note = f'<p class="note">{words}</p>' if links_differ(shown) else ""
    names = [f"{line}." for line in told(drawn.plan)[:INTERFACES_TOLD]]
    interfaces = f'<p class="note">{escape(" ".join(names))}</p>' if names else ""
    return (
        f'<section id="network"><h2>Network</h2>{note}'
        f'<figure class="network">{draw(drawn.plan, paths, colours, legend=False)}</figure>'
        f'<ul class="key">{key}</ul>{interfaces}</section>'
    )


def _over_time(shown: Sequence[Representative]) -> _Charts:
    """Return the section with a panel of charts per case, all on the same axes."""
    if not shown:
        return _Charts("", {})
    figures: dict[str, Any] = {}
    articles, picks = [], []
    for number, (one, frame) in enumerate(zip(shown, frames_of(shown), strict=True)):
        charts = []
        for kind in KINDS:
            spec = chart(panel_of(one), kind, frame, legend=kind == "queue" and _needs_key(one))
            if spec is not None:
                name = f"{kind}-{number}"
                figures[name] = _fluid(spec)
                charts.append(sections.chart(name, over_time=True))
        hidden = number >= OPEN_PANELS
        picks.append(sections.pick(number, one.label, pressed=not hidden))
        articles.append(sections.panel(number, one, "".join(charts), hidden=hidden))
    buttons = f'<div class="picks">{"".join(picks)}</div>' if len(shown) > OPEN_PANELS else ""
    scales = (
        "the same scales"
        if len({one.group for one in shown}) == 1
        else "the same scales where cases are compared"
    )
    note = (
        f"One trial of each case, the one with the median result; {scales}. "
        f"Goodput is payload that arrived in order, stacked by subflow, in bins of {bin_widths(shown)}: a lost segment "
        "shows as a gap, and then as a peak with all that waited for it; "
        "round-trip time (smoothed) and window are the sender's, and queues wait for a link's rate."
    )
    single = all(len(one.plan.flows) == 1 for one in shown)
    hint = " Colours are those of the paths above." if single else ""
    html = (
        f'<section id="over-time"><h2>Over time</h2><p class="note">{escape(note + hint)}</p>'
        f'{buttons}<div class="panels">{"".join(articles)}</div></section>'
    )
    return _Charts(html, figures)


def _needs_key(one: Representative) -> bool:
    """Return whether the key of paths does not tell the queues apart: some are shared, or several on one path."""
    colours = [queue.colour for queue in one.series.queues]
    return len(one.plan.flows) > 1 or None in colours or len(set(colours)) < len(colours)


def bin_widths(shown: Sequence[Representative]) -> str:
    """Return the width of the goodput bins in words."""
    widths = sorted({one.series.bin_s for one in shown if one.series.bin_s})
    texts = [f"{width:g} s" for width in widths]
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}" if texts else "one sample"
