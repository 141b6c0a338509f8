"""The subflows that the kernel's path manager derives from the endpoints and limits of one time.

The in-kernel path manager of the connecting side opens, beside the initial subflow from c0 to s0:
- from each of its `subflow` endpoints to s0 (to every known address with `fullmesh`);
- to each address that the other side announces (`signal`): from its `fullmesh` endpoints, otherwise from the
  address that the main table chooses.

The initial subflow is a pair of interfaces. A pair without a route fails at once and does not count towards a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.network.model import Pair, Port
from plait.plan.routes.tables import Routing

MAX_ENDPOINTS = 8
MAX_SUBFLOWS = 8
"""In addition to the initial subflow."""


@dataclass(frozen=True)
class HostEndpoint:
    """An endpoint of a host, and the interface that has its address."""

    port: Port
    flags: tuple[str, ...]
    id: int | None = None
    """None: not numbered yet."""
    listen: int | None = None


@dataclass(frozen=True)
class PathManagerState:
    """The endpoints and limits of all hosts at one time."""

    routing: Routing
    endpoints: dict[str, list[HostEndpoint]]
    limits: dict[str, tuple[int, int]]
    """(subflows, add_addr_accepted)."""

    def pairs(self, initial: Pair) -> list[Pair]:
        """Return the pairs of interfaces that a flow's subflows use, the initial one first."""
        client, server = (port.node for port in initial)
        subflows, accepted = self.limits[client]
        subflows = min(subflows, self.limits[server][0])
        return self.wanted(initial, accepted)[: 1 + subflows]

    def wanted(self, initial: Pair, accepted: int) -> list[Pair]:
        """Return the pairs without a limit on subflows, and with this many accepted announcements."""
        pairs = [initial, *filter(self.usable, self.attempts(initial, accepted))]
        return list(dict.fromkeys(pairs))

    def attempts(self, initial: Pair, accepted: int) -> list[Pair]:
        """Return the pairs of one family that the client tries beside the initial one, usable or not."""
        mesh = [endpoint.port for endpoint in self.endpoints[initial[0].node] if "fullmesh" in endpoint.flags]
        plain = [
            endpoint.port
            for endpoint in self.endpoints[initial[0].node]
            if "subflow" in endpoint.flags and endpoint.port not in mesh
        ]
        tried = [(port, initial[1]) for port in (*plain, *mesh)]
        for target in self.announced(initial)[:accepted]:
            chosen = self.routing.reach.main_source(initial[0].node, target)
            meshed = [(port, target) for port in mesh if port.ip.version == target.ip.version]
            tried += meshed or ([(chosen, target)] if chosen is not None else [])
        return [pair for pair in tried if pair[0].ip.version == pair[1].ip.version]

    def announced(self, initial: Pair) -> list[Port]:
        """Return the addresses that the server announces, except that of the initial subflow."""
        s0 = initial[1]
        # an IPv4 socket accepts subflows of IPv4 only, an IPv6 socket those of both families
        families = (4,) if s0.ip.version == 4 else (4, 6)
        return [
            endpoint.port
            for endpoint in self.endpoints[initial[1].node]
            if "signal" in endpoint.flags and endpoint.port is not s0 and endpoint.port.ip.version in families
        ]

    def unanswered_subflows(self, initial: Pair) -> int:
        """Return the maximum number of subflows that the server opens and that no host answers.

        They use up its limit until they fail. A host that only accepts connections opens none, unless the
        scenario gives it endpoints for that.
        """
        c0 = initial[0]
        connecting = [
            endpoint.port
            for endpoint in self.endpoints[initial[1].node]
            if {"subflow", "fullmesh"} & set(endpoint.flags)
        ]
        announced = [
            endpoint
            for endpoint in self.endpoints[initial[0].node]
            if "signal" in endpoint.flags and endpoint.port is not c0
        ]
        return sum(self.usable((port, c0)) for port in connecting) + len(announced)

    def is_backup(self, initial: Pair, pair: Pair) -> bool:
        """Return whether either end declares the subflow between them a backup."""
        return any(
            endpoint.port is port and "backup" in endpoint.flags
            for first, port in zip(initial, pair, strict=True)
            for endpoint in self.endpoints[first.node]
        )

    def usable(self, pair: Pair) -> bool:
        """Return whether packets arrive in both directions."""
        return self.routing.reach.round_trip(*pair) is not None
