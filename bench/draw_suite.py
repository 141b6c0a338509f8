"""Draws the networks of the suite plait-mptcp-1, and prints its scenario: scenarios/benchmark/plait-mptcp-1.yaml.

The suite is frozen: this script shows how it was made, and draws the next one.

Ranges of capacity, RTT, queueing delay and loss are those of Paasch et al. (CoNEXT 2013) and De Coninck & Bonaventure
(CoNEXT 2017), for low and high bandwidth-delay products, without and with loss. In each of the four groups twelve
networks fill the space of the two paths' factors: a Latin hypercube whose centred discrepancy scipy lowers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scipy.stats import qmc

SEED = 20261126
NETWORKS = 12
GROUPS = {"low-bdp": (50, 100, 0.0), "low-bdp-lossy": (50, 100, 2.5), "high-bdp": (400, 2000, 0.0),
          "high-bdp-lossy": (400, 2000, 2.5)}  # fmt: skip
"""Largest RTT in ms, queueing delay in ms and loss in percent."""
RATES = (0.1, 100.0)
"""In Mbit/s."""
LEAST_QUEUE = 3 * 1514
"""In bytes: three full frames."""
LINKS = ("one-core", "two-core")


def drawn() -> dict[str, dict[str, dict[str, str]]]:
    """Return the conditions of both links by network."""
    networks = {}
    for number, (group, (rtt, queueing, loss)) in enumerate(GROUPS.items()):
        factors = 4 if loss else 3
        sampler = qmc.LatinHypercube(2 * factors, rng=SEED + number, optimization="random-cd")
        for index, point in enumerate(sampler.random(NETWORKS)):
            halves = (point[:factors], point[factors:])
            networks[f"{group}-{index + 1:02d}"] = {
                link: _conditions(list(half), rtt, queueing, loss)
                for link, half in zip(LINKS, halves, strict=True)
            }
    return networks


def _conditions(point: list[float], rtt: float, queueing: float, loss: float) -> dict[str, str]:
    rate = RATES[0] + point[0] * (RATES[1] - RATES[0])
    queue = max(LEAST_QUEUE, rate * 1e6 / 8 * point[2] * queueing / 1000)
    lost = {"loss": f"{point[3] * loss:.2f}%"} if loss else {}
    delay_us = point[1] * rtt / 2 * 1000
    return {"rate": f"{rate * 1000:.0f}kbit", "delay": f"{delay_us:.0f}us", "queue": f"{queue:.0f}B", **lost}


def main() -> None:
    """Print the scenario, whose other parts are in the file beside it."""
    text = (Path(__file__).parent.parent / "scenarios/benchmark/plait-mptcp-1.yaml").read_text(
        encoding="utf-8"
    )
    start, end = "    # drawn\n", "    # named\n"
    before, _, rest = text.partition(start)
    after = rest.partition(end)[2]
    lines = []
    for name, links in drawn().items():
        lines.append(f"    {name}:\n")
        for link, conditions in links.items():
            fields = ", ".join(f"{field}: {value}" for field, value in conditions.items())
            lines.append(f"      network.links.{link}: {{{fields}}}\n")
    sys.stdout.write(before + start + "".join(lines) + end + after)


if __name__ == "__main__":
    main()
