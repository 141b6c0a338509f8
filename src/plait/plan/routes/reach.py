"""Which paths packets take: the costs between routers, the best gates out of a node, and walks.

Routers forward by the network's metric: the least sum of link delays, then the fewest hops; or the fewest hops,
then the least delay. With `ecmp` a router uses every gate of the least cost, and spreads connections over them.
Each hop adds at least one to one part of the cost, so that a sequence of best gates never forms a loop.

A router with address translation does not announce its inside networks: no packet enters from outside, except for
answers to packets that left, which go to the router's own outside address.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NoReturn

from plait.errors import FieldMistakesError
from plait.plan.network.model import Pair, Port, Segment, Topology
from plait.plan.network.topology import delay_ns, every_way, way
from plait.plan.routes.explicit_paths import ExplicitPaths
from plait.plan.routes.static_routes import statics

Cost = tuple[int, int]
"""(sum of delays in ns, hops), or (hops, sum of delays in ns); with ECMP the sum is 0, because it does not count."""

Goal = tuple[frozenset[tuple[str, bool]], int]
"""Routers, whether each hides the goal from its outside, and the address family."""
_Way = tuple[str, Cost, Pair]
"""A hop: the router that it leads to, its cost, and its ports."""
_Costs = dict[str, tuple[Cost, bool]]
"""The cost from each router, and whether it hides this path from its outside."""


class Reach:
    """The paths between the hosts and routers of a topology."""

    def __init__(self, topology: Topology, explicit: ExplicitPaths) -> None:
        self._topology = topology
        self.explicit = explicit
        network = topology.scenario.network
        self._metric, self.ecmp = network.routing.metric, network.routing.ecmp
        self.routers = list(network.routers)
        self.gates_of: dict[Segment, list[Port]] = {}
        """The ports of routers on each segment."""
        for router in self.routers:
            for port in topology.ports[router]:
                self.gates_of.setdefault(port.segment, []).append(port)
        self.outside = topology.translating_ports()
        """The ports at which routers translate outgoing packets."""
        self.statics = statics(topology, self.gates_of)
        """The routes of the scenario, by node."""
        self._nats = {port.node for port in self.outside}
        self.spreads = self.ecmp or any(segment.fabric is not None for segment in topology.segments)
        """Whether packets between two addresses may take several paths."""
        self._steps: dict[Port, list[tuple[Port, Cost]]] = {}
        self._before = {
            (router, version): list(self._routers_before(router, version))
            for router in self.routers
            for version in (4, 6)
        }
        self._costs: dict[Goal, _Costs] = {}
        self._goals: dict[Segment, Goal] = {}
        self._same: dict[Goal, Goal] = {}
        """Equal goals are one object, so that finding one among keys compares no routers."""
        self._gates: dict[tuple[str, Goal], list[Pair]] = {}
        self._hops: dict[tuple[str, int], list[_Way]] = {}
        self._first_ports = {node: _by_segment(ports) for node, ports in topology.ports.items()}
        self._spreads: dict[Pair, list[Port]] = {}
        self._crossed: dict[Pair, dict[Port, None]] = {}
        """The ports by which a frame may leave between two ports of a segment."""

    def reaches(self, router: str, target: Segment) -> bool:
        """Return whether there is a path from a router to a segment."""
        return router in self._cost(self.goal(target))

    def leads_out(self, ports: list[Port]) -> bool:
        """Return whether any of these ports of a node leads to a router."""
        return any(self._steps_from(port) for port in ports)

    def gates(self, ports: list[Port], target: Segment) -> list[Pair]:
        """Return the best gates out of a node through these ports: with ECMP all of the least cost, otherwise one."""
        goal = self.goal(target)
        whole = len(ports) == len(self._topology.ports[ports[0].node])
        cached = self._gates.get((ports[0].node, goal)) if whole else None
        if cached is not None:
            return cached
        if not whole:
            return self._best(self._ways(ports, target.version), self._cost(goal))
        best = self._best(self._all_ways(ports[0].node, target.version), self._cost(goal))
        self._gates[ports[0].node, goal] = best
        return best

    def static(self, ports: list[Port], target: Port) -> Pair | None:
        """Return the gate of a given route that covers the target and uses one of these ports, if there is one."""
        given = self.statics.get(ports[0].node, ())
        return next((s.gate for s in given if s.gate[0] in ports and target.ip in s.to), None)

    def towards(self, ports: list[Port], target: Port) -> list[Pair]:
        """Return the gates of a node towards an address: a static route's, otherwise the best; empty: none."""
        given = self.static(ports, target) if self.statics else None
        return [given] if given is not None else self.gates(ports, target.segment)

    def attached(self, node: str, segment: Segment) -> Port | None:
        """Return the first port of a node on a segment."""
        return self._first_ports[node].get(segment)

    def walk(self, source: Port, target: Port) -> list[Port] | None:
        """Return the ports left by a packet from the address of `source` to that of `target`; None: it cannot arrive.

        With ECMP it is one of the paths: the one with the first gate at each router.
        """
        if (source, target) in self.explicit.pins:
            return self.explicit.pins[source, target].ports
        if source.segment is target.segment:
            return way(source, target)
        gates = self.towards([source], target)
        if not gates:
            return None
        rest = self._walk_from(gates[0][1].node, target)
        return None if rest is None else way(*gates[0]) + rest

    def _walk_from(self, router: str, target: Port) -> list[Port] | None:
        """Return the ports left by a packet from `router` to `target`; None: it cannot arrive.

        Raises FieldMistakesError if static routes form a loop.
        """
        ports: list[Port] = []
        passed = [router]
        while (nearby := self.attached(router, target.segment)) is None:
            gates = self.towards(self._topology.ports[router], target)
            if not gates:
                return None
            ports += way(*gates[0])
            router = gates[0][1].node
            if router in passed:
                self._refuse_loop([*passed[passed.index(router) :], router], target)
            passed.append(router)
        return ports + ([] if nearby is target else way(nearby, target))

    def _refuse_loop(self, routers: list[str], target: Port) -> NoReturn:
        given = (s for router in routers for s in self.statics.get(router, ()) if target.ip in s.to)
        static = next(given, None)
        assert static is not None  # without given routes each hop is nearer to the target
        message = f"packets to {target.ip} would go in a circle: {' - '.join(routers)}; change a route of one of them"
        raise FieldMistakesError((static.where, message))

    def round_trip(self, client: Port, server: Port) -> tuple[list[Port], list[Port]] | None:
        """Return the ports left by packets from client to server, and by the answers; None: either cannot arrive."""
        there = self.walk(client, server)
        if there is None:
            return None
        start = server
        back: list[Port] = []
        for outside in reversed([port for port in there if port in self.outside]):
            part = self.walk(start, outside) if start is server else self._walk_from(start.node, outside)
            if part is None:
                return None
            back += part
            start = outside
        last = self.walk(start, client) if start is server else self._walk_from(start.node, client)
        return None if last is None else (there, back + last)

    def spread(self, source: Port, target: Port) -> list[Port]:
        """Return every port by which a packet may leave on its way, for every choice of ECMP, in the order of hops."""
        if (source, target) in self.explicit.pins:
            return self.explicit.pins[source, target].ports
        if source.segment is target.segment:
            return every_way(source, target)
        if (source, target) not in self._spreads:
            self._spreads[source, target] = self._spread(source, target)
        return self._spreads[source, target]

    def _spread(self, source: Port, target: Port) -> list[Port]:
        leaving: dict[Port, None] = {}
        waiting = self.towards([source], target)[:1]
        seen: set[str] = set()
        for gate in waiting:
            if gate not in self._crossed:
                self._crossed[gate] = dict.fromkeys(every_way(*gate))
            leaving |= self._crossed[gate]
            node = gate[1].node
            if node in seen:
                continue
            seen.add(node)
            nearby = self.attached(node, target.segment)
            if nearby is not None:
                leaving |= dict.fromkeys(every_way(nearby, target))
            else:
                waiting.extend(self.towards(self._topology.ports[node], target))
        return list(leaving)

    def main_source(self, host: str, target: Port) -> Port | None:
        """Return the interface whose address the kernel chooses for an unbound socket of `host`."""
        nearby = self.attached(host, target.segment)
        if nearby is not None:
            return nearby
        gates = self.towards(self._topology.ports[host], target)
        return gates[0][0] if gates else None

    def _step(self, source: Port, gate: Port) -> Cost:
        delay = delay_ns(way(source, gate))
        if self._metric == "delay":
            return (delay, 1)
        return (1, 0 if self.ecmp else delay)

    def _steps_from(self, port: Port) -> list[tuple[Port, Cost]]:
        """Return the routers' ports that a port reaches over its own segment, and the cost of each."""
        steps = self._steps.get(port)
        if steps is None:
            gates = self.gates_of.get(port.segment, ())
            steps = [(gate, self._step(port, gate)) for gate in gates if gate.node != port.node]
            self._steps[port] = steps
        return steps

    def _routers_before(self, router: str, version: int) -> Iterator[tuple[Port, Port, Cost]]:
        """Yield the ports of the adjacent routers, the router's own port that they reach, and the cost of the hop."""
        for port in self._topology.ports[router]:
            for before in self.gates_of[port.segment]:
                if before.node != router and port.segment.version == version:
                    yield before, port, self._step(before, port)

    def _hides(self, port: Port) -> bool:
        """Return whether a router hides a path that leaves through this port from its outside."""
        return port.node in self._nats and port not in self.outside

    def goal(self, target: Segment) -> Goal:
        """Return what decides the gates towards a segment: two segments with one goal have the same gates."""
        goal = self._goals.get(target)
        if goal is None:
            gates = self.gates_of.get(target, ())
            goal = frozenset((gate.node, self._hides(gate)) for gate in gates), target.version
            goal = self._goals[target] = self._same.setdefault(goal, goal)
        return goal

    def _best(self, ways: list[_Way], costs: _Costs) -> list[Pair]:
        least: Cost | None = None
        best: list[Pair] = []
        for node, step, pair in ways:
            cost, hidden = costs.get(node, (None, False))
            if cost is None or (hidden and pair[1] in self.outside):
                continue
            reached = (cost[0] + step[0], cost[1] + step[1])
            if least is None or reached < least:
                least, best = reached, [pair]
            elif reached == least:
                best.append(pair)
        return best if self.ecmp else best[:1]

    def _ways(self, ports: list[Port], version: int) -> list[_Way]:
        """Return the hops to adjacent routers from these ports of a node, in a family."""
        usable = (port for port in ports if port.segment.version == version)
        return [(gate.node, step, (port, gate)) for port in usable for gate, step in self._steps_from(port)]

    def _all_ways(self, node: str, version: int) -> list[_Way]:
        if (node, version) not in self._hops:
            self._hops[node, version] = self._ways(self._topology.ports[node], version)
        return self._hops[node, version]

    def _cost(self, goal: Goal) -> _Costs:
        """Return the cost from each router to the nearest of these routers in a family (Dijkstra's algorithm)."""
        cached = self._costs.get(goal)
        if cached is not None:
            return cached
        routers, version = goal
        costs: _Costs = {}
        waiting: list[tuple[Cost, str, bool]] = [((0, 0), router, hidden) for router, hidden in routers]
        heapq.heapify(waiting)
        while waiting:
            cost, router, hidden = heapq.heappop(waiting)
            if router in costs:
                continue
            costs[router] = cost, hidden
            for before, port, step in self._before[router, version]:
                if before.node not in costs and not (hidden and port in self.outside):
                    reached = (cost[0] + step[0], cost[1] + step[1])
                    heapq.heappush(waiting, (reached, before.node, self._hides(before)))
        self._costs[goal] = costs
        return costs


def _by_segment(ports: list[Port]) -> dict[Segment, Port]:
    """Return the first of these ports on each segment."""
    return {port.segment: port for port in reversed(ports)}
