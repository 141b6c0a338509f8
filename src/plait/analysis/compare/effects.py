"""What each factor of a study does to the judged metrics, and whether the effect of one depends on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.compare.factors import factor_names, level, varied
from plait.analysis.metrics.catalogue import compared_metric
from plait.analysis.model import FactorEffect, LevelMean
from plait.analysis.statistics.factorial import effect_tests
from plait.analysis.statistics.tests import ALPHA, holm
from plait.analysis.values import show
from plait.analysis.wording import significant

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from plait.analysis.rows import CaseRows
    from plait.analysis.statistics.factorial import EffectTest

MOST_FACTORS = 6
NOT_CROSSED = (
    "plait tests no effects of factors, because the cases are not all combinations of the factors' levels."
)
FEW_SEEDS = (
    "plait tests no effects of factors on {metric}, because fewer than two seeds have it in all cases."
)


def effects(cases: Sequence[CaseRows], metrics: Sequence[str]) -> tuple[list[FactorEffect], list[str]]:
    """Return the effects of factors on each metric, and why there are none for some.

    Main effects and interactions of two factors, tested over the seeds that have the metric in every case; p values
    of a metric are corrected for their number. Two cases need none: their comparison says the same.
    """
    factors = varied(cases)
    levels = [list(dict.fromkeys(level(case, factor) for case in cases)) for factor in factors]
    if len(cases) < 3 or not factors:
        return [], []
    at = {tuple(level(case, factor) for factor in factors): case for case in cases}
    combinations = 1
    for choices in levels:
        combinations *= len(choices)
    if not len(cases) == len(at) == combinations or len(factors) > MOST_FACTORS:
        return [], [NOT_CROSSED] if len(factors) > 1 else []
    found: list[FactorEffect] = []
    notes: list[str] = []
    for metric in metrics:
        values = _values(at, levels, metric)
        if len(values) < 2:
            notes.append(FEW_SEEDS.format(metric=compared_metric(metric).noun))
            continue
        found += _of_metric(values, metric, factors, levels)
    return found, notes


def _values(
    at: dict[tuple[str, ...], CaseRows], levels: Sequence[Sequence[str]], metric: str
) -> NDArray[np.float64]:
    """Return the metric by seed and levels, of the seeds that have it in every case."""
    import numpy as np

    by_case = {
        place: {row.seed: value for row in case.rows if (value := row.metrics.get(metric)) is not None}
        for place, case in at.items()
    }
    seeds = sorted(set.intersection(*(set(values) for values in by_case.values())))
    shape = tuple(len(choices) for choices in levels)
    values = np.empty((len(seeds), *shape))
    for place in np.ndindex(shape):
        measured = by_case[tuple(choices[i] for choices, i in zip(levels, place, strict=True))]
        values[(slice(None), *place)] = [measured[seed] for seed in seeds]
    return values


def _of_metric(
    values: NDArray[np.float64], metric: str, factors: Sequence[str], levels: Sequence[Sequence[str]]
) -> list[FactorEffect]:
    tests = effect_tests(values)
    names = factor_names(factors)
    found = []
    for test, p in zip(tests, holm([test.p_value for test in tests]), strict=True):
        others = tuple(axis for axis in range(values.ndim) if axis - 1 not in test.axes)
        means = (
            tuple(
                LevelMean(level=name, mean=float(mean))
                for name, mean in zip(levels[test.axes[0]], values.mean(axis=others), strict=True)
            )
            if len(test.axes) == 1
            else ()
        )
        effect = FactorEffect(
            metric=metric,
            factors=tuple(factors[axis] for axis in test.axes),
            levels=means,
            seeds=len(values),
            test=test.test,
            statistic=test.statistic,
            degrees=test.degrees,
            epsilon=test.epsilon,
            p_value=test.p_value,
            p_holm=p if p is not None else test.p_value,
            partial_eta2=test.partial_eta2,
            sentence="",
        )
        words = [names[factors[axis]].replace("_", " ") for axis in test.axes]
        found.append(effect.model_copy(update={"sentence": _sentence(effect, words, test)}))
    return found


def _sentence(effect: FactorEffect, names: Sequence[str], test: EffectTest) -> str:
    """Return an effect in words, as a paper reports it."""
    noun = compared_metric(effect.metric).noun
    p = "p < 0.0001" if effect.p_holm < 0.0001 else f"p = {effect.p_holm:.2g}"
    first, second = (significant(degrees) for degrees in test.degrees)
    evidence = f"F({first}, {second}) = {significant(effect.statistic)}, {p}"
    if effect.p_holm > ALPHA:
        what = (
            f"an effect of {names[0]} on the {noun}"
            if len(names) == 1
            else f"an interaction of {names[0]} and {names[1]} in the {noun}"
        )
        return f"The {effect.seeds} seeds give no evidence of {what} ({evidence})."
    evidence += f", partial \N{GREEK SMALL LETTER ETA}\N{SUPERSCRIPT TWO} = {effect.partial_eta2:.2f}"
    if len(names) == 2:
        return f"The effect of {names[0]} on the {noun} depends on {names[1]} ({evidence})."
    least, most = (choose(effect.levels, key=lambda one: one.mean) for choose in (min, max))
    ends = f"from {show(effect.metric, least.mean)} ({least.level}) to {show(effect.metric, most.mean)} ({most.level})"
    return f"The {noun} depends on {names[0]} ({evidence}): its means go {ends}."
