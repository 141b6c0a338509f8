"""The table of cases as text, cell by cell: the terminal and the page show the same strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.compare.factors import factor_names, level
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import columns, heading_of, judged_metrics, primary_metric
from plait.analysis.metrics.groups import group_names
from plait.analysis.model import PublishedGoodput
from plait.analysis.published import REPORTED
from plait.analysis.values import show, span, with_interval
from plait.analysis.wording import MISSING, change, significant
from plait.metrics import COMPARED
from plait.report.figures.axes import telling_settings
from plait.report.headline import matched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.compare.factors import HasSettings
    from plait.analysis.labels.study_labels import StudyLabels
    from plait.analysis.model import CaseSummary, Comparison, Statistics, Summary

SHARE = ".path_share"
FLOW = ".goodput_bps"
STEADY = "steady_goodput_bps"

MOST_SHARES = 9
"""Paths between two hosts, at most."""


@dataclass(frozen=True)
class Row:
    """One case. What was not measured is a dash."""

    name: str
    label: str
    levels: tuple[tuple[str, str], ...]
    """Each factor that varies and its level; the case's label where factors do not tell all cases apart."""
    trials: str
    """"10", or "9 of 10" when some failed."""
    goodput: str
    goodput_range: str
    """Least to greatest over the trials; empty when it would repeat the mean."""
    completion: str
    ratio: str
    """The metric that the study is about, against the baseline case: "1.92"."""
    change: str
    """The same as a change, "+91.8 %"."""
    baseline: str
    """The label of the case compared with; empty for the baseline itself."""
    compared_by: str
    """The heading of the metric that `ratio` is of."""
    efficiency: str
    benefit: str
    shares: tuple[tuple[str, float], ...]
    """Mean share of each path, by name; empty when not measured, for several flows, and among many hosts."""
    retransmits: str
    rtt: str
    jain: str
    groups: tuple[tuple[str, str, str], ...]
    """Of each group of flows its name, what each of its flows gets, and what was published of it (or nothing)."""
    published: str
    """What was published of all flows together; empty without."""
    more: tuple[tuple[str, str], ...]
    """Metrics that only some kinds of traffic have, and results of programs, by the heading of their column."""
    leading: int
    """How many of those come before the goodput: the study is about them."""

    @property
    def share_text(self) -> str:
        """The shares in percent: "51 / 49"."""
        return " / ".join(f"{value * 100:.0f}" for _, value in self.shares) or MISSING


def rows(summary: Summary) -> list[Row]:
    """Return a row for every case."""
    names = labels(summary.cases)
    first = primary_metric(summary)
    compared = {comparison.case: comparison for comparison in matched(summary) if comparison.metric == first}
    groups = group_names(name for case in summary.cases for name in case.metrics)
    told_apart = levels(summary.cases)
    judged = [name for name in judged_metrics(summary) if name not in {"goodput_bps", "completion_s"}]
    front = list(dict.fromkeys((*(judged if summary.judged else ()), *_companions(first))))
    ordered, leading = list(dict.fromkeys((*front, *columns(first)))), len(front)
    more = [*ordered[:leading], *_reported_by_programs(summary), STEADY, *ordered[leading:]]
    return [
        _row(
            case,
            names,
            compared.get(case.name),
            groups,
            more=more,
            leading=leading,
            at=at,
            first=first,
            called=summary.labels,
        )
        for case, at in zip(
            summary.cases, told_apart or [(("Case", names[c.name]),) for c in summary.cases], strict=True
        )
    ]


def levels(cases: Sequence[HasSettings]) -> list[tuple[tuple[str, str], ...]]:
    """Return each factor that varies and its level, for each case.

    Nothing where these do not tell all cases apart, and where each case has a label.
    """
    if all(getattr(case, "label", None) for case in cases):
        return []
    factors = telling_settings(cases)
    names = factor_names(factors)
    found = [
        tuple((names[factor].replace("_", " "), level(case, factor)) for factor in factors) for case in cases
    ]
    return found if len(set(found)) == len(found) and factors else []


def _companions(metric: str) -> tuple[str, ...]:
    return COMPARED[metric].columns if metric in COMPARED else ()


def _reported_by_programs(summary: Summary) -> list[str]:
    """Return the goodput metric of each program that reports its own: by iperf3's JSON."""
    return list(
        dict.fromkeys(name for case in summary.cases for name in case.metrics if name.endswith(REPORTED))
    )


