"""Measure what Dask costs: `overhead` compares it with local jobs, `scheduler` simulates a large cluster.

    .venv/bin/python bench/cluster/overhead.py overhead --trials 200 --seconds 0.2 --workers 1 2 4
    .venv/bin/python bench/cluster/overhead.py scheduler --workers 1000 --seconds 10

The trials of both only sleep, so that the number of processors hardly matters. `overhead` runs whole studies with local
jobs and with as many local Dask workers in turn, and draws the efficiency. `scheduler` has all workers in this one
process, together with Dask's scheduler and plait: it shows how many trials per second these three do on one core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed

import plait
from plait.engine.engine import EngineIdentity, Job
from plait.engine.workspace import Workspace
from plait.seeds import trial_seed
from plait.study.executors.cluster import dispatcher
from plait.study.executors.cluster.executor import ClusterExecutor
from plait.study.executors.executor import StudyWork
from plait.study.executors.local import LocalExecutor
from plait.study.executors.task import TrialResult, TrialTask, pack_plan
from plait.study.executors.worker import Readiness, Reply
from plait.study.perform import Options, perform
from plait.study.progress import SilentObserver
from plait.study.request import plan_study
from plait.study.study import TrialKey

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
from fake_engine import FakeEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.study.executors.executor import TrialExecutor
    from plait.study.executors.shipment import Shipment

PARCEL_BYTES = 40_000
"""About the size of a trial of two-paths on its way."""


class SleepingEngine(FakeEngine):
    """An engine whose trials sleep."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def execute(self, job: Job) -> None:
        time.sleep(self.seconds)
        super().execute(job)


def study_s(executor: TrialExecutor, trials: int, seconds: float) -> tuple[float, float]:
    """Return the wall time of a study without its start, and the ideal one; the workers are ready after its start."""
    ended: list[float] = []

    class Watch(SilentObserver):
        def trial_ended(self, _: object) -> None:
            ended.append(time.monotonic())

    class Watching:
        def __enter__(self) -> Watch:
            return Watch()

        def __exit__(self, *_: object) -> None: ...

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLAIT_CACHE"] = str(Path(folder) / "cache")
        perform(
            plait.load("two-paths"),
            "two-paths",
            lambda _: SleepingEngine(seconds),
            Options(repeat=trials // 2, fresh=True, calibrate=False),
            folder=Path(folder) / "out",
            watch=lambda _: Watching(),
            notify=lambda _: None,
            executor=executor,
        )
    skipped = trials // 10  # workers start one after the other
    return ended[-1] - ended[skipped], (len(ended) - 1 - skipped) * seconds


def overhead(options: argparse.Namespace) -> None:
    """Compare Dask with local jobs, for each number of workers."""
    rows = []
    for workers in options.workers:
        local_s, ideal_s = study_s(LocalExecutor(workers), options.trials, options.seconds)
        dask_s, _ = study_s(ClusterExecutor(f"local:{workers}"), options.trials, options.seconds)
        rows.append((workers, ideal_s / workers / local_s, ideal_s / workers / dask_s))
        print(
            f"{workers:3} workers: local {local_s:6.1f} s ({rows[-1][1]:.1%} of ideal), Dask {dask_s:6.1f} s "
            f"({rows[-1][2]:.1%}), overhead {dask_s / local_s - 1:+.1%}",
            flush=True,
        )
    if options.figure:
        _draw(options.figure, rows)


def _draw(path: Path, rows: list[tuple[int, float, float]]) -> None:
    """Write the efficiency over workers as SVG."""
    import polars as pl
    import vl_convert

    values = [
        {"workers": workers, "efficiency": value, "executor": name}
        for workers, local, dask in rows
        for name, value in (("local jobs", local), ("Dask", dask))
    ]
    spec: dict[str, Any] = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 320, "height": 200,
        "data": {"values": pl.DataFrame(values).to_dicts()},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "workers", "type": "quantitative", "title": "Workers"},
            "y": {
                "field": "efficiency", "type": "quantitative", "title": "Efficiency",
                "scale": {"domain": [0, 1]}, "axis": {"format": "%"},
            },
            "color": {"field": "executor", "type": "nominal", "title": None},
        },
    }  # fmt: skip
    path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")


async def sleep_through(shipment: Shipment, tasks: tuple[TrialTask, ...]) -> Reply:
    """Stand for a worker's batch: sleep as long as the trials take. `shipment` tells how long."""
    seconds = float(shipment.recipes["seconds"])  # type: ignore[arg-type]
    await asyncio.sleep(seconds * len(tasks))
    results = tuple(
        TrialResult(task.key, task.identity, None, seconds, seconds, bytes(PARCEL_BYTES)) for task in tasks
    )
    return Reply(Readiness("simulated"), results)


def scheduler(options: argparse.Namespace) -> None:
    """Run trials that only sleep on simulated workers."""
    (workers,) = options.workers
    engine = FakeEngine()
    case = plan_study(plait.load("two-paths"), "bench").cases[0]
    packed = pack_plan(case.plan(trial_seed(1, 0)))
    planned = time.process_time()
    for number in range(50):
        pack_plan(case.plan(trial_seed(1, number)))
    planning_s = (time.process_time() - planned) / 50

    def tasks() -> Iterator[TrialTask]:
        for number in range(options.trials):
            key = TrialKey("simulated", number)
            yield TrialTask(key, "", "fake", EngineIdentity("fake", "", "", ""), (), 64, packed)

    from dataclasses import replace

    from plait.study.executors.cluster import executor as module
    from plait.study.executors.shipment import shipment

    module.shipment = lambda on: replace(shipment(on), recipes={"seconds": options.seconds})  # type: ignore[assignment]
    dispatcher.carry_out = sleep_through  # type: ignore[assignment]

    async def admit(_: object, client: Any, address: str, __: dict[str, Any]) -> Any:
        from plait.study.executors.cluster.admission import MEMORY, WorkerOffer, grant

        await client.run(grant, {MEMORY: 1000.0}, workers=[address])
        return WorkerOffer(1, 1000)

    dispatcher.Admission.admit = admit  # type: ignore[method-assign,assignment]
    with (
        tempfile.TemporaryDirectory() as folder,
        Workspace(Path(folder), ".work-") as work,
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp://",
            host="127.0.0.1", memory_limit=0,
        ) as cluster,
        ClusterExecutor(str(cluster.scheduler_address)) as executor,
    ):  # fmt: skip
        print(f"{workers} simulated workers are up", flush=True)
        on = StudyWork(
            {"fake": engine}, {"fake": engine.identity()}, {}, work, SilentObserver(), threading.Event()
        )
        times, cpu = [], []
        for _ in executor.run(tasks(), on):
            times.append(time.monotonic())
            cpu.append(time.process_time())
    first, last = len(times) // 4, len(times) - 1 - len(times) // 10
    trials = last - first
    rate, cpu_s = trials / (times[last] - times[first]), (cpu[last] - cpu[first]) / trials
    print(
        f"{workers} workers, trials of {options.seconds} s: {rate:.0f} trials/s of {workers / options.seconds:.0f} "
        f"possible; {1000 * cpu_s:.2f} ms of processor time each (scheduler, plait and all workers); "
        f"planning takes {1000 * planning_s:.1f} ms more; "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most",
        flush=True,
    )


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("overhead", "scheduler"))
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--figure", type=Path, help="file for the figure of the efficiency, as SVG")
    options = parser.parse_args()
    (overhead if options.what == "overhead" else scheduler)(options)


if __name__ == "__main__":
    main()
