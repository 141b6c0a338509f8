"""Measure the cost of containment: guest starts and pairs of trials, alternately with all layers and with none.

    python bench/containment.py [ROUNDS]

Prints the wall time of each (minimum, quartile, median) and the median of the ratios of the rounds.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.uml.boot_inputs import EMPTY_PLAN
from plait.engine.uml.containment import LAYERS, Policy
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan


def main() -> None:
    """Measure, and print the results."""
    rounds = int((sys.argv[1:] or ["20"])[0])
    kernel = kernels.ensure()
    engines = {
        "all layers": VirtualEngine(kernel, AGENT),
        "no layer": VirtualEngine(kernel, AGENT, policy=Policy(unconfined=True, without=tuple(LAYERS))),
    }
    pair = [resolve(case.scenario, 1) for case in expand(load("two-paths"))]
    for name, plans in (("start and end of a guest", [EMPTY_PLAN]), ("TCP and MPTCP of two-paths", pair)):
        took: dict[str, list[float]] = {kind: [] for kind in engines}
        for _ in range(rounds):
            for kind, engine in engines.items():
                took[kind].append(sum(_seconds(engine, plan) for plan in plans))
        for kind, seconds in took.items():
            low, quartile, middle = min(seconds), statistics.quantiles(seconds)[0], statistics.median(seconds)
            print(f"{name}, {kind}: minimum {low:.4f} s, quartile {quartile:.4f} s, median {middle:.4f} s")
        ratios = [a / b for a, b in zip(took["all layers"], took["no layer"], strict=True)]
        print(f"{name}: {statistics.median(ratios):.3f} times the time without layers (median)", flush=True)


def _seconds(engine: VirtualEngine, plan: Plan) -> float:
    with tempfile.TemporaryDirectory(prefix="plait-cost-") as name:
        folder = Path(name) / "job"
        folder.mkdir()
        if plan is EMPTY_PLAN:
            (folder / "inventory-request.json").write_text('{"settings": []}', encoding="utf-8")
        began = time.perf_counter()
        engine.execute(Job(plan, {}, folder))
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
