"""Why OLIA keeps more than one segment on a congested path: `python bench/coupling.py [SEEDS]`.

Khalili's scenario C with 30 MPTCP users, 10 TCP users and 1 Mbit/s for each, in the reference model of
`tests/coupling`: the equations alone, each part of Linux added by itself and all together, and other readings of the
documents. The last rows are the laboratory kernel in the same network.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "coupling"))
from coupling_kernel import user_groups
from coupling_networks import Groups, Run, scenario_c
from coupling_rules import (
    BALIA,
    LIA,
    OLIA,
    OLIA_BY_DRAFT,
    OLIA_WITHOUT_ALPHA,
    Rule,
)
from coupling_sender import EQUATIONS, LINUX, LINUX_2011, Behaviour

import plait

USERS = (30, 10)
START, END = 15.0, 45.0
KERNEL = f"""
title: Khalili's scenario C
network: {{generator: khalili-c, n1: {USERS[0]}, n2: {USERS[1]}, c1: 1mbit, c2: 1mbit}}
mptcp: {{scheduler: minrtt}}
traffic:
  - pairs: {{from: server, to: multi*, each: {{bulk: {{duration: 46s, reverse: true, start_jitter: 5s}}}}}}
  - pairs:
      from: server
      to: single*
      each: {{bulk: {{duration: 46s, reverse: true, start_jitter: 5s, transport: tcp, congestion_control: reno}}}}
vary: {{congestion_control: [lia, olia, balia]}}
sample: 100ms
"""
PARTS = {
    "whole segments": replace(EQUATIONS, whole_segments=True),
    "loss detection, probes, timeouts": replace(EQUATIONS, detects_losses=True),
    "the same with PRR": replace(EQUATIONS, detects_losses=True, prr=True),
    "delayed ACKs": replace(EQUATIONS, delayed_acks=True),
}
VARIANTS: list[tuple[str, Rule, Behaviour, float]] = [
    ("OLIA, equations alone", OLIA, EQUATIONS, 0.04),
    *((f"+ {name}", OLIA, behaviour, 0.04) for name, behaviour in PARTS.items()),
    ("OLIA, all of Linux", OLIA, LINUX, 0.04),
    ("- alpha", OLIA_WITHOUT_ALPHA, LINUX, 0.04),
    ("rank l^2/rtt (draft)", OLIA_BY_DRAFT, LINUX, 0.04),
    ("ssthresh of at least 2", OLIA, replace(LINUX, least_ssthresh=2), 0.04),
    ("fractions lost with a loss", OLIA, replace(LINUX, forgets_fractions=True), 0.04),
    ("Linux of 2011", OLIA, LINUX_2011, 0.04),
    ("150 ms without queues", OLIA, LINUX, 0.075),
    ("LIA, equations alone", LIA, EQUATIONS, 0.04),
    ("LIA, all of Linux", LIA, LINUX, 0.04),
    ("BALIA, equations alone", BALIA, EQUATIONS, 0.04),
    ("BALIA, all of Linux", BALIA, LINUX, 0.04),
]


def model(number: int, seed: int) -> Groups:
    """Run one variant with one seed."""
    _, rule, behaviour, delay = VARIANTS[number]
    return scenario_c(rule, Run(START, END, seed, behaviour, delay), *USERS)


def kernel(seeds: int, folder: Path) -> dict[str, list[Groups]]:
    """Run the kernel, and return the groups of each trial by congestion control."""
    file = folder / "coupling.yaml"
    file.write_text(f"{KERNEL}repeat: {seeds}\n", encoding="utf-8")
    plait.run(plait.load(file), out=folder / "study")
    groups: dict[str, list[Groups]] = {}
    for case in sorted((folder / "study" / "trials").iterdir()):
        for trial in sorted(case.iterdir()):
            tables = {
                name: pl.read_parquet(next(trial.rglob(f"{name}.parquet"))) for name in ("subflows", "flows")
            }
            groups.setdefault(case.name, []).append(user_groups(tables, START, END))
    return groups


def row(name: str, trials: list[Groups]) -> list[str]:
    """Return the cells of a variant: means over seeds, and the standard deviation of the TCP users' rate."""

    def mean(group: str, field: str) -> float:
        return statistics.fmean(float(getattr(trial[group], field)) for trial in trials)

    rates = [trial["tcp"].rate / 1e6 for trial in trials]
    spread = f" ± {statistics.stdev(rates):.3f}" if len(rates) > 1 else ""
    return [
        name,
        f"{statistics.fmean(rates):.3f}{spread}",
        f"{mean('shared', 'rate') / 1e6:.3f}",
        f"{mean('shared', 'cwnd'):.2f}",
        f"{mean('shared', 'ssthresh'):.2f}",
        f"{mean('shared', 'srtt') * 1e3:.0f} ms",
        f"{mean('private', 'cwnd'):.2f}",
    ]


def main() -> int:
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    table = Table("", "TCP user", "congested path", "cwnd", "ssthresh", "RTT", "cwnd of the other path")
    with ProcessPoolExecutor() as pool:
        runs = [
            [pool.submit(model, number, seed) for seed in range(1, seeds + 1)]
            for number in range(len(VARIANTS))
        ]
        for (name, *_), trials in zip(VARIANTS, runs, strict=True):
            table.add_row(*row(name, [trial.result() for trial in trials]))
    with tempfile.TemporaryDirectory() as folder:
        for name, trials in kernel(seeds, Path(folder)).items():
            table.add_row(*row(f"kernel, {name}", trials))
    Console(width=130).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
