"""Scores and ranks: arithmetic of ratios, order statistics, ties, and entries that fail."""

from __future__ import annotations

import pytest

from plait.benchmark.results_file import CellResult, published
from plait.benchmark.score import ClassScore, floor_of, ideal_score, ideals, median_of, places, scores
from plait.benchmark.standing import Standing, overall, score_words
from plait.benchmark.suite import CellClass, cells, classes
from plait.metrics import CATALOGUE
from result_folders import BENCHMARK_SEEDS, benchmark_results, with_cell

LARGE = CellClass("low-bdp", "large")
BULK = CellClass("everyday", "bulk")
FLOOR = benchmark_results("TCP, cubic", 1.0, transport="tcp")


def _score(rows: list[ClassScore], cell_class: CellClass) -> ClassScore:
    return next(row for row in rows if row.cell_class == cell_class)


def test_half_the_completion_time_and_twice_the_goodput_are_both_two() -> None:
    fast = benchmark_results("fast", 2.0)
    for cell_class in (LARGE, BULK):
        score = _score(scores(fast, FLOOR, "quick"), cell_class)
        assert score.score == pytest.approx(2.0)
        assert score.ci95 == (pytest.approx(2.0), pytest.approx(2.0))


def test_the_score_is_a_geometric_mean_over_networks() -> None:
    names = [cell.name for cell in cells("quick") if cell.cell_class == LARGE]
    uneven = with_cell(
        benchmark_results("uneven", 1.0), names[0], CellResult(values=(0.125,) * 6, digest="ab" * 8)
    )
    assert _score(scores(uneven, FLOOR, "quick"), LARGE).score == pytest.approx(8 ** (1 / len(names)))


