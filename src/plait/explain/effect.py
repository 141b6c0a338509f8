"""The effect of a scenario change over several seeds, and explanations with such effects: a refuted cause is not named.

An effect within the spread over the seeds is not reported.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from plait.analysis.statistics.differences import paired
from plait.analysis.values import show
from plait.analysis.wording import change
from plait.explain.messages import wording as message_wording
from plait.explain.model import Effect, FlowExplanation, Verdict
from plait.explain.wording import paragraph
from plait.metrics import COMPARED

MANY_TIMES = 3.0
LEAST_CHANGE = 0.01
"""The least relative change that is reported; a network without random events has no spread that would bound it."""


def effect(
    description: str,
    fields: Sequence[str],
    cause: str | None,
    before: dict[int, float],
    after: dict[int, float],
    *,
    metric: str = "goodput_bps",
) -> Effect:
    """Return the effect of a change on a metric; `before` and `after` map each seed to a value."""
    shared = [seed for seed in before if seed in after]
    if not shared:
        sentence = f"With {description}: no trial completed."
        return Effect(
            what=description, fields=tuple(fields), cause=cause, pairs=0, before_bps=None, after_bps=None,
            verdict="not measured", sentence=sentence, metric=metric,
        )  # fmt: skip
    old_values, new_values = [before[seed] for seed in shared], [after[seed] for seed in shared]
    difference = paired(old_values, new_values).difference
    mean_a, mean_b = statistics.fmean(old_values), statistics.fmean(new_values)
    spread = max(statistics.stdev(old_values), statistics.stdev(new_values)) if len(shared) > 1 else None
    verdict = _verdict(
        difference.value, difference.ci95, spread, mean_a, more_is_better=COMPARED[metric].more_is_better
    )
    goodput = metric == "goodput_bps"
    return Effect(
        what=description,
        fields=tuple(fields),
        cause=cause,
        pairs=len(shared),
        metric=metric,
        before=mean_a,
        after=mean_b,
        before_bps=mean_a if goodput else None,
        after_bps=mean_b if goodput else None,
        difference_bps=difference.value if goodput else None,
        ci95=difference.ci95,
        spread_bps=spread if goodput else None,
        verdict=verdict,
        sentence=_sentence(description, verdict, (mean_a, mean_b), spread, len(shared), metric=metric),
    )


def _verdict(
    value: float,
    ci95: tuple[float, float] | None,
    spread: float | None,
    before: float,
    *,
    more_is_better: bool,
) -> Verdict:
    """Return an effect only if its interval excludes zero and it exceeds both the spread and the least change."""
    if spread is None or abs(value) <= max(spread, LEAST_CHANGE * before):
        return "no effect seen"
    if ci95 is not None and ci95[0] <= 0 <= ci95[1]:
        return "no effect seen"
    return "faster" if (value > 0) == more_is_better else "slower"


def _ratio_text(ratio: float) -> str:
    """Return a change in percent, or as a factor if it is large."""
    return change(ratio) if ratio < MANY_TIMES else f"{ratio:.3g} times as much"


def _sentence(
    description: str,
    verdict: Verdict,
    means: tuple[float, float],
    spread: float | None,
    pairs: int,
    *,
    metric: str,
) -> str:
    before, after = means
    noun = "" if metric == "goodput_bps" else f"{COMPARED[metric].noun} "
    if verdict == "no effect seen":
        if spread is None:
            became = f"{show(metric, before)} became {show(metric, after)}"
            return f"With {description}: {noun}{became} with one seed; judging it takes more seeds."
        return (
            f"With {description}: no effect beyond the spread over {pairs} seeds ({noun}{show(metric, before)} before, "
            f"{show(metric, after)} after, spread {show(metric, spread)})."
        )
    ratio = f" ({_ratio_text(after / before)})" if before else ""
    values = f"{show(metric, after)} instead of {show(metric, before)}{ratio}"
    return f"With {description}: {noun}{values}, over {pairs} seeds."


def with_effects(
    flow: FlowExplanation, tried: Sequence[Effect], untried: Sequence[str] = ()
) -> FlowExplanation:
    """Return the explanation with the effects of changes, and the causes without the refuted ones.

    `untried` says what was not tried, and why.
    """
    refuted = tuple(
        effect.cause
        for effect in tried
        if effect.cause is not None
        and effect.cause in flow.named
        and effect.then != effect.cause  # otherwise the change did not remove it
        and effect.pairs > 1
        and effect.verdict in ("no effect seen", "slower")
    )
    named = tuple(cause for cause in flow.named if cause not in refuted)
    changes = {
        "tried": tuple(tried),
        "untried": tuple(untried),
        "refuted": refuted,
        "named": named,
        "first": named[0] if named else None,
    }
    changed = flow.model_copy(update=changes)
    if not refuted:
        return changed
    write = paragraph if changed.delivery is None else message_wording.paragraph
    return changed.model_copy(update={"sentences": write(changed)})
