"""The view of a plan at a prompt: its nodes, links and addresses. It runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.events import up_again
from plait.plan.model.links import LinkDirection
from plait.plan.model.plan import Plan
from plait.plan.shell.script import device_commands
from plait.units import Rate

WIRE = "wire"
"""The namespace of all links, which the view hides."""


@dataclass(frozen=True)
class Interface:
    """An interface of a node, and the other end of its link."""

    name: str
    mac: str
    addresses: tuple[str, ...]
    """The addresses without prefix lengths."""
    peer: tuple[str, str] | None
    """(node, interface)."""
    up: tuple[str, ...] = ()
    """The commands that take it up again."""


@dataclass(frozen=True)
class NetworkView:
    """The links of a plan, and its nodes in their order, with roles and interfaces."""

    roles: dict[str, str]
    interfaces: dict[str, tuple[Interface, ...]]
    links: tuple[str, ...]
    """One line per link."""
    ends: dict[str, tuple[tuple[str, str], tuple[str, str]]]
    """(node, interface) at both ends of each link, by its name in the scenario."""

    def address(self, node: str) -> str | None:
        """Return the first address of `node`; None if it has none."""
        addresses = (address for interface in self.interfaces[node] for address in interface.addresses)
        return next(addresses, None)

    def hosts(self) -> list[str]:
        """Return the nodes that run applications."""
        return [node for node, role in self.roles.items() if role == "host"]

    def with_addresses(self, command_line: str) -> str:
        """Return a command line with addresses instead of the names of nodes."""
        return " ".join(
            (self.address(word) or word) if word in self.roles else word for word in command_line.split(" ")
        )

    def net(self) -> list[str]:
        """Return a line for each node: its interfaces with their neighbours."""
        return [
            " ".join(
                [node, *(f"{i.name}:{'-'.join(i.peer) if i.peer else '?'}" for i in self.interfaces[node])]
            )
            for node in self.roles
        ]

    def dump(self) -> list[str]:
        """Return a line for each node: its role, interfaces and addresses."""
        return [
            f"<{role} {node}: " + ",".join(f"{i.name}:{i.addresses[0] if i.addresses else None}" for i in
                                           self.interfaces[node]) + ">"
            for node, role in self.roles.items()
        ]  # fmt: skip


def view(plan: Plan) -> NetworkView:
    """Return the view of `plan`."""
    at_wire = {}
    for veth in plan.network.veths:
        for end, other in ((veth.a, veth.b), (veth.b, veth.a)):
            if other.netns == WIRE and end.netns != WIRE:
                at_wire[other.ifname] = end
    peers = {}
    links = []
    by_name = {}
    for link in plan.links:
        forward, backward = link.directions
        # A packet to a node leaves `wire` through the peer of the node's interface.
        ends = ((at_wire.get(backward.ifname), forward.source), (at_wire.get(forward.ifname), forward.target))
        names = [(end.netns, end.ifname) if end else (node, "?") for end, node in ends]
        peers[names[0]], peers[names[1]] = names[1], names[0]
        by_name[link.name] = (names[0], names[1])
        links.append(f"{'-'.join(names[0])}<->{'-'.join(names[1])} {_conditions(forward, backward)}")
    roles: dict[str, str] = {
        namespace.name: namespace.role for namespace in plan.network.namespaces if namespace.role != WIRE
    }
    interfaces: dict[str, list[Interface]] = {node: [] for node in roles}
    for veth in plan.network.veths:
        for end in (veth.a, veth.b):
            if end.netns in interfaces:
                addresses = tuple(address.split("/")[0] for address in end.addresses)
                peer = peers.get((end.netns, end.ifname))
                up = tuple(device_commands(up_again(end, plan.network.routes)))
                interfaces[end.netns].append(Interface(end.ifname, end.mac, addresses, peer, up))
    by_node = {node: tuple(entries) for node, entries in interfaces.items()}
    return NetworkView(roles, by_node, tuple(links), by_name)


def _conditions(forward: LinkDirection, backward: LinkDirection) -> str:
    texts = [_direction(direction) for direction in (forward, backward)]
    return f"({texts[0]})" if texts[0] == texts[1] else f"({texts[0]}; back {texts[1]})"


def _direction(direction: LinkDirection) -> str:
    parts = ["unlimited" if direction.rate_bps is None else str(Rate(direction.rate_bps))]
    parts.append(f"{direction.delay_ns / 1e6:g}ms")
    if direction.loss_ratio:
        parts.append(f"loss {direction.loss_ratio * 100:g}%")
    return " ".join(parts)
