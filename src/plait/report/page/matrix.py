"""The table of two settings that are crossed: a row for each choice of one, a column for each of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.analysis.labels.cases import case_label
from plait.analysis.metrics.catalogue import mean, primary_metric, title_of
from plait.analysis.values import show
from plait.analysis.wording import MISSING, capital, short_name, value_words
from plait.report.page.case_tables import TableSection
from plait.report.page.tables import Cell, Column, Table
from plait.report.page.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from plait.analysis.model import CaseSummary, Summary

LEAST = 3
"""Fewer choices of either are read more easily in the table of cases."""
Cells = dict[tuple[str, str], "CaseSummary"]


def section(summary: Summary) -> Markup | str:
    """Return the section; nothing when no two settings are crossed, with at least LEAST choices each."""
    crossed = crossed_settings(summary.cases)
    if crossed is None:
        return ""
    down, across = crossed
    metric = primary_metric(summary)
    for relative in ("of_cap", "efficiency"):
        if metric == "goodput_bps" and all(mean(case, relative) is not None for case in summary.cases):
            metric = relative
    title = f"{capital(short_name(down))} by {short_name(across)}"
    note = f"{title_of(metric)}; means over trials."
    tables = tuple(
        (label, _table(cells, down, across, metric)) for label, cells in _groups(summary.cases, down, across)
    )
    return fill("table", TableSection("crossed", title, note, tables))


def crossed_settings(cases: Sequence[CaseSummary]) -> tuple[str, str] | None:
    """Return the pair of settings with most combinations, all of which exist for each choice of the other settings."""
    names = list(dict.fromkeys(name for case in cases for name in case.settings))
    counts = {name: len({_text(case, name) for case in cases}) for name in names}
    pairs = [
        (a, b)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if counts[a] >= LEAST and counts[b] >= LEAST and _complete(cases, a, b, counts[a] * counts[b])
    ]
    return max(pairs, key=lambda pair: counts[pair[0]] * counts[pair[1]], default=None)


def _complete(cases: Sequence[CaseSummary], a: str, b: str, combinations: int) -> bool:
    return all(len(cells) == combinations for _, cells in _groups(cases, a, b))


def _groups(cases: Sequence[CaseSummary], a: str, b: str) -> list[tuple[str, Cells]]:
    """Return the cases by the label of their other settings, and in each group by their choices of the two."""
    by_label: dict[str, Cells] = {}
    for case in cases:
        others = {name: value for name, value in case.settings.items() if name not in (a, b)}
        label = case_label("", others)
        by_label.setdefault(label, {})[_text(case, a), _text(case, b)] = case
    return list(by_label.items())


def _text(case: CaseSummary, name: str) -> str:
    value: Any = case.settings.get(name)
    return MISSING if value is None else value_words(value)


def _table(cells: Cells, down: str, across: str, metric: str) -> Table:
    choices = list(dict.fromkeys(column for _, column in cells))
    corner = Column(f"{short_name(down)} / {short_name(across)}", "case")
    body = tuple(
        (
            Cell(row),
            *(Cell(show(metric, mean(cells[row, column], metric))) for column in choices),
        )
        for row in dict.fromkeys(row for row, _ in cells)
    )
    return Table((corner, *map(Column, choices)), body)
