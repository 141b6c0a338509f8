"""Measure the performance figures that plait promises, and print them as a table: `make bench`.

The script measures each figure several times, as a user would see it, and prints the median beside its target. It
reports a missed target, but does not fail.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.cli.laboratory.exec import plan_of
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.interactive import ProgramStart
from plait.engine.virtual.session import Session, SessionRequest
from plait.engine.virtual.trial import VirtualEngine
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

REPEATS = 5
PLAIT = Path(sys.executable).parent / "plait"
GIGABIT = """
title: Two paths of 1 Gbit/s
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 1gbit, delay: 5ms}
    h1-h2#2: {rate: 1gbit, delay: 5ms}
traffic:
  - transfer: {from: h1, to: h2, bytes: BYTES, transport: TRANSPORT}
"""


def plans(scenario: str) -> list[Plan]:
    """Return the plan of each case of a shipped scenario, or of a scenario's text."""
    model = parse(scenario, "bench.yaml") if "\n" in scenario else load(scenario)
    return [resolve(case.scenario, trial_seed(model.seed, 0)) for case in expand(model)]


class GuestTimer:
    """Runs plans on the virtual engine and measures their time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._engine = VirtualEngine(kernels.ensure(), AGENT)

    def boot(self, plan: Plan) -> Path:
        """Run a guest to its end, and return its folder."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        self._engine.execute(Job(plan, {}, folder))
        return folder

    def trial(self, plan: Plan) -> float:
        """Return the wall time of one trial in s, from the start of the guest to Parquet on disk."""
        started = time.perf_counter()
        folder = self.boot(plan)
        convert(folder / "data", folder / "tables")
        return time.perf_counter() - started

    def median(self, *several: Plan) -> float:
        """Return the median over repeats of the total wall time of some plans, in s."""
        return statistics.median(sum(self.trial(plan) for plan in several) for _ in range(REPEATS))


def study_times(folder: Path) -> tuple[float, float]:
    """Return the wall times in s of `plait run two-paths`, first without the store, then from the store.

    A new seed gives new data and so new figures, because the cache also keeps rendered figures.
    """
    times = []
    seed = str(time.time_ns() % 10**9)
    for _ in range(2):
        command = [str(PLAIT), "run", "two-paths", "--out", str(folder / "study"), "--seed", seed]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return times[0], times[1]


def children_s() -> float:
    """Return the processor time in s of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def starting_programs(timer: GuestTimer, folder: Path) -> float:
    """Return the extra processor time in s of a guest with the host's files over a bare one (medians)."""
    plan = plan_of(1, 1024)
    first = SessionRequest(start=ProgramStart(1, ["/bin/true"], [("PATH", "/usr/bin:/bin")]))

    def full(number: int) -> float:
        place = folder / f"session-{number}"
        place.mkdir()
        begin = children_s()
        with Session(kernels.ensure(), AGENT, place, plan, first) as session:
            session.guest.process.wait()
        return children_s() - begin

    def bare() -> float:
        begin = children_s()
        timer.boot(plan)
        return children_s() - begin

    return statistics.median(map(full, range(REPEATS))) - statistics.median(bare() for _ in range(REPEATS))


def gigabit(timer: GuestTimer) -> float:
    """Return simulated Gbit per wall second of 1 GB with TCP and then 200 MB with MPTCP over 2 x 1 Gbit/s."""
    work = [("tcp", 10**9), ("mptcp", 2 * 10**8)]
    wall = 0.0
    for transport, size in work:
        text = GIGABIT.replace("BYTES", f"{size // 10**6}MB").replace("TRANSPORT", transport)
        wall += timer.median(*plans(text))
    return sum(size for _, size in work) * 8 / 1e9 / wall


def main() -> None:
    """Measure everything and print the table."""
    table = Table("figure", "measured", "target", "")

    def row(
        name: str, value: float, unit: str, target: float, better: Callable[[float, float], bool]
    ) -> None:
        verdict = "met" if better(value, target) else f"missed by {abs(value / target - 1):.0%}"
        table.add_row(name, f"{value:.2f} {unit}", f"{target:g} {unit}", verdict)

    def below(value: float, target: float) -> bool:
        return value <= target

    with tempfile.TemporaryDirectory() as folder:
        timer = GuestTimer(Path(folder))
        tcp, mptcp = plans("two-paths")
        pair = timer.median(tcp, mptcp)
        row("pair TCP 10 s + MPTCP 10 s, to data on disk", pair, "s", 0.55, below)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        idle = tcp.model_copy(update={"flows": (), "end_us": 0})
        row("start, build, stop of two hosts without traffic", timer.median(idle), "s", 0.2, below)
        first, second = study_times(Path(folder))
        row("plait run two-paths, 20 trials and report", first, "s", 6, below)
        row("the same from the store", second, "s", 2, below)
        row("2 x 1 Gbit/s: simulated Gbit per wall second", gigabit(timer), "Gbit/s", 5, lambda a, b: a >= b)
        row("peak memory of a two-host trial", peak, "MB", 100, below)
        row(
            "a guest with the host's files: processor time beyond a bare one",
            starting_programs(timer, Path(folder)),
            "s",
            0.3,
            below,
        )
    Console().print(table)


if __name__ == "__main__":
    main()
