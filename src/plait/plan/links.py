"""Links as kernel objects: veth pairs into the namespace `wire`, and the qdiscs of each direction. Pure.

A host's interface is fast; the link is a box in the middle. What arrives from one end is redirected to the
interface of the other, and delayed (netem), limited (tbf) and queued (pfifo or bfifo) as it leaves there.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from plait.plan.model import Bfifo, Link, LinkDirection, Netem, Pfifo, Qdisc, Redirect, Tbf, Veth, VethEnd
from plait.plan.topology import WIRE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.topology import Port, Wired
    from plait.scenario.links import Conditions

NETEM_LIMIT = 1_000_000
"""Packets under way; never reached (it takes no memory until it is used)."""
LEAST_DELAY_NS = 1
"""So that netem takes the packet over from its sender's accounting also where a link has no delay."""
ETHERNET_BYTES = 14
DEFAULT_QUEUE_PACKETS = 100


def frame_bytes(wired: Wired) -> int:
    """The longest frame, counted as tc counts."""
    return wired.link.mtu + ETHERNET_BYTES


def veths(wired: Wired) -> Iterator[Veth]:
    """One pair for each end: node to wire."""
    for number, port in enumerate(wired.ports):
        both = (port.address, *(twin.address for twin in wired.second[number : number + 1]))
        addresses = tuple(str(address) for address in both if address is not None)
        yield Veth(
            a=VethEnd(netns=port.node, ifname=port.ifname, mac=port.mac, addresses=addresses),
            b=VethEnd(netns=WIRE, ifname=port.wire_ifname, mac=port.wire_mac),
            mtu=wired.link.mtu,
        )


def redirects(wired: Wired) -> Iterator[Redirect]:
    """What comes from one end goes to the other."""
    for port in wired.ports:
        yield Redirect(netns=WIRE, source=port.wire_ifname, target=port.far.wire_ifname)


def link(wired: Wired, rtts_ns: dict[str, int]) -> Link:
    """The link with its conditions; `rtts_ns` is the largest base RTT of the paths by link direction."""
    a, b = wired.ports
    one, other = (direction(p, p.wired.link.conditions(forward=p.at_a), rtts_ns) for p in (a, b))
    return Link(name=wired.key, directions=(one, other))


def direction(port: Port, conditions: Conditions, rtts_ns: dict[str, int]) -> LinkDirection:
    """What leaves through a port under these conditions; the `bdp` of a queue is that of `rtts_ns`."""
    packets, size = _queue(port, conditions, rtts_ns)
    return LinkDirection(
        name=port.out,
        source=port.node,
        target=port.far.node,
        ifname=port.far.wire_ifname,
        rate_bps=None if conditions.rate is None else int(conditions.rate),
        delay_ns=int(conditions.delay or 0),
        jitter_ns=int(conditions.jitter or 0),
        loss_ratio=float(conditions.loss or 0),
        queue_packets=packets,
        queue_bytes=size,
    )


def _queue(port: Port, conditions: Conditions, rtts_ns: dict[str, int]) -> tuple[int | None, int | None]:
    """(packets, bytes) of the queue before the rate; one of them, or none where there is no rate."""
    if conditions.rate is None:
        return None, None
    given = conditions.queue
    if given is not None and given.unit == "pkt":
        return int(given.amount), None
    if given is not None and given.unit == "B":
        return None, int(given.amount)
    own_ns = port.wired.delay_ns(forward=True) + port.wired.delay_ns(forward=False)
    product = int(conditions.rate) * rtts_ns.get(port.out, own_ns)
    amount = 1 if given is None else given.amount
    packets = ceil(product * amount / (8 * 10**9 * frame_bytes(port.wired)))
    return max(packets, DEFAULT_QUEUE_PACKETS if given is None else 1), None


def qdiscs(planned: Link, wired: Wired) -> Iterator[Qdisc]:
    """The qdiscs of both directions, each parent before its child; see `reseeded` for their seeds."""
    for one in planned.directions:
        yield from direction_qdiscs(one, frame_bytes(wired))


def direction_qdiscs(planned: LinkDirection, frame: int) -> Iterator[Qdisc]:
    """The qdiscs of one direction whose longest frame has so many bytes; netem is not seeded yet."""
    at = {"netns": WIRE, "ifname": planned.ifname}
    delay = Netem(
        delay_ns=max(LEAST_DELAY_NS, planned.delay_ns),
        jitter_ns=planned.jitter_ns,
        loss_ratio=planned.loss_ratio,
        limit_packets=NETEM_LIMIT,
        seed=0,
    )
    yield Qdisc(**at, parent="root", handle="1:", options=delay)
    if planned.rate_bps is None:
        return
    burst = max(2 * frame, ceil(planned.rate_bps * 20 / 8_000_000))
    queued = planned.queue_bytes or (planned.queue_packets or 1) * frame
    bucket = Tbf(rate_bps=planned.rate_bps, burst_bytes=burst, limit_bytes=queued)
    yield Qdisc(**at, parent="1:1", handle="2:", options=bucket)
    queue: Pfifo | Bfifo = (
        Pfifo(limit_packets=planned.queue_packets)
        if planned.queue_packets is not None
        else Bfifo(limit_bytes=queued)
    )
    yield Qdisc(**at, parent="2:1", handle="3:", options=queue)


def reseeded(qdisc: Qdisc, seed: int) -> Qdisc:
    """The qdisc, with this seed if it has one."""
    if not isinstance(qdisc.options, Netem):
        return qdisc
    return qdisc.model_copy(update={"options": qdisc.options.model_copy(update={"seed": seed})})
