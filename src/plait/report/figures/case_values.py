"""The values of cases in figures over several axes: a metric, or its ratio to the case that it is compared with.

Where a study varies the transport, that is MPTCP over TCP; else, of MPTCP alone, over what the best path allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plait.analysis.compare.factors import main_factor
from plait.analysis.labels.cases import case_label
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.model import CaseSummary, Statistics, Summary
from plait.analysis.rows import CaseRows
from plait.analysis.values import axis_title, bound, scale_of
from plait.analysis.wording import significant
from plait.report.figures.axes import Factor, grid_of, steps
from plait.report.figures.kind import Content, TableRows, number
from plait.report.figures.roles import panel_labels
from plait.report.headline import matched

FROM_ZERO = 0.25
"""The axis of panels begins at zero unless all values are above this part of the greatest one."""
_LEAST_SPAN = 0.01
"""The least span of the axis of panels, as a part of the greatest value."""


@dataclass(frozen=True)
class Cells:
    """The value and text of each case, its label beside the axes, and what the values mean."""

    title: str
    values: dict[str, tuple[float, str]]
    labels: dict[str, str]
    ratio: bool
    """The values are ratios: as much is 1."""
    compared: bool = False
    """They are ratios to the case compared with, not the metric itself."""
    divisor: float = 1.0
    bounds: dict[str, str] = field(default_factory=dict)
    """The 95 % interval of each mean, in words."""


def cells_of(
    summary: Summary, metric: str, axes: Sequence[Factor], facets: str | None = None, *, plain: bool = False
) -> Cells | None:
    """Return the value of each case where the factors in `axes` are axes; None when the metric was not measured.

    Labels are in the order of panels, those of `facets` first. With `plain` the value is the mean of the metric,
    without a comparison.
    """
    compared = main_factor(summary.cases, summary.strata)
    ratios = {
        comparison.case: comparison.ratio.value
        for comparison in matched(summary)
        if comparison.metric == metric and comparison.ratio is not None
    }
    names = [axis.setting for axis in axes]
    labels = panel_labels(summary.cases, names, facets).of
    if compared not in {None, *names} and ratios and not plain:
        base = next(c for c in summary.cases if c.name not in ratios)
        against = case_label("", {compared: base.settings.get(compared)}) if compared else ""
        values = {name: (ratio, significant(ratio)) for name, ratio in ratios.items()}
        labels = {name: label for name, label in labels.items() if name in values}
        suffix = f": {next(iter(labels.values()))}" if len(set(labels.values())) == 1 else ""
        return Cells(f"{title_of(metric)}{suffix} / {against}", values, labels, ratio=True, compared=True)
    means = _means(summary, metric)
    if not means:
        return None
    divisor, unit = scale_of(metric, max(means.values()))
    values = {name: (value / divisor, significant(value / divisor)) for name, value in means.items()}
    labels = {name: label for name, label in labels.items() if name in values}
    ratio = metric == "best_path_ratio"
    bounds = _bounds(summary, metric, divisor)
    return Cells(axis_title(metric, unit), values, labels, ratio=ratio, divisor=divisor, bounds=bounds)


def crossed(content: Content, metric: str) -> tuple[Factor, Factor] | None:
    """Return the two factors of a grid at whose points `metric` was measured; None without such a grid."""
    grid = grid_of(steps(content.rows))
    return grid if grid is not None and cells_of(content.summary, metric, grid) is not None else None


def _bounds(summary: Summary, metric: str, divisor: float) -> dict[str, str]:
    """Return the 95 % interval of each case's mean that has one, with the digits of the mean."""
    return {
        case.name: bound(significant(mean / divisor), mean, divisor, ci95).replace(
            "\N{PLUS-MINUS SIGN} ", "\N{PLUS-MINUS SIGN}"
        )
        for case, mean, ci95 in means_of(summary.cases, metric)
        if ci95 is not None
    }


def means_of(
    cases: Sequence[CaseSummary], metric: str
) -> Iterator[tuple[CaseSummary, float, tuple[float, float] | None]]:
    """Yield each case that has a mean of the metric, the mean, and its interval if it has one."""
    for case in cases:
        stats = case.metrics.get(metric)
        if stats is not None and stats.mean is not None:
            yield case, stats.mean, stats.ci95


def _means(summary: Summary, metric: str) -> dict[str, float]:
    return {case.name: mean for case, mean, _ in means_of(summary.cases, metric)}


