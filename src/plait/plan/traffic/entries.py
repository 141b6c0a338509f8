"""The entries of the traffic: who connects to whom, over which pair of interfaces first, and who sends."""

from __future__ import annotations

from itertools import product
from math import prod

from plait.errors import FieldMistakesError
from plait.plan.model.plan import SideName
from plait.plan.network.model import Pair, Topology
from plait.plan.routes.tables import Routing
from plait.plan.traffic.flow_paths import directed
from plait.plan.traffic.flow_slots import Slot
from plait.traffic.kinds import Traffic
from plait.traffic.spec import ConnectionSpec, FlowSpec

MAX_PAIRS = 65_536


class Entry:
    """One entry of the traffic, with what follows from it before the path manager exists."""

    def __init__(self, index: int, traffic: Traffic, topology: Topology, routing: Routing) -> None:
        self.index = index
        self.kind = traffic.kind
        self.key = traffic.key
        self.spec = traffic.flow
        self.scenario = topology.scenario
        client, server = (self.spec.from_, self.spec.to)[:: -1 if self.spec.connects_to_sender else 1]
        self.sender: SideName = "server" if self.spec.connects_to_sender or self.spec.answers else "client"
        self._refuse_too_many_pairs(topology, client, server)
        self.usable = usable_pairs(topology, routing, client, server)
        self.initial = self._initial_pair(topology, routing, client, server)

    @property
    def uses_mptcp(self) -> bool:
        """Return whether any of its flows uses MPTCP."""
        if not isinstance(self.spec, ConnectionSpec):
            return False
        return "mptcp" in [transport or self.scenario.transport for transport in self.spec.transports]

    @property
    def multipath(self) -> bool:
        """Return whether any of its flows may take several paths."""
        return self.kind == "prototype" or self.uses_mptcp

    def carried(self, slot: Slot) -> bool:
        """Return whether the flow of `slot` is the second direction of another flow's connection."""
        return slot.part > 0 and self.spec.parts_share_connection

    def sender_of(self, slot: Slot) -> SideName:
        """Return the side that sends in the flow of `slot`."""
        return other_side(self.sender) if self.carried(slot) else self.sender

    def _refuse_too_many_pairs(self, topology: Topology, client: str, server: str) -> None:
        """Refuse two hosts with more than `MAX_PAIRS` pairs of interfaces: examining every pair would take minutes."""
        many = len(topology.ports[client]), len(topology.ports[server])
        if prod(many) > MAX_PAIRS:
            message = (
                f"{client} has {many[0]} interfaces and {server} has {many[1]}: {prod(many)} pairs of addresses; "
                f"plait examines at most {MAX_PAIRS}: let other hosts send, or remove links"
            )
            raise FieldMistakesError((("traffic", self.index, self.key, "to"), message))

    def _initial_pair(self, topology: Topology, routing: Routing, client: str, server: str) -> Pair:
        """Return the pair of the initial subflow: the first usable one that satisfies `via`, `bind` and `connect`."""
        here = ("traffic", self.index, self.key)
        if not self.usable:
            message = _translated(topology, routing, client, server, self.spec) or (
                f"{self.spec.to} cannot be reached from {self.spec.from_}; connect them by links, and declare nodes "
                "that forward under routers, because hosts do not"
            )
            raise FieldMistakesError(((*here, "to"), message))
        fitting = self._on_paths(routing)
        for field, fits in _FITS.items():
            wanted = getattr(self.spec, field)
            if wanted is None:
                continue
            fitting = [pair for pair in fitting if _satisfies(pair, field, wanted)]
            if not fitting:
                path = f"no path from {client} to {server} {fits} {wanted}"
                message = f"{path}; leave {field} out, or choose another"
                raise FieldMistakesError(((*here, field), message))
        return fitting[0]

    def _on_paths(self, routing: Routing) -> list[Pair]:
        """Return the pairs that the first of the flow's paths joins; all pairs if there are no paths."""
        if not self.spec.paths:
            return self.usable
        return [pair for pair in self.usable if pair in routing.reach.explicit.named[self.index, 0]]


def _translated(topology: Topology, routing: Routing, client: str, server: str, spec: FlowSpec) -> str | None:
    """Return an error message for a client that only address translation separates from its server, or None."""
    opposite = usable_pairs(topology, routing, server, client)
    ways = (port for pair in opposite for port in directed("client", pair, routing)[0])
    routers = list(dict.fromkeys(port.node for port in ways if port in routing.reach.outside))
    if not routers:
        return None
    return (
        f"{server} is behind {' and '.join(routers)}, which translates addresses (nat) and admits only answers from "
        f"{client}; {spec.nat_remedy(server, client)}"
    )


_FITS = {"via": "goes via", "bind": "begins at", "connect": "satisfies the other fields and ends at"}


def _satisfies(pair: Pair, field: str, wanted: str) -> bool:
    """Return whether a pair is what one of the fields `via`, `bind` and `connect` asks for."""
    client, server = pair
    if field == "via":
        return client.link.key == wanted or server.has_address(wanted)
    return (client if field == "bind" else server).matches(wanted)


def usable_pairs(topology: Topology, routing: Routing, client: str, server: str) -> list[Pair]:
    """Return all pairs of a client's and a server's interface that exchange packets; IPv6 first.

    Applications try the addresses of a name in this order (RFC 6724), and only a connection that began over
    IPv6 may have subflows over both families.
    """
    pairs = [
        (c, s)
        for c, s in product(topology.ports[client], topology.ports[server])
        if c.ip.version == s.ip.version and routing.reach.round_trip(c, s) is not None
    ]
    return sorted(pairs, key=lambda pair: -pair[0].ip.version)


def other_side(side: SideName) -> SideName:
    """Return the other side of a flow."""
    return "client" if side == "server" else "server"
