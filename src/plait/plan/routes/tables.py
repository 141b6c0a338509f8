"""Routes and rules: the main tables, and a source-routed table for each interface of a host.

Hosts do not forward; routers do, as `reach` describes. Every interface of a host has its own table (1001, 1002,
..), and a rule selects it by the packet's source address, so that a subflow leaves by the interface that has its
address. Such a table ends in a default route, or in an `unreachable` one if the segment has no router: otherwise
the lookup would fall through to the main table, and the packet would leave by another interface.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from plait.errors import FieldMistakesError
from plait.plan.model.forwarding import Nexthop
from plait.plan.model.plan import Route, Rule
from plait.plan.network.addressing import AnyNetwork
from plait.plan.network.model import Pair, Port, Segment, Topology
from plait.plan.routes.explicit_paths import Pin, explicit_paths, twin
from plait.plan.routes.reach import Goal, Reach

FIRST_TABLE = 1001
FIRST_PRIORITY = 1000
MAIN_TABLE = 254
MAX_ROUTES = 65_536
MAX_LOOKUPS = 327_680
"""Limit on routers times destinations, for which planning looks up gates: a fat tree of k = 16 has as many."""
_DEFAULT = {4: "default", 6: "::/0"}

_Prefix = tuple[int, int, AnyNetwork]
"""A subnet as numbers, for joining it with others: its address, the length of its prefix, and the subnet."""


class Routing:
    """The routes of all nodes of a topology whose ports have addresses."""

    def __init__(self, topology: Topology, subnets: dict[Segment, AnyNetwork]) -> None:
        self._topology = topology
        self._subnets = subnets
        self._prefixes = {segment: _prefix(subnet) for segment, subnet in subnets.items()}
        network = topology.scenario.network
        self.reach = Reach(topology, explicit_paths(topology))
        # possible destinations: hosts, and the routers that receive the answers to translated packets
        ends = {port.segment for host in network.hosts for port in topology.ports[host]}
        ends |= {port.segment for port in self.reach.outside}
        self._ends = [segment for segment in topology.segments if segment in ends]

    def routes(self) -> tuple[list[Route], list[Rule]]:
        """Return everything beyond the connected routes of the main table, host by host, then router by router."""
        network = self._topology.scenario.network
        expected = len(self.reach.routers) * len(self._ends)
        if expected > MAX_LOOKUPS:
            message = (
                f"{len(self.reach.routers)} routers with {len(self._ends)} destinations are {expected} lookups; plait "
                f"does at most {MAX_LOOKUPS}: use switches for some routers"
            )
            raise FieldMistakesError((("network", "routers"), message))
        routes: list[Route] = []
        rules: list[Rule] = []
        for host in network.hosts:
            ports = self._topology.ports[host]
            for port in ports:
                routes += self._own_table(port)
                rules.append(
                    Rule(
                        netns=host,
                        source=f"{port.ip}/{port.ip.max_prefixlen}",
                        table=FIRST_TABLE + port.index,
                        priority=FIRST_PRIORITY + port.index,
                    )
                )
            routes += self._main_table(host, shorten=True)
            self._refuse_too_many_routes(routes)
        for router in self.reach.routers:
            routes += self._main_table(router, shorten=False)
            self._refuse_too_many_routes(routes)
        pinned_routes, pinned_rules = path_rules(self.reach, self._topology)
        return routes + pinned_routes, rules + pinned_rules

    def _refuse_too_many_routes(self, routes: list[Route]) -> None:
        if len(routes) > MAX_ROUTES:
            message = f"this network needs more than {MAX_ROUTES} routes; use fewer hosts, or switches for some routers"
            raise FieldMistakesError((("network", "routers"), message))

    def _own_table(self, port: Port) -> list[Route]:
        """Return the table of one interface: its subnet, the subnets behind routers, and an end.

        The table has a default route only if it reaches everything: otherwise an attempt at a pair of
        addresses without a path would take a place among the subflows until a router refuses it.
        """
        table = FIRST_TABLE + port.index
        version = port.segment.version
        routes = [_route(port, str(self._subnets[port.segment]), table=table, source=str(port.ip))]
        given = self._static_routes([port], table, str(port.ip))
        if not given and (only := self._only_way([port], version)) is not None:
            return [
                *routes,
                _route(port, _DEFAULT[version], via=str(only[1].ip), table=table, source=str(port.ip)),
            ]
        others = self._distant_segments([port], version) if self.reach.leads_out([port]) else []
        remote = self._remote([port], others)
        if remote and len(remote) == len(others):
            return routes + self._shortened(remote, table, str(port.ip)) + given
        routes += given
        routes += [
            _route(port, str(self._subnets[s]), via=str(gate.ip), table=table, source=str(port.ip))
            for s, (_, gate) in remote
        ]
        if all(route.destination != _DEFAULT[version] for route in given):
            routes.append(
                Route(netns=port.node, destination=_DEFAULT[version], kind="unreachable", table=table)
            )
        return routes

    def _main_table(self, node: str, *, shorten: bool) -> list[Route]:
        """Return the routes that the kernel does not add by itself, family by family."""
        families: dict[int, list[Port]] = {}
        for port in self._topology.ports[node]:
            families.setdefault(port.segment.version, []).append(port)
        return [
            route
            for version in sorted(families)
            for route in self._main_of_family(families[version], version, shorten=shorten)
        ]

    def _main_of_family(self, ports: list[Port], version: int, *, shorten: bool) -> list[Route]:
        given = self._static_routes(ports, MAIN_TABLE, None)
        if shorten and not given and (only := self._only_way(ports, version)) is not None:
            return [_route(only[0], _DEFAULT[version], via=str(only[1].ip))]
        others = self._distant_segments(ports, version) if self.reach.leads_out(ports) else []
        if not shorten:
            return self._joined(ports, others) + given
        remote = self._remote(ports, others)
        return (self._shortened(remote, MAIN_TABLE, None) if remote else []) + given

    @cached_property
    def _everywhere(self) -> set[tuple[str, int]]:
        """The (router, family) pairs from which every host of the family is reachable."""
        of_goal = {self.reach.goal(segment): segment for segment in self._ends}
        return {
            (router, version)
            for router in self.reach.routers
            for version in {segment.version for segment in self._ends}
            if all(self.reach.reaches(router, s) for s in of_goal.values() if s.version == version)
        }

    def _only_way(self, ports: list[Port], version: int) -> Pair | None:
        """Return the only gate of a node, if there is just one and it leads everywhere: a shortcut."""
        if len(ports) != 1 or len(gates := self.reach.gates_of.get(ports[0].segment, [])) != 1:
            return None
        if gates[0] in self.reach.outside:
            return None
        return (ports[0], gates[0]) if (gates[0].node, version) in self._everywhere else None

    def _distant_segments(self, ports: list[Port], version: int) -> list[Segment]:
        """Return the destination segments of a family that no port here is on and no given route covers."""
        attached = {port.segment for port in ports}
        others = [s for s in self._ends if s not in attached and s.version == version]
        return [s for s in others if not self._is_given(ports, s)] if self._has_given(ports) else others

    def _has_given(self, ports: list[Port]) -> bool:
        return any(s.gate[0] in ports for s in self.reach.statics.get(ports[0].node, ()))

    def _remote(self, ports: list[Port], segments: list[Segment]) -> list[tuple[Segment, Pair]]:
        """Return the segments that are reachable through these ports of a node, and the best gate to each."""
        return [(segment, gates[0]) for segment in segments if (gates := self.reach.gates(ports, segment))]

    def _is_given(self, ports: list[Port], segment: Segment) -> bool:
        """Return whether a given route through these ports of a node covers a whole segment."""
        subnet = self._subnets[segment]
        given = (s for s in self.reach.statics.get(ports[0].node, ()) if s.gate[0] in ports)
        return any(subnet.version == s.to.version and subnet.subnet_of(s.to) for s in given)  # type: ignore[arg-type]  # of one version

    def _static_routes(self, ports: list[Port], table: int, source: str | None) -> list[Route]:
        """Return the static routes through these ports of a node, one per destination: the first that is configured."""
        first: dict[str, Route] = {}
        for static in self.reach.statics.get(ports[0].node, ()):
            port, gate = static.gate
            if port in ports:
                to = str(static.to) if static.to.prefixlen else _DEFAULT[static.to.version]
                first.setdefault(to, _route(port, to, via=str(gate.ip), table=table, source=source))
        return list(first.values())

    def _joined(self, ports: list[Port], segments: list[Segment]) -> list[Route]:
        """Return a router's routes to segments; adjacent subnets with the same gates share a route.

        The routes cover exactly these subnets, unlike a default route: a packet to an unused address ends
        at the first router.
        """
        near: dict[Goal, list[Segment]] = {}
        for segment in segments:
            near.setdefault(self.reach.goal(segment), []).append(segment)
        alike: dict[tuple[Pair, ...], list[_Prefix]] = {}
        for found in near.values():
            if gates := self.reach.gates(ports, found[0]):
                alike.setdefault(tuple(gates), []).extend(self._prefixes[segment] for segment in found)
        return [_towards(gates, str(to)) for gates, prefixes in alike.items() for to in _collapsed(prefixes)]

    def _shortened(self, remote: list[tuple[Segment, Pair]], table: int, source: str | None) -> list[Route]:
        """Return a default route through the most used gate, after the exceptions. All are of one family."""
        usual = Counter(gate for _, gate in remote).most_common(1)[0][0]
        chosen = [(str(self._subnets[segment]), gate) for segment, gate in remote if gate != usual]
        chosen.append((_DEFAULT[remote[0][0].version], usual))
        return [_route(port, to, via=str(gate.ip), table=table, source=source) for to, (port, gate) in chosen]


def _prefix(subnet: AnyNetwork) -> _Prefix:
    return int(subnet.network_address), subnet.prefixlen, subnet


def _collapsed(prefixes: list[_Prefix]) -> Iterator[AnyNetwork]:
    """Yield the fewest subnets that cover exactly these of one version, by address.

    It is ipaddress.collapse_addresses() on numbers, which takes a tenth of the time.
    """
    subnet = prefixes[0][2]
    width = subnet.max_prefixlen
    kept: list[tuple[int, int]] = []
    for address, length, _ in sorted(prefixes):
        start, free = address, width - length
        if kept and kept[-1][0] >> kept[-1][1] == start >> kept[-1][1]:
            continue  # within the last one
        while kept and kept[-1] == (start ^ (1 << free), free) and start >> free & 1:
            start, free = kept.pop()[0], free + 1
        kept.append((start, free))
    return (type(subnet)((start, width - free)) for start, free in kept)


def _towards(gates: tuple[Pair, ...], to: str) -> Route:
    """Return a router's route through its best gate, or over all equal-cost gates."""
    (port, gate), *others = gates
    if not others:
        return _route(port, to, via=str(gate.ip))
    hops = tuple(Nexthop(device=port.ifname, via=str(gate.ip)) for port, gate in gates)
    return Route(netns=port.node, destination=to, nexthops=hops)


