"""Each case against its baseline case: paired by seed, as numbers and as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from plait.analysis.compare.factors import main_factor, other_settings
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import COMPARED, compared_metric
from plait.analysis.model import Comparison, Estimate
from plait.analysis.statistics.intervals import paired_difference, paired_ratio
from plait.analysis.statistics.tests import ALPHA, holm, paired_test
from plait.analysis.values import show
from plait.analysis.wording import change, change_interval, significant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.analysis.rows import CaseRows


def compare(cases: Sequence[CaseRows], baseline: str | None, judged: Sequence[str] = ()) -> list[Comparison]:
    """Return one comparison per metric for every case but the baseline, in the order of the cases.

    The `judged` metrics come before the others that represent a kind of traffic.
    """
    metrics = list(dict.fromkeys((*judged, *COMPARED)))
    by_name = {case.name: case for case in cases}
    words = labels(cases)
    first = by_name.get(baseline) if baseline is not None else None
    if first is None:
        return []
    comparisons = []
    for case in cases:
        partner = _partner(case, first, cases)
        if partner is case:
            continue
        comparisons += [
            _compare(case, partner, metric, words) for metric in metrics if _measured(case, partner, metric)
        ]
    return _corrected(comparisons)


def _corrected(comparisons: list[Comparison]) -> list[Comparison]:
    """Return the comparisons with p values corrected for their number; a sentence says so where that matters."""
    result = list(comparisons)
    for metric in dict.fromkeys(comparison.metric for comparison in comparisons):
        places = [i for i, comparison in enumerate(comparisons) if comparison.metric == metric]
        tested = sum(comparisons[i].p_value is not None for i in places)
        for i, p in zip(places, holm([comparisons[i].p_value for i in places]), strict=True):
            comparison = comparisons[i]
            sentence = comparison.sentence
            if p is not None and p > ALPHA and comparison.verdict in {"more", "less"}:
                sentence = (
                    f"{sentence.removesuffix('.')}; among {tested} comparisons one like it may be chance "
                    f"(p = {p:.2g} after Holm's correction)."
                )
            result[i] = comparison.model_copy(update={"p_holm": p, "sentence": sentence})
    return result


def _partner(case: CaseRows, baseline: CaseRows, cases: Sequence[CaseRows]) -> CaseRows:
    """Return the case to compare with: like `case`, but with the baseline's choice of the main factor.

    The main factor is the transport when it varies, else the first setting under `vary`. So in a sweep of
    transport and rate, MPTCP at 10 Mbit/s is compared with TCP at 10 Mbit/s; TCP there, with the baseline.
    """
    factor = main_factor(cases)
    if factor is None:
        return baseline
    others, choice = other_settings(case, factor), baseline.settings.get(factor)
    for other in cases:
        same = other_settings(other, factor) == others and other.settings.get(factor) == choice
        if same and other is not case:
            return other
    return baseline


def _measured(case: CaseRows, baseline: CaseRows, metric: str) -> bool:
    return any(row.metrics.get(metric) is not None for row in (*case.rows, *baseline.rows))


def _compare(case: CaseRows, baseline: CaseRows, metric: str, words: Mapping[str, str]) -> Comparison:
    """Return the comparison of one metric over the seeds for which both cases have it."""
    before = {row.seed: row.metrics.get(metric) for row in baseline.rows}
    pairs = [
        (x, y)
        for row in case.rows
        if (y := row.metrics.get(metric)) is not None and (x := before.get(row.seed)) is not None
    ]
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    difference = paired_difference(xs, ys) if pairs else None
    ratio = paired_ratio(xs, ys) if pairs else None
    identical = len(pairs) > 1 and len(set(pairs)) == 1
    verdict = _verdict(difference)
    tested = paired_test(xs, ys)
    return Comparison(
        case=case.name,
        baseline=baseline.name,
        metric=metric,
        pairs=len(pairs),
        difference=difference,
        ratio=ratio,
        identical=identical,
        verdict=verdict,
        sentence=_sentence(
            words[case.name],
            words[baseline.name],
            metric,
            len(pairs),
            difference,
            ratio,
            verdict,
            identical=identical,
        ),
        test=tested.test if tested else None,
        p_value=tested.p_value if tested else None,
        effect_size=tested.effect_size if tested else None,
    )


def _verdict(difference: Estimate | None) -> Literal["more", "less", "same", "unclear"]:
    """Return the verdict on the difference; without an interval the single value decides."""
    if difference is None:
        return "unclear"
    low, high = difference.ci95 or (difference.value, difference.value)
    if low > 0:
        return "more"
    if high < 0:
        return "less"
    return "same" if low == high == 0 else "unclear"


def _sentence(  # noqa: PLR0917 - the parts of one sentence
    name: str,
    other: str,
    metric: str,
    pairs: int,
    difference: Estimate | None,
    ratio: Estimate | None,
    verdict: str,
    *,
    identical: bool,
) -> str:
    """Return the comparison in words."""
    record = compared_metric(metric)
    verb, noun = record.verb, f"the {record.noun}"
    if difference is None:
        return f"{name} cannot be compared with {other}: no seed was measured with both."
    if verdict == "same":
        text = f"{name} {verb} exactly {noun} of {other}"
    elif ratio is None:
        text = f"T{noun[1:]} is {show(metric, difference.value)} with {name}, and zero with {other}"
    else:
        text = f"{name} {verb} {significant(ratio.value)} times {noun} of {other} ({change(ratio.value)}"
        if ratio.ci95 is not None:
            text += f", {change_interval(*ratio.ci95)}"
        text += ")"
    if pairs == 1:
        return f"{text}; one pair of trials, so no interval."
    if identical:
        return f"{text}; all {pairs} repeats are identical, so there is no interval."
    if verdict == "unclear":
        return f"{text}: over {pairs} pairs no difference can be told from chance."
    return f"{text} over {pairs} pairs of trials."
