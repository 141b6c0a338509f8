"""Comparing two studies matches cases, pairs trials, gives verdicts and wording, and sets the exit code for scripts."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from fake_plans import FakeFlow, FakePath, fake_plan
from plait.analysis.compare.factors import Design
from plait.analysis.compare.studies import compare_studies
from plait.analysis.rows import CaseRows, FailedTrial, TrialRow
from plait.analysis.wording import MISSING
from plait.cli import app
from plait.errors import DataError, RequestError
from plait.metrics import CATALOGUE, COMPARED, JUDGED_METRICS
from plait.report.terminal.comparison import _changed_fields
from result_folders import FakeCase, two_paths, write_study

if TYPE_CHECKING:
    from plait.analysis.model import CaseComparison


def case(
    values: list[float | None],
    *,
    metric: str = "goodput_bps",
    seed: int = 0,
    failed: int = 0,
    **settings: Any,
) -> CaseRows:
    rows = tuple(TrialRow(i, seed + i, f"sha256:{i}", {metric: v}) for i, v in enumerate(values))
    lost = tuple(FailedTrial(len(values) + i, "it broke") for i in range(failed))
    return CaseRows(",".join(map(str, settings.values())) or "default", settings, rows, lost)


def only_comparison(
    before: CaseRows, after: CaseRows, tolerance: float | None = 0, metric: str = "goodput_bps"
) -> CaseComparison:
    (comparison,) = compare_studies([before], [after], metrics=[metric], tolerance=tolerance).cases
    return comparison


def test_trials_of_the_same_seeds_are_compared_pair_by_pair() -> None:
    comparison = only_comparison(case([20e6, 20.1e6, 19.9e6]), case([18e6, 18.2e6, 17.8e6]))
    assert (comparison.pairs, comparison.verdict, comparison.test) == (3, "worse", "paired t test")
    assert comparison.ratio is not None
    assert comparison.ratio.value == pytest.approx(0.9)
    assert "went from 20.0 Mbit/s to 18.0 Mbit/s (\N{MINUS SIGN}10.0 %" in comparison.sentence
    assert "paired t test over 3 pairs" in comparison.sentence


def test_the_means_are_those_of_the_pairs() -> None:
    """Otherwise more repeats of the same seeds look like a change, beside a change of +0.0 %."""
    comparison = only_comparison(case([20e6, 21e6, 40e6, 41e6]), case([20e6, 21e6]))
    assert (comparison.verdict, comparison.pairs) == ("same", 2)
    assert (comparison.before.mean, comparison.after.mean) == (20.5e6, 20.5e6)
    assert (comparison.before.measured, comparison.before.trials) == (4, 4)


def test_trials_of_different_seeds_are_compared_unpaired() -> None:
    comparison = only_comparison(case([10e6, 11e6, 12e6]), case([20e6, 21e6, 22e6], seed=50))
    assert (comparison.pairs, comparison.verdict, comparison.test) == (None, "better", "Welch's t test")
    assert comparison.difference is not None
    assert comparison.difference.value == 10e6
    assert comparison.difference.ci95 is not None


def test_trials_of_real_hosts_are_no_pairs_although_they_have_the_same_seeds() -> None:
    original = replace(case([10e6, 11e6, 12e6]), seeded=False)
    comparison = only_comparison(original, case([20e6, 21e6, 22e6]))
    assert (comparison.pairs, comparison.test) == (None, "Welch's t test")
    assert only_comparison(case([10e6, 11e6, 12e6]), original).pairs is None


def test_a_shorter_time_is_better() -> None:
    before, after = case([10, 11, 12], metric="completion_s"), case([5, 5.6, 6], metric="completion_s")
    assert only_comparison(before, after, metric="completion_s").verdict == "better"
    assert only_comparison(after, before, metric="completion_s").verdict == "worse"


def test_the_wording_distinguishes_no_visible_difference_from_equality() -> None:
    comparison = only_comparison(case([10.0, 20, 30]), case([11, 19, 30]))
    assert comparison.verdict == "undecided"
    assert "undecided; paired t test over 3 pairs, p = " in comparison.sentence
    assert only_comparison(case([10.0, 20]), case([10, 20])).verdict == "same"


def test_a_change_within_the_tolerance_is_accepted() -> None:
    before, after = case([100.0, 100.1, 99.9]), case([98.0, 98.15, 97.9])
    assert only_comparison(before, after).verdict == "worse"
    assert only_comparison(before, after, tolerance=0.01).verdict == "worse"
    accepted = only_comparison(before, after, tolerance=0.03)
    assert (accepted.verdict, accepted.identical) == ("same", False)
    assert "the same within 3 %; paired t test over 3 pairs" in accepted.sentence


def test_a_change_below_one_percent_is_none_unless_the_scenario_says_otherwise() -> None:
    before, after = case([100.0, 100.1, 99.9]), case([99.8, 99.905, 99.7])
    comparison = only_comparison(before, after, None)
    assert comparison.p_value is not None
    assert comparison.p_value < 0.001
    assert (comparison.verdict, comparison.margin) == ("same", 0.01)
    strict = Design(margins={"goodput_bps": 0.0005})
    (row,) = compare_studies([before], [after], metrics=["goodput_bps"], design=strict).cases
    assert (row.verdict, row.margin) == ("worse", 0.0005)


def test_a_sure_change_that_may_be_within_the_tolerance_is_undecided() -> None:
    comparison = only_comparison(case([100.0, 100.0, 100.0, 100.0]), case([99.0, 99.3, 99.5, 98.7]), 0.01)
    assert comparison.p_value is not None
    assert comparison.p_value < 0.05
    assert comparison.verdict == "undecided"
    assert "undecided whether it is the same within 1 %" in comparison.sentence


def test_one_family_of_tests_spans_no_two_networks() -> None:
    slightly = [10.0, 10.0, 10.0, 10.0], [9.0, 9.3, 9.4, 9.7]
    before = [case(slightly[0], network=n, scheduler="a") for n in range(10)]
    after = [case(slightly[1], network=n, scheduler="a") for n in range(10)]
    comparison = compare_studies(before, after, metrics=["goodput_bps"], design=Design(strata=("network",)))
    assert {row.verdict for row in comparison.cases} == {"worse"}
    assert all(row.p_holm == row.p_value for row in comparison.cases)


def test_one_pair_of_trials_is_compared_and_marked_as_one_pair() -> None:
    comparison = only_comparison(case([10.0]), case([9.0]))
    assert (comparison.verdict, comparison.test) == ("worse", None)
    assert comparison.sentence.endswith("worse; one pair of trials, so no interval.")


def test_a_single_trial_beside_several_of_other_seeds_is_judged_by_their_spread() -> None:
    several = case([10.0, 11.0, 12.0])
    near, far = only_comparison(several, case([9.0], seed=50)), only_comparison(several, case([1.0], seed=50))
    assert (near.verdict, near.test) == ("undecided", "Student's t test")
    assert "undecided; Student's t test over 3 and 1 trials, p = 0.23" in near.sentence
    assert (far.verdict, far.test) == ("worse", "Student's t test")
    assert far.difference is not None
    # t of two degrees of freedom, 4.303, times the spread of 1 and the root of 1 + 1/3
    assert far.difference.ci95 == pytest.approx((-10 - 4.9683, -10 + 4.9683), abs=1e-3)


def test_two_single_observations_differ_by_chance() -> None:
    """Two moments of a real network 1 % apart were called better."""
    before, after = (dataclasses.replace(case([value]), seeded=False) for value in (10.0, 9.0))
    comparison = only_comparison(before, after)
    assert comparison.verdict == "undecided"
    assert "undecided; 1 and 1 trials that are no pair, so no interval" in comparison.sentence


def test_two_single_trials_of_different_seeds_are_marked_as_such() -> None:
    comparison = only_comparison(case([10.0]), case([9.0], seed=50))
    assert (comparison.verdict, comparison.test) == ("worse", None)
    assert comparison.sentence.endswith("worse; 1 and 1 trials that are no pair, so no interval.")


def test_fewer_measured_trials_are_worse_whatever_the_others_say() -> None:
    assert only_comparison(case([10.0, 10.1]), case([20.0], failed=1)).verdict == "not measured"
    assert only_comparison(case([10.0, 10.1]), case([None, None])).verdict == "not measured"
    comparison = compare_studies(
        [case([1.0, 2.0])], [case([], failed=2)], metrics=["goodput_bps"], tolerance=0
    )
    assert comparison.verdict == "worse"
    assert "measured in 0 of 2 trials, before in 2 of 2" in comparison.cases[0].sentence


def test_a_metric_without_a_previous_value_is_neither_better_nor_worse() -> None:
    comparison = compare_studies(
        [case([None, None])], [case([10.0, 10.1])], metrics=["goodput_bps"], tolerance=0
    )
    assert [row.verdict for row in comparison.cases] == ["newly measured"]
    assert comparison.verdict == "no worse"
    assert "is without a value before" in comparison.sentence
    assert "nothing to compare it with" in comparison.cases[0].sentence


def test_help_and_page_name_every_metric_that_is_judged() -> None:
    shown = " ".join(run("--help").output.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    assert f"[default: (`judge` of AFTER, else {', '.join(COMPARED)})]" in shown
    page = (Path(__file__).parents[3] / "docs/reference/compare.md").read_text(encoding="utf-8")
    higher = page.partition("**Higher is better:**")[2].partition("\n- ")[0]
    lower = page.partition("**Lower is better:**")[2].partition("\n\n")[0]
    more, less = (re.findall(r"`(\w+)`", metrics) for metrics in (higher, lower))
    assert {**dict.fromkeys(more, True), **dict.fromkeys(less, False)} == {
        name: CATALOGUE[name].better == "more" for name in JUDGED_METRICS
    }
    by_default = page.partition("and without one ")[2].partition(".")[0]
    assert re.findall(r"`(\w+)`", by_default) == list(COMPARED)


def test_many_cases_are_corrected_for_their_number() -> None:
    slightly = [10.0, 10.0, 10.0, 10.0], [9.0, 9.3, 9.4, 9.7]  # p = 0.02 on its own
    unchanged = [10.0, 10.0, 10.0, 10.0], [10.1, 9.9, 10.2, 9.8]
    alone = compare_studies([case(slightly[0])], [case(slightly[1])], metrics=["goodput_bps"], tolerance=0)
    assert alone.verdict == "worse"
    pairs = [slightly, *[unchanged] * 9]
    many = compare_studies(
        [case(before, rate=n) for n, (before, _) in enumerate(pairs)],
        [case(after, rate=n) for n, (_, after) in enumerate(pairs)],
        metrics=["goodput_bps"],
        tolerance=0,
    )
    assert many.verdict == "no worse"
    first = many.cases[0]
    assert first.p_value is not None
    assert first.p_holm == pytest.approx(10 * first.p_value)
    assert "after Holm's correction" in first.sentence


def test_cases_are_matched_by_settings_and_the_others_are_named() -> None:
    comparison = compare_studies(
        [case([1.0, 2.0], rate=1), case([1.0, 2.0], rate=2)],
        [case([1.0, 2.0], rate=2), case([1.0, 2.0], rate=3)],
        metrics=["goodput_bps"],
        tolerance=0,
    )
    assert [row.case for row in comparison.cases] == ["2"]
    assert (comparison.only_first, comparison.only_second) == (("1",), ("3",))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two studies: in the second, MPTCP's second path has half the rate."""
    root = tmp_path_factory.mktemp("studies")
    good, bad = root / "good", root / "bad"
    write_study(good, two_paths(), repeat=3)
    slower = (FakePath(), FakePath(rate_bps=2_500_000))
    mptcp = FakeCase(
        "transport=mptcp",
        {"transport": "mptcp"},
        partial(lambda seed: fake_plan(FakeFlow(transport="mptcp"), paths=slower, seed=seed)),
    )
    write_study(bad, (two_paths()[0], mptcp), repeat=3)
    return good, bad


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], standalone_mode=False)


