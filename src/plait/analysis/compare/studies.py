"""Two studies side by side: cases matched by settings, trials by seed, and a verdict on each metric of each case."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING

from plait.analysis.compare.studies_wording import sentence, summing_up
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import compared_metric
from plait.analysis.model import CaseComparison, CaseTrials, Estimate, StudiesComparison
from plait.analysis.statistics.intervals import paired_difference, paired_ratio
from plait.analysis.statistics.student import t_quantile
from plait.analysis.statistics.tests import (
    ALPHA,
    TestResult,
    holm,
    paired_test,
    unpaired_spread,
    unpaired_test,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import Verdict
    from plait.analysis.rows import CaseRows


def compare_studies(
    first: Sequence[CaseRows], second: Sequence[CaseRows], *, metrics: Sequence[str], tolerance: float
) -> StudiesComparison:
    """Return the comparison of `second` with `first`; a change of up to `tolerance` (a ratio) is accepted.

    A case is worse when the difference is on the worse side beyond its 95 % interval, still so after Holm's
    correction for the number of cases, and greater than the tolerance; or when a greater share of its trials
    has no value. Each of `metrics` has a better direction.
    """
    others = {_key(case): case for case in second}
    matched = [(case, others[_key(case)]) for case in first if _key(case) in others]
    keys = {_key(case) for case in first}
    words = labels([case for case, _ in matched])
    comparisons: list[CaseComparison] = []
    for metric in metrics:
        rows = [_compare(before, after, metric) for before, after in matched]
        rows = [row for row in rows if row.before.measured or row.after.measured]
        corrected = holm([row.p_value for row in rows])
        comparisons += [
            _judged(row, p, tolerance, words[row.case]) for row, p in zip(rows, corrected, strict=True)
        ]
    worse = any(row.verdict in {"worse", "not measured"} for row in comparisons)
    return StudiesComparison(
        tolerance=tolerance,
        verdict="worse" if worse else "no worse",
        sentence=summing_up([(words[row.case], row.verdict) for row in comparisons], tolerance),
        cases=tuple(comparisons),
        only_first=tuple(case.name for case in first if _key(case) not in others),
        only_second=tuple(case.name for case in second if _key(case) not in keys),
    )


def _key(case: CaseRows) -> str:
    return json.dumps(case.settings, sort_keys=True, default=str)


def _values(case: CaseRows, metric: str) -> dict[int, float]:
    """Return the values that were measured, by seed."""
    return {row.seed: value for row in case.rows if (value := row.metrics.get(metric)) is not None}


def _compare(before: CaseRows, after: CaseRows, metric: str) -> CaseComparison:
    """Return the numbers of one metric, not yet judged."""
    xs, ys = _values(before, metric), _values(after, metric)
    shared = [seed for seed in xs if seed in ys]
    # One shared seed among many trials would throw the others away.
    numbers: tuple[Estimate | None, Estimate | None, TestResult | None]
    paired = len(shared) > 1 or (len(shared) == 1 and len(xs) == len(ys) == 1)
    if paired:
        a, b = [xs[seed] for seed in shared], [ys[seed] for seed in shared]
        numbers = paired_difference(a, b), paired_ratio(a, b), paired_test(a, b)
    else:
        a, b = list(xs.values()), list(ys.values())
        numbers = _apart(a, b)
    difference, ratio, tested = numbers
    return CaseComparison(
        case=before.name,
        settings=before.settings,
        label=after.label or before.label,
        metric=metric,
        before=_side(before, xs),
        after=_side(after, ys),
        pairs=len(shared) if paired else None,
        difference=difference,
        ratio=ratio,
        test=tested.test if tested else None,
        p_value=tested.p_value if tested else None,
        p_holm=None,
        effect_size=tested.effect_size if tested else None,
        verdict="same",
    )


def _side(case: CaseRows, values: dict[int, float]) -> CaseTrials:
    mean = statistics.fmean(values.values()) if values else None
    return CaseTrials(trials=case.trials, measured=len(values), mean=mean)


def _apart(
    a: Sequence[float], b: Sequence[float]
) -> tuple[Estimate | None, Estimate | None, TestResult | None]:
    """Return difference, ratio and test of two sides whose trials are no pairs."""
    if not a or not b:
        return None, None, None
    x, y = statistics.fmean(a), statistics.fmean(b)
    spread = unpaired_spread(a, b)
    half = t_quantile(spread.degrees) * spread.error if spread is not None else None
    interval = (y - x - half, y - x + half) if half is not None else None
    return Estimate(value=y - x, ci95=interval), Estimate(value=y / x) if x else None, unpaired_test(a, b)


def _judged(row: CaseComparison, p_holm: float | None, tolerance: float, called: str) -> CaseComparison:
    judged = row.model_copy(
        update={"p_holm": p_holm, "verdict": _verdict(row, p_holm, tolerance)},
    )
    return judged.model_copy(update={"sentence": sentence(judged, called)})


def _verdict(row: CaseComparison, p_holm: float | None, tolerance: float) -> Verdict:
    """Return the verdict; without any spread the single value decides."""
    lost_before, lost_after = _lost(row.before), _lost(row.after)
    if lost_after > lost_before:
        return "not measured"
    if row.difference is None:  # there is no value before, or none by the same seed
        return "newly measured"
    value = row.difference.value
    low, high = row.difference.ci95 or (value, value)
    if low == high == 0:
        return "same"
    if low <= 0 <= high or (p_holm is not None and p_holm > ALPHA):
        return "no difference seen"
    if row.ratio is not None and abs(row.ratio.value - 1) <= tolerance:
        return "within tolerance"
    more_is_better = compared_metric(row.metric).better == "more"
    return "better" if (value > 0) == more_is_better else "worse"


def _lost(side: CaseTrials) -> float:
    """Return the share of trials without a value."""
    return 1 - side.measured / side.trials if side.trials else 1.0
