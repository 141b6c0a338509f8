"""Measure where the time of a study goes: `bench/study.py [TRIALS]` runs TRIALS trials of MPTCP over two paths.

The script also measures processor time, because the machine may have other work. The targets are those of 1000 trials
on two processors: 3 minutes, a report below 5 MB that a browser shows within 2 s, and the same report from the store
without any new trial.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.report import build
from plait.results.read import read_study
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from plait.study.perform import Options, perform
from plait.study.progress import silent
from plait.testing.browser import MISSING, browser, view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.model.plan import Plan

TRIALS = 1000
SINGLE = 5
"""The number of separate trials for the cost of a guest and of a conversion."""


@contextlib.contextmanager
def timed(times: dict[str, tuple[float, float, float]], name: str) -> Iterator[None]:
    """Put the wall time and the processor time of this process and of its children (s) of the block into `times`."""
    before = _spent()
    yield
    after = _spent()
    times[name] = (after[0] - before[0], after[1] - before[1], after[2] - before[2])


def _spent() -> tuple[float, float, float]:
    plait, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.perf_counter(), plait.ru_utime + plait.ru_stime, children.ru_utime + children.ru_stime)


def single(
    engine: VirtualEngine, plan: Plan, folder: Path, times: dict[str, tuple[float, float, float]]
) -> None:
    """Measure the parts of one trial, each several times."""
    idle = plan.model_copy(update={"flows": (), "end_us": 0})
    for name, workload in (
        ("a guest that boots, builds the network and stops", idle),
        ("a guest with its traffic", plan),
    ):
        with timed(times, name):
            for number in range(SINGLE):
                job = folder / f"{name[-5:]}{number}"
                job.mkdir()
                engine.execute(Job(workload, {}, job))
    with timed(times, "its tables from Arrow to Parquet"):
        for number in range(SINGLE):
            convert(folder / f"affic{number}" / "data", folder / f"tables{number}")


def main() -> None:
    """Measure and print the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    scenario = load("two-paths", ("vary={}", "transport=mptcp", f"repeat={trials}"))
    engine = VirtualEngine(kernels.ensure(), AGENT)
    trial_times: dict[str, tuple[float, float, float]] = {}
    study_times: dict[str, tuple[float, float, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        single(engine, resolve(expand(scenario)[0].scenario, trial_seed(1, 0)), folder, trial_times)
        out = folder / "study"

        def run(*, fresh: bool) -> None:
            options = Options(fresh=fresh, calibrate=False)
            perform(scenario, "study", lambda _: engine, options, folder=out, watch=silent, notify=print)

        with timed(study_times, "all trials"):
            run(fresh=True)
        with timed(study_times, "reading them back as rows of metrics"):
            read_study(out)
        with timed(study_times, "the report (reading included)"):
            build(out)
        page = (out / "report.html").read_bytes()
        with timed(study_times, "the same again, from the store"):
            run(fresh=False)
            build(out)
        assert (out / "report.html").read_bytes() == page, "the report of a finished study has other bytes"
        usable = usable_after(out / "report.html")
    print_table(trial_times, study_times, trials, len(page), hashlib.sha256(page).hexdigest()[:12])
    Console().print(usable)


def usable_after(page: Path) -> str:
    """Return a sentence with the time until a browser has drawn the visible part of the page."""
    if MISSING:
        return f"The time until the page is usable is not measured: there is no {' and no '.join(MISSING)}."
    with browser() as driver:
        times = sorted(view(driver, page, width=1280).usable_ms for _ in range(SINGLE))
    return f"In a browser the page is usable after {times[0]:.0f} to {times[-1]:.0f} ms."


def print_table(
    trial_times: dict[str, tuple[float, float, float]],
    study_times: dict[str, tuple[float, float, float]],
    trials: int,
    size: int,
    digest: str,
) -> None:
    """Print the table of times."""
    table = Table("of one trial, ms", "wall", "processor: plait", "processor: guest")
    for name, times in trial_times.items():
        table.add_row(name, *(f"{seconds / SINGLE * 1e3:.0f}" for seconds in times))
    for name, times in study_times.items():
        table.add_row(f"{name}, / {trials}", *(f"{seconds / trials * 1e3:.1f}" for seconds in times))
    console = Console()
    console.print(table)
    cores = len(os.sched_getaffinity(0))
    wall_s, own_s, children_s = study_times["all trials"]
    report_wall_s, report_own_s, _ = study_times["the report (reading included)"]
    alone = (own_s + children_s) / cores + report_own_s
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"{trials} trials and their report: {wall_s + report_wall_s:.0f} s of wall time; "
        f"{alone:.0f} s if {cores} processors had nothing else to do.\n"
        f"Memory at most {peak:.0f} MB. The page has {size / 1e6:.2f} MB, and the same bytes again ({digest})."
    )


if __name__ == "__main__":
    main()