def test_the_exit_code_is_the_verdict(folders: tuple[Path, Path]) -> None:
    good, bad = folders
    same, worse, better = run(good, good), run(good, bad), run(bad, good)
    assert (same.return_value, worse.return_value, better.return_value) == (0, 1, 0)
    assert "No worse: both comparisons are the same." in same.output
    assert "Worse: of 2 comparisons, 1 worse, 1 the same." in worse.output
    assert "Paired t test assumes" in worse.output
    assert max(len(line) for line in worse.output.splitlines()) <= 80
    assert run(good, bad, "--tolerance", "40%").return_value == 0


def test_the_comparison_lists_the_fields_in_which_two_scenarios_differ() -> None:
    scenario = {"mptcp": {"scheduler": "default"}, "traffic": [{"bulk": {"duration": "1s"}}], "tcp": {}}
    other = {
        "mptcp": {"scheduler": "redundant"},
        "traffic": [{"bulk": {"duration": "2s", "mark": 1}}],
        "tcp": {},
    }
    assert _changed_fields(scenario, other) == [
        "mptcp.scheduler: default then, redundant now",
        "traffic.0.bulk.duration: 1s then, 2s now",
        f"traffic.0.bulk.mark: {MISSING} then, 1 now",
    ]
    assert _changed_fields(scenario, scenario) == []
    many = _changed_fields({"x": 0}, {"x": 0} | {str(number): number for number in range(9)})
    assert (len(many), many[-1]) == (7, "and 3 more fields; see scenario in each study.json")


def test_json_holds_the_same_numbers(folders: tuple[Path, Path]) -> None:
    done = run(*folders, "--json", "--metric", "goodput_bps")
    value = json.loads(done.output)
    assert value["schema"] == 1
    assert value["verdict"] == "worse"
    mptcp = next(row for row in value["cases"] if row["case"] == "transport=mptcp")
    assert mptcp["verdict"] == "worse"
    assert mptcp["ratio"]["value"] == pytest.approx(mptcp["after"]["mean"] / mptcp["before"]["mean"])


def test_wrong_requests_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    good, bad = folders
    assert isinstance(run(good, tmp_path).exception, DataError)
    for options, message in (
        (("--metric", "goodputs"), "it cannot be judged; these can: completion_s"),
        (("--tolerance", "2"), "--tolerance 2: '2' has no unit"),
        (("--metric", "jain_index"), "neither measured jain_index"),
    ):
        wrong = run(good, bad, *options).exception
        assert isinstance(wrong, RequestError)
        assert message in str(wrong)
    write_study(tmp_path / "other", (FakeCase("x=1", {"x": 1}, two_paths()[0].plan),), repeat=1)
    assert "no case with the same settings" in str(run(good, tmp_path / "other").exception)
