"""The data behind each figure as CSV, in base units, one observation a row."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import TYPE_CHECKING, Any

from plait.analysis import gaps
from plait.report.figures.delay import FIGURES
from plait.report.figures.delay import MOST as MOST_LINES
from plait.report.figures.draw import cells_shown, most_cases, part_of
from plait.report.figures.ecdf import distributed
from plait.report.figures.files import NAMES
from plait.report.figures.groups import observations
from plait.report.figures.over_time import lines
from plait.report.figures.panels import SIDE_BY_SIDE, panel_of
from plait.report.figures.selection import wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plait.analysis.model import Summary
    from plait.analysis.rows import CaseRows
    from plait.report.figures.case_values import Cells
    from plait.report.figures.selection import Wanted
    from plait.report.representatives import Representative
    from plait.results.read import StudyData

_VALUES = {"goodput": ("goodput_bps", 1.0), "rtt": ("rtt_us", 1e3), "cwnd": ("cwnd_segments", 1.0)} | {
    "queue": ("queue_bytes", 1e3)
}
"""By kind of chart: the column, and what its unit is in the chart's."""


DELAYS = {file: name for name, file in FIGURES.items()}


def figure_data(
    names: Iterable[str], study: StudyData, summary: Summary, shown: Sequence[Representative]
) -> dict[str, str]:
    """Return the CSV of each of these figures by name; a drawing of the network has none."""
    kinds = {name: kind for kind, name in NAMES.items()}
    asked = {one.name: one for one in wanted(study, summary)}
    found = {}
    for name in names:
        one = asked.get(name)
        if one is not None:
            made = partial(_of_cases, one, study, summary, shown)
        elif name in DELAYS:
            made = partial(_distribution, shown, DELAYS[name])
        elif name in kinds:
            made = partial(_over_time, shown[:SIDE_BY_SIDE], kinds[name])
        else:
            continue
        text = gaps.part(f"data of figure {name}", made, None)
        if text is not None:
            found[name] = text
    return found


def _of_cases(one: Wanted, study: StudyData, summary: Summary, shown: Sequence[Representative]) -> str:
    part = part_of(one, study, summary)
    if one.kind == "over-time":
        names = {case.name for case in part.rows}
        return _over_time([other for other in shown if other.case in names][:SIDE_BY_SIDE], one.metric)
    if one.kind == "distribution":
        rows: list[list[Any]] = [["case", one.metric, "share"]]
        for case, points in distributed(part.rows, one.metric).items():
            rows += [[case, _number(value), _number(share)] for value, share in points]
        return _text(rows)
    if one.kind == "groups":
        return _groups(study, summary)
    if one.kind in {"heat-map", "scatter"}:
        cells = cells_shown(one, part)
        return _cells(cells, one.metric, part.summary) if cells is not None else ""
    return _trials(part.rows, part.summary, one.metric, most_cases(one))


def _cells(cells: Cells, metric: str, summary: Summary) -> str:
    """Return what stands at each case: the value, and the case's settings."""
    settings = list(dict.fromkeys(name for case in summary.cases for name in case.settings))
    rows: list[list[Any]] = [["case", *settings, f"{metric}_ratio" if cells.compared else metric]]
    for case in summary.cases:
        if case.name in cells.values:
            value = cells.values[case.name][0] * cells.divisor
            rows.append([case.name, *(case.settings.get(name, "") for name in settings), _number(value)])
    return _text(rows)


def _trials(cases: Sequence[CaseRows], summary: Summary, metric: str, most: int | None) -> str:
    """Return every trial's value of each case, then its mean with the 95 % interval."""
    settings = list(dict.fromkeys(name for case in summary.cases for name in case.settings))
    rows: list[list[Any]] = [["case", *settings, "what", "trial", "seed", metric, "ci95_low", "ci95_high"]]
    for case, found in zip(cases[:most], summary.cases[:most], strict=True):
        head = [case.name, *(case.settings.get(name, "") for name in settings)]
        rows += [
            [*head, "trial", row.index, row.seed, _number(value), "", ""]
            for row in case.rows
            if (value := row.metrics.get(metric)) is not None
        ]
        stats = found.metrics.get(metric)
        if stats is not None and stats.mean is not None:
            low, high = stats.ci95 or (None, None)
            rows.append([*head, "mean", "", "", _number(stats.mean), _number(low), _number(high)])
    return _text(rows)


def _groups(study: StudyData, summary: Summary) -> str:
    """Return every trial's value of each group, their mean with the 95 % interval, and what was published."""
    settings = list(dict.fromkeys(name for case in summary.cases for name in case.settings))
    head = ["case", *settings, "group", "what", "trial", "seed", "goodput_bps", "ci95_low", "ci95_high"]
    given = {case.name: [case.settings.get(name, "") for name in settings] for case in summary.cases}
    rows: list[list[Any]] = [head]
    for one in observations(study.cases, summary.cases, study.published):
        value = [_number(one.get(name)) for name in ("goodput_bps", "low", "high")]
        trial = [one.get(name, "") for name in ("trial", "seed")]
        rows.append([one["case"], *given[one["case"]], one["group"], one["what"], *trial, *value])
    return _text(rows)


def _distribution(shown: Sequence[Representative], name: str) -> str:
    """Return the points of every line of a figure of delays."""
    rows: list[list[Any]] = [["case", "trial", f"{name}_us", "share"]]
    for one in [one for one in shown if name in one.distributions][:MOST_LINES]:
        rows += [[one.case, one.index, _number(us), _number(share)] for us, share in one.distributions[name]]
    return _text(rows)


def _over_time(shown: Sequence[Representative], kind: str) -> str:
    """Return the points of every line of one kind of chart."""
    column, factor = _VALUES[kind]
    rows: list[list[Any]] = [["case", "trial", "t_s", "series", column]]
    for one in shown:
        for line in lines(panel_of(one), kind):
            series = line.label.replace(" \N{RIGHTWARDS ARROW} ", "->")
            rows += [[one.case, one.index, _number(t), series, _number(v * factor)] for t, v in line.points]
    return _text(rows)


def _number(value: float | None) -> str:
    """Return a number with nine digits, more than any of them is known to; nothing when there is none."""
    return "" if value is None else f"{value:.9g}"


def _text(rows: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
