"""Each case against its baseline case: paired by seed, as numbers and as a sentence; and the best cases.

The best case of each judged metric in each network has beside it the cases that are the same or may be as good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plait.analysis.compare.factors import PLAIN, Design, by_stratum, main_factor, other_settings
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import compared_metric, judged_metrics, mean
from plait.analysis.model import Comparison, Leader, Summary
from plait.analysis.rows import CaseRows
from plait.analysis.statistics.differences import Compared, direction, fields_of, paired
from plait.analysis.statistics.tests import ALPHA, holm
from plait.analysis.values import show
from plait.analysis.wording import all_of, change, change_interval, times, within
from plait.metrics import COMPARED


def compare(
    cases: Sequence[CaseRows], baseline: str | None, judged: Sequence[str] = (), design: Design = PLAIN
) -> list[Comparison]:
    """Return one comparison per metric for every case but the baseline, in the order of the cases.

    The `judged` metrics come before the others that represent a kind of traffic.
    """
    metrics = list(dict.fromkeys((*judged, *COMPARED)))
    words = labels(cases)
    first = next((case for case in cases if case.name == baseline), None)
    if first is None:
        return []
    factor = main_factor(cases, design.strata)
    comparisons: list[Comparison] = []
    for group in by_stratum(cases, design.strata).values():
        pairs = [(case, _partner(case, first, group, factor, design)) for case in group]
        for metric in metrics:
            comparisons += _corrected(
                [
                    _compare(case, partner, metric, design.margin_of(metric))
                    for case, partner in pairs
                    if partner is not case and (case.measured(metric) or partner.measured(metric))
                ],
                words,
            )
    order = {case.name: place for place, case in enumerate(cases)}
    return sorted(comparisons, key=lambda comparison: order[comparison.case])


def _corrected(
    compared: Sequence[tuple[Comparison, Compared | None]], words: Mapping[str, str]
) -> list[Comparison]:
    """Return the comparisons of one metric in one network with p values corrected for their number, and judged."""
    corrected = holm([comparison.p_value for comparison, _ in compared])
    count = sum(p is not None for p in corrected)
    result = []
    for (comparison, tested), p_holm in zip(compared, corrected, strict=True):
        verdict = "unclear" if tested is None else direction(tested, p_holm, comparison.margin)
        judged = comparison.model_copy(update={"p_holm": p_holm, "verdict": verdict})
        sentence = _sentence(judged, words[comparison.case], words[comparison.baseline], count)
        result.append(judged.model_copy(update={"sentence": sentence}))
    return result


def _partner(
    case: CaseRows, first: CaseRows, group: Sequence[CaseRows], factor: str | None, design: Design
) -> CaseRows:
    """Return the case to compare with: like `case`, but with the baseline's choice of the main factor.

    The main factor is the transport when it varies, else the first setting under `vary`. So in a sweep of
    transport and rate, MPTCP at 10 Mbit/s is compared with TCP at 10 Mbit/s; TCP there, with the baseline of the
    `group`, which are the cases of its network.
    """
    constants = other_settings(case, factor, design.zipped)
    chosen = _main_settings(first, factor, design)
    for candidate in group:
        is_matched = other_settings(candidate, factor, design.zipped) == constants
        if (
            factor is not None
            and is_matched
            and _main_settings(candidate, factor, design) == chosen
            and candidate is not case
        ):
            return candidate
    wanted = _within_network(first, design)
    return next((candidate for candidate in group if _within_network(candidate, design) == wanted), group[0])


def _main_settings(case: CaseRows, factor: str | None, design: Design) -> dict[str, Any]:
    constants = other_settings(case, factor, design.zipped)
    return {name: value for name, value in case.settings.items() if name not in constants}


def _within_network(case: CaseRows, design: Design) -> dict[str, Any]:
    return {name: value for name, value in case.settings.items() if name not in design.strata}


def pairs_of(case: CaseRows, baseline: CaseRows, metric: str) -> tuple[list[float], list[float]]:
    """Return the values of a metric of both cases, baseline first, over the seeds for which both have it."""
    known = baseline.by_seed(metric)
    pairs = [(known[row.seed], value) for row, value in case.measured(metric) if row.seed in known]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _compare(
    case: CaseRows, baseline: CaseRows, metric: str, margin: float
) -> tuple[Comparison, Compared | None]:
    """Return the comparison of one metric, not yet judged, and its test."""
    xs, ys = pairs_of(case, baseline, metric)
    tested = paired(xs, ys) if xs else None
    comparison = Comparison(
        case=case.name,
        baseline=baseline.name,
        metric=metric,
        pairs=len(xs),
        identical=bool(xs) and xs == ys,
        margin=margin,
        verdict="unclear",
        sentence="",
        **fields_of(tested),
    )
    return comparison, tested


def _sentence(comparison: Comparison, name: str, baseline_name: str, tests: int) -> str:
    """Return the comparison in words; `tests` counts the tests that Holm's correction covers."""
    metric, difference, ratio = comparison.metric, comparison.difference, comparison.ratio
    record = compared_metric(metric)
    if difference is None:
        return f"{name} and {baseline_name} cannot be compared by {record.noun}: no seed has a value of both."
    pairs_text = f"over {comparison.pairs} pairs of trials"
    if comparison.identical:
        pairs = pairs_text if comparison.pairs > 1 else "in one pair of trials"
        return f"{name} {record.verb} exactly the {record.noun} of {baseline_name} {pairs}."
    changed = "" if ratio is None else change(ratio.value)
    if ratio is not None and ratio.ci95 is not None:
        changed += f", {change_interval(*ratio.ci95)}"
    if comparison.verdict == "same":
        text = f"{name} {record.verb} the same {record.noun} as {baseline_name} {within(comparison.margin)}"
        text += f" ({changed})"
    elif ratio is None:
        text = f"The {record.noun} is {show(metric, difference.value)} with {name}, and zero with {baseline_name}"
    else:
        text = f"{name} {record.verb} {times(ratio.value)} the {record.noun} of {baseline_name} ({changed})"
    if comparison.pairs == 1:
        return f"{text}; one pair of trials, so no interval."
    if comparison.p_value is None:
        repeats = all_of(comparison.pairs, "repeat")
        return f"{text}; {repeats} show the same difference, so there is no interval."
    if comparison.verdict != "unclear":
        return f"{text} {pairs_text}."
    if comparison.p_value <= ALPHA and comparison.p_holm is not None:
        return (
            f"{text}, which is undecided: among {tests} comparisons one like it may be chance "
            f"(p = {comparison.p_holm:.2g} after Holm's correction)."
        )
    return f"{text}, which is undecided: {pairs_text} it may be chance (p = {comparison.p_value:.2g})."


