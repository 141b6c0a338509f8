"""Run a study of many short trials and measure whether memory and speed stay the same from its start to its end.

    nice .venv/bin/python bench/cluster/soak.py --trials 10000 --out FOLDER

The study is two-paths with a random loss of 0.1 % on each link, so that each seed gives other data. Its trials last one
virtual second. The script follows `plait run --progress json`, and states for each tenth of the study the trials per
second, the processor time of a trial, and the memory of plait's own process. Other work on the machine changes the
rate, but hardly the processor time. The same command continues a study that was interrupted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PARTS = 10
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """What was measured when a number of trials had ended."""

    done: int
    failed: int
    wall_s: float
    cpu_s: float
    """The processor time of plait and of its guests that have ended."""
    resident_mib: float


def main() -> int:
    """Run the study, print a line for each part, and return 1 if a trial failed."""
    options = _options()
    command = [
        str(Path(sys.executable).with_name("plait")), "run", "two-paths", "--out", str(options.out),
        "--set", "network.links.*.loss=0.1%", "--set", "traffic.0.bulk.duration=1s",
        "--repeat", str(-(-options.trials // 2)), "--yes", "--progress", "json",
    ]  # fmt: skip
    command += ["--jobs", str(options.jobs)] if options.jobs else []
    samples = _follow(command, max(1, options.trials // PARTS))
    for first, last in itertools.pairwise(samples):
        trials = last.done - first.done
        print(
            f"trials {first.done:6} to {last.done:6}: {trials / (last.wall_s - first.wall_s):5.2f} trials/s, "
            f"{(last.cpu_s - first.cpu_s) / trials:.3f} s of processor time each, plait has "
            f"{last.resident_mib:.0f} MiB",
            flush=True,
        )
    failed = samples[-1].failed if samples else -1
    print(f"{failed} trials failed")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _follow(command: list[str], each: int) -> list[Sample]:
    """Run plait and return a sample after each `each` trials; the first trial's is the first."""
    started = time.monotonic()
    samples: list[Sample] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as plait:
        assert plait.stderr is not None
        for line in plait.stderr:
            if not line.startswith("{"):
                print(line, end="", flush=True)
                continue
            record = json.loads(line)
            if record["done"] == 1 or record["done"] % each == 0 or record["done"] == record["total"]:
                sample = _sample(plait.pid, record, started)
                samples.append(sample)
                print(sample, flush=True)
    return samples


def _sample(pid: int, record: dict[str, int], started: float) -> Sample:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    cpu_s = sum(map(int, fields[11:15])) / TICKS
    return Sample(
        record["done"], record["failed"], time.monotonic() - started, cpu_s, pages * PAGE / (1 << 20)
    )


if __name__ == "__main__":
    raise SystemExit(main())
