"""The ideal: what no entry can exceed in a cell, because links have rates and delays; from the plan alone.

A goodput is at most that of all links together (`plait.analysis.metrics.ideal`). A download takes at least its bytes at
that goodput and the shortest one-way delay, a request the shortest RTT, and a message the shortest one-way delay. Loss,
slow start and processing are not taken off, so the ideal is a bound and no goal.
"""

from __future__ import annotations

import math
import statistics
from functools import cache

from plait.analysis.metrics.ideal import ideal_goodput_bps
from plait.benchmark.results_file import Results
from plait.benchmark.suite import SEED, Cell, CellClass, Settings, Subset, cells, scenario_of
from plait.metrics import CATALOGUE
from plait.plan.model.plan import Plan
from plait.seeds import trial_seed
from plait.study.study import plan_study

BYTES = {"large": 20e6, "small": 256e3, "page": 950e3, "video": 2e6, "mixed": 10e3}
"""Of one download, page, chunk or answer."""


@cache
def ideals(subset: Subset) -> dict[str, float]:
    """Return the best value of the metric by cell; cells whose links change have none."""
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
