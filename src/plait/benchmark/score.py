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
from functools import cache

from plait.analysis.metrics.ideal import ideal_goodput_bps
from plait.benchmark.results_file import Results
from plait.benchmark.suite import SEED, Cell, CellClass, Settings, Subset, cells, classes, scenario_of
from plait.metrics import CATALOGUE
from plait.plan.model.plan import Plan
from plait.seeds import trial_seed
from plait.study.study import plan_study

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
    ordered = sorted(values)
    ranks = _interval_ranks(len(ordered))
    return statistics.median(ordered), None if ranks is None else (ordered[ranks[0]], ordered[ranks[1]])


@cache
def _interval_ranks(count: int) -> tuple[int, int] | None:
    """Return which of `count` ordered values are the ends of the interval of their median; None if none are.

    scipy takes a millisecond, and a page of 50 entries has 60 000 intervals.
    """
    from scipy.stats import quantile_test  # type: ignore[import-untyped]  # no types; half a second

    interval = quantile_test(range(count), q=0, p=0.5).confidence_interval(0.95)
    low, high = float(interval.low), float(interval.high)
    return (int(low), int(high)) if math.isfinite(low) and math.isfinite(high) else None


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
                1 + sum(_outranks(runs[other], run) for other in runs),
                len(runs) - sum(_outranks(run, runs[other]) for other in runs),
                len(runs),
            )
            for name, run in runs.items()
        }
    return table


def _outranks(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Return whether the first entry is shown to be better."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return False
    median, interval = median_of([first[seed] - second[seed] for seed in seeds])
    return interval is not None and interval[0] > 0 and median > math.log1p(MARGIN)


BYTES = {"large": 20e6, "small": 256e3, "page": 950e3, "video": 2e6, "mixed": 10e3}
"""Of one download, page, chunk or answer."""


@cache
def ideals(subset: Subset) -> dict[str, float]:
    """Return the value that no entry can exceed, by cell; cells whose links change have none.

    It follows from the plan alone. A goodput is at most that of all links together (`plait.analysis.metrics.ideal`). A
    download takes at least its bytes at that goodput and the shortest one-way delay, a request the shortest RTT, and a
    message the shortest one-way delay. Loss, slow start and processing are not taken off: it is a bound and no goal.
    """
    chosen = cells(subset)
    study = plan_study(scenario_of(Settings(), chosen), "benchmark")
    plans = (case.plan(trial_seed(SEED, 0)) for case in study.cases)
    pairs = zip(chosen, plans, strict=True)
    return {cell.name: value for cell, plan in pairs if (value := _ideal(cell, plan)) is not None}


def _ideal(cell: Cell, plan: Plan) -> float | None:
    (flow, *_) = plan.flows
    goodput_bps = ideal_goodput_bps(plan, flow)
    rtt_us = min(path.base_rtt_us for path in flow.paths)
    if cell.traffic == "fairness":
        return 1.0
    if plan.events or goodput_bps is None:
        return None
    if cell.traffic == "bulk":
        return goodput_bps
    if cell.traffic == "messages":
        return rtt_us / 2
    sending_us = BYTES[cell.traffic] * 8e6 / goodput_bps
    if cell.cell_class.metric == "request_latency_p95_us":
        return sending_us + rtt_us
    return (sending_us + rtt_us / 2) / 1e6


def ideal_score(floor: Results, subset: Subset, cell_class: CellClass) -> float | None:
    """Return the score that no entry can exceed in a class; None if one of its cells has no ideal."""
    sign = 1 if CATALOGUE[cell_class.metric].more_is_better else -1
    of_class = [cell.name for cell in cells(subset) if cell.cell_class == cell_class]
    if any(name not in ideals(subset) or not floor.cells[name].is_whole for name in of_class):
        return None
    references = {name: statistics.median(filter(None, floor.cells[name].values)) for name in of_class}
    return math.exp(
        statistics.fmean(sign * math.log(ideals(subset)[name] / references[name]) for name in of_class)
    )
