"""The data behind each figure as CSV, in base units, one observation a row."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from plait.analysis.judged import JUDGED
from plait.report.cases_chart import MOST_CASES
from plait.report.delay_chart import FIGURES
from plait.report.delay_chart import MOST as MOST_LINES
from plait.report.figures import NAMES, SIDE_BY_SIDE, panel_of
from plait.report.group_chart import FIGURE, observations
from plait.report.time_charts import lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plait.analysis.model import Summary
    from plait.report.representatives import Representative
    from plait.report.study import StudyData

CASE_FIGURES = {
    f"{judged.figure}{ending}": metric for metric, judged in JUDGED.items() for ending in ("", "-sweep")
}
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
    found = {}
    for name in names:
        if name in CASE_FIGURES:
            # The figure of very many cases shows the first; a sweep is one of all.
            most = None if name.endswith("-sweep") else MOST_CASES
            found[name] = _cases(study, summary, CASE_FIGURES[name], most)
        elif name == FIGURE:
            found[name] = _groups(study, summary)
        elif name in DELAYS:
            found[name] = _distribution(shown, DELAYS[name])
        elif name in kinds:
            found[name] = _over_time(shown[:SIDE_BY_SIDE], kinds[name])
    return found


def _cases(study: StudyData, summary: Summary, metric: str, most: int | None) -> str:
    """Return every trial's value of each case, then its mean with the 95 % interval."""
    settings = list(dict.fromkeys(name for case in summary.cases for name in case.settings))
    rows: list[list[Any]] = [["case", *settings, "what", "trial", "seed", metric, "ci95_low", "ci95_high"]]
    for case, found in zip(study.cases[:most], summary.cases[:most], strict=True):
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
    for one in observations(study.cases, summary.cases, study.about.published):
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
