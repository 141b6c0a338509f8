"""Two studies side by side: cases matched by settings, trials by seed, and a verdict on each metric of each case."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence

from plait.analysis.compare.factors import PLAIN, Design, stratum
from plait.analysis.compare.studies_wording import sentence, summing_up
from plait.analysis.labels.cases import labels
from plait.analysis.metrics.catalogue import compared_metric
from plait.analysis.model import CaseComparison, CaseTrials, StudiesComparison, Verdict
from plait.analysis.rows import CaseRows
from plait.analysis.statistics.differences import Compared, direction, fields_of, paired, unpaired
from plait.analysis.statistics.tests import holm


def compare_studies(
    first: Sequence[CaseRows],
    second: Sequence[CaseRows],
    *,
    metrics: Sequence[str],
    tolerance: float | None = None,
    design: Design = PLAIN,
) -> StudiesComparison:
    """Return the comparison of `second` with `first`; a change of up to `tolerance` (a ratio) is accepted.

    A case is worse when its mean changed for the worse by more than the tolerance, and the change is significant after
    Holm's correction for the number of cases of its network; or when a greater share of its trials has no value. Each
    of `metrics` has a better direction.

    Args:
        first: the study to compare with.
        second: the study to judge.
        metrics: what to compare.
        tolerance: the same for all metrics; None for the smallest difference of interest of each.
        design: of the second study.
    """
    by_settings = {_key(case): case for case in second}
    matched = [(case, by_settings[_key(case)]) for case in first if _key(case) in by_settings]
    keys = {_key(case) for case in first}
    words = labels([case for case, _ in matched])
    unseeded = {earlier.name for earlier, later in matched if not (earlier.seeded and later.seeded)}
    comparisons: list[CaseComparison] = []
    for metric in metrics:
        margin = design.margin_of(metric) if tolerance is None else tolerance
        rows = [_compare(earlier, later, metric, margin) for earlier, later in matched]
        networks: dict[tuple[str, ...], list[tuple[CaseComparison, Compared | None]]] = {}
        for row, tested in rows:
            if row.before.measured or row.after.measured:
                networks.setdefault(stratum(row, design.strata), []).append((row, tested))
        for family in networks.values():
            corrected = holm([row.p_value for row, _ in family])
            comparisons += [
                _judged(row, tested, p, words[row.case], seeded=row.case not in unseeded)
                for (row, tested), p in zip(family, corrected, strict=True)
            ]
    worse = any(row.verdict in {"worse", "not measured"} for row in comparisons)
    return StudiesComparison(
        tolerance=tolerance,
        verdict="worse" if worse else "no worse",
        sentence=summing_up([(words[row.case], row.verdict) for row in comparisons]),
        cases=tuple(comparisons),
        only_first=tuple(case.name for case in first if _key(case) not in by_settings),
        only_second=tuple(case.name for case in second if _key(case) not in keys),
    )


def _key(case: CaseRows) -> str:
    return json.dumps(case.settings, sort_keys=True, default=str)


def _compare(
    first: CaseRows, second: CaseRows, metric: str, margin: float
) -> tuple[CaseComparison, Compared | None]:
    """Return the numbers of one metric, not yet judged, and their test."""
    xs, ys = first.by_seed(metric), second.by_seed(metric)
    shared = [seed for seed in xs if seed in ys and first.seeded and second.seeded]
    # One shared seed among many trials would throw the others away.
    are_pairs = len(shared) > 1 or (len(shared) == 1 and len(xs) == len(ys) == 1)
    compared = [[xs[seed] for seed in shared], [ys[seed] for seed in shared]]
    if not are_pairs:
        compared = [list(xs.values()), list(ys.values())]
    tested = None
    if xs and ys:
        tested = (paired if are_pairs else unpaired)(*compared)
    comparison = CaseComparison(
        case=first.name,
        settings=first.settings,
        label=second.label or first.label,
        metric=metric,
        before=CaseTrials(trials=first.trials, measured=len(xs), mean=_mean(compared[0])),
        after=CaseTrials(trials=second.trials, measured=len(ys), mean=_mean(compared[1])),
        pairs=len(shared) if are_pairs else None,
        identical=are_pairs and all(xs[seed] == ys[seed] for seed in shared),
        margin=margin,
        p_holm=None,
        **fields_of(tested),
        verdict="undecided",
    )
    return comparison, tested


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _judged(
    row: CaseComparison, tested: Compared | None, p_holm: float | None, called: str, *, seeded: bool
) -> CaseComparison:
    verdict = _verdict(row, tested, p_holm)
    if not seeded and row.before.measured == row.after.measured == 1 and verdict in {"better", "worse"}:
        verdict = "undecided"  # two moments of a real network differ by chance
    judged = row.model_copy(update={"p_holm": p_holm, "verdict": verdict})
    return judged.model_copy(update={"sentence": sentence(judged, called)})


def _verdict(row: CaseComparison, tested: Compared | None, p_holm: float | None) -> Verdict:
    """Return the verdict; without any spread the values decide."""
    if _lost(row.after) > _lost(row.before):
        return "not measured"
    if tested is None:  # there is no value before, or none by the same seed
        return "newly measured"
    shown = direction(tested, p_holm, row.margin)
    if shown == "same":
        return "same"
    changed_little = tested.ratio is not None and abs(tested.ratio.value - 1) <= row.margin
    if shown == "unclear" or changed_little:
        return "undecided"
    more_is_better = compared_metric(row.metric).better == "more"
    return "better" if (shown == "more") == more_is_better else "worse"


def _lost(side: CaseTrials) -> float:
    """Return the share of trials without a value."""
    return 1 - side.measured / side.trials if side.trials else 1.0
