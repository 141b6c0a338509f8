"""The records of a network: interfaces, links and segments, with their names and addresses.

A segment is what one subnet covers: links that switches join, or a single link between two hosts or routers.
`ifnames` names interfaces, in the order of a node's links. `topology` builds all of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address

from plait.plan.network import ifnames
from plait.scenario.fields.conditions import Conditions
from plait.scenario.fields.links import LinkSpec
from plait.scenario.names import LinkName
from plait.scenario.scenario import Scenario

WIRE = "wire"
"""The hidden namespace that holds all links."""


@dataclass(eq=False)
class Port:
    """An interface of a node, one end of a link, in one address family.

    If a segment has two families, its hosts and routers have two ports for an interface, each on a segment of
    its own: packets of one family never reach those of the other, even on shared links.
    """

    node: str
    index: int
    """Among the node's interfaces, from 0."""
    link: TopologyLink
    segment: Segment
    at_a: bool
    """Whether this end is at the first node of the link's name."""
    address: IPv4Interface | IPv6Interface | None = None
    """None at a switch."""
    stem: str = ""
    """The prefix of the names of the node's interfaces."""

    @property
    def ifname(self) -> str:
        """Return the interface's name, `h1-eth0`; `ifnames` shortens long ones."""
        return ifnames.ifname(self.stem, self.index)

    @property
    def ip(self) -> IPv4Address | IPv6Address:
        """Return the address without its prefix, of a host's or router's port."""
        assert self.address is not None  # plan.network.addressing set it
        return self.address.ip

    def matches(self, name: str) -> bool:
        """Return whether this is an end of a link with this name, or has this address."""
        return self.link.key == name or self.has_address(name)

    def has_address(self, text: str) -> bool:
        """Return whether a text is the port's address, without its prefix."""
        try:
            return ip_address(text) == self.ip
        except ValueError:
            return False

    @property
    def far(self) -> Port:
        """Return the other end of the link."""
        return self.link.ends(self.segment)[1 if self.at_a else 0]

    @property
    def conditions(self) -> Conditions:
        """Return the conditions of the link direction that leaves the node here."""
        return self.link.spec.conditions(forward=self.at_a)

    @property
    def mac(self) -> str:
        """Return a locally administered address, from the link's number and the end: unique and never random."""
        return mac(0, self.link.index * 2 + (0 if self.at_a else 1))

    @property
    def wire_mac(self) -> str:
        """Return the address of the veth's other end, in the namespace `wire`."""
        return mac(1, self.link.index * 2 + (0 if self.at_a else 1))

    @property
    def wire_ifname(self) -> str:
        """Return the name of the veth's other end in the namespace `wire`, `w0a`."""
        return f"w{self.link.index}{'a' if self.at_a else 'b'}"

    @cached_property
    def out(self) -> str:
        """Return the name of the link direction that leaves the node here."""
        return self.link.name.direction(forward=self.at_a)


Pair = tuple[Port, Port]
"""A subflow's ports: the client's and the server's; or a next hop: a node's port and the next router's."""


@dataclass(eq=False)
class TopologyLink:
    """A link of the scenario and its two ends."""

    index: int
    key: str
    name: LinkName
    spec: LinkSpec
    ports: list[Port] = field(default_factory=list)
    """The two ends; in the first family if there are two."""
    second: list[Port] = field(default_factory=list)
    """The two ends in the second family; a switch has the same port in both."""

    def ends(self, segment: Segment) -> list[Port]:
        """Return the two ends in the family of a segment."""
        return self.second if segment.second else self.ports

    @cached_property
    def _delays_ns(self) -> dict[bool, int]:
        return {way: int(self.spec.conditions(forward=way).delay or 0) for way in (True, False)}

    def delay_ns(self, *, forward: bool) -> int:
        """Return the one-way delay of a direction."""
        return self._delays_ns[forward]


