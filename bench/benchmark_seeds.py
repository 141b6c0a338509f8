"""Checks that other seeds give the same ranks: runs `quick` with further seeds for some published entries.

For each class and pair of entries, an order that one set of seeds shows is confirmed, open (the other set shows a tie),
or contradicted. Kendall's tau is that of the scores of a class, over the entries.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
from functools import partial
from pathlib import Path

from scipy.stats import kendalltau  # type: ignore[import-untyped]  # scipy ships no types

from plait.benchmark import run
from plait.benchmark.results_file import published
from plait.benchmark.score import floor_of, places, scores
from plait.benchmark.suite import SEED, Settings, classes
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.study.progress import silent

ENTRIES = (
    "default, cubic",
    "blest, cubic",
    "roundrobin, cubic",
    "redundant, cubic",
    "default, lia",
    "default, bbr",
)


def main() -> None:
    """Run, and print the counts as JSON."""
    known = {item.entry.name: item for item in published()}
    floor = floor_of(list(known.values()))
    assert floor is not None
    first = [known[name] for name in ENTRIES]
    run.SEED = SEED + 1
    running = run.Running(partial(make_engine, request=EngineRequest()), silent, lambda _: None)
    second = []
    for item in first:
        settings = Settings(item.entry.scheduler, item.entry.congestion_control)
        with tempfile.TemporaryDirectory() as folder:
            second.append(run.run(settings, "quick", item.entry.name, Path(folder), running))
    ranks = [places(several, floor, "quick") for several in (first, second)]
    counts = {"confirmed": 0, "open": 0, "contradicted": 0, "ties in both": 0}
    for cell_class in classes("quick"):
        for one, other in itertools.combinations(ENTRIES, 2):
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
    print(json.dumps({"pairs": counts, "median tau": statistics.median(taus), "least tau": min(taus)}))


if __name__ == "__main__":
    main()
