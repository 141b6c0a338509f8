"""Links as kernel objects: veth pairs into the namespace `wire`, and the interface that shapes each direction.

A host's interface is fast; the link is a box in the middle. A redirect sends what arrives from one end to the
interface of the other, where the link's conditions apply as it leaves (see `shaping`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from plait.frames import frame_bytes
from plait.plan.links.queue_lengths import ShapedInterface
from plait.plan.links.values import direction_values
from plait.plan.model.plan import Link, LinkDirection, Redirect, Veth, VethEnd
from plait.plan.network.middlebox import middleboxes
from plait.plan.network.model import WIRE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.network.model import Port, TopologyLink


def veths(link: TopologyLink) -> Iterator[Veth]:
    """Yield a veth pair from each end's node to `wire`."""
    for number, port in enumerate(link.ports):
        both = (port.address, *(twin.address for twin in link.second[number : number + 1]))
        addresses = tuple(str(address) for address in both if address is not None)
        yield Veth(
            a=VethEnd(netns=port.node, ifname=port.ifname, mac=port.mac, addresses=addresses),
            b=VethEnd(netns=WIRE, ifname=port.wire_ifname, mac=port.wire_mac),
            mtu=link.spec.mtu,
        )


def redirects(link: TopologyLink) -> Iterator[Redirect]:
    """Yield the redirects between the two ends, except where a middlebox replaces them."""
    boxes = {box.source for box in middleboxes(link)}
    for port in link.ports:
        if port.wire_ifname not in boxes:
            yield Redirect(netns=WIRE, source=port.wire_ifname, target=port.far.wire_ifname)


def place(port: Port, rtts_ns: dict[str, int]) -> ShapedInterface:
    """Return the interface that shapes the direction which leaves its node by `port`.

    `rtts_ns` is the largest base RTT of the paths by link direction; for a link that no path crosses, its own
    RTT counts.
    """
    link = port.link
    own_ns = link.delay_ns(forward=True) + link.delay_ns(forward=False)
    return ShapedInterface(
        netns=WIRE,
        ifname=port.far.wire_ifname,
        frame_bytes=frame_bytes(link.spec.mtu),
        rtt_ns=rtts_ns.get(port.out, own_ns),
    )


def link(link: TopologyLink, rtts_ns: dict[str, int]) -> Link:
    """Return the link with its conditions, for monitors and analysis."""
    a, b = link.ports
    return Link(name=link.key, directions=(_direction(a, rtts_ns), _direction(b, rtts_ns)))


def _direction(port: Port, rtts_ns: dict[str, int]) -> LinkDirection:
    """Return the direction that leaves its node by `port`, with the values that its qdiscs also have."""
    return LinkDirection(
        name=port.out,
        source=port.node,
        target=port.far.node,
        ifname=port.far.wire_ifname,
        interface=port.ifname,
        **asdict(direction_values(port.conditions, place(port, rtts_ns))),
    )
