"""What figures over several axes show of each case: a metric, or its ratio to the case that it is compared with.

Where a study varies the transport, that is MPTCP over TCP; else, of MPTCP alone, over what the best path allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plait.analysis.compare.factors import main_factor
from plait.analysis.labels.cases import case_label
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.values import axis_title, scale_of
from plait.analysis.wording import significant
from plait.report.figures.axes import Factor, factors, label_without
from plait.report.figures.kind import number
from plait.report.headline import matched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import CaseSummary, Statistics, Summary
    from plait.analysis.rows import CaseRows
    from plait.report.figures.kind import Content, TableRows

FROM_ZERO = 0.25
"""The axis of panels begins at zero unless all values are above this part of the greatest one."""
_LEAST_SPAN = 0.01
"""What the axis of panels spans at least, as a part of the greatest value."""


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
    """Half the 95 % interval of each mean, in words."""


def cells_of(summary: Summary, metric: str, axes: Sequence[Factor], *, plain: bool = False) -> Cells | None:
    """Return the value of each case where the factors in `axes` are axes; None when the metric was not measured.

    With `plain` it is the mean of the metric, without a comparison.
    """
    compared = main_factor(summary.cases)
    ratios = {
        comparison.case: comparison.ratio.value
        for comparison in matched(summary)
        if comparison.metric == metric and comparison.ratio is not None
    }
    varied = factors(summary.cases)
    names = [axis.setting for axis in axes]
    labels = {case.name: label_without(case, names, varied) for case in summary.cases}
    if compared not in {None, *names} and ratios and not plain:
        base = next(c for c in summary.cases if c.name not in ratios)
        against = case_label("", {compared: base.settings.get(compared)}) if compared else ""
        values = {name: (ratio, significant(ratio)) for name, ratio in ratios.items()}
        labels = {name: labels[name] for name in values}
        over = f": {next(iter(labels.values()))}" if len(set(labels.values())) == 1 else ""
        return Cells(f"{title_of(metric)}{over} / {against}", values, labels, ratio=True, compared=True)
    means = _means(summary, metric)
    if not means:
        return None
    divisor, unit = scale_of(metric, max(means.values()))
    values = {name: (value / divisor, significant(value / divisor)) for name, value in means.items()}
    labels = {name: labels[name] for name in values}
    ratio = metric == "best_path_ratio"
    bounds = _bounds(summary, metric, divisor)
    return Cells(axis_title(metric, unit), values, labels, ratio=ratio, divisor=divisor, bounds=bounds)


def _bounds(summary: Summary, metric: str, divisor: float) -> dict[str, str]:
    """Return half the 95 % interval of each case's mean that has one, with the digits of the mean."""
    bounds = {}
    for case in summary.cases:
        stats = case.metrics.get(metric)
        if stats is not None and stats.mean is not None and stats.ci95 is not None:
            decimals = len(significant(stats.mean / divisor).partition(".")[2])
            half = (stats.ci95[1] - stats.ci95[0]) / 2 / divisor
            least = 10.0**-decimals
            bounds[case.name] = "\N{PLUS-MINUS SIGN}" + (
                f"{half:.{decimals}f}" if half >= least / 2 else f"<{least:.{decimals}f}"
            )
    return bounds


def _means(summary: Summary, metric: str) -> dict[str, float]:
    means: dict[str, float] = {}
    for case in summary.cases:
        stats = case.metrics.get(metric)
        if stats is not None and stats.mean is not None:
            means[case.name] = stats.mean
    return means


def cells_table(cells: Cells, metric: str, summary: Summary) -> TableRows:
    """Return the value of each case, and its settings."""
    settings = list(dict.fromkeys(name for case in summary.cases for name in case.settings))
    rows: list[list[Any]] = [["case", *settings, f"{metric}_ratio" if cells.compared else metric]]
    for case in summary.cases:
        if case.name in cells.values:
            value = cells.values[case.name][0] * cells.divisor
            rows.append([case.name, *(case.settings.get(name, "") for name in settings), number(value)])
    return rows


def trials_table(content: Content, metric: str, most: int | None = None) -> TableRows:
    """Return every trial's value of each case, then its mean with the 95 % interval; of the first `most` cases."""
    settings = list(dict.fromkeys(name for case in content.cases for name in case.settings))
    rows: list[list[Any]] = [["case", *settings, "what", "trial", "seed", metric, "ci95_low", "ci95_high"]]
    for case, summary in zip(content.rows[:most], content.cases[:most], strict=True):
        head = [case.name, *(case.settings.get(name, "") for name in settings)]
        rows += [
            [*head, "trial", row.index, row.seed, number(value), "", ""]
            for row in case.rows
            if (value := row.metrics.get(metric)) is not None
        ]
        stats = summary.metrics.get(metric)
        if stats is not None and stats.mean is not None:
            low, high = stats.ci95 or (None, None)
            rows.append([*head, "mean", "", "", number(stats.mean), number(low), number(high)])
    return rows


def span_of(
    rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], metric: str
) -> tuple[float, float] | None:
    """Return the least and the largest value on the axis of all panels, in base units; None without any value.

    The axis begins at zero where values are far apart. Otherwise boxes of a few pixels would hide how they differ. It
    spans at least a hundredth of the values, so that equal values look equal.
    """
    values = [v for case in rows for row in case.rows if (v := row.metrics.get(metric)) is not None]
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


def ideals_of(summaries: Sequence[CaseSummary]) -> dict[str, float]:
    """Return the goodput that the links allow in each case that has one, in bit/s, by name."""
    ideals = {case.name: case.metrics.get("ideal_goodput_bps") for case in summaries}
    return {
        name: stats.mean for name, stats in ideals.items() if stats is not None and stats.mean is not None
    }
