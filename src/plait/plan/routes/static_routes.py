"""Routes that the scenario gives to nodes, in place of derived routes for the destinations that they cover.

This module checks a given route: its destination exists or is a prefix, and its next hop is a router next to the
node. The costs between routers ignore given routes, like static routes beside a routing protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network

from plait.errors import FieldMistakesError, refuse_fields
from plait.plan.network.addressing import AnyNetwork
from plait.plan.network.model import Pair, Port, Segment, Topology
from plait.scenario.fields.nodes import GivenRoute
from plait.scenario.wording import nearest


@dataclass(frozen=True)
class Static:
    """One given route of a node: its destination, the node's port, and the port of the next router."""

    to: AnyNetwork
    gate: Pair
    where: tuple[str | int, ...]
    """The field of the scenario."""


def statics(topology: Topology, gates_of: dict[Segment, list[Port]]) -> dict[str, list[Static]]:
    """Return the given routes by node, the longest prefixes first. Raise FieldMistakesError for impossible ones."""
    network = topology.scenario.network
    mistakes: list[tuple[tuple[str | int, ...], str]] = []
    routes: dict[str, list[Static]] = {}
    for kind, nodes in (("hosts", network.hosts), ("routers", network.routers)):
        for node, options in nodes.items():
            given: list[Static] = []
            for i, route in enumerate(options.routes):
                here = ("network", kind, node, "routes", i)
                try:
                    given += _read(topology, gates_of, node, route, here)
                except FieldMistakesError as wrong:
                    mistakes += wrong.within(*here).mistakes
            seen: set[tuple[AnyNetwork, Port]] = set()
            for static in given:
                if (static.to, static.gate[0]) in seen:
                    mistakes.append(
                        (
                            static.where,
                            f"there is another route to {static.to} through the same port; give one of them",
                        )
                    )
                seen.add((static.to, static.gate[0]))
            if given:
                routes[node] = sorted(given, key=lambda static: -static.to.prefixlen)
    refuse_fields(mistakes)
    return routes


def _read(
    topology: Topology,
    gates_of: dict[Segment, list[Port]],
    node: str,
    route: GivenRoute,
    where: tuple[str | int, ...],
) -> Iterator[Static]:
    gates = _gates(topology, gates_of, node, route.via)
    for to in _destinations(topology, node, route.to):
        fitting = [gate for gate in gates if gate[0].segment.version == to.version]
        if not fitting:
            raise FieldMistakesError(
                (("via",), f"'{route.via[:40]}' has no address of the family of {to}; name another")
            )
        local = next((p for p in topology.ports[node] if to.prefixlen and p.ip in to), None)
        if local is not None:
            raise FieldMistakesError(
                (
                    ("to",),
                    f"{to} contains {node}'s own address {local.ip}, which needs no route; choose another destination",
                )
            )
        yield Static(to, fitting[0], where)


def _destinations(topology: Topology, node: str, text: str) -> list[AnyNetwork]:
    if text == "default":
        versions = sorted({port.segment.version for port in topology.ports[node]})
        return [ip_network("0.0.0.0/0" if version == 4 else "::/0") for version in versions]
    if text in topology.ports:
        ports = [port for port in topology.ports[text] if port.address is not None]
        if text == node or not ports:
            raise FieldMistakesError(
                (("to",), f"'{text}' has no address that a route could lead to; name another node")
            )
        return [ip_network(f"{port.ip}/{port.ip.max_prefixlen}") for port in ports]
    try:
        return [ip_network(text)]
    except ValueError:
        message = f"'{text[:40]}' is neither a node, nor `default`, nor a prefix such as 10.0.5.0/24"
        raise FieldMistakesError((("to",), f"{message}; {nearest(text, topology.ports)}")) from None


def _gates(topology: Topology, gates_of: dict[Segment, list[Port]], node: str, via: str) -> list[Pair]:
    """Return the gates to the next hop that a route names: a router, a link, or an address of a router."""
    network = topology.scenario.network
    near = [
        (port, gate)
        for port in topology.ports[node]
        for gate in gates_of.get(port.segment, ())
        if gate.node != node
    ]
    if via in network.hosts:
        raise FieldMistakesError(
            (("via",), f"{via} is a host, and hosts do not forward; declare it under routers")
        )
    named = [gate for gate in near if via in (gate[1].node, gate[0].link.key) or gate[1].has_address(via)]
    if not named:
        routers = sorted({gate.node for _, gate in near})
        have = f"next to it are {', '.join(routers)}" if routers else "no router is next to it"
        raise FieldMistakesError(
            (("via",), f"'{via[:40]}' is no router next to {node}, nor a link or an address of one; {have}")
        )
    if len({gate.node for _, gate in named}) > 1:
        raise FieldMistakesError((("via",), f"several routers are on '{via[:40]}'; name one of them"))
    return named
