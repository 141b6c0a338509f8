"""The sections of the page as HTML. Each takes what it shows and returns nothing when there is nothing to show."""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING

from plait.analysis.failures import failed_alike
from plait.analysis.metrics.catalogue import heading_of
from plait.analysis.wording import MISSING, capital, number_word
from plait.cautions import LOUD
from plait.report.figures.delay import MOST as MOST_LINES
from plait.report.page.explanation import why
from plait.report.render.theme import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plait.analysis.rows import CaseRows
    from plait.cautions import Caution
    from plait.dataset.study_file import StudyFile
    from plait.report.headline import Phrase
    from plait.report.representatives import Representative
    from plait.report.table import Row
    from plait.results.read import StudyData

SHORT_HASH = 16
_CODE = re.compile("`([^`]+)`")
"""What a description has between backticks: a command, or a field."""


def header(about: StudyFile) -> str:
    """Return the title, what the study is, and the button that changes the theme."""
    cases, repeat = len(about.cases), about.repeat
    facts = [
        f"{cases} case{'s' * (cases != 1)}",
        f"{repeat} trial{'s' * (repeat != 1)} each",
        f"seed {about.seed}",
    ]
    if about.kernel.version:
        facts.append(f"Linux {about.kernel.version}")
    if about.engine:
        facts.append(f"{about.engine} engine")
    line = " \N{MIDDLE DOT} ".join(facts)
    words = _CODE.sub(r"<code>\1</code>", escape(about.description.strip())) if about.description else ""
    description = f'<p class="lede">{words}</p>' if words else ""
    return (
        f"<header><div><h1>{escape(about.heading)}</h1>{description}"
        f'<p class="eyebrow">{escape(line)}</p></div>'
        '<button class="theme" type="button" hidden>Dark</button></header>'
    )


def result(phrases: Sequence[Phrase], sentences: Sequence[str]) -> str:
    """Return the headline with its numbers stressed, and the sentences below it."""
    text = "".join(f"<b>{escape(words)}</b>" if strong else escape(words) for words, strong in phrases)
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<div class="result"><p class="headline">{text}</p>{f"<ul>{items}</ul>" if items else ""}</div>'


def chart(name: str, *, over_time: bool = False) -> str:
    """Return the place into which the script draws a figure."""
    return f'<div class="chart{" over-time" * over_time}" data-figure="{escape(name)}"></div>'


def delays(names: Sequence[str], cases: int) -> str:
    """Return the section with the distributions of delays, when messages were recorded."""
    if not names:
        return ""
    note = "For each delay, the share of the messages that took at most so long, in the median trial of each case."
    note += f" The first {MOST_LINES} cases." if cases > MOST_LINES else ""
    charts = "".join(chart(name) for name in names)
    return (
        f'<section id="delays"><h2>Delays</h2><p class="note">{note}</p><figure>{charts}</figure></section>'
    )


def pick(number: int, label: str, *, pressed: bool) -> str:
    """Return the button that opens and closes a case's panel."""
    return (
        f'<button type="button" data-panel="panel-{number}" aria-pressed="{str(pressed).lower()}">'
        f"{escape(label)}</button>"
    )


def panel(number: int, one: Representative, charts: str, *, hidden: bool) -> str:
    """Return the charts over time of one case."""
    which = f"trial {one.index:03d}" + (f", the median of {one.of}" if one.of > 1 else "")
    several = len(one.plan.flows) > 1
    names = "".join(
        f'<li><i style="background:var(--path{series.colour % PATHS})"></i>{escape(series.label)}</li>'
        for series in one.series.subflows
    )
    key = f'<ul class="key">{names}</ul>' if several else ""
    left_out = one.series.left_out
    more = f'<p class="note">{left_out} smaller subflows are not shown.</p>' if left_out else ""
    return (
        f'<article id="panel-{number}"{" hidden" * hidden}><h3>{escape(one.label)}<span>{which}</span></h3>'
        f"{key}{charts}{more}{why(one.explained)}</article>"
    )


def _further(number: int) -> Callable[[Row], str]:
    return lambda row: escape(row.more[number][1])


