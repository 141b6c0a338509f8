"""The table of cases: one list of columns, which the terminal, the page and the pages of a browser show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal, TypeVar

from plait.analysis.compare.factors import factor_names, level, main_factor
from plait.analysis.labels.cases import NamedCase, labels
from plait.analysis.metrics import catalogue
from plait.analysis.metrics.catalogue import (
    FLOW,
    flow_names,
    heading_of,
    is_of_all_flows,
    judged_metrics,
    short_heading_of,
)
from plait.analysis.metrics.groups import STEADY as STEADY_OF_GROUP
from plait.analysis.metrics.groups import group_names
from plait.analysis.model import CaseSummary, PublishedGoodput, Statistics, Summary
from plait.analysis.published import REPORTED, STEADY, goodput_beside
from plait.analysis.values import in_one_unit, show, span, with_interval
from plait.analysis.wording import MISSING, capital, change, significant
from plait.errors import RequestError
from plait.metrics import CATALOGUE, COMPARED, columns_beside
from plait.report.figures.axes import telling_settings
from plait.report.headline import matched
from plait.report.render.theme import PATHS

PUBLISHED = "published"
RATIO = "ratio"
BARE = ("efficiency", "jain_index")
"""Metrics without intervals in tables unless the study is judged by them."""
DETAILS = ("aggregation_benefit", "retransmits", "rtt_median_us")
"""Metrics whose means the page adds to the columns of the terminal, without intervals."""
TIMES = "\N{MULTIPLICATION SIGN}"
SHARE = ".path_share"
MOST_SHARES = 9
"""Paths between two hosts, at most."""

T = TypeVar("T")
Segment = tuple[str, int, str]
"""A part of a bar: its percentage, the number of the path whose colour it has, and the name of the path."""


@dataclass(frozen=True)
class Column:
    """One column: the name by which `--columns` chooses it, its heading, and a cell for each case."""

    name: str
    heading: str
    """The heading in a terminal."""
    cells: tuple[str, ...]
    title: str = ""
    """The heading on the page; empty where it is `heading`, capitalised."""
    notes: tuple[tuple[str, ...], ...] = ()
    """On the page, lines of small print below each cell."""
    bars: tuple[tuple[Segment, ...], ...] = ()
    """On the page, a bar above each cell."""
    unit: str = ""
    """The unit of all `numbers`."""
    numbers: tuple[str, ...] = ()
    """The same cells without their unit; empty where they have none."""
    is_factor: bool = False
    setting: str = ""
    """The field of the scenario that a factor varies, by which `--columns` chooses it, too."""
    folds: bool = False
    """A cell may take several lines."""
    is_words: bool = False
    """Its cells are words, which begin at the left."""
    medium: Literal["any", "page", "terminal"] = "any"
    """The media that show it by default."""
    styles: Mapping[str, str] = field(default_factory=dict)
    """The colours of cells by their text."""

    @property
    def compact(self) -> Column:
        """The column with the unit in its heading."""
        if not self.numbers or not self.unit:
            return self
        return Column(self.name, f"{self.heading}, {self.unit}", self.numbers)

    def in_order(self, rows: Sequence[int]) -> Column:
        """Return the column with these of its rows."""
        return replace(
            self,
            cells=_selected(self.cells, rows),
            numbers=_selected(self.numbers, rows),
            notes=_selected(self.notes, rows),
            bars=_selected(self.bars, rows),
        )

    @property
    def page_title(self) -> str:
        """The heading on the page."""
        return self.title or capital(self.heading)

    @property
    def is_empty(self) -> bool:
        """Whether it has no value at all."""
        return all(cell == MISSING for cell in self.cells)


def _selected(values: tuple[T, ...], rows: Sequence[int]) -> tuple[T, ...]:
    return tuple(values[row] for row in rows) if values else ()


def metric_order(measured: Collection[str], judged: Sequence[str]) -> list[str]:
    """Return the measured metrics that have a column without being asked for, the most important first.

    Those that the study is judged by come first, then those of the same kind of traffic.
    """
    near = columns_beside(COMPARED[judged[0]]) if judged[0] in COMPARED else ()
    programs = [name for name in measured if name.endswith(REPORTED)]
    usual = ("completion_s", "goodput_bps", STEADY, "efficiency", *programs, *catalogue.columns(judged[0]))
    order = dict.fromkeys((*judged, *near, *usual, "jain_index", *DETAILS))
    return [name for name in order if name in set(measured)]


def factor_columns(cases: Sequence[NamedCase], names_of_cases: Sequence[str]) -> list[Column]:
    """Return a column for each factor that varies; of the cases' names if these do not tell the cases apart.

    Where each case has a label, `names_of_cases` has these, and they are the only column.
    """
    factors = telling_settings(cases)
    names = factor_names(factors)
    columns = [
        Column(
            names[factor],
            names[factor].replace("_", " "),
            tuple(level(case, factor) for case in cases),
            is_factor=True,
            setting=factor,
            folds=True,
        )
        for factor in factors
    ]
    told_apart = set(zip(*(column.cells for column in columns), strict=True))
    labelled = bool(cases) and all(getattr(case, "label", None) for case in cases)
    if len(told_apart) == len(set(names_of_cases)) and not labelled:
        return columns
    return [Column("case", "case", tuple(names_of_cases), is_factor=True, folds=True)]


def factors_of(summary: Summary) -> list[Column]:
    """Return the columns that say which case a row of the table of cases is."""
    words = labels(summary.cases)
    return factor_columns(summary.cases, [words[case.name] or case.name for case in summary.cases])


def value_columns(summary: Summary, medium: Literal["page", "terminal"] = "terminal") -> list[Column]:
    """Return the columns in which anything was measured, the most important first, for a terminal or the page."""
    judged = judged_metrics(summary)
    measured = _measured(summary)
    beside = goodput_beside(measured)
    further = [name for name in metric_order(measured, judged) if name not in judged]
    columns = (
        _trials(summary.cases),
        *_groups(summary),
        *(_metric(summary, name) for name in judged),
        *(() if beside in further else _published(summary)),
        *(_ratio(summary, name, RATIO if name == judged[0] else f"{name}:{RATIO}") for name in judged),
        *(
            column
            for name in further
            if name not in {"jain_index", *DETAILS}
            for column in (
                _metric(summary, name),
                *(_published(summary) if name == beside else ()),  # what was published are goodputs
            )
        ),
        _paths(summary),
        *(_metric(summary, name) for name in further if name == "jain_index"),
        *(
            replace(_metric(summary, name, bare=True), medium="page")
            for name in further
            if name in DETAILS
        ),
    )  # fmt: skip
    return [column for column in columns if column.medium in {"any", medium} and not column.is_empty]


def chosen(summary: Summary, wanted: Sequence[str]) -> list[Column]:
    """Return the columns that `--columns` names, in its order; behind those of all factors if it names no factor.

    Raises:
        RequestError: there is no such column; the message lists those that there are.
    """
    measured = {name for case in summary.cases for name in case.metrics}
    known = [*factors_of(summary), *value_columns(summary)]
    return picked(known + [_metric(summary, name) for name in wanted if name in measured], wanted)


def picked(known: Sequence[Column], wanted: Sequence[str]) -> list[Column]:
    """Return those of the `known` columns that are `wanted`, in that order; behind all factors if none is a factor.

    Raises:
        RequestError: there is no such column; the message lists those that there are.
    """
    by_name = {column.setting: column for column in known if column.setting}
    by_name |= {column.name: column for column in reversed(known)}
    for name in wanted:
        if name not in by_name:
            names = dict.fromkeys(column.name for column in known)
            raise RequestError(f"--columns {name}: {_no_column(name, tuple(names))}")
    columns = [by_name[name] for name in wanted]
    columns = [column for place, column in enumerate(columns) if column not in columns[:place]]
    if any(column.is_factor for column in columns):
        return columns
    return [*(column for column in known if column.is_factor), *columns]


def _no_column(name: str, names: Sequence[str]) -> str:
    """Return why there is no such column, and what to ask for instead."""
    if name in CATALOGUE:
        return "no trial measured it; docs/reference/results.md says what has this metric"
    close = get_close_matches(name, [*names, *CATALOGUE], n=1)
    choice = f"did you mean '{close[0]}'?" if close else f"choose from {', '.join(names)}"
    return f"there is no such column; {choice} (docs/reference/results.md has all metrics)"


def flow_columns(summary: Summary) -> list[Column]:
    """Return for each flow the column of its mean goodput in each case; nothing when every case has one flow."""
    return [
        replace(_metric(summary, f"{name}{FLOW}"), title=summary.labels.flow(name))
        for name in flow_names(summary)
    ]


def path_shares(case: CaseSummary, summary: Summary) -> tuple[tuple[str, float], ...]:
    """Return each path and its mean share (0 to 1). Empty for several flows, and for more than `MOST_SHARES` paths."""
    flows = tuple(f"{name.removesuffix(FLOW)}." for name in case.metrics if name.endswith(FLOW))
    shares = tuple(
        (summary.labels.path(name.removesuffix(SHARE)), stats.mean)
        for name, stats in case.metrics.items()
        if name.endswith(SHARE) and stats.mean is not None and not name.startswith(flows)
    )
    return shares if len(shares) <= MOST_SHARES else ()


def _metric(summary: Summary, name: str, *, bare: bool = False) -> Column:
    """Return the column of a metric's means, with their intervals unless `bare` or the metric only explains others."""
    stats = [case.metrics.get(name) for case in summary.cases]
    judged = judged_metrics(summary)
    if bare or (name in BARE and name not in judged):
        stats = [None if s is None else s.model_copy(update={"ci95": None}) for s in stats]
    cells = tuple(MISSING if s is None else with_interval(name, s.mean, s.ci95) for s in stats)
    numbers, unit = in_one_unit(name, stats)
    owner = name.rpartition(".")[0]
    prefix = f"{summary.labels.metric_owner(owner)}: " if owner else ""
    notes: tuple[tuple[str, ...], ...] = ()
    beside = goodput_beside(_measured(summary))
    if name in {*judged, "goodput_bps", beside}:
        pairs = zip(stats, summary.cases, strict=True)
        notes = tuple(
            (*_range(name, s), *(_published_note(case, name) if name == beside else ())) for s, case in pairs
        )
    suffix = ", all flows" if is_of_all_flows(summary, name) else ""
    return Column(
        name,
        f"{prefix}{short_heading_of(name)}{suffix}",
        cells,
        title=capital(f"{prefix}{heading_of(name)}{suffix}"),
        notes=notes,
        unit=unit,
        numbers=tuple(numbers),
    )


