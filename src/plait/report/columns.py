"""The columns of the table of cases as a terminal can show them: factors, judged metrics, and everything else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plait.analysis.compare.factors import factor_names, level, main_factor
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import columns as companions
from plait.analysis.metrics.catalogue import judged_metrics, short_heading_of
from plait.analysis.metrics.groups import STEADY as STEADY_OF_GROUP
from plait.analysis.metrics.groups import group_names
from plait.analysis.published import REPORTED
from plait.analysis.values import in_one_unit, with_interval
from plait.analysis.wording import MISSING, significant
from plait.errors import RequestError
from plait.metrics import COMPARED
from plait.report.figures.axes import telling_settings
from plait.report.headline import matched
from plait.report.table import STEADY, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.analysis.compare.factors import HasSettings
    from plait.analysis.model import Summary
    from plait.report.table import Row

PUBLISHED = "published"
RATIO = "ratio"
BARE = ("efficiency", "jain_index")
"""Metrics without intervals in tables unless the study is judged by them."""
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class TextColumn:
    """One column: the name by which `--columns` chooses it, its heading, and a cell for each case."""

    name: str
    heading: str
    cells: tuple[str, ...]
    unit: str = ""
    """The unit of all `numbers`."""
    numbers: tuple[str, ...] = ()
    """The same cells without their unit; empty where they have none."""
    is_factor: bool = False
    folds: bool = False
    """A cell may take several lines."""
    is_words: bool = False
    """Its cells are words, which begin at the left."""
    styles: Mapping[str, str] = field(default_factory=dict)
    """The colours of cells by their text."""

    @property
    def compact(self) -> TextColumn:
        """The column with the unit in its heading."""
        if not self.numbers or not self.unit:
            return self
        return TextColumn(self.name, f"{self.heading}, {self.unit}", self.numbers)

    def in_order(self, rows: Sequence[int]) -> TextColumn:
        """Return the column with these of its rows."""
        numbers = tuple(self.numbers[row] for row in rows) if self.numbers else ()
        return replace(self, cells=tuple(self.cells[row] for row in rows), numbers=numbers)

    @property
    def is_empty(self) -> bool:
        """Whether it has no value at all."""
        return all(cell == MISSING for cell in self.cells)


def factor_columns(cases: Sequence[HasSettings], names_of_cases: Sequence[str]) -> list[TextColumn]:
    """Return a column for each factor that varies; of the cases' names if these do not tell the cases apart.

    Where each case has a label, `names_of_cases` has these, and they are the only column.
    """
    factors = telling_settings(cases)
    names = factor_names(factors)
    found = [
        TextColumn(
            names[factor],
            names[factor].replace("_", " "),
            tuple(level(case, factor) for case in cases),
            is_factor=True,
            folds=True,
        )
        for factor in factors
    ]
    told_apart = set(zip(*(column.cells for column in found), strict=True))
    labelled = bool(cases) and all(getattr(case, "label", None) for case in cases)
    if len(told_apart) == len(set(names_of_cases)) and not labelled:
        return found
    return [TextColumn("case", "case", tuple(names_of_cases), is_factor=True, folds=True)]


def factors_of(summary: Summary) -> list[TextColumn]:
    """Return the columns that say which case a row of the table of cases is."""
    words = labels(summary.cases)
    return factor_columns(summary.cases, [words[case.name] or case.name for case in summary.cases])


def value_columns(summary: Summary) -> list[TextColumn]:
    """Return the columns in which anything was measured, the most important first."""
    cases = rows(summary)
    judged = judged_metrics(summary)
    return [
        column
        for column in (
            *_trials(cases),
            *_groups(summary),
            *(_metric(summary, name) for name in judged),
            *_published(cases),
            *(_ratio(summary, name, RATIO if name == judged[0] else f"{name}:{RATIO}") for name in judged),
            *(_metric(summary, name) for name in _others(summary, judged)),
            _text("paths", "paths %", [row.share_text for row in cases], folds=True),
            _metric(summary, "jain_index"),
        )
        if not column.is_empty
    ]


def chosen(summary: Summary, wanted: Sequence[str]) -> list[TextColumn]:
    """Return the columns that `--columns` names, in its order; behind those of all factors if it names no factor.

    Raises:
        RequestError: there is no such column; the message lists those that there are.
    """
    measured = {name for case in summary.cases for name in case.metrics}
    known = [*factors_of(summary), *value_columns(summary)]
    return picked(known + [_metric(summary, name) for name in wanted if name in measured], wanted)


def picked(known: Sequence[TextColumn], wanted: Sequence[str]) -> list[TextColumn]:
    """Return those of the `known` columns that are `wanted`, in that order; behind all factors if none is a factor.

    Raises:
        RequestError: there is no such column; the message lists those that there are.
    """
    by_name = {column.name: column for column in reversed(known)}
    for name in wanted:
        if name not in by_name:
            names = ", ".join(dict.fromkeys(column.name for column in known))
            raise RequestError(f"--columns {name}: there is no such column; choose from {names}")
    columns = [by_name[name] for name in dict.fromkeys(wanted)]
    if any(column.is_factor for column in columns):
        return columns
    return [*(column for column in known if column.is_factor), *columns]


def _others(summary: Summary, judged: Sequence[str]) -> list[str]:
    """Return the further metrics of the default table: those of the judged kinds of traffic first."""
    programs = [name for case in summary.cases for name in case.metrics if name.endswith(REPORTED)]
    beside = companions(judged[0])
    near = list(COMPARED[judged[0]].columns) if judged[0] in COMPARED else []
    order = [*near, "completion_s", "goodput_bps", "efficiency", *programs, STEADY, *beside]
    return [name for name in dict.fromkeys(order) if name not in judged]


def _metric(summary: Summary, name: str) -> TextColumn:
    """Return the column of a metric's means, with their intervals unless the metric only explains others."""
    stats = [case.metrics.get(name) for case in summary.cases]
    if name in BARE and name not in judged_metrics(summary):
        stats = [None if s is None else s.model_copy(update={"ci95": None}) for s in stats]
    cells = tuple(MISSING if s is None else with_interval(name, s.mean, s.ci95) for s in stats)
    numbers, unit = in_one_unit(name, stats)
    owner = name.rpartition(".")[0]
    heading = (
        f"{summary.labels.metric_owner(owner)}: {short_heading_of(name)}" if owner else short_heading_of(name)
    )
    return TextColumn(name, heading, cells, unit, tuple(numbers))