def leaders(cases: Sequence[CaseRows], summary: Summary, design: Design) -> list[Leader]:
    """Return the leader of each judged metric among the cases of each network, by the means of a summary.

    Holm's correction covers the comparisons with one leader. Cases without a common seed are undecided.
    """
    best_cases = []
    for levels, group in by_stratum(cases, design.strata).items():
        for metric in judged_metrics(summary):
            means = {case.name: value for case in summary.cases if (value := mean(case, metric)) is not None}
            measured = [case for case in group if case.name in means]
            if measured:
                better = max if compared_metric(metric).more_is_better else min
                best = better(measured, key=lambda case: means[case.name])
                best_cases.append(
                    _leader(best, measured, metric, design, dict(zip(design.strata, levels, strict=True)))
                )
    return best_cases


def _leader(
    best: CaseRows, measured: Sequence[CaseRows], metric: str, design: Design, levels: dict[str, str]
) -> Leader:
    margin = design.margin_of(metric)
    rivals = [case for case in measured if case is not best]
    sides = [pairs_of(case, best, metric) for case in rivals]
    tests = [paired(*side) if side[0] else None for side in sides]
    corrected = holm([test.p_value if test is not None else None for test in tests])
    verdicts = {
        case.name: "unclear" if test is None else direction(test, p, margin)
        for case, test, p in zip(rivals, tests, corrected, strict=True)
    }
    return Leader(
        metric=metric,
        stratum=levels,
        case=best.name,
        same=tuple(name for name, verdict in verdicts.items() if verdict == "same"),
        undecided=tuple(name for name, verdict in verdicts.items() if verdict == "unclear"),
        margin=margin,
    )
