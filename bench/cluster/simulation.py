"""Simulate a large Dask cluster: how many trials per second Dask's scheduler and plait's executor carry.

    .venv/bin/python bench/cluster/simulation.py --workers 1 10 100 1000 --seconds 0.2 1 10 --json FILE

Nothing computes here. The scheduler is a real one in its own process, plait's executor is the real one, and the workers
are Dask's own `Worker` objects, but many of them share a process, and a batch of trials only sleeps and then returns as
many bytes as real trials. Workers admit themselves as real ones do, with the sentinel. So the results are the limits of
scheduler and executor, in processor time and in trials per second, and not what a cluster's network or disks add.
plait's planning, its store and its result folder are not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import distributed

import plait
from plait.engine.workspace import Workspace
from plait.seeds import trial_seed
from plait.study.executors import worker
from plait.study.executors.cluster.executor import ClusterExecutor
from plait.study.executors.executor import StudyWork
from plait.study.executors.task import TrialResult, TrialTask, pack_plan
from plait.study.progress import SilentObserver
from plait.study.request import plan_study
from plait.study.study import TrialKey

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
from fake_engine import FakeEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.study.executors.shipment import Shipment

PARCEL = os.urandom(40_000)
"""As many bytes as a trial of two-paths has on its way; nothing compresses them, like Parquet."""
EACH = 250
"""Workers in a process."""
ON_A_HOST = 10
"""Workers with the same address, like those of one machine."""
AT_ONCE = 25
"""Workers of a process that start at the same time."""
HEARTBEAT_S = 60.0
QUIET: dict[str, Any] = {
    # A worker looks at its event loop 50 times per second, and at itself 10 times: too often for hundreds in one.
    "distributed.admin.tick.interval": "60 s",
    "distributed.admin.system-monitor.interval": "60 s",
    "distributed.worker.memory.monitor-interval": "60 s",
    "distributed.worker.profile.enabled": False,
    "distributed.comm.timeouts.connect": "120 s",
    "distributed.comm.offload": False,  # else each message is measured first
}
TICKS = os.sysconf("SC_CLK_TCK")
START_S = 300
WARM_S = 5.0


# --- a process with many workers ----------------------------------------------------------------------------------


async def farm(scheduler: str, first: int, workers: int, seconds: float) -> None:
    """Be `workers` workers of a scheduler until this process is killed; each trial sleeps for `seconds`."""

    async def sleep_through(_: Shipment, tasks: tuple[TrialTask, ...], __: object = None) -> worker.Reply:
        await asyncio.sleep(seconds * len(tasks))
        results = (TrialResult(task.key, task.identity, None, seconds, seconds, PARCEL) for task in tasks)
        return worker.Reply(worker.Readiness("simulated"), tuple(results))

    worker.carry_out = sleep_through  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(first, first + workers, AT_ONCE):
            numbers = range(begin, min(begin + AT_ONCE, first + workers))
            await asyncio.gather(*(_worker(scheduler, number, folder) for number in numbers))
        print("up", flush=True)
        await asyncio.Event().wait()


async def _worker(scheduler: str, number: int, folder: str) -> distributed.Worker:
    """Return a worker that has started."""
    host = number // ON_A_HOST
    return await RareWorker(
        scheduler, nthreads=1, memory_limit=0, dashboard=False, local_directory=folder,
        host=f"127.{1 + host // 250}.{host % 250}.1",
    )  # fmt: skip


class RareWorker(distributed.Worker):
    """A worker that reports to the scheduler every HEARTBEAT_S, because 1000 in a few processes have no time for more.

    Real ones of 1000 report every 6 s.
    """

    _reported_s = 0.0

    async def heartbeat(self) -> None:
        if time.monotonic() - self._reported_s > HEARTBEAT_S:
            self._reported_s = time.monotonic()
            await super().heartbeat()


# --- the measurement ----------------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def trials(stop: threading.Event) -> Iterator[TrialTask]:
    """Yield trials of two-paths until `stop`; all of them have the same plan, which is packed once."""
    engine = FakeEngine()
    packed = pack_plan(plan_study(plait.load("two-paths"), "bench").cases[0].plan(trial_seed(1, 0)))
    number = 0
    while not stop.is_set():
        yield TrialTask(TrialKey("simulated", number), "", "fake", engine.identity(), (), 64, packed)
        number += 1


@contextlib.contextmanager
def cluster(workers: int, seconds: float, folder: Path) -> Iterator[tuple[str, int, list[int]]]:
    """Start a scheduler and workers; yield the address, and the processes of the scheduler and of the workers."""
    with contextlib.ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[str]:
            child = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            )
            stack.callback(child.kill)
            return child

        known = folder / "scheduler.json"
        scheduler = start(
            "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(known),
        )  # fmt: skip
        until = time.monotonic() + START_S
        while not known.exists() and time.monotonic() < until:
            time.sleep(0.1)
        address = str(json.loads(known.read_text())["address"])
        farms = [
            start(
                __file__, "--farm", address, str(first), "--workers", str(min(EACH, workers - first)),
                "--seconds", str(seconds),
            )
            for first in range(0, workers, EACH)
        ]  # fmt: skip
        for child in farms:
            assert child.stdout is not None
            child.stdout.readline()
        yield address, scheduler.pid, [child.pid for child in farms]


def measure(workers: int, seconds: float, lasting_s: float) -> dict[str, float]:
    """Run trials on simulated workers for about `lasting_s`; return rates and the processor time of each trial."""
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as name, Workspace(Path(name), ".work-") as work:
        os.environ["PLAIT_CACHE"] = str(Path(name) / "cache")
        began = time.monotonic()
        with (
            cluster(workers, seconds, Path(name)) as (address, scheduler, farms),
            ClusterExecutor(address, insecure=True) as executor,
        ):
            engine = FakeEngine()
            on = StudyWork({"fake": engine}, {"fake": engine.identity()}, {}, work, SilentObserver(), stop)

            def clock() -> tuple[float, float, float, float]:
                return time.monotonic(), cpu_s(scheduler), time.process_time(), sum(map(cpu_s, farms))

            up_s, full_s, done, first = time.monotonic() - began, None, 0, None
            for _ in executor.run(trials(stop), on):
                now = time.monotonic()
                if full_s is None:
                    if executor.workers == workers:
                        full_s = now
                elif first is None:
                    if now > full_s + max(WARM_S, 1.5 * seconds):
                        first = clock()
                else:
                    done += 1
                    if now > first[0] + lasting_s:
                        break
            last = clock()
            stop.set()
    assert first is not None
    wall_s, scheduler_s, plait_s, farm_s = (after - before for after, before in zip(last, first, strict=True))
    return {
        "workers": workers,
        "seconds": seconds,
        "rate": done / wall_s,
        "efficiency": done / wall_s * seconds / workers,
        "scheduler_ms": 1000 * scheduler_s / done,
        "plait_ms": 1000 * plait_s / done,
        "workers_ms": 1000 * farm_s / done,
        "scheduler_busy": scheduler_s / wall_s,
        "plait_busy": plait_s / wall_s,
        "workers_busy": farm_s / wall_s,
        "up_s": up_s,
        "admitted_s": full_s - began - up_s if full_s else 0.0,
    }


def main() -> None:
    """Measure each number of workers with each duration of trials, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument(
        "--seconds", type=float, nargs="+", default=[0.2, 1.0, 10.0], help="a trial's duration"
    )
    parser.add_argument("--lasting", type=float, default=20.0, help="seconds of each measurement")
    parser.add_argument(
        "--json", type=Path, help="file to which a JSON object is appended for each measurement"
    )
    parser.add_argument("--farm", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no process of the cluster stays
    with dask.config.set(QUIET):
        if options.farm:
            logging.disable()
            asyncio.run(farm(options.farm[0], int(options.farm[1]), options.workers[0], options.seconds[0]))
            return
        for seconds in options.seconds:
            for workers in options.workers:
                figures = measure(workers, seconds, options.lasting)
                print(
                    f"{workers:5} workers, trials of {seconds:4} s: {figures['rate']:6.1f} trials/s "
                    f"({figures['efficiency']:.1%} of ideal); processor time of a trial: scheduler "
                    f"{figures['scheduler_ms']:.2f} ms, plait {figures['plait_ms']:.2f} ms, workers "
                    f"{figures['workers_ms']:.2f} ms; busy: {figures['scheduler_busy']:.0%}, "
                    f"{figures['plait_busy']:.0%}, {figures['workers_busy']:.0%}; up after {figures['up_s']:.0f} s, "
                    f"admitted after {figures['admitted_s']:.0f} s more",
                    flush=True,
                )
                if options.json:
                    with options.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