def _ratio(summary: Summary, metric: str, name: str) -> TextColumn:
    """Return the column of a metric's ratios to the case compared with; its heading says to which."""
    compared = [comparison for comparison in matched(summary) if comparison.metric == metric]
    ratios = {comparison.case: comparison.ratio for comparison in compared}
    cases = {case.name: case for case in summary.cases}
    factor = main_factor(summary.cases, summary.strata)
    levels = {
        cases[c.baseline].label or (level(cases[c.baseline], factor) if factor is not None else "")
        for c in compared
    }
    of = (levels.pop() if len(levels) == 1 else "") or "baseline"
    cells = tuple(
        MISSING if (ratio := ratios.get(case.name)) is None else f"{TIMES}{significant(ratio.value)}"
        for case in summary.cases
    )
    return TextColumn(name, f"{short_heading_of(metric)}, {TIMES} of {of}", cells)


def _trials(cases: Sequence[Row]) -> list[TextColumn]:
    """Return the column of trials if any failed."""
    failed = any(" of " in row.trials for row in cases)
    return [_text("trials", "trials", [row.trials for row in cases])] if failed else []


def _groups(summary: Summary) -> list[TextColumn]:
    """Return the goodput of each flow of each group; the heading says if it is that of a window."""
    groups = group_names(name for case in summary.cases for name in case.metrics)
    return [
        replace(
            _metric(summary, metric),
            name=group,
            heading=f"{group} steady" if metric.endswith(STEADY_OF_GROUP) else group,
        )
        for group, metric in groups.items()
    ]


def _published(cases: Sequence[Row]) -> list[TextColumn]:
    """Return what was published of all flows, and of each group."""
    of_groups = [
        _text(f"{group} {PUBLISHED}", f"{group} {PUBLISHED}", [row.groups[i][2] or MISSING for row in cases])
        for i, (group, _, _) in enumerate(cases[0].groups)
    ]
    return [_text(PUBLISHED, PUBLISHED, [row.published or MISSING for row in cases]), *of_groups]


def _text(name: str, heading: str, cells: Sequence[str], *, folds: bool = False) -> TextColumn:
    return TextColumn(name, heading, tuple(cells), folds=folds)
