"""Measure the cost of monitors: wall and processor time of a small trial with each monitor and without.

The trial lasts 30 virtual seconds at 10 Mbit/s over two paths. It is small on purpose: a reading costs the same in a
large trial, but matters less there. The script prints the minimum of several repeats, which other work disturbs least.
The only argument, `AGENT`, selects another agent.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

REPEATS = 5
SCENARIO = """
title: Two paths of 5 Mbit/s for half a minute
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 5mbit, delay: 10ms}
    h1-h2#2: {rate: 5mbit, delay: 10ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 30s}
"""
MONITORS = (
    "",
    "interfaces: 100ms",
    "counters: 100ms",
    "ping: 100ms",
    "interfaces: 100ms, counters: 100ms, ping: 100ms",
    "capture: [h1, h2]",
)


def measure(engine: VirtualEngine, monitors: str, folder: Path) -> tuple[float, float]:
    """Return the wall and the processor time of one trial in s, without the conversion of its tables."""
    scenario = parse(SCENARIO + (f"monitors: {{{monitors}}}\n" if monitors else ""), "bench.yaml")
    plan = resolve(expand(scenario)[0].scenario, trial_seed(scenario.seed, 0))
    folder.mkdir()
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    engine.execute(Job(plan, {}, folder))
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(agent: Path) -> None:
    """Print a row for each set of monitors."""
    engine = VirtualEngine(kernels.ensure(), agent)
    times_by_monitors: dict[str, list[tuple[float, float]]] = {monitors: [] for monitors in MONITORS}
    with tempfile.TemporaryDirectory() as temporary:
        for repeat in range(REPEATS):
            for i, monitors in enumerate(MONITORS):
                times_by_monitors[monitors].append(
                    measure(engine, monitors, Path(temporary) / f"{repeat}-{i}")
                )
    base = [min(times) for times in zip(*times_by_monitors[""], strict=True)]
    print(f"{'monitors':<50} {'wall':>8} {'more':>7} {'processor':>10} {'more':>7}")
    for monitors, times in times_by_monitors.items():
        wall, processor = (min(column) for column in zip(*times, strict=True))
        more = f"{wall / base[0] - 1:7.0%} {processor:9.2f}s {processor / base[1] - 1:7.0%}"
        print(f"{monitors or 'none':<50} {wall:7.2f}s {more}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else AGENT)
