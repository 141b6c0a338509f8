"""Measure how often the time estimates of `plait run` are correct, over varied studies from shipped scenarios.

    python bench/estimates.py [--kernel NAME] [--only N]

Each study runs without the store (`--fresh`), with the pace that earlier studies left in the cache. Prints for each
study the estimated range and the measured time, including the report, and at the end the number of correct ranges.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import plait.study.estimate as estimates
from plait import scenario as scenarios
from plait.cache import cache_root
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.report import build
from plait.study.perform import Options, perform
from plait.study.progress import silent
from plait.study.request import plan_study

STUDIES = (
    ("two-paths", 4, ()),
    ("file-transfer", 3, ()),
    ("n-paths", 1, ()),
    ("path-delays", 2, ()),
    ("dumbbell", 2, ()),
    ("link-failure", 3, ()),
    ("handover", 3, ()),
    ("lossy-paths", 1, ()),
    ("shared-bottleneck", 2, ()),
    ("simult-flows", 4, ()),
    ("web-page", 2, ()),
    ("request-response", 1, ()),
    ("video-stream", 2, ()),
    ("source-limited", 1, ()),
    ("source-flapping", 1, ()),
    ("evening-line", 2, ()),
    ("mobile-trace", 2, ()),
    ("two-wans", 1, ()),
    ("wifi-cellular", 1, ()),
    ("sigmoid-delays", 1, ()),
    ("window-size", 1, ()),
    ("wireless-wired", 1, ()),
    ("wireless-wired-web", 1, ()),
    ("capped-split", 1, ()),
    ("cloud-burst", 1, ()),
    ("khalili-c", 1, ("vary={}",)),
    ("fat-tree", 1, ("vary={}",)),
    ("path-rates", 1, ("vary={}",)),
    ("two-paths", 20, ("traffic.0.bulk.duration=2s",)),
    ("two-paths", 2, ("traffic.0.bulk.duration=60s", "sample=10ms")),
)
"""Scenario, repeats and settings: one to dozens of paths, transfers, messages, events, traces, many flows."""


def run(name: str, repeat: int, fields: tuple[str, ...], kernel: str | None, out: Path) -> dict[str, object]:
    """Run one study, and return its estimate and its measured time."""
    scenario = scenarios.load(name, fields)
    study = plan_study(scenario, name, repeat=repeat)
    jobs = len(os.sched_getaffinity(0))
    expected = estimates.estimate(study, jobs, estimates.read_pace(cache_root(), "virtual"))
    options = Options(repeat=repeat, fresh=True, calibrate=False, confirmed=True)
    started = time.monotonic()
    folder, outcome = perform(
        scenario, name, partial(make_engine, request=EngineRequest(kernel)), options,
        folder=out, watch=silent, notify=lambda _: None,
    )  # fmt: skip
    ran_s = time.monotonic() - started
    build(folder)
    took_s = time.monotonic() - started
    trials_s = [trial.wall_s for trial in outcome.finished]
    return {
        "name": name,
        "fields": fields,
        "low_s": expected.low_s,
        "high_s": expected.high_s,
        "running_s": expected.running_s,
        "report_s": expected.report_s,
        "ran_s": ran_s,
        "took_s": took_s,
        "trials": study.total,
        "trials_s": sum(trials_s),
        "jobs": jobs,
        "load": os.getloadavg()[0],
        "work": [vars(work) for work in estimates.work_per_case(study)],
        "failed": len(outcome.failed),
    }


def main() -> int:
    """Print a line for each study, and the number of correct estimates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel")
    parser.add_argument("--only", type=int, default=len(STUDIES))
    parser.add_argument("--json", type=Path, help="append a line of JSON for each study to this file")
    arguments = parser.parse_args()
    correct = 0
    chosen = STUDIES[: arguments.only]
    for number, (name, repeat, fields) in enumerate(chosen):
        with tempfile.TemporaryDirectory() as folder:
            result = run(name, repeat, fields, arguments.kernel, Path(folder) / str(number))
        ok = float(str(result["low_s"])) <= float(str(result["took_s"])) <= float(str(result["high_s"]))
        correct += ok
        print(
            f"{name:<20} {result['trials']:>4} trials  {result['low_s']:7.1f} to {result['high_s']:7.1f} s  "
            f"took {result['took_s']:7.1f} s  {'correct' if ok else 'MISSED'}",
            flush=True,
        )
        if arguments.json:
            with arguments.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    print(f"{correct} of {len(chosen)} correct")
    return 0


if __name__ == "__main__":
    sys.exit(main())
