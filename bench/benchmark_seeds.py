"""Checks that other seeds give the same ranks: runs `quick` with ten seeds, and with ten others, for published entries.

    bench/benchmark_seeds.py [--entries N] [--jobs N]      trials that are in the store do not run again

The first ten are the six of the published results and four further ones. For each class and pair of entries, an order
that one set of seeds shows is confirmed, open (the other set shows a tie), or contradicted. Kendall's tau is that of
the scores of a class, over the entries.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
from functools import partial
from pathlib import Path

from scipy.stats import kendalltau  # type: ignore[import-untyped]  # scipy ships no types

from plait.benchmark import run
from plait.benchmark.results_file import CellResult, Results, published
from plait.benchmark.score import floor_of, places, scores
from plait.benchmark.suite import SEED, Settings, cells, classes
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.study.progress import silent

ENTRIES = (
    "default, cubic",
    "blest, cubic",
    "default, bbr",
    "redundant, cubic",
    "default, lia",
    "roundrobin, cubic",
)
TEN = 10
"""Seeds of each of the two sets."""


def further(item: Results, seed: int, count: int, running: run.Running) -> Results:
    """Return the results of `quick` for the settings of an entry, with seeds of their own."""
    run.SEED, run.SEEDS = seed, count
    settings = Settings(item.entry.scheduler, item.entry.congestion_control)
    with tempfile.TemporaryDirectory() as folder:
        return run.run(settings, "quick", item.entry.name, Path(folder), running)


def joined(one: Results, other: Results) -> Results:
    """Return results of `quick` with the seeds of both."""
    together = {
        cell.name: CellResult(values=one.cells[cell.name].values + other.cells[cell.name].values)
        for cell in cells("quick")
    }
    return other.model_copy(update={"seeds": one.seeds + other.seeds, "cells": together})


def main() -> None:
    """Run, and print the counts as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=len(ENTRIES))
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    names = ENTRIES[: options.entries]
    known = {item.entry.name: item for item in published()}
    floor = floor_of(list(known.values()))
    assert floor is not None
    running = run.Running(partial(make_engine, request=EngineRequest()), silent, lambda _: None, options.jobs)
    first, second = [], []
    for name in names:
        item = known[name]
        first.append(joined(item, further(item, SEED + 2, TEN - len(item.seeds), running)))
        second.append(further(item, SEED + 1, TEN, running))
    ranks = [places(several, floor, "quick") for several in (first, second)]
    counts = {"confirmed": 0, "open": 0, "contradicted": 0, "ties in both": 0}
    for cell_class in classes("quick"):
        for one, other in itertools.combinations(names, 2):
            orders = []
            for table in ranks:
                a, b = table[cell_class].get(one), table[cell_class].get(other)
                if a is None or b is None:
                    break
                orders.append((a.last < b.first) - (b.last < a.first))
            else:
                kind = {0: "ties in both", 1: "open", 2: "confirmed"}[sum(map(abs, orders))]
                counts["contradicted" if orders[0] * orders[1] < 0 else kind] += 1
    by_entry = [
        [[row.score for row in scores(item, floor, "quick")] for item in several]
        for several in (first, second)
    ]
    taus = [
        kendalltau([row[index] for row in by_entry[0]], [row[index] for row in by_entry[1]]).statistic
        for index in range(len(classes("quick")))
    ]
    seeds = [len(several[0].seeds) for several in (first, second)]
    print(
        json.dumps(
            {
                "entries": names,
                "seeds": seeds,
                "pairs": counts,
                "median tau": statistics.median(taus),
                "least tau": min(taus),
            }
        )
    )


if __name__ == "__main__":
    main()