def _row(
    case: CaseSummary,
    names: dict[str, str],
    against: Comparison | None,
    groups: dict[str, str],
    *,
    more: Sequence[str],
    leading: int,
    at: tuple[tuple[str, str], ...],
    first: str,
    called: StudyLabels,
) -> Row:
    def mean(metric: str) -> float | None:
        stats = case.metrics.get(metric)
        return None if stats is None else stats.mean

    done = case.trials - case.failed - len(case.excluded)
    goodput = case.metrics.get("goodput_bps")
    ratio = against.ratio if against is not None else None
    published = case.published or PublishedGoodput()
    benefit, jain = mean("aggregation_benefit"), mean("jain_index")
    return Row(
        name=case.name,
        label=names[case.name],
        levels=at,
        trials=str(case.trials) if done == case.trials else f"{done} of {case.trials}",
        goodput=_interval(case, "goodput_bps"),
        goodput_range="" if goodput is None else _range(goodput),
        completion=_interval(case, "completion_s"),
        ratio=MISSING if ratio is None else significant(ratio.value),
        change=MISSING if ratio is None else change(ratio.value),
        baseline="" if against is None else names[against.baseline],
        compared_by=heading_of(first),
        efficiency=show("efficiency", mean("efficiency")),
        benefit=MISSING if benefit is None else f"{benefit:.2f}".replace("-", "\N{MINUS SIGN}"),
        shares=_shares(case, called),
        retransmits=show("retransmits", mean("retransmits")),
        rtt=show("rtt_us", mean("rtt_median_us")),
        jain=MISSING if jain is None else f"{jain:.3f}",
        groups=tuple(
            (
                f"{group} steady" if metric.endswith(STEADY) else group,
                _interval(case, metric),
                _beside(published.each_bps.get(group), mean(metric)),
            )
            for group, metric in groups.items()
        ),
        published=_beside(
            published.goodput_bps,
            mean("steady_goodput_bps") or mean("goodput_bps") or _reported_goodput(case),
        ),
        more=tuple((column_title(metric, called), _interval(case, metric)) for metric in more),
        leading=leading,
    )


def column_title(metric: str, labels: StudyLabels) -> str:
    """Return the heading of a metric's column, behind the program, flow or path that it is of."""
    owner = metric.rpartition(".")[0]
    return f"{labels.metric_owner(owner)}: {heading_of(metric)}" if owner else heading_of(metric)


def _reported_goodput(case: CaseSummary) -> float | None:
    """Return the goodput that a program reports, if one does and nothing else was measured: of UDP."""
    goodputs = [stats.mean for name, stats in case.metrics.items() if name.endswith(REPORTED)]
    return goodputs[0] if len(goodputs) == 1 else None


def _shares(case: CaseSummary, labels: StudyLabels) -> tuple[tuple[str, float], ...]:
    """Return each path and its mean share (0 to 1). Empty for several flows, and for more than `MOST_SHARES` paths."""
    flows = tuple(f"{name.removesuffix(FLOW)}." for name in case.metrics if name.endswith(FLOW))
    shares = tuple(
        (labels.path(name.removesuffix(SHARE)), stats.mean)
        for name, stats in case.metrics.items()
        if name.endswith(SHARE) and stats.mean is not None and not name.startswith(flows)
    )
    return shares if len(shares) <= MOST_SHARES else ()


def flow_rows(summary: Summary) -> list[tuple[str, list[str]]]:
    """Return for each flow by name its mean goodput in each case; nothing when every case has one flow."""
    names = dict.fromkeys(
        name.removesuffix(FLOW) for case in summary.cases for name in case.metrics if name.endswith(FLOW)
    )
    return [
        (summary.labels.flow(name), [_interval(case, f"{name}{FLOW}") for case in summary.cases])
        for name in names
    ]


def _beside(published_bps: float | None, mean_bps: float | None) -> str:
    """Return what was published, and the change from there to what was measured; nothing when nothing was."""
    if published_bps is None:
        return ""
    text = show("goodput_bps", published_bps)
    return text if mean_bps is None else f"{text}, {change(mean_bps / published_bps)}"


def _interval(case: CaseSummary, metric: str) -> str:
    stats = case.metrics.get(metric)
    return MISSING if stats is None else with_interval(metric, stats.mean, stats.ci95)


def _range(stats: Statistics) -> str:
    """Return least to greatest of a metric's values, or that there is no difference."""
    if stats.n > 1 and stats.min == stats.max:
        return "all trials alike"
    text = span("goodput_bps", stats.min, stats.max)
    return "" if text == show("goodput_bps", stats.mean) else text