def _route(
    port: Port,
    destination: str,
    *,
    via: str | None = None,
    table: int = MAIN_TABLE,
    source: str | None = None,
) -> Route:
    return Route(
        netns=port.node, destination=destination, device=port.ifname, via=via, table=table, source=source
    )


FIRST_PATH_TABLE = 2001
FIRST_PATH_PRIORITY = 100


def path_rules(reach: Reach, topology: Topology) -> tuple[list[Route], list[Rule]]:
    """Return the routes and rules of all pins, at the nodes that would, or might, forward otherwise."""
    routes: list[Route] = []
    rules: list[Rule] = []
    for pin in reach.explicit.pins.values():
        for number, hop in enumerate(pin.hops):
            port, far = hop[0], hop[-1].far
            last = number == len(pin.hops) - 1
            if _follows_pin(reach, topology, pin, port, None if last else far):
                continue
            table = FIRST_PATH_TABLE + len(rules)
            width = pin.source.ip.max_prefixlen
            to = f"{pin.target.ip}/{width}"
            gateway = twin(topology, far, pin.source.segment.version)
            via = None if last or gateway is None else str(gateway.ip)
            routes.append(Route(netns=port.node, destination=to, device=port.ifname, via=via, table=table))
            rules.append(
                Rule(
                    netns=port.node,
                    source=f"{pin.source.ip}/{width}",
                    destination=to,
                    table=table,
                    priority=FIRST_PATH_PRIORITY + len(rules),
                )
            )
    return routes, rules


def _follows_pin(reach: Reach, topology: Topology, pin: Pin, port: Port, following: Port | None) -> bool:
    """Return whether a node sends packets of a pin as the pin demands without a rule."""
    target = pin.target.segment
    nearby = reach.attached(port.node, target)
    if port is pin.source and nearby is not None and nearby is not port:
        nearby = port if port.segment is target else None
    if nearby is not None:
        return following is None and nearby is port
    ports = [port] if port is pin.source else topology.ports[port.node]
    gates = reach.towards(ports, pin.target)
    if port is pin.source:
        gates = gates[:1]
    return (
        len(gates) == 1
        and gates[0][0] is port
        and following is not None
        and gates[0][1].node == following.node
    )
