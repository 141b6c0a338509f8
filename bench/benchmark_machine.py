"""Checks that a stock kernel gives the same ranks: runs a drawn part of `quick` on the engines virtual and machine.

    bench/benchmark_machine.py [--seeds N] [--entries N] [--bulk]      trials that are in the store do not run again

The part is one network of each class, drawn by a number. It compares entries that a stock kernel can have; it has one
scheduler. On virtual they have six seeds; published results serve where there are some. Kendall's tau is tau-b of the
orders of all pairs of entries, where scores within 1 % are a tie, as in the ranks (the general coefficient of Kendall,
Rank Correlation Methods, 1948). Intervals are percentiles of a bootstrap: over the seeds of both engines for a class,
and over the classes for their mean. `seeds` is the mean tau of one seed on virtual with the median of the other five:
what chance alone leaves.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from plait.benchmark import run
from plait.benchmark.results_file import CellResult, published
from plait.benchmark.score import MARGIN
from plait.benchmark.suite import SEEDS, TRIAL_TIMEOUT_S, Cell, Settings, cells, classes
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.metrics import CATALOGUE
from plait.study.progress import silent

DRAW = 20261126
NETWORK_LEFT_OUT = "data-centre"
"""A machine fills no link above 400 Mbit/s (docs/explanation/engines.md)."""
BULK = ("bulk", "mixed", "fairness")
"""Flows that fill links for 15 to 40 s: a trial of them takes a machine minutes."""
ENTRIES = {
    "default, cubic": Settings(),
    "TCP, cubic": Settings(transport="tcp"),
    "default, bbr": Settings(congestion_control="bbr"),
    "default, reno": Settings(congestion_control="reno"),
    "default, vegas": Settings(congestion_control="vegas"),
    "default, cubic, tcp_sack=0": Settings(sysctls={"net.ipv4.tcp_sack": "0"}),
}
RESAMPLES = 5000


def drawn(*, is_bulk: bool) -> list[Cell]:
    """Return one cell of each class: of those of flows by time, or of the others."""
    generator = random.Random(DRAW)
    return [
        generator.choice(
            [
                cell
                for cell in cells("quick")
                if cell.cell_class == cell_class and cell.network != NETWORK_LEFT_OUT
            ]
        )
        for cell_class in classes("quick")
        if (cell_class.traffic in BULK) == is_bulk
    ]


def tau(one: np.ndarray, other: np.ndarray) -> float:
    """Return tau-b between the scores (logarithms) of the same entries; NaN where all of one side tie."""
    orders = []
    for scores in (one, other):
        differences = scores[:, None] - scores[None, :]
        orders.append(np.sign(differences) * (np.abs(differences) > math.log1p(MARGIN)))
    norm = math.sqrt(np.sum(orders[0] ** 2) * np.sum(orders[1] ** 2))
    return float(np.sum(orders[0] * orders[1]) / norm) if norm else math.nan


def interval(values: list[float]) -> list[float] | None:
    """Return the percentiles that enclose 95 % of the resampled values; None where none is known."""
    known = [value for value in values if not math.isnan(value)]
    return [float(value) for value in np.quantile(known, (0.025, 0.975))] if known else None


def scores(cell: Cell, by_entry: dict[str, dict[str, CellResult]]) -> np.ndarray:
    """Return the logarithm of the metric (more is better) by entry and seed; NaN where it was not measured."""
    sign = 1 if CATALOGUE[cell.cell_class.metric].more_is_better else -1
    return np.array(
        [
            [sign * math.log(value or math.nan) for value in results[cell.name].values]
            for results in by_entry.values()
        ]
    )


def row_of(cell: Cell, virtual: np.ndarray, machine: np.ndarray, names: list[str]) -> dict[str, object]:
    """Return tau of a cell, its interval, the scores of both engines, and the pairs that both order otherwise."""
    generator = np.random.default_rng(DRAW)
    whole = ~np.isnan(virtual).any(axis=1) & ~np.isnan(machine).any(axis=1)
    virtual, machine = virtual[whole], machine[whole]

    def resampled(values: np.ndarray) -> np.ndarray:
        chosen = generator.integers(0, values.shape[1], values.shape[1])
        return np.asarray(np.median(values[:, chosen], axis=1))

    taus = [tau(resampled(virtual), resampled(machine)) for _ in range(RESAMPLES)]
    alone = [
        tau(virtual[:, seed], np.median(np.delete(virtual, seed, axis=1), axis=1))
        for seed in range(virtual.shape[1])
    ]
    one, other = np.median(virtual, axis=1), np.median(machine, axis=1)
    counted = [name for name, is_whole in zip(names, whole, strict=True) if is_whole]
    opposed = [
        f"{counted[a]} / {counted[b]}"
        for a in range(len(one))
        for b in range(a)
        if min(abs(one[a] - one[b]), abs(other[a] - other[b])) > math.log1p(MARGIN)
        and (one[a] - one[b]) * (other[a] - other[b]) < 0
    ]
    ratios = {name: math.exp(float(m - v)) for name, v, m in zip(counted, one, other, strict=True)}
    return {
        "class": cell.cell_class.title, "cell": cell.name, "tau": tau(one, other), "ci95": interval(taus),
        "seeds": float(np.nanmean(alone)), "entries": len(counted), "opposed": opposed, "machine / virtual": ratios,
    }  # fmt: skip


def main() -> None:
    """Run, and print a line of JSON for each class and one for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--entries", type=int, default=len(ENTRIES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--bulk", action="store_true", help="the classes of flows by time, instead of the others"
    )
    options = parser.parse_args()
    chosen, names = drawn(is_bulk=options.bulk), list(ENTRIES)[: options.entries]
    known = {item.entry.name: item.cells for item in published()}
    request = EngineRequest(trial_timeout_s=10 * TRIAL_TIMEOUT_S)
    running = run.Running(partial(make_engine, request=request), silent, lambda _: None, options.jobs)

    def measured(name: str, engine: str, seeds: int) -> dict[str, CellResult]:
        run.SEEDS = seeds
        with tempfile.TemporaryDirectory() as folder:
            return run.run_cells(replace(ENTRIES[name], engine=engine), chosen, Path(folder), running)[1]

    machine = {name: measured(name, "machine", options.seeds) for name in names}
    virtual = {name: known[name] if name in known else measured(name, "virtual", SEEDS) for name in names}
    rows = [row_of(cell, scores(cell, virtual), scores(cell, machine), names) for cell in chosen]
    for row in rows:
        print(json.dumps(row))
    taus = [float(str(row["tau"])) for row in rows if not math.isnan(float(str(row["tau"])))]
    generator = random.Random(DRAW)
    means = [statistics.fmean(generator.choices(taus, k=len(taus))) for _ in range(RESAMPLES)]
    print(json.dumps({"classes": len(taus), "mean tau": statistics.fmean(taus), "ci95": interval(means)}))


if __name__ == "__main__":
    main()
