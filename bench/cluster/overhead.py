"""Measure what Dask costs beside local jobs, with whole studies of trials that sleep.

    .venv/bin/python bench/cluster/overhead.py --times 3 --trials 200 --seconds 0.2 --workers 1 2 --json FILE

The trials sleep and then write tables like those of two-paths, so that the number of processors hardly matters. The
script runs each study with local jobs and with as many local Dask workers in turn, several times, because other work on
the machine disturbs single runs. `figure.py` draws the efficiency.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import plait
from plait.study.executors.cluster.executor import ClusterExecutor
from plait.study.executors.local import LocalExecutor
from plait.study.perform import Options, perform
from plait.study.progress import SilentObserver

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
from fake_engine import FakeEngine

if TYPE_CHECKING:
    from plait.engine.engine import Job
    from plait.study.executors.executor import TrialExecutor


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


def main() -> None:
    """Compare Dask with local jobs, for each number of workers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=3, help="pairs of studies for each number of workers")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path, help="file to which a JSON object is appended for each pair")
    options = parser.parse_args()
    for workers in options.workers:
        overheads = []
        for _ in range(options.times):
            local_s, ideal_s = study_s(LocalExecutor(workers), options.trials, options.seconds)
            dask_s, _ = study_s(ClusterExecutor(f"local:{workers}"), options.trials, options.seconds)
            local, dask = ideal_s / workers / local_s, ideal_s / workers / dask_s
            overheads.append(dask_s / local_s - 1)
            print(
                f"{workers:3} workers: local {local_s:6.1f} s ({local:.1%} of ideal), Dask {dask_s:6.1f} s "
                f"({dask:.1%}), overhead {overheads[-1]:+.1%}",
                flush=True,
            )
            if options.json:
                with options.json.open("a", encoding="utf-8") as file:
                    figures = {"workers": workers, "seconds": options.seconds, "local": local, "dask": dask}
                    file.write(json.dumps(figures) + "\n")
        print(
            f"{workers:3} workers: overhead {min(overheads):+.1%} to {max(overheads):+.1%}, median "
            f"{statistics.median(overheads):+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
