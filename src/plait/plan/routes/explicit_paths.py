"""Paths that a scenario names, node by node, as the ports by which packets leave.

A path of a flow is a list of nodes from `from` to `to`; between two nodes that several links join, it may name a
link. The path determines the pair of addresses, and the route of all packets between the two. Answers take the same
links back. `path_rules` holds the rules that keep packets on the path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from plait.errors import refuse_fields
from plait.plan.network.model import Port, Topology
from plait.plan.network.topology import way
from plait.scenario.mistakes import Where

MAX_PINS = 400


@dataclass(frozen=True)
class Pin:
    """One direction of a path: all packets between two addresses leave by these ports."""

    source: Port
    target: Port
    hops: tuple[tuple[Port, ...], ...]

    @property
    def ports(self) -> list[Port]:
        """Return the ports in the order of the path."""
        return [port for hop in self.hops for port in hop]


class _WrongPathError(Exception):
    """A path that is not possible, with the reason as its text."""


@dataclass(frozen=True)
class ExplicitPaths:
    """Every path that a flow of the scenario names."""

    pins: dict[tuple[Port, Port], Pin]
    """By the ports that have the two addresses."""
    named: dict[tuple[int, int], list[tuple[Port, Port]]]
    """The pairs of addresses, one of each family, of a path, by its traffic entry and its index there."""


def explicit_paths(topology: Topology) -> ExplicitPaths:
    """Return every path that a flow names. Raise FieldMistakesError for impossible ones."""
    paths = ExplicitPaths({}, {})
    mistakes = []
    for i, entry in enumerate(topology.scenario.traffic):
        spec = entry.flow
        for j, names in enumerate(spec.paths):
            here: Where = ("traffic", i, entry.kind, "paths", j)
            try:
                ends = (spec.from_, spec.to)
                pins = list(_both_ways(topology, names, ends, client_sends=not spec.connects_to_sender))
                paths.named[i, j] = [(pin.source, pin.target) for pin in pins[::2]]
                for pin in pins:
                    _add(paths, pin)
            except _WrongPathError as error:
                mistakes.append((here, str(error)))
    if len(paths.pins) > MAX_PINS:
        message = f"there are {len(paths.pins) // 2} paths; a network has at most {MAX_PINS // 2}"
        mistakes.append((("traffic",), message))
    refuse_fields(mistakes)
    return paths


def _add(paths: ExplicitPaths, pin: Pin) -> None:
    other = paths.pins.setdefault((pin.source, pin.target), pin)
    if other.hops != pin.hops:
        raise _WrongPathError(
            f"another path from {pin.source.ip} to {pin.target.ip} exists, and the two addresses determine the path; "
            "give the flows different links at one end, or the same path"
        )


def _both_ways(
    topology: Topology, names: list[str], ends: tuple[str, str], *, client_sends: bool
) -> Iterator[Pin]:
    """Yield the pins of a path, in both directions, in every family that all its links have."""
    leaving = _leaving(topology, names, ends)
    if not client_sends:
        leaving = [port.far for port in reversed(leaving)]
    versions = [version for version in (6, 4) if all(twin(topology, p, version) for p in leaving)]
    if not versions:
        raise _WrongPathError("its links have no address family in common; give them a common one")
    outside = topology.translating_ports()
    for version in versions:
        there = [twin(topology, port, version) or port for port in leaving]
        back = [twin(topology, port.far, version) or port.far for port in reversed(leaving)]
        for ports in (there, back):
            if any(port in outside for port in (*ports, *(port.far for port in ports))):
                raise _WrongPathError(
                    "a router on it translates the addresses that determine the path; leave the path out"
                )
            yield Pin(
                ports[0], twin(topology, ports[-1].far, version) or ports[-1].far, _hops(topology, ports)
            )


def _leaving(topology: Topology, names: list[str], ends: tuple[str, str]) -> list[Port]:
    """Return the ports by which a packet leaves along a path."""
    network = topology.scenario.network
    nodes = [(place, name) for place, name in enumerate(names) if name in topology.ports]
    for place, name in enumerate(names):
        if name not in topology.ports and name not in network.links:
            raise _WrongPathError(f"no node or link is called '{name[:40]}'")
        if name not in topology.ports and not {(place - 1), (place + 1)} <= {at for at, _ in nodes}:
            raise _WrongPathError(
                f"the link '{name[:40]}' is not between two nodes; name it between the two that it joins"
            )
    if not nodes or (nodes[0][1], nodes[-1][1]) != ends:
        raise _WrongPathError(f"the path must begin with {ends[0]} and end with {ends[1]}; name both")
    if len({name for _, name in nodes}) < len(nodes):
        raise _WrongPathError("a node occurs twice; a path must not contain a loop")
    out = []
    for (at, node), (then, following) in pairwise(nodes):
        wanted = names[at + 1] if then == at + 2 else None
        joined = [
            port
            for port in topology.ports[node]
            if port.far.node == following and wanted in (None, port.link.key) and not port.segment.second
        ]
        if not joined:
            raise _WrongPathError(f"no link{f' {wanted}' if wanted else ''} joins {node} and {following}")
        if at and node in network.hosts:
            raise _WrongPathError(f"{node} is a host, and hosts do not forward; declare it under routers")
        out.append(joined[0])
    return out


def twin(topology: Topology, port: Port, version: int) -> Port | None:
    """Return the port of the same interface in a family; a switch has the same port in all families."""
    if port.address is None:
        return port
    same = (p for p in topology.ports[port.node] if p.link is port.link and p.segment.version == version)
    return next(same, None)


def _hops(topology: Topology, ports: list[Port]) -> tuple[tuple[Port, ...], ...]:
    """Return the ports, split at each host or router that sends; refuse paths that switches do not take."""
    hops: list[list[Port]] = []
    for port in ports:
        if port.address is not None:
            hops.append([])
        hops[-1].append(port)
    for hop in hops:
        far = hop[-1].far
        taken = way(hop[0], twin(topology, far, hop[0].segment.version) or far)
        if taken != hop:
            nodes = " - ".join([taken[0].node, *(port.far.node for port in taken)])
            raise _WrongPathError(
                f"switches forward along {nodes} here; only hosts and routers can forward otherwise"
            )
    return tuple(tuple(hop) for hop in hops)
