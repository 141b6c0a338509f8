"""Effects of factors have the numbers of classical sums of squares, corrected, and a sentence; or a reason for none."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from scipy import stats

from plait.analysis.compare.cases import compare
from plait.analysis.compare.effects import NOT_CROSSED, effects
from plait.analysis.compare.factors import Design
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.statistics.differences import paired
from plait.analysis.statistics.factorial import REPEATED_ANOVA, SIGN_FLIP_ANOVA, effect_tests
from plait.analysis.statistics.resampling import sign_flip_p
from plait.analysis.statistics.tests import holm

METRIC = "page_load_s"


def noise(*shape: int, seed: int = 1) -> np.ndarray:
    """Return blocks whose values share a block's own level, and have noise of their own."""
    chance = np.random.RandomState(seed)
    return chance.normal(size=shape) + 3 * chance.normal(size=(shape[0], *(1 for _ in shape[1:])))


def cases_of(
    values: np.ndarray, factors: dict[str, tuple[str, ...]], missing: tuple[int, ...] = ()
) -> list[CaseRows]:
    """Return a case for each combination of levels; `values` has its trials by seed. Case 0 lacks some trials."""
    cases = []
    for number, place in enumerate(np.ndindex(values.shape[1:])):
        settings = {name: levels[at] for (name, levels), at in zip(factors.items(), place, strict=True)}
        rows = tuple(
            TrialRow(seed, seed, str(seed), {METRIC: float(values[(seed, *place)])})
            for seed in range(len(values))
            if number or seed not in missing
        )
        cases.append(CaseRows(",".join(settings.values()), settings, rows))
    return cases


def test_f_is_the_ratio_of_the_classical_mean_squares() -> None:
    y = noise(7, 3, 4)
    n, a, b = y.shape
    main, _, cross = effect_tests(y)
    grand, blocks = y.mean(), y.mean(axis=(1, 2), keepdims=True)
    of_a, of_b = y.mean(axis=(0, 2), keepdims=True), y.mean(axis=(0, 1), keepdims=True)
    block_a, block_b = y.mean(axis=2, keepdims=True), y.mean(axis=1, keepdims=True)
    of_ab = y.mean(axis=0, keepdims=True)
    effect = n * b * ((of_a - grand) ** 2).sum() / (a - 1)
    error = b * ((block_a - of_a - blocks + grand) ** 2).sum() / ((a - 1) * (n - 1))
    assert main.statistic == pytest.approx(effect / error)
    both = n * ((of_ab - of_a - of_b + grand) ** 2).sum() / ((a - 1) * (b - 1))
    rest = y - of_ab - block_a - block_b + of_a + of_b + blocks - grand
    assert cross.statistic == pytest.approx(both / ((rest**2).sum() / ((a - 1) * (b - 1) * (n - 1))))


def test_epsilon_is_that_of_greenhouse_and_geisser() -> None:
    y = noise(9, 4)
    (main,) = effect_tests(y)
    covariance = np.cov(y, rowvar=False)
    k, mean = len(covariance), covariance.mean()
    above = (k * (np.diag(covariance).mean() - mean)) ** 2
    below = (k - 1) * ((covariance**2).sum() - 2 * k * (covariance.mean(axis=1) ** 2).sum() + (k * mean) ** 2)
    assert main.epsilon == pytest.approx(above / below)
    assert main.degrees == pytest.approx((3 * main.epsilon, 24 * main.epsilon))
    assert main.p_value == pytest.approx(stats.f.sf(main.statistic, *main.degrees))


def test_two_levels_are_the_paired_t_test() -> None:
    y = noise(7, 2)
    (main,) = effect_tests(y)
    assert main.epsilon == 1
    assert main.p_value == pytest.approx(paired(list(y[:, 0]), list(y[:, 1])).p_value)


def test_without_an_effect_one_test_in_twenty_is_significant() -> None:
    ps = [test.p_value for seed in range(150) for test in effect_tests(noise(7, 3, 3, seed=seed))]
    share = sum(p < 0.05 for p in ps) / len(ps)
    assert 0.01 < share < 0.08


