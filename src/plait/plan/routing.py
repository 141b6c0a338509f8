"""Who forwards what to whom: routes, source-routed tables, and the way that packets take. Pure.

Hosts do not forward; routers do, by the least sum of link delays, then by the fewest hops. Every interface of a
host has a table of its own (1001, 1002, ..) that a rule chooses by the packet's source address, so that a
subflow leaves by the interface whose address it has. Such a table ends in a default route, or in an
`unreachable` one where no router stands on the segment: without it the lookup would fall through to the main
table, and the packet would leave by another interface.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING

from plait.plan.model import Route, Rule
from plait.plan.topology import delay_ns, way
from plait.scenario.source import error_at

if TYPE_CHECKING:
    from plait.plan.addressing import AnyNetwork
    from plait.plan.topology import Port, Segment, Topology

FIRST_TABLE = 1001
FIRST_PRIORITY = 1000
MAX_ROUTES = 65_536
_DEFAULT = {4: "default", 6: "::/0"}
_Cost = tuple[int, int]
"""(sum of delays in ns, hops)."""


class Routing:
    """The routes of all nodes of a topology whose ports have addresses."""

    def __init__(self, topology: Topology, subnets: dict[Segment, AnyNetwork]) -> None:
        self._topology = topology
        self._subnets = subnets
        network = topology.scenario.network
        self._routers = list(network.routers)
        ends = {port.segment for host in network.hosts for port in topology.ports[host]}
        self._ends = [segment for segment in topology.segments if segment in ends]
        self._gates: dict[Segment, list[Port]] = {}
        for router in self._routers:
            for port in topology.ports[router]:
                self._gates.setdefault(port.segment, []).append(port)
        self._costs: dict[Segment, dict[str, _Cost]] = {}

    def routes(self) -> tuple[list[Route], list[Rule]]:
        """Everything that is not a connected route of the main table, host by host, then router by router."""
        network = self._topology.scenario.network
        expected = len(self._routers) * len(self._ends)
        if expected > MAX_ROUTES:
            what = (
                f"{len(self._routers)} routers would need {expected} routes; a plan has at most {MAX_ROUTES}"
            )
            raise error_at(self._topology.scenario, [(("network", "routers"), what)])
        routes: list[Route] = []
        rules: list[Rule] = []
        for host in network.hosts:
            ports = self._topology.ports[host]
            for port in ports:
                routes += self._own_table(port)
                rules.append(
                    Rule(
                        netns=host,
                        source=_single(port),
                        table=FIRST_TABLE + port.index,
                        priority=FIRST_PRIORITY + port.index,
                    )
                )
            routes += self._main_table(host, compress=True)
        for router in self._routers:
            routes += self._main_table(router, compress=False)
        return routes, rules

    def walk(self, source: Port, target: Port) -> list[Port] | None:
        """The ports left by a packet from the address of `source` to that of `target`; None when it cannot arrive."""
        if source.segment is target.segment:
            return way(source, target)
        gate = self._gate([source], target.segment)
        if gate is None:
            return None
        ports = way(*gate)
        node = gate[1].node
        while (nearby := self._attached(node, target.segment)) is None:
            gate = self._gate(self._topology.ports[node], target.segment)
            if gate is None:  # pragma: no cover  # a router with a cost has a next hop
                return None
            ports += way(*gate)
            node = gate[1].node
        return ports + way(nearby, target)

    def main_source(self, host: str, target: Port) -> Port | None:
        """The interface whose address the kernel takes for a socket of `host` that is bound to none."""
        nearby = self._attached(host, target.segment)
        if nearby is not None:
            return nearby
        gate = self._gate(self._topology.ports[host], target.segment)
        return None if gate is None else gate[0]

    def _attached(self, node: str, segment: Segment) -> Port | None:
        return next((port for port in self._topology.ports[node] if port.segment is segment), None)

    def _cost(self, target: Segment) -> dict[str, _Cost]:
        """The cost from each router to a segment (Dijkstra from the segment outwards)."""
        known = self._costs.get(target)
        if known is not None:
            return known
        cost: dict[str, _Cost] = {}
        waiting: list[tuple[_Cost, str]] = [((0, 0), gate.node) for gate in self._gates.get(target, [])]
        heapq.heapify(waiting)
        while waiting:
            at, router = heapq.heappop(waiting)
            if router in cost:
                continue
            cost[router] = at
            for port in self._topology.ports[router]:
                for before in self._gates[port.segment]:
                    if before.node not in cost:
                        further = (at[0] + delay_ns(way(before, port)), at[1] + 1)
                        heapq.heappush(waiting, (further, before.node))
        self._costs[target] = cost
        return cost

    def _gate(self, ports: list[Port], target: Segment) -> tuple[Port, Port] | None:
        """The best way out of a node towards a segment: (own port, the next router's port)."""
        cost = self._cost(target)
        options = [
            ((cost[gate.node][0] + delay_ns(way(port, gate)), cost[gate.node][1]), number, port, gate)
            for number, port in enumerate(ports)
            for gate in self._gates.get(port.segment, [])
            if gate.node in cost and gate.node != port.node
        ]
        if not options:
            return None
        _, _, port, gate = min(options, key=lambda option: option[:2])
        return port, gate

    def _own_table(self, port: Port) -> list[Route]:
        """The table of one interface: its subnet, what routers lead to, and an end."""
        table = FIRST_TABLE + port.index
        subnet = str(self._subnets[port.segment])
        routes = [_route(port, subnet, table=table, source=_ip(port))]
        version = self._subnets[port.segment].version
        others = [s for s in self._ends if s is not port.segment and self._subnets[s].version == version]
        found = [(segment, self._gate([port], segment)) for segment in others]
        remote = [(segment, gate) for segment, gate in found if gate is not None]
        if not remote:
            end = Route(netns=port.node, destination=_DEFAULT[version], kind="unreachable", table=table)
            return [*routes, end]
        return routes + self._compressed(remote, table, source=True)

    def _main_table(self, node: str, *, compress: bool) -> list[Route]:
        """What the kernel does not add by itself."""
        ports = self._topology.ports[node]
        own = {port.segment for port in ports}
        found = [(s, self._gate(ports, s)) for s in self._ends if s not in own]
        remote = [(segment, gate) for segment, gate in found if gate is not None]
        if compress:
            return self._compressed(remote, 254, source=False)
        return [_route(port, str(self._subnets[s]), via=_ip(gate)) for s, (port, gate) in remote]

    def _compressed(
        self, remote: list[tuple[Segment, tuple[Port, Port]]], table: int, *, source: bool
    ) -> list[Route]:
        """A default route through the gateway used most, and the exceptions before it; one for each family."""
        routes: list[Route] = []
        for version in (4, 6):
            family = [(s, gate) for s, gate in remote if self._subnets[s].version == version]
            if not family:
                continue
            usual = Counter(gate for _, gate in family).most_common(1)[0][0]
            for segment, (port, gate) in [*(x for x in family if x[1] != usual), (None, usual)]:
                to = _DEFAULT[version] if segment is None else str(self._subnets[segment])
                routes.append(
                    _route(port, to, via=_ip(gate), table=table, source=_ip(port) if source else None)
                )
        return routes


def _ip(port: Port) -> str:
    assert port.address is not None  # given by plan.addressing
    return str(port.address.ip)


def _single(port: Port) -> str:
    """The port's address as a prefix of one address."""
    assert port.address is not None  # given by plan.addressing
    return f"{port.address.ip}/{port.address.max_prefixlen}"


def _route(
    port: Port, destination: str, *, via: str | None = None, table: int = 254, source: str | None = None
) -> Route:
    return Route(
        netns=port.node, destination=destination, device=port.ifname, via=via, table=table, source=source
    )
