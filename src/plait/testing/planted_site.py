"""The network of a planted scenario, which its number alone decides, and short ways to write one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

RATES_MBIT = (10, 20, 40, 8, 16, 30)
DELAYS_MS = (5, 10, 20, 15, 8)
TOPOLOGIES = ("parallel", "switches", "routers")
LASTS_S = 6
"""Seconds of each flow that has a duration."""


@dataclass(frozen=True)
class Planted:
    """One scenario of the set."""

    number: int
    kind: str
    cause: str | None
    """What `plait explain` should name first; None: nothing."""
    reason: str | None
    scenario: dict[str, Any]
    held_out: bool
    """It was not looked at while rules were written."""

    @property
    def text(self) -> str:
        """The scenario as a file (JSON is YAML)."""
        return json.dumps(self.scenario, indent=1)


@dataclass(frozen=True)
class Site:
    """The network of one scenario: its number decides topology, rate and delay."""

    number: int

    @property
    def rate(self) -> int:
        """Of the first path, in Mbit/s."""
        return RATES_MBIT[self.number % len(RATES_MBIT)]

    @property
    def delay(self) -> int:
        """One way over the first path, in ms."""
        return DELAYS_MS[(2 * self.number + 1) % len(DELAYS_MS)]

    @property
    def topology(self) -> str:
        """One of TOPOLOGIES."""
        return TOPOLOGIES[self.number % len(TOPOLOGIES)]

    def link(self, path: int) -> str:
        """The link of a path that has its conditions."""
        if self.topology == "parallel":
            return "a-b" if path == 0 else f"a-b#{path + 1}"
        return f"m{path + 1}-b"

    def first_link(self, path: int) -> str:
        """The link of a path at the host that sends."""
        return self.link(path) if self.topology == "parallel" else f"a-m{path + 1}"

    def network(self, *paths: dict[str, Any]) -> dict[str, Any]:
        """So many paths between a and b, each with its conditions."""
        links: dict[str, Any] = {}
        for k, conditions in enumerate(paths):
            if self.topology != "parallel":
                links[f"a-m{k + 1}"] = {"delay": "1ms"}
            links[self.link(k)] = conditions
        middle = [f"m{k + 1}" for k in range(len(paths))]
        network: dict[str, Any] = {"hosts": {"a": {}, "b": {}}, "links": links}
        if self.topology != "parallel":
            network[self.topology] = middle
        return network

    def path(self, share: float = 1.0, slower: float = 1.0, **more: Any) -> dict[str, Any]:
        """A path with that share of the rate, and a delay that is so many times as long."""
        return {"rate": f"{self.rate * share * 1000:.0f}kbit", "delay": f"{self.delay * slower:g}ms", **more}

    def bdp_bytes(self, share: float, slower: float) -> int:
        """What fills paths with that share of the rate in all, and so long a delay."""
        return int(self.rate * share * 1e6 * 2 * (self.delay * slower + 1) / 8e3)


def scenario_of(
    network: dict[str, Any], traffic: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """A scenario with this network and traffic; one bulk flow when none is given."""
    return {
        "title": "A planted cause",
        "network": network,
        "traffic": traffic or [bulk()],
        "sample": "50ms",
        **more,
    }


def bulk(**more: Any) -> dict[str, Any]:
    """A flow from a to b that sends as fast as it can."""
    return {"bulk": {"from": "a", "to": "b", "duration": f"{LASTS_S}s", **more}}


def transfer(size: int, **more: Any) -> dict[str, Any]:
    """So many bytes from a to b."""
    return {"transfer": {"from": "a", "to": "b", "bytes": f"{size}B", **more}}