def _range(metric: str, stats: Statistics | None) -> tuple[str, ...]:
    """Return least to greatest of a metric's values, or that there is no difference; nothing of one value."""
    if stats is None or stats.mean is None:
        return ()
    if stats.n > 1 and stats.min == stats.max:
        return ("all trials alike",)
    text = span(metric, stats.min, stats.max)
    return () if text == show(metric, stats.mean) else (text,)


def _ratio(summary: Summary, metric: str, name: str) -> Column:
    """Return the column of a metric's ratios to the case compared with; its heading says to which."""
    compared = {c.case: c for c in matched(summary) if c.metric == metric and c.ratio is not None}
    words = labels(summary.cases)
    cases = {case.name: case for case in summary.cases}
    factor = main_factor(summary.cases, summary.strata)
    levels = {
        cases[c.baseline].label or (level(cases[c.baseline], factor) if factor is not None else "")
        for c in matched(summary)
        if c.metric == metric
    }
    base = (levels.pop() if len(levels) == 1 else "") or "baseline"
    cells: list[str] = []
    notes: list[tuple[str, ...]] = []
    for case in summary.cases:
        comparison = compared.get(case.name)
        if comparison is None or comparison.ratio is None:
            cells.append(MISSING)
            notes.append(())
        else:
            cells.append(f"{TIMES}{significant(comparison.ratio.value)}")
            notes.append((f"of {words[comparison.baseline]}, {change(comparison.ratio.value)}",))
    return Column(
        name,
        f"{short_heading_of(metric)}, {TIMES} of {base}",
        tuple(cells),
        title=capital(f"{heading_of(metric)} against baseline"),
        notes=tuple(notes),
    )


