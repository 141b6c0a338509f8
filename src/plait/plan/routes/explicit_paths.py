"""Paths that a scenario names, node by node: the rules that keep packets of a pair of addresses on them. Pure.

A path of a flow is a list of nodes from `from` to `to`, where the name of a link may stand between two nodes that
several links join. It fixes the pair of addresses, and the way of all packets between the two: at every node that
would send them elsewhere, or might, a rule for this pair of addresses looks up a table that holds the next hop alone.
Answers take the same links back.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from plait.plan.model.plan import Route, Rule
from plait.plan.network.topology import way
from plait.scenario.read.located import error_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.mptcp.path_manager import PathManager
    from plait.plan.network.topology import Port, Topology
    from plait.plan.routes.reach import Reach
    from plait.plan.traffic.flows import Entry

    Where = tuple[str | int, ...]
    Hops = list[list[Port]]
    """The ports left, from one host or router to the next."""

FIRST_TABLE = 2001
FIRST_PRIORITY = 100
MAX_PINS = 400
_WIDTH = {4: 32, 6: 128}


@dataclass(frozen=True)
class Pin:
    """One direction of a path: all packets between two addresses leave through these ports."""

    source: Port
    target: Port
    hops: tuple[tuple[Port, ...], ...]

    @property
    def ports(self) -> list[Port]:
        """The ports left, one after the other."""
        return [port for hop in self.hops for port in hop]


class _WrongPathError(Exception):
    """A path that cannot be taken, in words."""


def pin_paths(topology: Topology, reach: Reach) -> None:
    """Tells `reach` of every path that a flow names. Raises ScenarioError for those that cannot be taken."""
    found = []
    for i, entry in enumerate(topology.scenario.traffic):
        spec = entry.flow
        for j, names in enumerate(spec.paths):
            here: Where = ("traffic", i, entry.kind, "paths", j)
            try:
                ends = (spec.from_, spec.to)
                pins = list(
                    _both_ways(topology, reach, names, ends, client_sends=not spec.connects_to_sender)
                )
                reach.named[i, j] = [(pin.source, pin.target) for pin in pins[::2]]
                for pin in pins:
                    _add(reach, pin)
            except _WrongPathError as wrong:
                found.append((here, str(wrong)))
    if len(reach.pins) > MAX_PINS:
        found.append(
            (("traffic",), f"there are {len(reach.pins) // 2} paths; a network has at most {MAX_PINS // 2}")
        )
    if found:
        raise error_at(topology.scenario, found)


def _add(reach: Reach, pin: Pin) -> None:
    other = reach.pins.setdefault((pin.source, pin.target), pin)
    if other.hops != pin.hops:
        raise _WrongPathError(
            f"another path from {pin.source.ip} to {pin.target.ip} is given, and a way is chosen by the two addresses; "
            "give the flows links of their own at one end, or the same path"
        )


def check_subflows(topology: Topology, reach: Reach, entries: list[Entry], manager: PathManager) -> None:
    """Refuses paths on which nothing will be opened. Raises ScenarioError."""
    found = []
    for entry in entries:
        opened = manager.pairs(entry.ends) if entry.uses_mptcp else [entry.ends.initial]
        for j in range(1, len(entry.spec.paths)):
            wanted = reach.named[entry.index, j]
            if not any(pair in opened for pair in wanted):
                client, server = wanted[0]
                there = ", ".join(f"{c.ip} to {s.ip}" for c, s in opened)
                what = (
                    f"no subflow is opened from {client.ip} to {server.ip}, only {there}; choose endpoints and limits "
                    "that open it, or leave the path out"
                )
                found.append((("traffic", entry.index, entry.kind, "paths", j), what))
    if found:
        raise error_at(topology.scenario, found)


def _both_ways(
    topology: Topology, reach: Reach, names: list[str], ends: tuple[str, str], *, client_sends: bool
) -> Iterator[Pin]:
    """The pins of a path, forth and back, in every family that all its links have."""
    leaving = _leaving(topology, names, ends)
    if not client_sends:
        leaving = [port.far for port in reversed(leaving)]
    versions = [version for version in (6, 4) if all(_twin(topology, p, version) for p in leaving)]
    if not versions:
        raise _WrongPathError("its links have no address family in common; give them one")
    for version in versions:
        there = [_twin(topology, port, version) or port for port in leaving]
        back = [_twin(topology, port.far, version) or port.far for port in reversed(leaving)]
        for ports in (there, back):
            if any(port in reach.outside for port in (*ports, *(port.far for port in ports))):
                raise _WrongPathError(
                    "a router on it translates addresses, and a way is chosen by them; leave the path to it"
                )
            yield Pin(
                ports[0], _twin(topology, ports[-1].far, version) or ports[-1].far, _hops(topology, ports)
            )


def _leaving(topology: Topology, names: list[str], ends: tuple[str, str]) -> list[Port]:
    """The ports that a packet leaves along a path."""
    network = topology.scenario.network
    nodes = [(place, name) for place, name in enumerate(names) if name in topology.ports]
    for place, name in enumerate(names):
        if name not in topology.ports and name not in network.links:
            raise _WrongPathError(f"no node or link is called '{name[:40]}'")
        if name not in topology.ports and not {(place - 1), (place + 1)} <= {at for at, _ in nodes}:
            raise _WrongPathError(f"the link '{name[:40]}' does not stand between two nodes")
    if not nodes or (nodes[0][1], nodes[-1][1]) != ends:
        raise _WrongPathError(f"a path leads from {ends[0]} to {ends[1]}, and names both")
    if len({name for _, name in nodes}) < len(nodes):
        raise _WrongPathError("a node stands here twice; a path goes in no circles")
    out = []
    for (at, node), (then, following) in pairwise(nodes):
        wanted = names[at + 1] if then == at + 2 else None
        joined = [
            port
            for port in topology.ports[node]
            if port.far.node == following and wanted in (None, port.wired.key) and not port.segment.second
        ]
        if not joined:
            raise _WrongPathError(f"no link{f' {wanted}' if wanted else ''} joins {node} and {following}")
        if at and node in network.hosts:
            raise _WrongPathError(f"{node} is a host, and hosts do not forward; declare it under routers")
        out.append(joined[0])
    return out


def _twin(topology: Topology, port: Port, version: int) -> Port | None:
    """The port of the same interface in a family; a switch's port is the same in all."""
    if port.address is None:
        return port
    same = (p for p in topology.ports[port.node] if p.wired is port.wired and p.segment.version == version)
    return next(same, None)