class Fabric:
    """The shortest paths between the switches of one segment that forward by the plan's own flows (see `openflow`)."""

    def __init__(self, ports: dict[str, list[Port]], metric: str) -> None:
        self._ports = ports
        self._metric = metric
        self._towards: dict[str, dict[str, list[Port]]] = {}

    def towards(self, goal: str) -> dict[str, list[Port]]:
        """Return, by switch, its ports of the lowest cost towards the switch `goal`, in their order; none at `goal`."""
        cached = self._towards.get(goal)
        if cached is not None:
            return cached
        cost: dict[str, tuple[int, int]] = {}
        best: dict[str, list[Port]] = {goal: []}
        waiting = [((0, 0), goal)]
        while waiting:
            reached, switch = heapq.heappop(waiting)
            if switch in cost:
                continue
            cost[switch] = reached
            for port in self._between(switch):
                before = port.far
                if before.node not in cost:
                    step = self._step(before)
                    heapq.heappush(waiting, ((reached[0] + step[0], reached[1] + step[1]), before.node))
        for switch, least in cost.items():
            best[switch] = [
                port
                for port in self._between(switch)
                for step in [self._step(port)]
                if (cost[port.far.node][0] + step[0], cost[port.far.node][1] + step[1]) == least
            ]
        self._towards[goal] = best
        return best

    def way(self, source: Port, target: Port) -> list[Port]:
        """Return the ports that a frame leaves by, with the first of equal-cost ports at each switch."""
        at, goal = source.far.node, target.far.node
        ports = [source]
        while at != goal:
            ports.append(self.towards(goal)[at][0])
            at = ports[-1].far.node
        return [*ports, target.far]

    def every(self, source: Port, target: Port) -> list[Port]:
        """Return all ports that a frame may leave by."""
        goal = target.far.node
        leaving: dict[Port, None] = {source: None}
        waiting, seen = [source.far.node], set[str]()
        for switch in waiting:
            if switch in seen:
                continue
            seen.add(switch)
            leaving |= dict.fromkeys(self.towards(goal)[switch])
            waiting += [port.far.node for port in self.towards(goal)[switch]]
        return [*leaving, target.far]

    def _between(self, switch: str) -> Iterator[Port]:
        return (port for port in self._ports[switch] if port.far.node in self._ports)

    def _step(self, port: Port) -> tuple[int, int]:
        return (port.link.delay_ns(forward=port.at_a), 1) if self._metric == "delay" else (1, 0)


@dataclass(eq=False)
class Segment:
    """A subnet: all ports that reach each other without a router."""

    wires: list[TopologyLink] = field(default_factory=list)
    depth: dict[str, int] = field(default_factory=dict)
    """The depth of each switch in the tree; the first switch is the root."""
    up: dict[str, Port] = field(default_factory=dict)
    """The port of each switch that leads towards the root."""
    second: bool = False
    """Whether this is the second family of its links."""
    version: int = 4
    """The address family; `plan.network.addressing` sets it."""
    fabric: Fabric | None = None
    """How frames pass if a switch forwards by the plan's own flows; otherwise they follow the tree."""

    @property
    def ports(self) -> list[Port]:
        """Return the ports of hosts and routers, in no particular order."""
        return [port for link in self.wires for port in link.ends(self) if port.node not in self.depth]


@dataclass(eq=False)
class Topology:
    """All nodes, links and segments of a scenario."""

    scenario: Scenario
    wires: list[TopologyLink]
    ports: dict[str, list[Port]]
    """By node, in the order of its links, then those of a second family."""
    segments: list[Segment]
    """In the order of their first links, then those of a second family."""

    def translating_ports(self) -> set[Port]:
        """Return the ports at which routers translate the addresses of outgoing packets (IPv4)."""
        return {
            port
            for router, options in self.scenario.network.routers.items()
            for port in self.ports[router]
            if port.link.key in options.nat and port.segment.version == 4
        }


def mac(kind: int, number: int) -> str:
    """Return a locally administered unicast address."""
    return f"02:70:{kind:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