def _trials(cases: Sequence[CaseSummary]) -> Column:
    """Return how many trials count, "9 of 10" when some failed; a terminal has the column only then."""
    counts = [(case.trials - case.failed - len(case.excluded), case.trials) for case in cases]
    cells = tuple(
        str(total) if completed == total else f"{completed} of {total}" for completed, total in counts
    )
    return Column(
        "trials", "trials", cells, medium="any" if any(" of " in cell for cell in cells) else "page"
    )


def _groups(summary: Summary) -> list[Column]:
    """Return the goodput of each flow of each group; the heading says if it is that of a window."""
    columns = []
    for group, metric in _group_metrics(summary).items():
        heading = f"{group} steady" if metric.endswith(STEADY_OF_GROUP) else group
        notes = tuple(_published_note(case, metric, group) for case in summary.cases)
        columns.append(
            replace(
                _metric(summary, metric), name=group, heading=heading, title=f"{heading}, each", notes=notes
            )
        )
    return columns


def _measured(summary: Summary) -> dict[str, None]:
    """Return the names of the metrics that any case has, each once."""
    return dict.fromkeys(name for case in summary.cases for name in case.metrics)


def _group_metrics(summary: Summary) -> dict[str, str]:
    return group_names(name for case in summary.cases for name in case.metrics)