def test_the_interval_of_six_runs_is_their_range_and_of_five_unknown() -> None:
    assert median_of([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (3.5, (1.0, 6.0))
    assert median_of([1.0, 2.0, 3.0, 4.0, 5.0]) == (3.0, None)


def test_entries_are_before_others_only_if_every_seed_and_one_percent_say_so() -> None:
    base = benchmark_results("base", 1.0)
    better, hair, mixed = (
        benchmark_results("better", 1.02),
        benchmark_results("hair", 1.005),
        benchmark_results("mixed", 1.2, worse_seed=True),
    )
    table = places([base, better, hair, mixed], FLOOR, "quick")[LARGE]
    assert (table["better"].first, table["better"].last) == (1, 2)
    assert (table["hair"].first, table["hair"].last) == (2, 4)
    assert (table["base"].first, table["base"].last) == (2, 4)
    assert (table["mixed"].first, table["mixed"].last) == (1, 4)


def test_a_failed_cell_costs_the_rank_of_its_class_and_of_no_other() -> None:
    name = next(cell.name for cell in cells("quick") if cell.cell_class == LARGE)
    broken = with_cell(
        benchmark_results("broken", 3.0),
        name,
        CellResult(values=(None,) * 6, failed=("the kernel crashed: BUG at x",)),
    )
    score = _score(scores(broken, FLOOR, "quick"), LARGE)
    assert (score.failed, score.score) == ((name,), pytest.approx(3.0))
    table = places([broken, benchmark_results("base", 1.0)], FLOOR, "quick")
    assert "broken" not in table[LARGE]
    assert table[LARGE]["base"].entries == 1
    assert table[BULK]["broken"].words == "1 of 2"
    standing = Standing(broken, [benchmark_results("base", 1.0)], FLOOR)
    assert any("the kernel crashed: BUG at x" in sentence for sentence in standing.sentences())
    assert next(row[2] for row in standing.rows() if row[0] == LARGE.title) == "1 of 3 failed"


def test_failures_are_grouped_by_their_reason_and_bounded() -> None:
    broken = benchmark_results("broken", 1.0)
    for number, cell in enumerate(cells("quick")):
        why = ("it crashed",) if cell.traffic == "large" else (f"reason {number}",) * (cell.traffic == "page")
        if why:
            broken = with_cell(broken, cell.name, CellResult(values=(None,) * 6, failed=why))
    failures = [
        words for words in Standing(broken, [], FLOOR).sentences() if words.startswith("Cells failed")
    ]
    assert failures[0] == (
        "Cells failed in 4, and count nothing: low BDP: 20 MB (3 of 3 cells); low BDP, lossy: 20 MB (3 of 3 cells); "
        "high BDP: 20 MB (3 of 3 cells); and 1 more: it crashed"
    )
    assert len(failures) == 4
    assert "3 further reasons" in failures[-1]


def test_nothing_that_arrived_is_a_failure_and_no_division_by_zero() -> None:
    name = next(cell.name for cell in cells("quick") if cell.cell_class == BULK)
    stalled = with_cell(
        benchmark_results("stalled", 1.0), name, CellResult(values=(0.0,) * 6, digest="ab" * 8)
    )
    assert _score(scores(stalled, FLOOR, "quick"), BULK).failed == (name,)


def test_a_class_without_a_measured_cell_has_no_score() -> None:
    empty = benchmark_results("empty", 1.0)
    for cell in cells("quick"):
        if cell.cell_class == LARGE:
            empty = with_cell(empty, cell.name, CellResult(values=(None,) * 6))
    score = _score(scores(empty, FLOOR, "quick"), LARGE)
    assert score.score is None
    assert score_words(score) == "\N{EN DASH}"


def test_words_claim_no_order_where_all_tie() -> None:
    standing = Standing(benchmark_results("one", 1.0), [benchmark_results("two", 1.0)], FLOOR)
    words = " ".join(standing.sentences())
    assert "nothing is shown to differ" in words
    assert "is shown to be better" not in words
    assert "is shown to be worse" not in words


def test_another_kernel_and_another_plait_mark_an_entry() -> None:
    other = benchmark_results("new", 1.0, kernel="7.1")
    old = benchmark_results("old", 1.0)
    old = old.model_copy(update={"entry": old.entry.model_copy(update={"plait_version": "0.0.9"})})
    standing = Standing(benchmark_results("one", 1.0), [other, old], FLOOR)
    assert standing.first(LARGE) == "one; new [Linux 7.1]; old [plait 0.0.9]"
    assert {name for name, _, _ in overall(standing)} == {"one", "new [Linux 7.1]", "old [plait 0.0.9]"}
    words = " ".join(standing.sentences())
    assert "different kernels: 6.12.117, 7.1." in words
    assert "Different versions of plait measured them: 0.0.9, 0.1.0." in words


def test_the_floor_is_the_published_tcp_and_the_overall_rank_is_a_mean() -> None:
    assert floor_of([benchmark_results("a", 1.0), FLOOR]) is FLOOR
    assert floor_of([benchmark_results("a", 1.0)]) is None
    ranked = overall(Standing(benchmark_results("fast", 2.0), [benchmark_results("slow", 1.0)], FLOOR))
    assert [(name, mean) for name, mean, _ in ranked] == [("fast", 1.0), ("slow", 2.0)]
    assert len(BENCHMARK_SEEDS) == 6


def test_results_of_quick_are_compared_in_the_cells_of_quick() -> None:
    """The published floor is of `full`: an entry of `quick` meets it in the cells that both have."""
    known = floor_of(published())
    assert known is not None
    assert known.subset == "full"
    standing = Standing(benchmark_results("mine", 1.0), [], known)
    assert standing.subset == "quick"
    assert len(list(standing.rows())) == len(classes("quick"))


def test_no_published_value_exceeds_the_ideal() -> None:
    bounds = ideals("quick")
    assert len(bounds) == len([cell for cell in cells("quick") if cell.cell_class.group != "changing"])
    for results in published():
        for cell in cells("quick"):
            more_is_better = CATALOGUE[cell.cell_class.metric].more_is_better
            for value in filter(None, results.cells[cell.name].values if cell.name in bounds else ()):
                assert value <= bounds[cell.name] if more_is_better else value >= bounds[cell.name]


def test_the_ideal_has_a_score_where_links_stay_as_they_are() -> None:
    floor = floor_of(published())
    assert floor is not None
    best = {cell_class: ideal_score(floor, "quick", cell_class) for cell_class in classes("quick")}
    assert {cell_class.group for cell_class, score in best.items() if score is None} == {"changing"}
    assert all(score > 1 for score in best.values() if score is not None)
    parts = dict(Standing(benchmark_results("one", 1.0), [], floor).parts())
    assert parts[LARGE.title]["ideal"] != parts[CellClass("changing", "bulk").title]["ideal"] == "\N{EN DASH}"
