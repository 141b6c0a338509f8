"""Run one study in many ways and compare its digests: jobs, Dask, workers that are killed, shards, plait killed.

    .venv/bin/python bench/cluster/digests.py --trials 200 --work FOLDER

The study is two-paths with a random loss of 0.1 % on each link and trials of one virtual second. Each way has a cache
of its own, with copies of the kernels of the user's cache, so that each runs every trial. Exits with 1 if a digest
differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import distributed

from plait.cache import cache_root

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIT = str(Path(sys.executable).with_name("plait"))
KILL_EACH_S = 5.0
KILLS_OF_PLAIT = 10
MOST_S = 1800


class Bench:
    """The ways to run the study, each in a folder of its own below `work`."""

    def __init__(self, work: Path, trials: int) -> None:
        self.work = work
        self.trials = trials

    def study(self, way: str, *options: str, out: str = "out") -> tuple[list[str], dict[str, str]]:
        """Return the command and the environment of a way."""
        cache = self.work / way / "cache"
        if not cache.exists():
            for part in ("kernels", "initramfs", "inventories"):
                shutil.copytree(cache_root() / part, cache / part, symlinks=True)
        command = [
            PLAIT, "run", "two-paths", "--repeat", str(self.trials // 2), "--no-calibration", "--progress", "json",
            "--set", "network.links.*.loss=0.1%", "--set", "traffic.0.bulk.duration=1s",
            "--out", str(self.work / way / out), *options,
        ]  # fmt: skip
        return command, {**os.environ, "PLAIT_CACHE": str(cache)}

    def run(self, way: str, *options: str, out: str = "out") -> None:
        command, environment = self.study(way, *options, out=out)
        subprocess.run(
            command, env=environment, check=True, timeout=MOST_S,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def digest(self, way: str, out: str = "out") -> str:
        summary = json.loads((self.work / way / out / "summary.json").read_text())
        assert sum(case["trials"] for case in summary["cases"]) == self.trials, way
        return str(summary["digest"])

    def one_job(self, way: str) -> str:
        self.run(way, "--jobs", "1")
        return self.digest(way)

    def two_jobs(self, way: str) -> str:
        self.run(way, "--jobs", "2")
        return self.digest(way)

    def dask(self, way: str) -> str:
        self.run(way, "--cluster", "local:4")
        return self.digest(way)

    def dask_with_deaths(self, way: str) -> str:
        """Kill a random worker every five seconds."""
        chance = random.Random(1)
        ended = threading.Event()
        deaths = 0
        command, environment = self.study(way)
        os.environ["PLAIT_CACHE"] = environment["PLAIT_CACHE"]
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": "1 d"}),  # a busy machine starts them late
            distributed.LocalCluster(
                n_workers=4, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
            subprocess.Popen(
                [*command, "--cluster", str(cluster.scheduler_address)],
                env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            ) as plait,
        ):  # fmt: skip
            assert plait.stderr is not None
            first = plait.stderr.readline()
            while first and not first.startswith("{"):
                first = plait.stderr.readline()
            threading.Thread(target=lambda: (plait.communicate(), ended.set()), daemon=True).start()
            until = time.monotonic() + MOST_S
            while not ended.wait(KILL_EACH_S) and time.monotonic() < until:
                pids = [
                    pid for pid in client.run(os.getpid, on_error="ignore").values() if isinstance(pid, int)
                ]
                if pids:
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    deaths += 1
        print(f"  {deaths} workers were killed", flush=True)
        return self.digest(way)

    def shards(self, way: str) -> str:
        for number in (1, 2):
            self.run(way, "--shard", f"{number}/2", out=f"shard-{number}")
        _, environment = self.study(way)
        folders = [str(self.work / way / name) for name in ("out", "shard-1", "shard-2")]
        subprocess.run(
            [PLAIT, "merge", *folders], env=environment, check=True, timeout=MOST_S,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self.digest(way)

    def killed(self, way: str) -> str:
        """Kill plait ten times, each time after a tenth of the trials or fewer, and continue."""
        chance = random.Random(2)
        command, environment = self.study(way)
        for _ in range(KILLS_OF_PLAIT):
            with subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            ) as plait:
                assert plait.stderr is not None
                left = chance.randrange(1, self.trials // KILLS_OF_PLAIT)
                for line in plait.stderr:
                    left -= line.startswith("{") and not json.loads(line)["from_store"]
                    if left <= 0:
                        break
                plait.kill()
        self.run(way)
        return self.digest(way)


def main() -> int:
    """Run all ways and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the titles of the ways to run")
    options = parser.parse_args()
    bench = Bench(options.work, options.trials)
    ways: dict[str, Callable[[str], str]] = {
        "1 job": bench.one_job,
        "2 jobs": bench.two_jobs,
        "Dask, 4 local workers": bench.dask,
        "Dask, a worker killed every 5 s": bench.dask_with_deaths,
        "two shards merged": bench.shards,
        "plait killed ten times": bench.killed,
    }
    digests = {}
    for title, run in ways.items():
        if not any(part in title for part in options.only):
            continue
        started = time.monotonic()
        digests[title] = run("".join(letter for letter in title.lower() if letter.isalnum()))
        print(f"{title:34} {time.monotonic() - started:6.0f} s  {digests[title][:23]}..", flush=True)
    same = len(set(digests.values())) == 1
    print("all digests are equal" if same else "THE DIGESTS DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
