"""Scores: how an entry compares with TCP on the better path in each class, and its rank among other entries.

The score of a class is a ratio to the published result of TCP on the better path (`floor`); more is better. For each
seed it is the geometric mean over the cells of the class, so a seed is one run of the class. The score is the median
over the seeds. Its interval of at least 95 % is that of order statistics (Thompson, Ann. Math. Statist. 7, 1936),
which assumes no distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import quantile_test  # type: ignore[import-untyped]  # scipy ships no types

from plait.benchmark.results_file import Results
from plait.benchmark.suite import Cell, CellClass, Subset, cells, classes
from plait.metrics import CATALOGUE

MARGIN = 0.01
"""Scores of two entries that differ by less are a tie."""


@dataclass(frozen=True)
class ClassScore:
    """The score of one entry in one class."""

    cell_class: CellClass
    score: float | None
    """1 is TCP on the better path, and more is better; None if no cell was measured in every seed."""
    ci95: tuple[float, float] | None
    """None with fewer than six seeds."""
    cells: int
    """The number of cells of the class."""
    failed: tuple[str, ...]
    """The cells that count nothing, because a trial failed or did not finish."""
    parts: Mapping[str, float]
    """By metric, the median over the cells of what the results have beside the metric of the class."""
    runs: tuple[float, ...] = ()
    """The score of each seed."""


@dataclass(frozen=True)
class RankRange:
    """The rank of an entry in a class: it is at least `first` and at most `last`, with ties between."""

    first: int
    last: int
    entries: int

    @property
    def words(self) -> str:
        """Return for example `2-4 of 9`."""
        ranks = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{ranks} of {self.entries}"


def floor_of(published: Sequence[Results]) -> Results | None:
    """Return the published result of TCP on the better path; None if plait ships none."""
    return next((results for results in published if results.entry.transport == "tcp"), None)


def common_subset(several: Sequence[Results]) -> Subset:
    """Return the subset that all of them have."""
    return "quick" if any(results.subset == "quick" for results in several) else "full"


def scores(results: Results, floor: Results, subset: Subset) -> list[ClassScore]:
    """Return the score in each class of a subset that `results` have."""
    return [_score(results, floor, subset, cell_class) for cell_class in classes(subset)]


def _score(results: Results, floor: Results, subset: Subset, cell_class: CellClass) -> ClassScore:
    of_class = _cells(subset, cell_class)
    failed = tuple(cell.name for cell in of_class if not results.cells[cell.name].is_whole)
    whole = [cell for cell in of_class if cell.name not in failed and floor.cells[cell.name].is_whole]
    runs = list(_runs(results, floor, whole, results.seeds).values()) if whole else []
    value, interval = median_of(runs) if runs else (None, None)
    parts: dict[str, list[float]] = {}
    for cell in of_class:
        for metric, median in results.cells[cell.name].parts.items():
            parts.setdefault(metric, []).append(median)
    return ClassScore(
        cell_class,
        None if value is None else math.exp(value),
        None if interval is None else (math.exp(interval[0]), math.exp(interval[1])),
        len(of_class),
        failed,
        {metric: statistics.median(medians) for metric, medians in parts.items()},
        tuple(map(math.exp, runs)),
    )


def _cells(subset: Subset, cell_class: CellClass) -> list[Cell]:
    return [cell for cell in cells(subset) if cell.cell_class == cell_class]


def _runs(
    results: Results, floor: Results, of_class: Sequence[Cell], seeds: Sequence[int]
) -> dict[int, float]:
    """Return by seed the mean over the cells of the logarithm of the ratio to the floor."""
    sign = 1 if CATALOGUE[of_class[0].cell_class.metric].more_is_better else -1
    references = {
        cell.name: statistics.median(value for value in floor.cells[cell.name].values if value is not None)
        for cell in of_class
    }
    runs = {}
    for number, seed in enumerate(results.seeds):
        if seed in seeds:
            ratios = [
                sign * math.log((results.cells[cell.name].values[number] or math.nan) / references[cell.name])
                for cell in of_class
            ]
            runs[seed] = statistics.fmean(ratios)
    return runs


def median_of(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Return the median, and its interval of at least 95 %; None with fewer than six values."""
    interval = quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    low, high = float(interval.low), float(interval.high)
    known = math.isfinite(low) and math.isfinite(high)
    return statistics.median(values), (low, high) if known else None


def places(
    several: Sequence[Results], floor: Results, subset: Subset
) -> dict[CellClass, dict[str, RankRange]]:
    """Return by class the place of each entry, by its name, among those that finished every cell of the class.

    An entry is before another one if, over pairs of seeds, the whole interval of their ratio is above 1, and the
    median by more than 1 %. Entries with fewer than six common seeds tie.
    """
    table = {}
    for cell_class in classes(subset):
        of_class = [cell for cell in _cells(subset, cell_class) if floor.cells[cell.name].is_whole]
        whole = [
            results
            for results in several
            if of_class and all(results.cells[cell.name].is_whole for cell in of_class)
        ]
        runs = {results.entry.name: _runs(results, floor, of_class, results.seeds) for results in whole}
        table[cell_class] = {
            name: RankRange(
                1 + sum(_is_before(runs[other], run) for other in runs),
                len(runs) - sum(_is_before(run, runs[other]) for other in runs),
                len(runs),
            )
            for name, run in runs.items()
        }
    return table


def _is_before(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Return whether the first entry is shown to be better."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return False
    median, interval = median_of([first[seed] - second[seed] for seed in seeds])
    return interval is not None and interval[0] > 0 and median > math.log1p(MARGIN)
