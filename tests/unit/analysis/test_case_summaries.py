"""Summaries and comparisons give intervals, pairs and identical repeats, and the wording has the same numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from plait.analysis import values, wording
from plait.analysis.compare.cases import compare
from plait.analysis.compare.summary import summarise
from plait.analysis.labels.cases import case_label
from plait.analysis.metrics.catalogue import least_of
from plait.analysis.model import Comparison, Summary
from plait.analysis.rows import CaseRows, FailedTrial, TrialRow
from plait.analysis.statistics.intervals import describe
from plait.analysis.statistics.tests import t_quantile
from plait.metrics import CATALOGUE


def case(transport: str, goodputs: list[float | None], *, first_seed: int = 0, **settings: Any) -> CaseRows:
    rows = tuple(
        TrialRow(index, first_seed + index, f"sha256:{index}", {"goodput_bps": value})
        for index, value in enumerate(goodputs)
    )
    name = "-".join([transport, *map(str, settings.values())])
    return CaseRows(name, {"transport": transport, **settings}, rows)


def compared(*cases: CaseRows) -> list[Comparison]:
    return compare(cases, cases[0].name)


def test_four_values_have_the_statistics_computed_by_hand() -> None:
    statistics = describe([2.0, 4.0, None, 4.0, 6.0])
    assert (statistics.n, statistics.mean, statistics.median, statistics.min, statistics.max) == (
        4,
        4,
        4,
        2,
        6,
    )
    assert statistics.stdev == pytest.approx((8 / 3) ** 0.5)
    half = 3.182446305 * (8 / 3) ** 0.5 / 2  # the t quantile of three degrees of freedom, from any table
    assert statistics.ci95 == pytest.approx((4 - half, 4 + half))


def test_t_quantiles_are_those_of_the_tables_and_of_the_closed_forms() -> None:
    assert [round(t_quantile(n), 3) for n in (1, 2, 9, 30, 60)] == [12.706, 4.303, 2.262, 2.042, 2.000]
    assert t_quantile(1) == pytest.approx(math.tan(math.pi * 0.475))  # of a Cauchy distribution
    assert t_quantile(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)))


def test_there_is_no_interval_without_a_spread() -> None:
    assert {value for name, value in describe([]).model_dump().items() if name != "n"} == {None}
    assert describe([None]).mean is None
    single = describe([5.0])
    assert (single.n, single.mean, single.stdev, single.ci95) == (1, 5, None, None)
    alike = describe([0.1] * 10)
    assert (alike.mean, alike.stdev, alike.ci95) == (0.1, 0, None)


def test_quartiles_and_interval_fit_the_shape_of_the_values() -> None:
    statistics = describe([1.0, 2.0, 3.0, 4.0])
    assert (statistics.quartiles, statistics.interval) == ((1.75, 3.25), "t")
    assert describe([5.0]).quartiles == (5, 5)
    assert (describe([5.0, 5.0]).interval, describe([5.0, 5.0]).quartiles) == (None, (5, 5))
    leaning = describe([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.02, 9.0])
    assert leaning.interval == "bootstrap"
    assert leaning.ci95 is not None
    assert leaning.ci95[0] > 0.9, "no trial was below 0.9"


def test_an_interval_of_what_is_never_negative_begins_at_zero() -> None:
    times = [463.0, 1200.0]
    assert describe(times).ci95[0] < 0
    assert describe(times, 0.0).ci95 == (0.0, describe(times).ci95[1])
    bounds = {name: least_of(name) for name in CATALOGUE}
    assert {name for name, least in bounds.items() if least is None} == {"aggregation_benefit"}
    assert least_of("client.anything") is None, "a program may report anything"


def test_comparisons_name_their_test_and_its_correction() -> None:
    (alone,) = compared(case("tcp", [4.78e6, 4.80e6, 4.76e6]), case("mptcp", [9.16e6, 9.22e6, 9.19e6]))
    assert alone.test == "paired t test"
    assert alone.p_value == alone.p_holm
    assert alone.p_value is not None
    assert alone.p_value < 0.001
    assert alone.effect_size == pytest.approx((9.19e6 - 4.78e6) / 26457.5, rel=1e-3)


def test_a_comparison_among_many_that_may_be_chance_is_marked() -> None:
    base, slightly = [10.0, 10.0, 10.0, 10.0], [9.0, 9.3, 9.4, 9.7]
    rates = range(10)
    cases = [case("tcp", base, rate=n) for n in rates]
    cases += [case("mptcp", slightly if n == 0 else [10.1, 9.9, 10.2, 9.8], rate=n) for n in rates]
    by_case = {comparison.case: comparison for comparison in compared(*cases)}
    assert by_case["mptcp-0"].verdict == "unclear"
    assert "one like it may be chance (p = 0.2" in by_case["mptcp-0"].sentence
    (alone,) = compared(cases[0], cases[10])
    assert "chance" not in alone.sentence


def test_a_comparison_has_the_same_words_and_numbers() -> None:
    (comparison,) = compared(case("tcp", [4.78e6, 4.80e6, 4.76e6]), case("mptcp", [9.16e6, 9.22e6, 9.19e6]))
    assert (comparison.case, comparison.baseline, comparison.metric, comparison.pairs) == (
        "mptcp",
        "tcp",
        "goodput_bps",
        3,
    )
    assert comparison.verdict == "more"
    assert comparison.ratio is not None
    assert comparison.ratio.value == pytest.approx(9.19 / 4.78)
    assert comparison.sentence.startswith(
        "MPTCP gives 1.92 times the goodput of TCP (+92.3 %, 95 % interval +90.5 % to +94.1 %)"
    )
    assert comparison.sentence.endswith("over 3 pairs of trials.")


def test_the_comparison_names_identical_repeats() -> None:
    (comparison,) = compared(case("tcp", [4.0] * 10), case("mptcp", [8.0] * 10))
    assert not comparison.identical, "the values of a pair differ"
    assert comparison.verdict == "more"
    assert comparison.ratio is not None
    assert comparison.ratio.ci95 is None
    assert comparison.sentence == (
        "MPTCP gives 2.00 times the goodput of TCP (+100.0 %); all 10 repeats show the same difference, so there is "
        "no interval."
    )
    (twice,) = compared(case("tcp", [4.0, 4.0]), case("mptcp", [8.0, 8.0]))
    assert "both repeats show the same difference" in twice.sentence
    (same,) = compared(case("tcp", [4.0, 5.0, 6.0]), case("mptcp", [4.0, 5.0, 6.0]))
    assert (same.verdict, same.identical) == ("same", True)
    assert same.sentence == "MPTCP gives exactly the goodput of TCP over 3 pairs of trials."


def test_a_difference_below_the_smallest_of_interest_is_called_the_same() -> None:
    (comparison,) = compared(case("tcp", [9.30e6, 9.31e6, 9.29e6]), case("mptcp", [9.28e6, 9.289e6, 9.271e6]))
    assert comparison.p_value is not None
    assert comparison.p_value < 0.01
    assert (comparison.verdict, comparison.identical, comparison.margin) == ("same", False, 0.01)
    assert comparison.sentence.startswith(
        "MPTCP gives the same goodput as TCP within 1 % (\N{MINUS SIGN}0.2 %, "
    )


def test_a_difference_within_chance_is_not_reported_as_a_difference() -> None:
    (comparison,) = compared(case("tcp", [4, 5, 6]), case("mptcp", [5, 4.5, 5.9]))
    assert comparison.verdict == "unclear"
    assert comparison.sentence.endswith(
        ", which is undecided: over 3 pairs of trials it may be chance (p = 0.79)."
    )
    assert compared(case("tcp", [6, 6.1, 6]), case("mptcp", [3, 3.1, 3.05]))[0].verdict == "less"


def test_only_common_seeds_are_compared() -> None:
    (comparison,) = compared(case("tcp", [4, None, 4.5, 4]), case("mptcp", [8, 8, 9, None]))
    assert comparison.pairs == 2
    (single,) = compared(case("tcp", [4]), case("mptcp", [8]))
    assert single.sentence.endswith("one pair of trials, so no interval.")
    (none,) = compared(case("tcp", [4]), case("mptcp", [8], first_seed=7))
    assert none.ratio is None
    assert none.sentence == "MPTCP and TCP cannot be compared by goodput: no seed has a value of both."


def test_in_a_sweep_each_case_is_compared_at_the_same_settings() -> None:
    cases = [case(t, [v, v + 1]) for t, v in (("tcp", 4), ("mptcp", 8))]
    cases = [case(t, [v, v + 1], rate=r) for r, v in (("5mbit", 4), ("10mbit", 8)) for t in ("tcp", "mptcp")]
    pairs = {comparison.case: comparison.baseline for comparison in compared(*cases)}
    assert pairs == {"mptcp-5mbit": "tcp-5mbit", "mptcp-10mbit": "tcp-10mbit", "tcp-10mbit": "tcp-5mbit"}


def test_a_summary_is_json_with_the_promised_fields() -> None:
    failing = CaseRows("mptcp", {"transport": "mptcp"}, (), (FailedTrial(0, "the guest panicked"),))
    cases = [case("tcp", [4.0, 5.0]), failing]
    summary = summarise(cases, scenario="two-paths", digest="sha256:0", baseline="tcp")
    text = summary.model_dump_json()
    assert Summary.model_validate_json(text) == summary
    dump = summary.model_dump(mode="json")
    assert list(dump) == [
        *("schema", "scenario", "digest", "cases", "comparisons"),
        *("effects", "leaders", "untested", "judged", "published_source"),
    ]
    assert list(dump["cases"][0]) == [
        "name",
        "settings",
        "trials",
        "failed",
        "excluded",
        "metrics",
        "published",
    ]
    assert list(dump["cases"][0]["metrics"]["goodput_bps"])[:7] == [
        "n",
        "mean",
        "median",
        "min",
        "max",
        "stdev",
        "ci95",
    ]
    assert (dump["cases"][1]["trials"], dump["cases"][1]["failed"]) == (1, 1)
    assert dump["cases"][1]["metrics"]["goodput_bps"] == {"n": 0} | dict.fromkeys(
        ("mean", "median", "min", "max", "stdev", "ci95", "quartiles", "interval")
    )


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (wording.rate, 4_782_034, "4.78 Mbit/s"),
        (wording.rate, 999_700, "1.00 Mbit/s"),
        (wording.rate, 9_996_000, "10.0 Mbit/s"),
        (wording.rate, 852e6, "852 Mbit/s"),
        (wording.rate, 0.0, "0 bit/s"),
        (wording.rate, None, "\N{EN DASH}"),
        (wording.size, 151_400, "151 kB"),
        (wording.seconds, 37.94, "37.9 s"),
        (wording.seconds, 0.42, "420 ms"),
        (wording.seconds, 0.9997, "1.00 s"),
        (wording.micros, 20_350, "20.4 ms"),
        (wording.micros, 1_119_000, "1.12 s"),
        (wording.percent, 0.956, "95.6 %"),
        (wording.change, 1.9182, "+91.8 %"),
        (wording.change, 0.487, "\N{MINUS SIGN}51.3 %"),
        (lambda ends: wording.change_interval(*ends), (1.9, 1.95), "95 % interval +90.0 % to +95.0 %"),
        (lambda ends: wording.change_interval(*ends), (1.9, 1.9003), "95 % interval +90.00 % to +90.03 %"),
        (lambda ends: wording.change_interval(*ends), (1.9, 1.90001), "95 % interval narrower than 0.01 %"),
        (
            lambda ends: wording.change_interval(*ends),
            (0.9999, 1.0003),
            "95 % interval \N{MINUS SIGN}0.01 % to +0.03 %",
        ),
        (wording.count, 12.0, "12"),
        (wording.count, 12.4, "12.4"),
        (wording.significant, 1240.0, "1240"),
    ],
)
def test_numbers_print_as_a_person_reads_them(function, value: float | None, text: str) -> None:
    assert function(value) == text


def test_means_with_intervals_and_ranges_share_one_unit() -> None:
    assert (
        values.with_interval("goodput_bps", 9.2e6, (9.1e6, 9.3e6)) == "9.20 \N{PLUS-MINUS SIGN} 0.10 Mbit/s"
    )
    assert values.with_interval("goodput_bps", 9.2e6, (9.1999e6, 9.2001e6)).startswith(
        "9.20 \N{PLUS-MINUS SIGN} <0.01"
    )
    assert values.with_interval("page_load_p95_s", 0.463, (0.0, 1.487)) == "463 (0 to 1487) ms"
    assert values.with_interval("goodput_bps", 9.2e6, None) == "9.20 Mbit/s"
    assert values.with_interval("goodput_bps", None, None) == "\N{EN DASH}"
    assert values.span("goodput_bps", 4.7e6, 4.9e6) == "4.70 to 4.90 Mbit/s"
    assert values.span("goodput_bps", 0.9e6, 4.9e6) == "900 kbit/s to 4.90 Mbit/s"
    assert values.span("goodput_bps", 4.7001e6, 4.7002e6) == "4.70 Mbit/s"


def test_cases_are_called_by_what_they_set() -> None:
    assert case_label("x", {"transport": "mptcp"}) == "MPTCP"
    assert case_label("x", {"transport": "tcp", "network.links.*.rate": "5mbit"}) == "TCP, rate 5mbit"
    assert case_label("default", {}) == "default"
    assert len(case_label("x", {"endpoints": ["10.0.0.1"] * 30})) < 45
