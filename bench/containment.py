"""Measure the cost of containment: guest starts and pairs of trials, with all layers and without, alternately.

    python bench/containment.py [ROUNDS] [--each]

Prints the wall time of each (minimum, quartile, median) and the median of the ratios of the rounds. With --each, also
the time with all layers relative to that without a single one, for every layer. At the end it prints what a trial of
`two-paths` leaves in its folder, which is in memory.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.request import Policy
from plait.engine.virtual.boot_inputs import EMPTY_PLAN
from plait.engine.virtual.containment import LAYERS
from plait.engine.virtual.trial import VirtualEngine
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand

ALL = "all layers"


def main() -> None:
    """Measure, and print the results."""
    words = [word for word in sys.argv[1:] if word != "--each"]
    rounds = int((words or ["20"])[0])
    kernel = kernels.ensure()
    omitted = {"no layer": tuple(LAYERS)}
    if "--each" in sys.argv:
        omitted |= {f"without {layer}": (layer,) for layer in LAYERS}
    engines = {ALL: VirtualEngine(kernel, AGENT)} | {
        kind: VirtualEngine(kernel, AGENT, policy=Policy(unconfined=True, without=layers))
        for kind, layers in omitted.items()
    }
    pair = [resolve(case.scenario, 1) for case in expand(load("two-paths"))]
    for name, plans in (("start and end of a guest", [EMPTY_PLAN]), ("TCP and MPTCP of two-paths", pair)):
        took: dict[str, list[float]] = {kind: [] for kind in engines}
        for _ in range(rounds):
            for kind, engine in engines.items():
                took[kind].append(sum(_run(engine, plan)[0] for plan in plans))
        for kind, seconds in took.items():
            low, quartile, middle = min(seconds), statistics.quantiles(seconds)[0], statistics.median(seconds)
            ratio = statistics.median(a / b for a, b in zip(took[ALL], seconds, strict=True))
            print(
                f"{name}, {kind}: minimum {low:.4f} s, quartile {quartile:.4f} s, median {middle:.4f} s; "
                f"all layers take {ratio:.3f} times as long (median)",
                flush=True,
            )
    for plan in pair:
        print(f"a trial of two-paths leaves {_run(engines[ALL], plan)[1]} bytes", flush=True)


def _run(engine: VirtualEngine, plan: Plan) -> tuple[float, int]:
    """Run a trial; return its wall time in seconds, and the bytes of the files that it leaves."""
    with tempfile.TemporaryDirectory(prefix="plait-cost-") as name:
        folder = Path(name) / "job"
        folder.mkdir()
        if plan is EMPTY_PLAN:
            (folder / "inventory-request.json").write_text('{"settings": []}', encoding="utf-8")
        began = time.perf_counter()
        engine.execute(Job(plan, {}, folder))
        took = time.perf_counter() - began
        results = [folder / "status.json", *(folder / "data").rglob("*")]
        return took, sum(path.stat().st_size for path in results if path.is_file())


if __name__ == "__main__":
    main()