def table(rows: Sequence[Row]) -> str:
    """Return the table of cases; columns in which nothing was measured are left out."""
    further = [
        (escape(capital(title)), "n", _further(i))
        for i, (title, _) in enumerate(rows[0].more if rows else ())
    ]
    leading = rows[0].leading if rows else 0
    columns: list[tuple[str, str, Callable[[Row], str]]] = [
        ("Case", "case", lambda row: escape(row.label)),
        ("Trials", "n", lambda row: escape(row.trials)),
        *further[:leading],
        (_heading("completion_s"), "n", lambda row: escape(row.completion)),
        *((escape(title), "n", _group(i)) for i, title in enumerate(_groups(rows))),
        (_heading("goodput_bps"), "n", _goodput),
        *further[leading:],
        ("Against baseline", "n", _against),
        (_heading("efficiency"), "n", lambda row: escape(row.efficiency)),
        (_heading("aggregation_benefit"), "n", lambda row: escape(row.benefit)),
        ("Bytes by path, %", "n", _shares(rows)),
        (_heading("jain_index"), "n", lambda row: escape(row.jain)),
        (_heading("retransmits"), "n", lambda row: escape(row.retransmits)),
        (_heading("rtt_median_us"), "n", lambda row: escape(row.rtt)),
    ]
    kept = [column for column in columns if any(column[2](row) != MISSING for row in rows)]
    head = "".join(f'<th class="{kind}" scope="col">{title}</th>' for title, kind, _ in kept)
    body = "".join(
        "<tr>" + "".join(f'<td class="{kind}">{cell(row)}</td>' for _, kind, cell in kept) + "</tr>"
        for row in rows
    )
    note = "Means over trials with their 95 % intervals; least and greatest below. A dash marks what was not measured."
    return (
        f'<section id="cases"><h2>Cases</h2><p class="note">{note}</p><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _heading(metric: str) -> str:
    return escape(capital(heading_of(metric)))


def flows(found: Sequence[tuple[str, list[str]]], cases: Sequence[Row]) -> str:
    """Return the table of flows, a column per case, when there are several flows."""
    if not found:
        return ""
    head = "".join(f'<th class="n" scope="col">{escape(row.label)}</th>' for row in cases)
    body = ""
    for name, cells in found:
        values = "".join(f'<td class="n">{escape(cell)}</td>' for cell in cells)
        body += f'<tr><td class="case">{escape(name)}</td>{values}</tr>'
    return (
        '<section id="flows"><h2>Flows</h2><p class="note">Goodput of each flow in each case.</p><div class="scroll">'
        f'<table><thead><tr><th scope="col">Flow</th>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'
    )


def _groups(rows: Sequence[Row]) -> list[str]:
    return [f"{group}, each" for group, _, _ in rows[0].groups] if rows else []


def _group(number: int) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        _, text, published = row.groups[number]
        return escape(text) + (f"<small>published {escape(published)}</small>" if published else "")

    return cell


def _goodput(row: Row) -> str:
    if row.goodput == MISSING:
        return MISSING
    more = [row.goodput_range, f"published {row.published}" if row.published else ""]
    return escape(row.goodput) + "".join(f"<small>{escape(words)}</small>" for words in more if words)


def _against(row: Row) -> str:
    if row.ratio == MISSING:
        return MISSING
    return f"\N{MULTIPLICATION SIGN}{escape(row.ratio)}<small>of {escape(row.baseline)}, {escape(row.change)}</small>"


def _shares(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Return the cell of a row; a path has the colour of its place in the row that has most of them."""
    longest = max((row.shares for row in rows), key=len, default=())
    place = {name: number for number, (name, _) in enumerate(longest)}

    def cell(row: Row) -> str:
        if not row.shares:
            return MISSING
        parts = "".join(
            f'<i style="width:{share * 100:.2f}%;background:var(--path{place.get(name, number) % PATHS})" '
            f'title="{escape(name)}"></i>'
            for number, (name, share) in enumerate(row.shares)
        )
        return f'<span class="bar">{parts}</span>{escape(row.share_text)}'

    return cell


def cautions(found: Sequence[Caution]) -> str:
    """Return what to check before trusting the result."""
    if not found:
        return ""
    items = "".join(
        f"<li class='{'loud' if caution.code in LOUD else ''}'>{escape(caution.summary)}"
        f"<code>{escape(caution.code)}</code>"
        f"{f'<small>{escape(caution.remedy)}</small>' if caution.remedy else ''}</li>"
        for caution in found
    )
    return (
        '<section id="cautions"><h2>Cautions</h2><p class="note">Check these before you trust the result.</p>'
        f'<ul class="cautions">{items}</ul></section>'
    )


def failures(cases: Sequence[CaseRows]) -> str:
    """Return the trials that failed, with their reasons."""
    failed = [(case.name, trial) for case in cases for trial in case.failed]
    if not failed:
        return ""
    named = [(f"{name}, trial {trial.index:03d}", trial.error) for name, trial in failed]
    items = "".join(
        f"<li>{escape('; '.join(trials))}<small>{escape(error)}</small></li>"
        for trials, error in failed_alike(named)
    )
    count = number_word(len(failed)).capitalize()
    return (
        f'<section id="failed"><h2>Failed trials</h2><p class="note">{count} failed; no figure counts them. Their logs '
        "are in their folders, the guest's console in <code>trials/CASE/NUMBER/logs/console.log</code>.</p>"
        f'<ul class="cautions failed">{items}</ul></section>'
    )


def reproduce(study: StudyData) -> str:
    """Return the one command that makes the same data again, and everything that decides them."""
    about = study.about
    facts = [
        ("Digest of the data", study.digest),
        ("Seed", str(about.seed)),
        ("plait", about.plait_version),
        ("Engine", about.engine),
        ("Kernel", about.kernel.version and f"Linux {about.kernel.version}"),
        ("Kernel identity", about.kernel.identity),
        ("Agent", about.agent_sha256),
    ]
    items = "".join(
        f"<dt>{escape(term)}</dt><dd><code>{escape(value)}</code></dd>" for term, value in facts if value
    )
    text = json.dumps(about.scenario, indent=2, ensure_ascii=False)
    source = f"<details><summary>The scenario</summary><pre><code>{escape(text)}</code></pre></details>"
    return (
        '<section id="reproduce"><h2>Reproduce</h2><p class="note">The same scenario, seed and kernel give data with '
        "the same digest, on any machine.</p>"
        f'<div class="command"><pre><code>{escape(about.command)}</code></pre>'
        '<button type="button" hidden>Copy</button></div>'
        f'<dl class="facts">{items}</dl>{source}</section>'
    )


def terms() -> str:
    """Return what the words and figures mean."""
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in TERMS.items())
    return f'<section id="terms"><h2>How to read this</h2><dl class="facts terms">{items}</dl></section>'


def footer(about: StudyFile) -> str:
    """Return the last line."""
    return (
        f"<footer>Made by plait {escape(about.plait_version)} from the data beside this page: trials/ holds every "
        "table as Parquet, summary.json the numbers, figures/ each figure as SVG and PNG.</footer>"
    )


TERMS = {
    "Goodput": "Application bytes per second at the receiver. Bulk flows count over exactly their duration, from "
    "connect(); transfers until the last byte was read.",
    "What the links allow": "The rate of all paths together, less Ethernet, IP, TCP and MPTCP headers of full "
    "segments: 1448 of 1514 bytes for TCP, 1424 of 1514 for MPTCP, at an MTU of 1500.",
    "Published": "What others have measured in the same experiment, as the scenario says it, and how far the mean "
    "here is from it.",
    "95 % interval": "Student's t interval of the mean. There is none for one trial, nor when all trials are alike.",
    "Against baseline": "Ratio of the mean goodputs over trials with the same seed.",
    "Aggregation benefit": "1: all capacity beyond the best path is used; 0: as good as the best path alone; below "
    "0: worse than it. The single paths count with what the links allow TCP.",
    "Round-trip time": "The kernel's smoothed estimate, sampled; the median is over samples of subflows that carry "
    "data.",
}
