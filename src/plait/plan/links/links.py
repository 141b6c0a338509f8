"""Links of the plan: the ends of each, and the conditions of its two directions as numbers.

A host's interface is fast; the link is a box in the middle, in the namespace `wire`. A redirect sends what arrives from
one end to the interface of the other. `chain.py` derives the qdiscs there.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

from plait.frames import frame_bytes
from plait.plan.links.distributions import UNIFORM, netem_jitter_ns
from plait.plan.links.queue_lengths import ShapedInterface, queue_length
from plait.plan.links.queue_managers import manager
from plait.plan.model.links import EFFECTS, Link, LinkDirection, VethEnd
from plait.plan.model.plan import Redirect, Veth
from plait.plan.model.qdiscs import Gemodel, Replay
from plait.plan.network.middlebox import middleboxes
from plait.plan.network.model import WIRE, Port, TopologyLink
from plait.plan.network.traces import Followed
from plait.scenario.fields.conditions import Conditions, Jitter
from plait.scenario.fields.traces import OPPORTUNITY_BYTES, Opportunities
from plait.traffic.transfer import File
from plait.units import Queue


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
    """Return the interface of the direction that leaves its node by `port`.

    `rtts_ns` is the largest base RTT of the paths by link direction; for a link that no path crosses, its own
    RTT counts.
    """
    link = port.link
    own_ns = link.delay_ns(forward=True) + link.delay_ns(forward=False)
    return ShapedInterface(
        ifname=port.far.wire_ifname,
        frame_bytes=frame_bytes(link.spec.mtu),
        rtt_ns=rtts_ns.get(port.out, own_ns),
    )


def link(link: TopologyLink, rtts_ns: dict[str, int]) -> Link:
    """Return the link with its conditions, and seeds of 0."""
    a, b = (direction(port, place(port, rtts_ns), port.conditions) for port in link.ports)
    return Link(name=link.key, directions=(a, b))


def direction(port: Port, place: ShapedInterface, conditions: Conditions) -> LinkDirection:
    """Return the direction that leaves its node by `port`, with these conditions; a `bdp` is one of `place`'s RTT."""
    jitter, loss, bucket = conditions.jitter, conditions.loss, conditions.bucket
    model = None if loss is None else loss.as_gemodel()
    packets, size = queue_length(conditions, place)
    managed = None if conditions.rate is None else manager(conditions, place, packets, size)
    jitter_ns, distribution, factor_ns = _jitter(jitter)
    effects: dict[str, Any] = {
        name: float(getattr(conditions, name.removesuffix("_ratio")) or 0) for name in EFFECTS
    }
    moves_delay = isinstance(conditions.trace, Followed) and conditions.trace.moves_delay
    return LinkDirection(
        name=port.out,
        source=port.node,
        target=port.far.node,
        ifname=place.ifname,
        interface=port.ifname,
        rate_bps=None if conditions.rate is None else int(conditions.rate),
        delay_ns=int(conditions.delay or 0),
        jitter_ns=jitter_ns,
        jitter_distribution=distribution,
        jitter_factor_ns=factor_ns,
        in_order=moves_delay or (jitter is not None and not jitter.reorder),
        loss_ratio=0.0 if loss is None else loss.mean,
        loss_burst_packets=None if model is None or not model.r else 1 / model.r,
        gemodel=None if model is None else Gemodel(**{name: float(ratio) for name, ratio in model}),
        queue_packets=packets,
        queue_bytes=size,
        aqm=None if managed is None else managed.kind,
        manager=managed,
        baseline_bps=None if bucket is None or bucket.baseline is None else int(bucket.baseline),
        burst_bytes=None if bucket is None else int(bucket.burst),
        trace=_trace(conditions.trace),
        frame_bytes=place.frame_bytes,
        **effects,
    )


def settled(conditions: Conditions, place: ShapedInterface) -> Conditions:
    """Return the same conditions with their queue in packets or bytes, so that it stays when the rate changes."""
    packets, size = queue_length(conditions, place)
    if packets is None and size is None:
        return conditions
    queue = Queue(packets, "pkt") if packets is not None else Queue(size or 0, "B")
    return conditions.model_copy(update={"queue": queue})


def _jitter(jitter: Jitter | None) -> tuple[int, str | None, int]:
    """Return the jitter, the name of its distribution (None: uniform by its width), and the kernel's factor."""
    if jitter is None:
        return 0, None, 0
    if jitter.within is not None:
        return int(jitter.within), None, int(jitter.within)
    deviation_ns = int(jitter.deviation or 0)
    if jitter.named == UNIFORM:
        return deviation_ns, UNIFORM, round(deviation_ns * sqrt(3))
    return deviation_ns, jitter.named, netem_jitter_ns(jitter.named, deviation_ns)


def _trace(trace: object) -> Replay | None:
    """Return the replay of delivery opportunities, if the direction follows such a trace."""
    if not isinstance(trace, Followed) or not isinstance(trace.content, Opportunities):
        return None
    return Replay(
        file=File(name=trace.facts.name, bytes=trace.facts.bytes, sha256=trace.facts.sha256),
        opportunity_bytes=OPPORTUNITY_BYTES,
        repeated=trace.spec.loop,
    )