def _hops(topology: Topology, ports: list[Port]) -> tuple[tuple[Port, ...], ...]:
    """The ports, split where a host or router sends; refuses ways that switches do not take."""
    hops: list[list[Port]] = []
    for port in ports:
        if port.address is not None:
            hops.append([])
        hops[-1].append(port)
    for hop in hops:
        far = hop[-1].far
        taken = way(hop[0], _twin(topology, far, hop[0].segment.version) or far)
        if taken != hop:
            nodes = " - ".join([taken[0].node, *(port.far.node for port in taken)])
            raise _WrongPathError(
                f"switches forward as {nodes} here, and only hosts and routers can be told otherwise"
            )
    return tuple(tuple(hop) for hop in hops)


def rules(reach: Reach, topology: Topology) -> tuple[list[Route], list[Rule]]:
    """The routes and rules of all pins, at the nodes that would, or might, do otherwise."""
    routes: list[Route] = []
    found: list[Rule] = []
    for pin in reach.pins.values():
        for number, hop in enumerate(pin.hops):
            port, far = hop[0], hop[-1].far
            last = number == len(pin.hops) - 1
            if _does_so(reach, topology, pin, port, None if last else far):
                continue
            table = FIRST_TABLE + len(found)
            width = _WIDTH[pin.source.segment.version]
            to = f"{pin.target.ip}/{width}"
            gateway = _twin(topology, far, pin.source.segment.version)
            via = None if last or gateway is None else str(gateway.ip)
            routes.append(Route(netns=port.node, destination=to, device=port.ifname, via=via, table=table))
            found.append(
                Rule(
                    netns=port.node,
                    source=f"{pin.source.ip}/{width}",
                    destination=to,
                    table=table,
                    priority=FIRST_PRIORITY + len(found),
                )
            )
    return routes, found


def _does_so(reach: Reach, topology: Topology, pin: Pin, port: Port, following: Port | None) -> bool:
    """Whether a node sends packets of a pin as the pin says without being told."""
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