def _published(summary: Summary) -> list[Column]:
    """Return what was published of all flows, and of each group; the page has it below what was measured."""
    every = [("", goodput_beside(_measured(summary))), *_group_metrics(summary).items()]
    return [
        Column(
            name := f"{group} {PUBLISHED}".strip(),
            name,
            tuple(_published_value(case, metric, group) or MISSING for case in summary.cases),
            medium="terminal",
        )
        for group, metric in every
    ]


def _published_note(case: CaseSummary, metric: str, group: str = "") -> tuple[str, ...]:
    text = _published_value(case, metric, group)
    return (f"{PUBLISHED} {text}",) if text else ()


def _published_value(case: CaseSummary, metric: str, group: str) -> str:
    """Return what was published, and the change from there to what was measured; nothing when nothing was."""
    published = case.published or PublishedGoodput()
    published_bps = published.each_bps.get(group) if group else published.goodput_bps
    if published_bps is None:
        return ""

    stats = case.metrics.get(metric)
    mean_bps = None if stats is None else stats.mean
    if mean_bps is None and metric == "goodput_bps":
        mean_bps = _reported_goodput(case)
    text = show("goodput_bps", published_bps)
    return text if mean_bps is None else f"{text}, {change(mean_bps / published_bps)}"


def _reported_goodput(case: CaseSummary) -> float | None:
    """Return the goodput that a program reports, if one does and nothing else was measured: of UDP."""
    goodputs = [stats.mean for name, stats in case.metrics.items() if name.endswith(REPORTED)]
    return goodputs[0] if len(goodputs) == 1 else None


def _length(shares: tuple[tuple[str, float], ...]) -> int:
    return len(shares)


def _paths(summary: Summary) -> Column:
    """Return the shares of the paths: "51 / 49", and bars, in which paths have the colours of the fullest row."""
    shares = [path_shares(case, summary) for case in summary.cases]
    fullest = max(shares, key=_length, default=())
    places = {name: number for number, (name, _) in enumerate(fullest)}
    return Column(
        "paths",
        "paths %",
        tuple(" / ".join(f"{value * 100:.0f}" for _, value in row) or MISSING for row in shares),
        title="Bytes by path, %",
        bars=tuple(
            tuple(
                (f"{value * 100:.2f}", places.get(name, number) % PATHS, name)
                for number, (name, value) in enumerate(row)
            )
            for row in shares
        ),
        folds=True,
    )
