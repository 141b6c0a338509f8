"""Which way packets take: the costs between routers, the best gates out of a node, and walks. Pure.

Routers forward by the network's metric: the least sum of link delays, then the fewest hops; or the fewest hops,
then the least delay. With `ecmp` a router has every gate of the least cost, and spreads connections over them.
Each hop adds at least one to one part of the cost, so that following best gates never leads in a circle.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from plait.plan.topology import delay_ns, way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.topology import Port, Segment, Topology

    Gate = tuple[Port, Port]
    """A way out of a node: its own port, and the port of the next router."""

Cost = tuple[int, int]
"""(sum of delays in ns, hops), or (hops, sum of delays in ns; 0 with ECMP, where it does not count)."""


class Reach:
    """The ways between the hosts and routers of a topology."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        network = topology.scenario.network
        self._metric, self.ecmp = network.routing.metric, network.routing.ecmp
        self.routers = list(network.routers)
        self.gates_of: dict[Segment, list[Port]] = {}
        """The ports of routers on each segment."""
        for router in self.routers:
            for port in topology.ports[router]:
                self.gates_of.setdefault(port.segment, []).append(port)
        self._steps: dict[Port, list[tuple[Port, Cost]]] = {}
        self._before = {router: list(self._routers_before(router)) for router in self.routers}
        self._costs: dict[frozenset[str], dict[str, Cost]] = {}
        self._gates: dict[tuple[str, frozenset[str]], list[Gate]] = {}

    def neighbours(self, router: str) -> list[str]:
        """The routers next to a router; one that is next to it twice stands here twice."""
        return [before for before, _ in self._before[router]]

    def gates(self, ports: list[Port], target: Segment) -> list[Gate]:
        """The best gates out of a node through these ports of it; with ECMP all of the least cost, else one."""
        goal = frozenset(gate.node for gate in self.gates_of.get(target, ()))
        whole = len(ports) == len(self._topology.ports[ports[0].node])
        known = self._gates.get((ports[0].node, goal)) if whole else None
        if known is not None:
            return known
        found = self._best(ports, self._cost(goal))
        if whole:
            self._gates[ports[0].node, goal] = found
        return found

    def gate(self, ports: list[Port], target: Segment) -> Gate | None:
        """The first of the best gates; None when there is no way."""
        return next(iter(self.gates(ports, target)), None)

    def attached(self, node: str, segment: Segment) -> Port | None:
        """The first port of a node on a segment."""
        return next((port for port in self._topology.ports[node] if port.segment is segment), None)

    def walk(self, source: Port, target: Port) -> list[Port] | None:
        """The ports left by a packet from the address of `source` to that of `target`; None when it cannot arrive.

        With ECMP it is one of the ways: the one that takes the first gate at each router.
        """
        if source.segment is target.segment:
            return way(source, target)
        gate = self.gate([source], target.segment)
        if gate is None:
            return None
        ports = way(*gate)
        node = gate[1].node
        while (nearby := self.attached(node, target.segment)) is None:
            gate = self.gate(self._topology.ports[node], target.segment)
            if gate is None:  # pragma: no cover  # a router with a cost has a next hop
                return None
            ports += way(*gate)
            node = gate[1].node
        return ports + way(nearby, target)

    def round_trip(self, client: Port, server: Port) -> tuple[list[Port], list[Port]] | None:
        """The ports left by packets from client to server, and by the answers; None when either cannot arrive."""
        there, back = self.walk(client, server), self.walk(server, client)
        return None if there is None or back is None else (there, back)

    def spread(self, source: Port, target: Port) -> list[Port]:
        """Every port that a packet may leave on its way, whatever ECMP chooses; in the order of the hops."""
        if source.segment is target.segment:
            return way(source, target)
        found: dict[Port, None] = {}
        waiting = self.gates([source], target.segment)[:1]
        seen: set[str] = set()
        for gate in waiting:
            found |= dict.fromkeys(way(*gate))
            node = gate[1].node
            if node in seen:
                continue
            seen.add(node)
            nearby = self.attached(node, target.segment)
            if nearby is not None:
                found |= dict.fromkeys(way(nearby, target))
            else:
                waiting.extend(self.gates(self._topology.ports[node], target.segment))
        return list(found)

    def main_source(self, host: str, target: Port) -> Port | None:
        """The interface whose address the kernel takes for a socket of `host` that is bound to none."""
        nearby = self.attached(host, target.segment)
        if nearby is not None:
            return nearby
        gate = self.gate(self._topology.ports[host], target.segment)
        return None if gate is None else gate[0]

    def _step(self, source: Port, gate: Port) -> Cost:
        delay = delay_ns(way(source, gate))
        if self._metric == "delay":
            return (delay, 1)
        return (1, 0 if self.ecmp else delay)

    def _steps_from(self, port: Port) -> list[tuple[Port, Cost]]:
        """The routers' ports that a port reaches over its own segment, and what each costs."""
        known = self._steps.get(port)
        if known is None:
            gates = self.gates_of.get(port.segment, ())
            known = [(gate, self._step(port, gate)) for gate in gates if gate.node != port.node]
            self._steps[port] = known
        return known

    def _routers_before(self, router: str) -> Iterator[tuple[str, Cost]]:
        for port in self._topology.ports[router]:
            for before in self.gates_of[port.segment]:
                if before.node != router:
                    yield before.node, self._step(before, port)

    def _best(self, ports: list[Port], cost: dict[str, Cost]) -> list[Gate]:
        options = [
            ((cost[gate.node][0] + step[0], cost[gate.node][1] + step[1]), port, gate)
            for port in ports
            for gate, step in self._steps_from(port)
            if gate.node in cost
        ]
        least = min((option[0] for option in options), default=None)
        best = [(port, gate) for at, port, gate in options if at == least]
        return best if self.ecmp else best[:1]

    def _cost(self, goal: frozenset[str]) -> dict[str, Cost]:
        """The cost from each router to the nearest of these routers (Dijkstra from them outwards)."""
        known = self._costs.get(goal)
        if known is not None:
            return known
        cost: dict[str, Cost] = {}
        waiting: list[tuple[Cost, str]] = [((0, 0), router) for router in goal]
        heapq.heapify(waiting)
        while waiting:
            at, router = heapq.heappop(waiting)
            if router in cost:
                continue
            cost[router] = at
            for before, step in self._before[router]:
                if before not in cost:
                    heapq.heappush(waiting, ((at[0] + step[0], at[1] + step[1]), before))
        self._costs[goal] = cost
        return cost
