"""Measure the time to plan and to build a fat tree, with plait and with Mininet: `python bench/scale.py`.

A fat tree of k has k*k*k/4 hosts, 5*k*k/4 ECMP routers and 3*k*k*k/4 links of 100 Mbit/s. Planning goes from the text
of the scenario to the plan. Building goes from the plan to the complete network with addresses, routes and path
managers, and includes the guest's boot. Both are medians. The table also has the guest's processor time, because other
work on the machine affects the wall time. Mininet builds only nodes and links, once, within a time limit. It needs root
and the distribution's Mininet; otherwise its column gives the reason.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mininets
from rich.console import Console
from rich.table import Table

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

REPEATS = 3


def fat_tree(k: int) -> str:
    """Return the text of a fat tree's scenario."""
    half = k // 2
    hosts, routers, links = [], [], []
    for pod in range(k):
        for i in range(half):
            routers += [f"e{pod}_{i}", f"a{pod}_{i}"]
            hosts += [f"h{pod}_{i}_{j}" for j in range(half)]
            links += [f"h{pod}_{i}_{j}-e{pod}_{i}" for j in range(half)]
            links += [f"e{pod}_{i}-a{pod}_{j}" for j in range(half)]
            links += [f"a{pod}_{i}-c{i}_{j}" for j in range(half)]
    routers += [f"c{i}_{j}" for i in range(half) for j in range(half)]
    named = "".join(f"    {link}: {{rate: 100mbit}}\n" for link in links)
    return (
        f"title: Fat tree\nnetwork:\n  hosts: [{', '.join(hosts)}]\n  routers: [{', '.join(routers)}]\n"
        f"  routing: {{ecmp: true}}\n  links:\n{named}"
        f"traffic:\n  - transfer: {{from: {hosts[0]}, to: {hosts[-1]}, bytes: 1KB}}\n"
    )


def measure(engine: VirtualEngine, k: int) -> tuple[int, float, float, float]:
    """Return (links, seconds to plan, seconds to build, the guest's processor seconds to build), each a median."""
    text = fat_tree(k)
    planned, built, busy, links = [], [], [], 0
    for _ in range(REPEATS):
        started = time.monotonic()
        plan = resolve(expand(parse(text, "bench.yaml"))[0].scenario, 1)
        planned.append(time.monotonic() - started)
        links = len(plan.links)
        with tempfile.TemporaryDirectory() as folder:
            before = mininets.children_s()
            built.append(build_s(engine, Job(plan, {}, Path(folder))))
            busy.append(mininets.children_s() - before)
    return links, *map(statistics.median, (planned, built, busy))


def build_s(engine: VirtualEngine, job: Job) -> float:
    """Return the seconds from the guest's start until its file `progress` appears: the network is complete."""
    with ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        trial = pool.submit(engine.execute, job)
        while not (job.folder / "progress").exists() and not trial.done():
            time.sleep(0.002)
        seconds = time.monotonic() - started
        trial.result()
    return seconds


def mininet_s(k: int) -> str:
    """Return the seconds that Mininet takes, or the reason why it cannot run."""
    script = Path(__file__).with_name("mininet_fat_tree.py")
    done = mininets.real([mininets.SYSTEM_PYTHON, str(script), str(k)])
    return done if isinstance(done, str) else done.printed


def main() -> int:
    """Print the table."""
    engine = VirtualEngine(kernels.ensure(), AGENT)
    table = Table("k", "nodes", "links", "plan s", "build s", "of that busy", "ms a link", "Mininet s")
    for k in map(int, sys.argv[1:] or (4, 6, 8)):
        links, planned, built, busy = measure(engine, k)
        nodes = k**3 // 4 + 5 * k**2 // 4
        each = f"{built * 1000 / links:.1f}"
        seconds = [f"{value:.2f}" for value in (planned, built, busy)]
        table.add_row(str(k), str(nodes), str(links), *seconds, each, mininet_s(k))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