def cells_table(cells: Cells, metric: str, summary: Summary) -> TableRows:
    """Return the mean of each case with its settings and, where cells are ratios to a case, the ratio."""
    settings = list(dict.fromkeys(name for case in summary.cases for name in case.settings))
    rows: list[list[Any]] = [["case", *settings, metric, *([f"{metric}_ratio"] if cells.compared else [])]]
    means = _means(summary, metric)
    for case in summary.cases:
        if case.name in means:
            ratio = [number(cells.values.get(case.name, (None,))[0])] if cells.compared else []
            levels = [case.settings.get(name, "") for name in settings]
            rows.append([case.name, *levels, number(means[case.name]), *ratio])
    return rows


def trials_table(content: Content, metric: str, groups: Mapping[str, str] | None = None) -> TableRows:
    """Return every trial's value of each case, then its mean with the 95 % interval.

    With `groups`, which has a metric for each, also of each group, with what was published of it.
    """
    settings = list(dict.fromkeys(name for case in content.cases for name in case.settings))
    of_group = [] if groups is None else ["group"]
    rows: list[list[Any]] = [
        ["case", *settings, *of_group, "what", "trial", "seed", metric, "ci95_low", "ci95_high"]
    ]
    for case, summary in zip(content.rows, content.cases, strict=True):
        for group, name in (groups or {"": metric}).items():
            head = [
                case.name,
                *(case.settings.get(key, "") for key in settings),
                *([group] if groups else []),
            ]
            rows += [
                [*head, "trial", row.index, row.seed, number(value), "", ""]
                for row, value in case.measured(name)
            ]
            for _, mean, ci95 in means_of([summary], name):
                low, high = ci95 or (None, None)
                rows.append([*head, "mean", "", "", number(mean), number(low), number(high)])
            published = content.published.goodput_bps(case.settings, group)
            if groups and metric == "goodput_bps" and published is not None:
                rows.append([*head, "published", "", "", number(published), "", ""])
    return rows


def span_of(
    rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], metric: str
) -> tuple[float, float] | None:
    """Return the least and the largest value on the axis of all panels, in base units; None without any value.

    The axis begins at zero where values are far apart. Otherwise boxes of a few pixels would hide how they differ. It
    spans at least a hundredth of the values, so that equal values look equal.
    """
    values = [value for case in rows for _, value in case.measured(metric)]
    ideals = ideals_of(summaries).values() if metric == "goodput_bps" else ()
    if not values:
        return None
    ends = [*values, *interval_ends(summaries, metric)]
    least, largest = min(ends), max([*ends, *ideals])
    if least <= FROM_ZERO * largest or least == largest:
        return min(0.0, least), largest
    room = max(0.0, _LEAST_SPAN * largest - (largest - least)) / 2
    least, largest = least - room, largest + room
    return least - 0.05 * (largest - least), largest


def interval_ends(summaries: Sequence[CaseSummary], metric: str) -> list[float]:
    """Return the ends of the intervals of a metric that an axis shows, in base units."""
    return [
        end
        for case in summaries
        if (stats := case.metrics.get(metric)) is not None
        for end in shown_ends(stats)
    ]


def shown_ends(stats: Statistics) -> tuple[float, ...]:
    """Return the ends of an interval that an axis shows, nothing without an interval.

    Of two trials it may be very wide: the axis shows it as far as twice the range of the trials.
    """
    if stats.ci95 is None or stats.min is None or stats.max is None:
        return ()
    reach = 2 * (stats.max - stats.min)
    return max(stats.ci95[0], stats.min - reach), min(stats.ci95[1], stats.max + reach)


def exceed_axes(summaries: Sequence[CaseSummary], metric: str) -> bool:
    """Return whether an interval of a metric, of the trial or of an owner, is wider than `shown_ends`."""
    return any(
        stats.ci95 is not None and shown_ends(stats) not in {(), stats.ci95}
        for case in summaries
        for name, stats in case.metrics.items()
        if name == metric or name.endswith(f".{metric}")
    )


def ideals_of(summaries: Sequence[CaseSummary]) -> dict[str, float]:
    """Return the goodput that the links allow in each case that has one, in bit/s, by name."""
    return {case.name: mean for case, mean, _ in means_of(summaries, "ideal_goodput_bps")}
