"""Compare measured and expected use of a fat tree's capacity by permutation traffic: `python bench/permutation.py`.

Raiciu et al., "Improving datacenter performance and robustness with multipath TCP" (SIGCOMM 2011): each host sends to
one other host. The network could carry all of this at full rate, but ECMP puts several connections on one link while
others are idle. Subflows of each connection fill the idle links. The script measures several permutations for k = 4 and
100 Mbit/s (`plait run fat-tree`).

The expected value is the mean over random permutations and random choices of ECMP if every subflow gets its max-min
fair share (Bertsekas and Gallager, Data Networks, 6.5.2); it has no fitted parameter. Both values are shares of the
payload that 16 access links of that rate can carry.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import plait

SUBFLOWS = (1, 2, 4, 8)
PERMUTATIONS = 4
DRAWN = 400
PAYLOAD_SHARE = 1424 / 1514
"""The payload share of a frame with headers of Ethernet (14 bytes), IPv4 (20), TCP with timestamps (32), DSS (24)."""

Host = tuple[int, int, int]
"""(pod, edge router, number)."""


def fair_shares(ways: list[list[object]]) -> list[float]:
    """Return the max-min fair rates over links of capacity 1: all rates grow until a link of theirs is full."""
    places = {link: place for place, link in enumerate({link for way in ways for link in way})}
    crosses = np.zeros((len(places), len(ways)))
    for number, way in enumerate(ways):
        crosses[[places[link] for link in way], number] = 1
    rates, room, growing = np.zeros(len(ways)), np.ones(len(places)), np.ones(len(ways), dtype=bool)
    while growing.any():
        users = crosses[:, growing].sum(axis=1)
        step = (room[users > 0] / users[users > 0]).min()
        rates[growing] += step
        room -= users * step
        growing &= crosses[room < 1e-9].sum(axis=0) == 0
    return [float(rate) for rate in rates]


def way(source: Host, target: Host, half: int, chance: random.Random) -> list[object]:
    """Return the links of a random shortest path."""
    links: list[object] = [("up", source), ("down", target)]
    if source[:2] != target[:2]:
        top = chance.randrange(half)
        links += [("rise", source[:2], top), ("fall", target[:2], top)]
        if source[0] != target[0]:
            core = chance.randrange(half)
            links += [("core", source[0], top, core), ("back", target[0], top, core)]
    return links


def expected(k: int, subflows: int, drawn: int = DRAWN) -> float:
    """Return the mean share of the optimum over random permutations and paths."""
    chance, half = random.Random(1), k // 2
    hosts = [(pod, edge, i) for pod in range(k) for edge in range(half) for i in range(half)]
    shares = []
    while len(shares) < drawn:
        targets = chance.sample(hosts, len(hosts))
        if any(a == b for a, b in zip(hosts, targets, strict=True)):
            continue
        pairs = list(zip(hosts, targets, strict=True))
        ways = [way(a, b, half, chance) for a, b in pairs for _ in range(subflows)]
        shares.append(sum(fair_shares(ways)) / len(hosts))
    return statistics.mean(shares)


def measured(subflows: tuple[int, ...], permutations: int, out: Path) -> dict[int, list[float]]:
    """Return the share of each permutation by the number of subflows: goodput after the first half second."""
    varied = {
        "mptcp.subflows_per_path": list(subflows),
        "traffic.0.permutation.seed": list(range(1, permutations + 1)),
    }
    scenario = plait.load("fat-tree", vary=varied, measure={"from": "500ms"})
    study = plait.run(scenario, out=out)
    shares: dict[int, list[float]] = {}
    for number, case in enumerate(study.summary.cases):
        goodput = case.metrics["steady_goodput_bps"].mean
        shares.setdefault(subflows[number // permutations], []).append(goodput / (16 * 100e6 * PAYLOAD_SHARE))
    return shares


def main() -> int:
    """Print the table."""
    permutations = int(sys.argv[1]) if len(sys.argv) > 1 else PERMUTATIONS
    table = Table("subflows", "expected, k = 4", "measured, k = 4", "least and most", "expected, k = 8")
    with tempfile.TemporaryDirectory() as folder:
        shares_by_subflows = measured(SUBFLOWS, permutations, Path(folder) / "study")
    for subflows, shares in shares_by_subflows.items():
        ends = f"{min(shares):.0%} .. {max(shares):.0%}"
        large = expected(8, subflows, drawn=20)
        table.add_row(
            str(subflows),
            f"{expected(4, subflows):.0%}",
            f"{statistics.mean(shares):.0%}",
            ends,
            f"{large:.0%}",
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
