"""The comparison of two studies in words."""

from __future__ import annotations

from collections.abc import Sequence

from plait.analysis.metrics.catalogue import compared_metric
from plait.analysis.model import CaseComparison
from plait.analysis.statistics.tests import ALPHA
from plait.analysis.values import show
from plait.analysis.wording import all_of, change, change_interval, p_words, within

_COUNTED = {
    "not measured": "with fewer measured trials",
    "worse": "worse",
    "better": "better",
    "undecided": "undecided",
    "same": "the same",
    "newly measured": "without a value before",
}


def sentence(row: CaseComparison, called: str) -> str:
    """Return one comparison in words: what changed by how much, how sure that is, and by which test.

    `called` is what to call the case.
    """
    name = f"{called}: {compared_metric(row.metric).noun}"
    if row.verdict == "not measured":
        return (
            f"{name} was measured in {row.after.measured} of {row.after.trials} trials, "
            f"before in {row.before.measured} of {row.before.trials}."
        )
    if row.difference is None:
        return f"{name} was not measured before, and is now; there is nothing to compare it with."
    if row.identical:
        return f"{name} is exactly the same."
    first, last = show(row.metric, row.before.mean), show(row.metric, row.after.mean)
    text = f"{name} went from {first} to {last}" if first != last else f"{name} is {last}, as before"
    if row.ratio is not None:
        text += f" ({change(row.ratio.value)}"
        text += f", {change_interval(*row.ratio.ci95)})" if row.ratio.ci95 is not None else ")"
    return f"{text}: {_verdict(row)}; {_evidence(row)}."


def _verdict(row: CaseComparison) -> str:
    if row.verdict == "same":
        return f"the same {within(row.margin)}"
    p_value = row.p_value if row.p_holm is None else row.p_holm
    if row.verdict == "undecided" and p_value is not None and p_value <= ALPHA:
        return f"undecided whether it is the same {within(row.margin)}"
    return row.verdict


def _evidence(row: CaseComparison) -> str:
    """Return what the verdict rests on."""
    if row.pairs == 1:
        return "one pair of trials, so no interval"
    trials = (
        f"{row.pairs} pairs"
        if row.pairs is not None
        else f"{row.before.measured} and {row.after.measured} trials"
    )
    if row.pairs is None and row.before.measured == row.after.measured == 1:
        return f"{trials} that are no pair, so no interval"
    if row.test is None or row.p_value is None:
        return f"{trials} without any spread, so no interval"
    shown = p_words(row.p_value)
    if row.p_holm is not None and row.p_holm != row.p_value:
        shown += f", {p_words(row.p_holm).removeprefix('p ').removeprefix('= ')} after Holm's correction"
    return f"{row.test} over {trials}, {shown}"


def summing_up(verdicts: Sequence[tuple[str, str]]) -> str:
    """Return the verdict on everything, from the (case, verdict) of each comparison."""
    counts = {verdict: sum(v == verdict for _, v in verdicts) for verdict in _COUNTED}
    parts = [f"{count} {_COUNTED[verdict]}" for verdict, count in counts.items() if count]
    head = "Worse" if counts["worse"] + counts["not measured"] else "No worse"
    if len(parts) == 1:
        (words,) = (_COUNTED[verdict] for verdict, count in counts.items() if count)
        return (
            f"{head}: {all_of(len(verdicts), 'comparison')} {'is' if len(verdicts) == 1 else 'are'} {words}."
        )
    return f"{head}: of {len(verdicts)} comparisons, {', '.join(parts)}."
