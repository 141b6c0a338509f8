"""The effects of each factor of a study on the judged metrics, and the interactions of factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from plait.analysis.compare.factors import (
    PLAIN,
    Design,
    by_stratum,
    factor_names,
    joined_factors,
    network_words,
)
from plait.analysis.metrics.catalogue import compared_metric
from plait.analysis.model import FactorEffect, LevelMean
from plait.analysis.rows import CaseRows
from plait.analysis.statistics.differences import direction, paired
from plait.analysis.statistics.factorial import SIGN_FLIP_ANOVA, effect_tests
from plait.analysis.statistics.intervals import describe
from plait.analysis.statistics.tests import ALPHA, holm
from plait.analysis.values import show, span
from plait.analysis.wording import change, p_words, significant, within

MOST_FACTORS = 6
OVERWHELMING = 1000.0
"""F from which on the spread over seeds is so small against the effect that F and p say nothing more."""
NOT_CROSSED = (
    "plait tests no effects of factors, because the cases are not all combinations of the factors' levels."
)
FEW_SEEDS = (
    "plait tests no effects of factors on {metric}, because fewer than two seeds have it in all cases."
)


def effects(
    cases: Sequence[CaseRows], metrics: Sequence[str], design: Design = PLAIN
) -> tuple[list[FactorEffect], list[str]]:
    """Return the effects of factors on each metric in each network, and why there are none for some.

    Main effects and interactions of two factors, tested over the seeds that have the metric in every case; p values
    of a metric are corrected for their number. Two cases need none: their comparison says the same.
    """
    results: list[FactorEffect] = []
    notes: list[str] = []
    for levels, group in by_stratum(cases, design.strata).items():
        tested, reasons = _within(group, metrics, design, dict(zip(design.strata, levels, strict=True)))
        results += tested
        notes += reasons
    return results, list(dict.fromkeys(notes))


def _within(
    cases: Sequence[CaseRows], metrics: Sequence[str], design: Design, network: dict[str, str]
) -> tuple[list[FactorEffect], list[str]]:
    """Return the effects in one network, and why there are none for some metrics."""
    factors = joined_factors(cases, design.zipped)
    levels = [list(dict.fromkeys(of_cases)) for of_cases in factors.values()]
    if len(cases) < 3 or not factors:
        return [], []
    by_levels = dict(zip(zip(*factors.values(), strict=True), cases, strict=True))
    if not len(cases) == len(by_levels) == prod(map(len, levels)) or len(factors) > MOST_FACTORS:
        return [], [NOT_CROSSED] if len(factors) > 1 else []
    results: list[FactorEffect] = []
    notes: list[str] = []
    for metric in metrics:
        values = _values(by_levels, levels, metric)
        if len(values) < 2:
            notes.append(FEW_SEEDS.format(metric=compared_metric(metric).noun))
            continue
        margin = design.margin_of(metric)
        results += _of_metric(values, metric, dict(zip(factors, levels, strict=True)), margin, network)
    return results, notes


def _values(
    by_levels: dict[tuple[str, ...], CaseRows], levels: Sequence[Sequence[str]], metric: str
) -> NDArray[np.float64]:
    """Return the metric by seed and levels, of the seeds that have it in every case."""
    by_case = {place: case.by_seed(metric) for place, case in by_levels.items()}
    seeds = sorted(set.intersection(*(set(values) for values in by_case.values())))
    shape = tuple(len(choices) for choices in levels)
    values = np.empty((len(seeds), *shape))
    for place in np.ndindex(shape):
        measured = by_case[tuple(choices[i] for choices, i in zip(levels, place, strict=True))]
        values[(slice(None), *place)] = [measured[seed] for seed in seeds]
    return values


def _of_metric(
    values: NDArray[np.float64],
    metric: str,
    levels: Mapping[tuple[str, ...], Sequence[str]],
    margin: float,
    network: dict[str, str],
) -> list[FactorEffect]:
    """Return the effects of factors, which have these levels, on a metric in one network."""
    tests = effect_tests(values)
    factors = tuple(levels)
    short = factor_names([name for factor in factors for name in factor])
    results = []
    for test, p_value in zip(tests, holm([test.p_value for test in tests]), strict=True):
        averaged = tuple(axis for axis in range(values.ndim) if axis - 1 not in test.axes and axis)
        reduced = values.mean(axis=averaged) if averaged else values
        p_holm = p_value if p_value is not None else test.p_value
        is_negligible = _varies_at_most(reduced, margin)
        tested = [factors[axis] for axis in test.axes]
        means = reduced.mean(axis=0).tolist() if len(tested) == 1 else []
        effect = FactorEffect(
            metric=metric,
            stratum=network,
            factors=tuple(map("+".join, tested)),
            levels=tuple(
                LevelMean(level=name, mean=mean) for name, mean in zip(levels[tested[0]], means, strict=False)
            ),
            seeds=len(values),
            p_holm=p_holm,
            margin=margin,
            verdict="same" if is_negligible else "depends" if p_holm <= ALPHA else "unclear",
            sentence="",
            **{name: value for name, value in vars(test).items() if name != "axes"},
        )
        words = [" with ".join(short[name].replace("_", " ") for name in factor) for factor in tested]
        results.append(effect.model_copy(update={"sentence": _sentence(effect, words)}))
    return results


def _varies_at_most(reduced: NDArray[np.float64], margin: float) -> bool:
    """Return whether an effect is smaller than the smallest difference of interest, by its 95 % intervals.

    Of a main effect that is the ratio of its greatest level to its least; of an interaction, the range of what a
    combination adds to the effects of both factors, as a share of the mean of all.

    Args:
        reduced: blocks x levels, or blocks x levels of one factor x levels of the other.
        margin: a ratio.
    """
    if reduced.ndim == 2:
        means = reduced.mean(axis=0)
        sides = [list(map(float, reduced[:, int(place)])) for place in (means.argmin(), means.argmax())]
        return direction(paired(*sides), None, margin) == "same"
    added = (
        reduced
        - reduced.mean(axis=1, keepdims=True)
        - reduced.mean(axis=2, keepdims=True)
        + reduced.mean(axis=(1, 2), keepdims=True)
    )
    cells = [describe(list(map(float, cell))) for cell in added.reshape(len(added), -1).T]
    ends = [cell.ci95 or (cell.mean or 0.0, cell.mean or 0.0) for cell in cells]
    across = max(high for _, high in ends) - min(low for low, _ in ends)
    return across <= margin * abs(float(reduced.mean()))


def _sentence(effect: FactorEffect, names: Sequence[str]) -> str:
    """Return an effect in words, as a paper reports it."""
    network = f"{network_words(effect.stratum)}: " if effect.stratum else ""
    noun, margin = compared_metric(effect.metric).noun, within(effect.margin)
    if effect.verdict == "same" and len(names) == 1:
        means = [level.mean for level in effect.levels]
        shown = span(effect.metric, min(means), max(means))
        return f"{network}Whatever the {names[0]}, the {noun} is the same {margin} ({shown})."
    if effect.verdict == "same":
        return f"{network}The effects of {names[0]} and {names[1]} on the {noun} add up {margin}."
    if effect.verdict == "unclear":
        subject = (
            f"an effect of {names[0]} on the {noun}"
            if len(names) == 1
            else f"an interaction of {names[0]} and {names[1]} in the {noun}"
        )
        return f"{network}The {effect.seeds} seeds give no evidence of {subject} ({_evidence(effect)})."
    if len(names) == 2:
        return f"{network}The effect of {names[0]} on the {noun} depends on {names[1]} ({_evidence(effect)})."
    smallest, greatest = (choose(effect.levels, key=lambda level: level.mean) for choose in (min, max))
    first, last = show(effect.metric, smallest.mean), show(effect.metric, greatest.mean)
    ends = f"from {first} ({smallest.level}) to {last} ({greatest.level})"
    if first == last:
        ends = (
            f"from {first} ({smallest.level}) to {change(greatest.mean / smallest.mean)} ({greatest.level})"
        )
    return f"{network}The {noun} depends on {names[0]} ({_evidence(effect)}): its means go {ends}."


def _evidence(effect: FactorEffect) -> str:
    """Return a test in words, with its p value after its statistic."""
    p = p_words(effect.p_holm)
    if effect.statistic > OVERWHELMING:
        return f"F > {OVERWHELMING:.0f}: the seeds hardly change it"
    if effect.test == SIGN_FLIP_ANOVA:
        return f"sign flips of {effect.seeds} seeds, {p}"
    first, second = (significant(degrees) for degrees in effect.degrees)
    evidence = f"F({first}, {second}) = {significant(effect.statistic)}, {p}"
    if effect.verdict == "unclear":
        return evidence
    return f"{evidence}, partial \N{GREEK SMALL LETTER ETA}\N{SUPERSCRIPT TWO} = {effect.partial_eta2:.2f}"
