"""Compare links as devices (`plait_link`) with links as chains of veth pairs and qdiscs, in pairs of trials.

    python bench/links.py [NAME..]

Each case runs with both kinds of links in turn, or with one (`--links`). The table has the medians of the processor
time of the guest, which other work on the machine disturbs less than wall time, and of the wall time; both per packet
and hop; and the memory of the largest guest so far.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from plait.kernel import Kernel
    from plait.plan.model.plan import LinksAs, Plan

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
ROUTERS = 20


def routers() -> str:
    """Return a scenario with one flow over a long chain of routers."""
    nodes = ["h1", *(f"r{number}" for number in range(ROUTERS)), "h2"]
    links = "".join(f"    {a}-{b}: {{rate: 100mbit, delay: 1ms}}\n" for a, b in pairwise(nodes))
    return (
        "title: A chain of routers\nnetwork:\n  hosts: [h1, h2]\n"
        f"  routers: [{', '.join(nodes[1:-1])}]\n  links:\n{links}"
        "traffic:\n  - bulk: {from: h1, to: h2, duration: 5s}\n"
    )


def cases() -> dict[str, list[tuple[str, tuple[str, ...], int]]]:
    """Return for each name the trials in it: a scenario, its overrides, and the case."""
    short = ("traffic.0.bulk.duration=2s",)
    large = ("network.k=8", "traffic.0.permutation.each.bulk.duration=1s")
    return {
        "chain of routers": [(routers(), (), 0)],
        "2 x 1 Gbit/s": [
            (GIGABIT.replace("BYTES", "1GB").replace("TRANSPORT", "tcp"), (), 0),
            (GIGABIT.replace("BYTES", "200MB").replace("TRANSPORT", "mptcp"), (), 0),
        ],
        "pair": [("two-paths", (), 0), ("two-paths", (), 1)],
        "fat tree": [("fat-tree", (), 3)],
        "fat tree of 128 hosts, 1 subflow": [("fat-tree", large, 0)],
        "fat tree of 128 hosts, 8 subflows": [("fat-tree", large, 3)],
        "two seconds": [("two-paths", short, 1)],
    }


@dataclass
class Spent:
    """What trials took."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    hops: int = 0
    """Packets that links carried, each counted on each of its links."""
    delivered: int = 0


def trial(kernel: Kernel, plan: Plan, links: LinksAs, folder: Path) -> Spent:
    """Run one trial."""
    engine = VirtualEngine(kernel, AGENT, links=links)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    engine.execute(Job(plan, {}, folder))
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    tables = convert(folder / "data", folder / "tables")
    last = tables["links"].group_by("link").last()
    flows = tables["flows"]
    return Spent(
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        wall,
        int(last["sent_packets"].sum()),
        int(flows["delivered_bytes"].sum()) if "delivered_bytes" in flows.columns else 0,
    )


def measure(kernel: Kernel, name: str, links: LinksAs) -> Spent:
    """Run all trials of a case once."""
    total = Spent()
    for scenario, overrides, number in cases()[name]:
        model = parse(scenario, "bench.yaml", overrides) if "\n" in scenario else load(scenario, overrides)
        plan = resolve(expand(model)[number].scenario, trial_seed(model.seed, 0))
        with tempfile.TemporaryDirectory() as folder:
            spent = trial(kernel, plan, links, Path(folder))
        total.cpu_s += spent.cpu_s
        total.wall_s += spent.wall_s
        total.hops += spent.hops
        total.delivered += spent.delivered
    return total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="*", help=f"one of: {', '.join(cases())}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--links", choices=["chain", "device"], help="one kind of links")
    parser.add_argument("--kernel", help="name of a built kernel; the default kernel otherwise")
    asked = parser.parse_args()
    kernel = kernels.find(asked.kernel) if asked.kernel else kernels.ensure()
    rows = []
    for name in asked.name or cases():
        kinds: tuple[LinksAs, ...] = (asked.links,) if asked.links else ("chain", "device")
        runs: dict[LinksAs, list[Spent]] = {links: [] for links in kinds}
        for _ in range(asked.repeats):
            for links, spent in runs.items():
                spent.append(measure(kernel, name, links))
        for links, spent in runs.items():
            cpu = statistics.median(one.cpu_s for one in spent)
            hops = spent[0].hops
            rows.append(
                {
                    "case": name, "links": links, "processor s": round(cpu, 3),
                    "wall s": round(statistics.median(one.wall_s for one in spent), 3),
                    "packets x hops": hops, "us per packet and hop": round(cpu * 1e6 / max(hops, 1), 2),
                    "MiB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
                }
            )  # fmt: skip
            print(rows[-1], file=sys.stderr)
    print(pl.DataFrame(rows))


if __name__ == "__main__":
    main()
