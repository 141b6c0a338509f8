"""Links as kernel objects: veth pairs into the namespace `wire`, and where each direction is shaped. Pure.

A host's interface is fast; the link is a box in the middle. What arrives from one end is redirected to the
interface of the other, and meets the link's conditions as it leaves there (see `shaping`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.frames import frame_bytes
from plait.plan.links.queues import ShapedInterface, queue_length
from plait.plan.model.plan import Link, LinkDirection, Redirect, Veth, VethEnd
from plait.plan.network.middlebox import middleboxes
from plait.plan.network.model import WIRE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.network.model import Port, TopologyLink
    from plait.scenario.fields.conditions import Aqm, Conditions, Loss


def veths(wired: TopologyLink) -> Iterator[Veth]:
    """One pair for each end: node to wire."""
    for number, port in enumerate(wired.ports):
        both = (port.address, *(twin.address for twin in wired.second[number : number + 1]))
        addresses = tuple(str(address) for address in both if address is not None)
        yield Veth(
            a=VethEnd(netns=port.node, ifname=port.ifname, mac=port.mac, addresses=addresses),
            b=VethEnd(netns=WIRE, ifname=port.wire_ifname, mac=port.wire_mac),
            mtu=wired.link.mtu,
        )


def redirects(wired: TopologyLink) -> Iterator[Redirect]:
    """What comes from one end goes to the other, where no middlebox does that."""
    boxes = {box.source for box in middleboxes(wired)}
    for port in wired.ports:
        if port.wire_ifname not in boxes:
            yield Redirect(netns=WIRE, source=port.wire_ifname, target=port.far.wire_ifname)


def place(port: Port, rtts_ns: dict[str, int]) -> ShapedInterface:
    """Where the direction that leaves its node by `port` is shaped.

    `rtts_ns` is the largest base RTT of the paths by link direction; a link that no path crosses has its own.
    """
    wired = port.wired
    own_ns = wired.delay_ns(forward=True) + wired.delay_ns(forward=False)
    return ShapedInterface(
        netns=WIRE,
        ifname=port.far.wire_ifname,
        frame_bytes=frame_bytes(wired.link.mtu),
        rtt_ns=rtts_ns.get(port.out, own_ns),
    )


def link(wired: TopologyLink, rtts_ns: dict[str, int]) -> Link:
    """The link with its conditions, for monitors and analysis."""
    a, b = wired.ports
    one, other = (direction(p, p.wired.link.conditions(forward=p.at_a), rtts_ns) for p in (a, b))
    return Link(name=wired.key, directions=(one, other))


def direction(port: Port, conditions: Conditions, rtts_ns: dict[str, int]) -> LinkDirection:
    """What leaves through a port under these conditions; the `bdp` of a queue is that of `rtts_ns`."""
    packets, size = queue_length(conditions, place(port, rtts_ns))
    jitter, loss, bucket = conditions.jitter, conditions.loss, conditions.bucket
    return LinkDirection(
        name=port.out,
        source=port.node,
        target=port.far.node,
        ifname=port.far.wire_ifname,
        interface=port.ifname,
        rate_bps=None if conditions.rate is None else int(conditions.rate),
        delay_ns=int(conditions.delay or 0),
        jitter_ns=0 if jitter is None else int(jitter.within or jitter.deviation or 0),
        jitter_distribution=None if jitter is None or jitter.within is not None else jitter.named,
        loss_ratio=0.0 if loss is None else loss.mean,
        loss_burst_packets=_burst(loss),
        reorder_ratio=float(conditions.reorder or 0),
        duplicate_ratio=float(conditions.duplicate or 0),
        corrupt_ratio=float(conditions.corrupt or 0),
        queue_packets=packets,
        queue_bytes=size,
        aqm=None if packets is size is None else _managed(conditions.aqm),
        baseline_bps=None if bucket is None else int(bucket.baseline),
        burst_bytes=None if bucket is None else int(bucket.burst),
    )


def _burst(loss: Loss | None) -> float | None:
    """The mean time in the bad state, in packets."""
    model = None if loss is None else loss.as_gemodel()
    return None if model is None or not model.r else 1 / model.r


def _managed(aqm: Aqm | None) -> str | None:
    """The qdisc that manages the queue; None: drop-tail."""
    if aqm is None or aqm.droptail is not None:
        return None
    if aqm.red is not None and (aqm.red.points is not None or aqm.red.gentle):
        return "plait_red"
    return aqm.kind
