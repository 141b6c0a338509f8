"""Measure the memory of a report for studies of many trials: of plait's process, and of those that draw its figures.

    .venv/bin/python bench/cluster/memory.py --trials 1000 10000 30000 --work FOLDER

The script runs 40 trials of two-paths with one virtual second and a random loss of 0.1 %. For each study it takes their
rows again and again, with other values, as if as many trials had been read. All that follows is the real report: the
statistics, the figures and the page. Reading holds the tables of one trial at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plait.results.read as reading
from plait.dataset.trial import trial_folder
from plait.report import representatives
from plait.report.assemble import assemble
from plait.results.reduce import reduced_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.results.reduce import ReducedTrial, TrialPlace

PLAIT = str(Path(sys.executable).with_name("plait"))
MEASURED = 20
"""Trials of each case that run."""
LOOK_S = 0.05


def report(template: Path, out: Path, trials: int) -> None:
    """Write the report of a study of `trials` trials into `out`."""
    about = json.loads((template / "study.json").read_text())
    about["repeat"] = trials // len(about["cases"])
    out.mkdir(parents=True, exist_ok=True)
    (out / "study.json").write_text(json.dumps(about))

    def rows(places: Sequence[TrialPlace], _: object) -> list[ReducedTrial]:
        chance = random.Random(1)
        return [_varied(template, place, chance) for place in places]

    reading.reduced = rows
    reading.trial_numbers = lambda *_: list(range(about["repeat"]))
    representatives.trial_folder = lambda _, case, index: trial_folder(template, case, index % MEASURED)
    assemble(out)


def _varied(template: Path, place: TrialPlace, chance: random.Random) -> ReducedTrial:
    """Return the row of a trial with values and a digest of its own."""
    row = reduced_one(replace(place, out=template, index=place.index % MEASURED))
    factor = chance.uniform(0.9, 1.1)
    return replace(
        row,
        index=place.index,
        digest=f"sha256:{chance.getrandbits(256):064x}",
        metrics=_scaled(row.metrics, factor),
    )


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, float):
        return value * factor
    if isinstance(value, dict):
        return {name: _scaled(part, factor) for name, part in value.items()}
    return [_scaled(part, factor) for part in value] if isinstance(value, list) else value


def children(pid: int) -> list[int]:
    """Return the processes below a process."""
    with contextlib.suppress(OSError):
        below = [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return below + [other for child in below for other in children(child)]
    return []


def mib(pid: int, field: str) -> float:
    """Return a field of the status of a process in MiB; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def measure(template: Path, out: Path, trials: int) -> None:
    """Report in a process of its own, and print its most memory and its processor time."""
    own = below = 0.0
    command = [sys.executable, __file__, "--child", str(template), str(out), "--trials", str(trials)]
    before = os.times()
    shutil.rmtree(out, ignore_errors=True)
    cache = out / "cache"  # figures of an earlier run would need no memory
    with subprocess.Popen(command, env={**os.environ, "PLAIT_CACHE": str(cache)}) as child:
        while child.poll() is None:
            own = max(own, mib(child.pid, "VmHWM"))
            below = max(below, sum(mib(pid, "VmRSS") for pid in children(child.pid)))
            time.sleep(LOOK_S)
    if child.returncode:
        raise SystemExit(f"the report of {trials} trials ended with {child.returncode}")
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    page = (out / "report.html").stat().st_size / 1e6
    print(
        f"{trials:6} trials: plait {own:.0f} MiB, processes that draw {below:.0f} MiB, {cpu_s:.0f} s of processor "
        f"time, a page of {page:.1f} MB",
        flush=True,
    )


def main() -> None:
    """Measure each study and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, nargs="+", default=[1000, 10_000, 30_000])
    parser.add_argument("--work", type=Path, help="an empty folder")
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        report(*options.child, options.trials[0])
        return
    template = options.work / "template"
    if not (template / "summary.json").exists():
        subprocess.run(
            [
                PLAIT, "run", "two-paths", "--repeat", str(MEASURED), "--set", "network.links.*.loss=0.1%",
                "--set", "traffic.0.bulk.duration=1s", "--out", str(template),
            ],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    for trials in options.trials:
        measure(template, options.work / f"of-{trials}", trials)


if __name__ == "__main__":
    main()
