"""An address for every port of a host or router: as given, the rest derived. Pure.

Derived subnets are 10.0.0.0/24, 10.0.1.0/24, .. one for each segment in the order of the links; a segment with
more ports gets a shorter prefix. Within a segment hosts come first, then routers, each in the order of their
declaration, and get .1, .2, .. If one port of a segment has a given address, its subnet is the given one's.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network
from itertools import pairwise
from typing import TYPE_CHECKING

from plait.scenario.source import error_at

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface

    from plait.plan.topology import Port, Segment, Topology

    Found = tuple[tuple[str | int, ...], str]
    AnyNetwork = IPv4Network | IPv6Network
    AnyAddress = IPv4Address | IPv6Address

_FIRST = int(ip_network("10.0.0.0/8").network_address)
_LAST = int(ip_network("10.0.0.0/8").broadcast_address)


def assign(topology: Topology) -> dict[Segment, AnyNetwork]:
    """Gives every port of a host or router its address; returns each segment's subnet. Raises ScenarioError."""
    network = topology.scenario.network
    order = {node: i for i, node in enumerate((*network.hosts, *network.routers))}
    given = {**network.hosts, **network.routers}
    found: list[Found] = []
    subnets: dict[Segment, AnyNetwork] = {}
    for segment in topology.segments:
        for port in segment.ports:
            text = given[port.node].addresses.get(port.wired.key)
            if text is None:
                continue
            port.address = ip_interface(text)
            subnet = subnets.setdefault(segment, port.address.network)
            if port.address.network != subnet:
                what = (
                    f"'{text}' is not in {subnet}, the subnet of others on the same segment; use one subnet"
                )
                found.append((_field(topology, port), what))
    if found:
        raise error_at(topology.scenario, found)
    _derive_subnets(topology, subnets)
    for segment, subnet in subnets.items():
        _fill(topology, subnet, sorted(segment.ports, key=lambda p: (order[p.node], p.index)))
    _refuse_clashes(topology, subnets)
    return subnets


def _field(topology: Topology, port: Port) -> tuple[str | int, ...]:
    """The field of the scenario where the port's address is, or would be, given."""
    network = topology.scenario.network
    kind = "hosts" if port.node in network.hosts else "routers"
    return ("network", kind, port.node, "addresses", port.wired.key)


def _derive_subnets(topology: Topology, subnets: dict[Segment, AnyNetwork]) -> None:
    """Subnets for the segments without one, that overlap none of the given."""
    taken = sorted(
        (int(net.network_address), int(net.broadcast_address)) for net in subnets.values() if net.version == 4
    )
    at = _FIRST
    for segment in topology.segments:
        if segment in subnets:
            continue
        bits = max(8, (len(segment.ports) + 1).bit_length())
        size = 1 << bits
        at = -(-at // size) * size
        while (
            clash := next((last for first, last in taken if first < at + size and last >= at), None)
        ) is not None:
            at = -(-(clash + 1) // size) * size
        if at + size - 1 > _LAST:
            what = "10.0.0.0/8 is too small for all segments; give some of them addresses of your own"
            raise error_at(topology.scenario, [(("network", "links"), what)])
        subnets[segment] = IPv4Network((at, 32 - bits))
        at += size


def _fill(topology: Topology, subnet: AnyNetwork, ports: list[Port]) -> None:
    """Derived addresses for the ports that have none, in order, past those that are taken."""
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
            what = f"{subnet} is too small for the ports of its segment; use a shorter prefix"
            raise error_at(topology.scenario, [(_field(topology, port), what)])
        port.address = _interface(subnet, number)


def _interface(subnet: AnyNetwork, number: int) -> IPv4Interface | IPv6Interface:
    return (
        ip_interface((int(subnet.network_address) + number, subnet.prefixlen))
        if isinstance(subnet, IPv4Network)
        else ip_interface(f"{subnet[number]}/{subnet.prefixlen}")
    )


def _refuse_clashes(topology: Topology, subnets: dict[Segment, AnyNetwork]) -> None:
    """No address twice, no two segments with overlapping subnets."""
    found: list[Found] = []
    seen: dict[AnyAddress, Port] = {}
    for segment in topology.segments:
        for port in segment.ports:
            other = seen.setdefault(port.ip, port)
            if other is not port:
                what = f"{port.ip} is also the address of {other.node} on {other.wired.key}; choose another"
                found.append((_field(topology, port), what))
    ranges = sorted(
        (
            (net.version, int(net.network_address), int(net.broadcast_address), seg)
            for seg, net in subnets.items()
        ),
        key=lambda r: r[:3],
    )
    for low, high in pairwise(ranges):
        if low[0] == high[0] and high[1] <= low[2]:
            port = high[3].ports[0]
            what = (
                f"the subnet {subnets[high[3]]} overlaps {subnets[low[3]]} of the segment of {low[3].wires[0].key}; "
                "give each segment a subnet of its own"
            )
            found.append((_field(topology, port), what))
    if found:
        raise error_at(topology.scenario, found)