def test_skewed_contrasts_are_judged_by_flipping_signs() -> None:
    y = noise(10, 2)
    y[0, 1] += 40
    (main,) = effect_tests(y)
    assert (main.test, main.p_value) == (SIGN_FLIP_ANOVA, sign_flip_p(y[:, [0]] - y[:, [1]]))


def test_equal_trials_have_no_test() -> None:
    assert not effect_tests(np.ones((5, 3)) * np.arange(3))


def test_main_effects_and_their_interaction_are_found_and_said() -> None:
    y = noise(8, 3, 2) / 100 + 2
    y[:, 2, :] += 1
    y[:, 2, 1] += 0.5
    factors = {"scheduler": ("default", "minrtt", "redundant"), "congestion_control": ("cubic", "bbr")}
    tested, notes = effects(cases_of(y, factors), [METRIC])
    assert not notes
    assert [effect.factors for effect in tested] == [
        ("scheduler",),
        ("congestion_control",),
        ("scheduler", "congestion_control"),
    ]
    assert all(effect.p_holm < 0.001 and effect.p_holm >= effect.p_value for effect in tested)
    assert {effect.test for effect in tested} <= {REPEATED_ANOVA, SIGN_FLIP_ANOVA}
    assert [mean.level for mean in tested[0].levels] == list(factors["scheduler"])
    assert tested[0].levels[2].mean == pytest.approx(y[:, 2].mean())
    assert tested[0].sentence.startswith("The page load time depends on scheduler (F > 1000")
    assert tested[0].sentence.endswith("(redundant).")
    assert "depends on congestion control (F" in tested[2].sentence


def test_no_effect_is_called_no_evidence() -> None:
    tested, _ = effects(cases_of(noise(6, 3), {"scheduler": ("a", "b", "c")}), [METRIC])
    assert tested[0].sentence.startswith(
        "The 6 seeds give no evidence of an effect of scheduler on the page load time (F("
    )


def test_only_seeds_that_every_case_measured_count() -> None:
    y = noise(6, 3)
    tested, _ = effects(cases_of(y, {"scheduler": ("a", "b", "c")}, missing=(1, 4)), [METRIC])
    assert tested[0].seeds == 4
    assert tested[0].statistic == pytest.approx(effect_tests(np.delete(y, (1, 4), axis=0))[0].statistic)


def test_too_few_seeds_are_named() -> None:
    factors = {"scheduler": ("a", "b", "c")}
    tested, notes = effects(cases_of(noise(2, 3), factors, missing=(1,)), [METRIC])
    assert not tested
    assert notes == [
        "plait tests no effects of factors on page load time, because fewer than two seeds have it in all cases."
    ]


def test_cases_that_are_no_full_crossing_are_named() -> None:
    factors = {"scheduler": ("a", "b", "c"), "rate": ("1mbit", "2mbit")}
    tested, notes = effects(cases_of(noise(4, 3, 2), factors)[:-1], [METRIC])
    assert (tested, notes) == ([], [NOT_CROSSED])


def test_two_cases_need_no_test_along_their_factor() -> None:
    assert effects(cases_of(noise(4, 2), {"transport": ("tcp", "mptcp")}), [METRIC]) == ([], [])


def test_a_level_is_named_as_the_scenario_names_it() -> None:
    names = dict(product(("scheduler",), (("a", "b", "c"),)))
    chance = random.Random(3)
    y = np.array([[chance.random() + level for level in range(3)] for _ in range(5)])
    tested, _ = effects(cases_of(y, names), [METRIC])
    assert [mean.level for mean in tested[0].levels] == ["a", "b", "c"]


def test_a_p_value_of_sign_flips_stands_beside_no_f() -> None:
    y = noise(10, 3) / 100 + 2
    y[:, 1] += 0.3
    y[0, 1] += 4
    (effect,), _ = effects(cases_of(y, {"scheduler": ("a", "b", "c")}), [METRIC])
    assert effect.test == SIGN_FLIP_ANOVA
    assert "(sign flips of 10 seeds, p = 0.00" in effect.sentence
    assert "F(" not in effect.sentence


