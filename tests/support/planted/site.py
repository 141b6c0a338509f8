"""The network of a planted scenario, which follows from its number, and helpers to write a scenario."""

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
    """The cause that `plait explain` should name first; None for a control."""
    reason: str | None
    scenario: dict[str, Any]
    held_out: bool
    """It was not run while the rules were written."""

    @property
    def text(self) -> str:
        """The text of the scenario file (JSON is YAML)."""
        return json.dumps(self.scenario, indent=1)


@dataclass(frozen=True)
class Site:
    """The network of one scenario; topology, rate and delay follow from its number."""

    number: int

    @property
    def rate(self) -> int:
        """The rate of the first path in Mbit/s."""
        return RATES_MBIT[self.number % len(RATES_MBIT)]

    @property
    def delay(self) -> int:
        """The one-way delay of the first path in ms."""
        return DELAYS_MS[(2 * self.number + 1) % len(DELAYS_MS)]

    @property
    def topology(self) -> str:
        """One of TOPOLOGIES."""
        return TOPOLOGIES[self.number % len(TOPOLOGIES)]

    def link(self, path: int) -> str:
        """Return the link that has the conditions of a path."""
        if self.topology == "parallel":
            return "a-b" if path == 0 else f"a-b#{path + 1}"
        return f"m{path + 1}-b"

    def first_link(self, path: int) -> str:
        """Return the link of a path at the sending host."""
        return self.link(path) if self.topology == "parallel" else f"a-m{path + 1}"

    def network(self, *paths: dict[str, Any]) -> dict[str, Any]:
        """Return a network with a path between a and b for each of the conditions."""
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
        """Return the conditions of a path with this share of the rate and this multiple of the delay."""
        return {"rate": f"{self.rate * share * 1000:.0f}kbit", "delay": f"{self.delay * slower:g}ms", **more}

    def bdp_bytes(self, share: float, slower: float) -> int:
        """Return how many bytes fill paths with this total share of the rate and this multiple of the delay."""
        return int(self.rate * share * 1e6 * 2 * (self.delay * slower + 1) / 8e3)


def scenario_of(
    network: dict[str, Any], traffic: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a scenario with this network and traffic; by default one bulk flow."""
    return {
        "title": "A planted cause",
        "network": network,
        "traffic": traffic or [bulk()],
        "sample": "50ms",
        **more,
    }


def bulk(**more: Any) -> dict[str, Any]:
    """Return a flow from a to b that sends as fast as it can."""
    return {"bulk": {"from": "a", "to": "b", "duration": f"{LASTS_S}s", **more}}


def transfer(size: int, **more: Any) -> dict[str, Any]:
    """Return a transfer of `size` bytes from a to b."""
    return {"transfer": {"from": "a", "to": "b", "bytes": f"{size}B", **more}}
