"""The address of every port of a host or router: as the scenario gives it, otherwise derived.

Derived subnets are 10.0.0.0/24, 10.0.1.0/24, .. and fd00::/64, fd00:1::/64, .., one for each segment in the order
of the links; a segment with more ports gets a shorter prefix. Within a segment hosts come first, then routers, each
in the order of their declaration, with .1, .2, .. If the scenario gives an address to one port of a segment, the
segment has the subnet of that address.
"""

from __future__ import annotations

from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_interface,
    ip_network,
)
from itertools import pairwise

from plait.errors import FieldMistakesError, refuse_fields
from plait.plan.network.model import Port, Segment, Topology
from plait.plan.network.topology import add_second_family
from plait.scenario.mistakes import FieldMistake, Where

AnyNetwork = IPv4Network | IPv6Network
AnyAddress = IPv4Address | IPv6Address

_SPACES = {4: ("10.0.0.0/8", 8, 8), 6: ("fd00::/16", 96, 64)}
"""By family: the range of derived subnets, the bits between two subnets, and the bits of the host part."""


def assign(topology: Topology) -> dict[Segment, AnyNetwork]:
    """Give every port of a host or router its address; return each segment's subnet. Raise FieldMistakesError.

    A segment has the families of its given addresses; without any, those of the network. A dual network has
    both families everywhere.
    """
    network = topology.scenario.network
    order = {node: i for i, node in enumerate((*network.hosts, *network.routers))}
    for segment in topology.segments[:]:
        versions = _families(topology, segment)
        segment.version = versions[0]
        if len(versions) == 2:
            add_second_family(topology, segment).version = versions[1]
    subnets = _given_subnets(topology)
    _derive_subnets(topology, subnets)
    for segment, subnet in subnets.items():
        _fill(topology, subnet, sorted(segment.ports, key=lambda p: (order[p.node], p.index)))
    _refuse_clashes(topology, subnets)
    return subnets


def _families(topology: Topology, segment: Segment) -> list[int]:
    wanted = topology.scenario.network.addresses
    if wanted == "dual":
        return [4, 6]
    given = {interface.version for port in segment.ports for interface in _given_addresses(topology, port)}
    return sorted(given) or [4 if wanted == "ipv4" else 6]


def _given_addresses(topology: Topology, port: Port) -> list[IPv4Interface | IPv6Interface]:
    """Return the addresses that the scenario gives to a port, of all families."""
    network = topology.scenario.network
    node = network.hosts.get(port.node) or network.routers[port.node]
    return [ip_interface(text) for text in node.addresses.get(port.link.key, ())]


def _given_subnets(topology: Topology) -> dict[Segment, AnyNetwork]:
    """Give ports the addresses of the scenario; return the subnets that follow."""
    mistakes: list[FieldMistake] = []
    subnets: dict[Segment, AnyNetwork] = {}
    for segment in topology.segments:
        for port in segment.ports:
            for interface in _given_addresses(topology, port):
                if interface.version != segment.version:
                    continue
                port.address = interface
                subnet = subnets.setdefault(segment, interface.network)
                if interface.network != subnet:
                    message = (
                        f"'{interface}' is not in {subnet}, the subnet of this segment; give all of its ports "
                        "addresses of one subnet"
                    )
                    mistakes.append((_field(topology, port), message))
    refuse_fields(mistakes)
    return subnets


def _field(topology: Topology, port: Port) -> Where:
    """Return the field of the scenario for the port's address."""
    network = topology.scenario.network
    kind = "hosts" if port.node in network.hosts else "routers"
    return ("network", kind, port.node, "addresses", port.link.key)


def _derive_subnets(topology: Topology, subnets: dict[Segment, AnyNetwork]) -> None:
    """Add subnets for the segments without one; they overlap no given subnet."""
    for version, (name, apart, host_bits) in _SPACES.items():
        space = ip_network(name)
        taken = sorted(
            (int(net.network_address), int(net.broadcast_address))
            for net in subnets.values()
            if net.version == version
        )
        address = int(space.network_address)
        for segment in topology.segments:
            if segment in subnets or segment.version != version:
                continue
            bits = (len(segment.ports) + 1).bit_length()
            size = 1 << max(apart, bits)
            address = _free(address, size, taken)
            if address + size - 1 > int(space.broadcast_address):
                message = f"{space} is too small for all segments; give addresses to some of them"
                raise FieldMistakesError((("network", "links"), message))
            subnets[segment] = ip_network((address, space.max_prefixlen - max(host_bits, bits)))
            address += size


def _free(address: int, size: int, taken: list[tuple[int, int]]) -> int:
    """Return the first multiple of `size` from `address` on with enough room before the next taken range.

    Remove the ranges before it from `taken`.
    """
    address = -(-address // size) * size
    while taken and taken[0][0] < address + size:
        _, last = taken.pop(0)
        if last >= address:
            address = -(-(last + 1) // size) * size
    return address


def _fill(topology: Topology, subnet: AnyNetwork, ports: list[Port]) -> None:
    """Give the ports without an address the next free addresses, in order."""
    taken = {int(port.address.ip) for port in ports if port.address is not None}
    start = int(subnet.network_address)
    last = int(subnet.broadcast_address)
    number = 0
    for port in ports:
        if port.address is not None:
            continue
        number += 1
        while start + number in taken:
            number += 1
        if start + number >= last:
            message = f"{subnet} is too small for the ports of its segment; use a shorter prefix"
            raise FieldMistakesError((_field(topology, port), message))
        port.address = _interface(subnet, number)


def _interface(subnet: AnyNetwork, number: int) -> IPv4Interface | IPv6Interface:
    return (
        ip_interface((int(subnet.network_address) + number, subnet.prefixlen))
        if isinstance(subnet, IPv4Network)
        else ip_interface(f"{subnet[number]}/{subnet.prefixlen}")
    )


def _refuse_clashes(topology: Topology, subnets: dict[Segment, AnyNetwork]) -> None:
    """Refuse an address that occurs twice, and segments with overlapping subnets."""
    mistakes: list[FieldMistake] = []
    seen: dict[AnyAddress, Port] = {}
    for segment in topology.segments:
        for port in segment.ports:
            other = seen.setdefault(port.ip, port)
            if other is not port:
                message = f"{port.ip} is also the address of {other.node} on {other.link.key}; choose another"
                mistakes.append((_field(topology, port), message))
    ranges = sorted(
        (
            (subnet.version, int(subnet.network_address), int(subnet.broadcast_address), segment)
            for segment, subnet in subnets.items()
        ),
        key=lambda r: r[:3],
    )
    for low, high in pairwise(ranges):
        if low[0] == high[0] and high[1] <= low[2]:
            port = high[3].ports[0]
            message = (
                f"the subnet {subnets[high[3]]} overlaps {subnets[low[3]]} of the segment of {low[3].wires[0].key}; "
                "give each segment a subnet of its own"
            )
            mistakes.append((_field(topology, port), message))
    refuse_fields(mistakes)
