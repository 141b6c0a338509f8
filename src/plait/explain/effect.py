"""The effect of a scenario change over several seeds, and explanations with such effects: a refuted cause is not named.

An effect within the spread over the seeds is not reported.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from plait.analysis.model import Estimate
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
    missing = Effect(
        what=description,
        fields=tuple(fields),
        cause=cause,
        pairs=len(shared),
        metric=metric,
        before_bps=None,
        after_bps=None,
        verdict="not measured",
        sentence=f"With {description}: no trial completed.",
    )
    if not shared:
        return missing
    old_values, new_values = [before[seed] for seed in shared], [after[seed] for seed in shared]
    difference = paired(old_values, new_values).difference
    means = {"before": statistics.fmean(old_values), "after": statistics.fmean(new_values)}
    spread = max(statistics.stdev(old_values), statistics.stdev(new_values)) if len(shared) > 1 else None
    figures = {
        **means,
        "ci95": difference.ci95,
        "verdict": _verdict(difference, spread, means["before"], metric),
    }
    if metric == "goodput_bps":
        figures |= {f"{name}_bps": mean for name, mean in means.items()}
        figures |= {"difference_bps": difference.value, "spread_bps": spread}
    measured = missing.model_copy(update=figures)
    return measured.model_copy(update={"sentence": _sentence(measured, spread)})


def _verdict(difference: Estimate, spread: float | None, before: float, metric: str) -> Verdict:
    """Return an effect only if its interval excludes zero and it exceeds both the spread and the least change."""
    if spread is None or abs(difference.value) <= max(spread, LEAST_CHANGE * before):
        return "no effect seen"
    if difference.ci95 is not None and difference.ci95[0] <= 0 <= difference.ci95[1]:
        return "no effect seen"
    return "faster" if (difference.value > 0) == COMPARED[metric].more_is_better else "slower"


def _sentence(effect: Effect, spread: float | None) -> str:
    metric, before, after = effect.metric, effect.before, effect.after
    first, last = show(metric, before), show(metric, after)
    noun = "" if metric == "goodput_bps" else f"{COMPARED[metric].noun} "
    if effect.verdict != "no effect seen":
        ratio = ""
        if before and after is not None:  # in percent, or as a factor if it is large
            times = after / before
            ratio = f" ({change(times) if times < MANY_TIMES else f'{times:.3g} times as much'})"
        return f"With {effect.what}: {noun}{last} instead of {first}{ratio}, over {effect.pairs} seeds."
    if spread is None:
        return f"With {effect.what}: {noun}{first} became {last} with one seed; judging it takes more seeds."
    return (
        f"With {effect.what}: no effect beyond the spread over {effect.pairs} seeds ({noun}{first} before, "
        f"{last} after, spread {show(metric, spread)})."
    )


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