def test_repeats_that_hardly_differ_have_no_absurd_f() -> None:
    y = 9.0 + np.arange(3) + noise(5, 3) / 1e4
    (effect,), _ = effects(cases_of(y, {"scheduler": ("a", "b", "c")}), [METRIC])
    assert effect.statistic > 1e5
    assert effect.sentence == (
        "The page load time depends on scheduler (F > 1000: the seeds hardly change it): its means go from 9.00 s "
        "(a) to 11.0 s (c)."
    )


def test_a_significant_effect_below_the_smallest_difference_of_interest_is_none() -> None:
    y = 9.3 * (1 + np.arange(4) * 0.0003) + noise(8, 4) / 1e4
    (effect,), _ = effects(cases_of(y, {"scheduler": ("a", "b", "c", "d")}), [METRIC])
    assert effect.p_holm < 0.001
    assert effect.verdict == "same"
    assert (
        effect.sentence
        == "Whatever the scheduler, the page load time is the same within 1 % (9.30 to 9.31 s)."
    )
    (strict,), _ = effects(
        cases_of(y, {"scheduler": ("a", "b", "c", "d")}), [METRIC], Design(margins={METRIC: 0.0001})
    )
    assert strict.verdict == "depends"


def test_an_interaction_below_the_smallest_difference_of_interest_is_none() -> None:
    y = 9.0 + np.arange(3)[:, None] + np.arange(2)[None] + noise(8, 3, 2) / 1e4
    y[:, 2, 1] += 0.005
    factors = {"scheduler": ("a", "b", "c"), "rate": ("1mbit", "2mbit")}
    tested, _ = effects(cases_of(y, factors), [METRIC])
    assert [effect.verdict for effect in tested] == ["depends", "depends", "same"]
    assert tested[2].p_holm < 0.001


def test_settings_that_change_together_are_one_factor() -> None:
    y = noise(6, 2, 3) / 100 + 2
    cases = [
        CaseRows(
            f"{n}",
            {"rate": rate, "delay": delay, "scheduler": scheduler},
            tuple(TrialRow(s, s, str(s), {METRIC: float(y[s, a, b])}) for s in range(6)),
        )
        for n, ((a, (rate, delay)), (b, scheduler)) in enumerate(
            product(enumerate((("1mbit", "9ms"), ("2mbit", "9ms"))), enumerate("abc"))
        )
    ]
    tested, notes = effects(cases, [METRIC], Design(zipped=(("rate", "delay"),)))
    assert (notes, [effect.factors for effect in tested]) == (
        [],
        [("rate",), ("scheduler",), ("rate", "scheduler")],
    )
    for case, delay in zip(cases, ("9ms", "9ms", "9ms", "1ms", "1ms", "1ms"), strict=True):
        case.settings["delay"] = delay
    tested, notes = effects(cases, [METRIC], Design(zipped=(("rate", "delay"),)))
    assert (notes, tested[0].factors) == ([], ("rate+delay",))
    assert [mean.level for mean in tested[0].levels] == ["1mbit / 9ms", "2mbit / 1ms"]
    assert "rate with delay" in tested[0].sentence


def test_nothing_crosses_from_one_network_to_another() -> None:
    y = noise(6, 2, 3) / 100 + np.array([2, 40])[None, :, None]
    y[:, 1, 2] += 3
    factors = {"network": ("slow", "fast"), "scheduler": ("a", "b", "c")}
    cases, design = cases_of(y, factors), Design(strata=("network",))
    tested, notes = effects(cases, [METRIC], design)
    assert not notes
    assert [(effect.stratum, effect.factors) for effect in tested] == [
        ({"network": "slow"}, ("scheduler",)),
        ({"network": "fast"}, ("scheduler",)),
    ]
    assert tested[1].sentence.startswith("fast: The page load time depends on scheduler")
    compared = compare(cases, cases[0].name, [METRIC], design)
    assert [(row.case, row.baseline) for row in compared] == [
        (f"{network},{scheduler}", f"{network},a") for network in ("slow", "fast") for scheduler in "bc"
    ]
    for network in ("slow", "fast"):
        family = [row for row in compared if row.case.startswith(network)]
        assert [row.p_holm for row in family] == holm([row.p_value for row in family])
    everything, _ = effects(cases, [METRIC])
    assert ("network", "scheduler") in [effect.factors for effect in everything], "unless it is asked"
