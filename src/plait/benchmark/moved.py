"""Compare the figures of a benchmark with earlier ones of the same entry, seed by seed."""

from __future__ import annotations

from plait.analysis.statistics.differences import direction, paired
from plait.analysis.statistics.tests import holm
from plait.analysis.wording import change
from plait.benchmark.results_file import Results
from plait.benchmark.score import MARGIN
from plait.benchmark.suite import cells
from plait.errors import RequestError
from plait.metrics import CATALOGUE


def moved_figures(old: Results, new: Results) -> list[tuple[str, str, str]]:
    """Return the cells of a benchmark whose figure moved, seed by seed, as (worse or better, name, by how much).

    Student's t over the pairs, or the bootstrap if they are skewed, with Holm's correction over the cells; a ratio
    within `MARGIN` has not moved.

    Raises:
        RequestError: the results have no seed in common.
    """
    seeds = [seed for seed in old.seeds if seed in new.seeds]
    if not seeds:
        raise RequestError(
            f"comparing the figures of {old.entry.name} and {new.entry.name}: they have no seed in common"
        )
    more_is_better = {
        cell.name: CATALOGUE[cell.cell_class.metric].more_is_better for cell in cells(new.subset)
    }
    tested = []
    for name in sorted(old.cells.keys() & new.cells.keys()):
        pairs = [
            (x, y)
            for seed in seeds
            if (x := old.cells[name].values[old.seeds.index(seed)]) is not None
            and (y := new.cells[name].values[new.seeds.index(seed)]) is not None
        ]
        if pairs:
            tested.append((name, len(pairs), paired(*zip(*pairs, strict=True))))
    moved = []
    for (name, count, compared), p_holm in zip(tested, holm([t.p_value for _, _, t in tested]), strict=True):
        way = direction(compared, p_holm, MARGIN)
        if way in ("more", "less") and compared.ratio is not None:
            better = (way == "more") == more_is_better[name]
            low, high = compared.ratio.ci95 or (compared.ratio.value,) * 2
            interval = f" ({change(low, 1)} to {change(high, 1)})" if compared.ratio.ci95 else ""
            detail = f"{change(compared.ratio.value, 1)}{interval}, {count} seed{'s' * (count != 1)}"
            moved.append(("better" if better else "worse", f"benchmark: {name}", detail))
    return moved
