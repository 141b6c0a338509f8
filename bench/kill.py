"""Kills a study with SIGKILL at random moments, and compares what it gives in the end with an undisturbed one.

    bench/kill.py [KILLS] [TRIALS]

The moments: some trials after the start and up to 0.3 s later; when all are there, while the report is made.
The study is continued each time by the same command.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plait.run.files import cache_root

PLAIT = [sys.executable, "-c", "from plait.cli import main; main()"]
SHORT = ("--set", "traffic.*.bulk.duration=1s", "--no-calibration")


def command(out: Path, trials: int) -> list[str]:
    """Returns the command of the study: two cases of 1 s each."""
    return [*PLAIT, "run", "two-paths", *SHORT, "--repeat", str(trials // 2), "--out", str(out), "--json"]


def there(out: Path) -> int:
    """Returns how many trials are in the result folder."""
    return len(list(out.glob("trials/*/*/provenance.json")))


def killed(out: Path, trials: int, choose: random.Random, environment: dict[str, str]) -> bool:
    """Starts the study, kills it at some moment, and returns whether it was still running then."""
    aim = there(out) + choose.randint(0, 6)
    study = subprocess.Popen(
        command(out, trials), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + choose.uniform(0.0, 3.0)
    while there(out) < min(aim, trials) and study.poll() is None:
        time.sleep(0.005)
        until = time.monotonic() + choose.uniform(0.0, 0.3 if aim < trials else 3.0)
    while time.monotonic() < until and study.poll() is None:
        time.sleep(0.005)
    running = study.poll() is None
    study.kill()
    study.wait()
    return running


def main() -> None:
    """Does it, says so, and exits with 1 when the two studies differ."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = time.time_ns() % 10**6
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        found = {}
        for name in ("undisturbed", "killed"):
            cache = folder / f"cache-{name}"
            cache.mkdir()
            (cache / "kernels").symlink_to(cache_root() / "kernels")
            (cache / "sources").symlink_to(cache_root() / "sources")
            environment = {**os.environ, "PLAIT_CACHE": str(cache)}
            out = folder / name / "study"
            out.parent.mkdir()
            hits = 0
            while name == "killed" and hits < kills:
                hits += killed(out, trials, choose, environment)
                print(f"kill {hits}: {there(out)} trials are there", flush=True)
            subprocess.run(command(out, trials), env=environment, check=True, stdout=subprocess.DEVNULL)
            left = [path.name for path in (*out.glob(".*"), *(cache / "trials").glob(".*"))]
            page = (out / "report.html").read_bytes()
            found[name] = (json.loads((out / "summary.json").read_text())["digest"], page, left)
    one, other = found["undisturbed"], found["killed"]
    print(f"moments of seed {seed}; digests {one[0]} and {other[0]}")
    print(
        f"same digest: {one[0] == other[0]}; same report: {one[1] == other[1]}; left behind: {one[2] + other[2]}"
    )
    sys.exit(0 if one == other and not one[2] else 1)


if __name__ == "__main__":
    main()
