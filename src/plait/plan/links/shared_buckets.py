"""Token buckets that several interfaces of a node share, as kernel objects.

An ifb in `wire` holds the bucket. A redirect sends each packet to it before the packet enters one of the links. The
packet waits for tokens, and the ifb then returns it to the interface where the link's own qdiscs follow. So there
is one bucket for all of its links, and it lasts as long as the trial.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.errors import FieldMistakesError
from plait.plan.links.links import place
from plait.plan.links.queue_lengths import ShapedInterface, configured_length
from plait.plan.model.links import SharedBucket
from plait.plan.model.plan import Ifb, Redirect
from plait.plan.network.model import WIRE, Port, Topology, mac
from plait.scenario.fields.links import SharedBucketSpec

_SIDES = {"out": ("out",), "in": ("in",), "each": ("out", "in"), "together": ("together",)}
_MAC_KIND = 3


def buckets(
    net: Topology, rtts_ns: dict[str, int]
) -> tuple[tuple[SharedBucket, ...], tuple[Ifb, ...], tuple[Redirect, ...]]:
    """Return all shared buckets in the order of the nodes, their interfaces, and the redirects to these.

    Raise FieldMistakesError if two buckets would hold the same direction of a link.
    """
    planned: list[SharedBucket] = []
    takers: dict[Port, tuple[str, str]] = {}
    ports_of: dict[str, list[Port]] = {}
    for port in (port for link in net.wires for port in link.ports):
        ports_of.setdefault(port.node, []).append(port)
    nodes = {**net.scenario.network.hosts, **net.scenario.network.routers}
    for node, options in nodes.items():
        if options.bucket is None:
            continue
        for side in _SIDES[options.bucket.direction]:
            ports = list(_ports(ports_of[node], options.bucket, side))
            _claim(net, takers, ports, node)
            ifb_place = _ifb_place(f"bucket{len(planned)}", ports, rtts_ns)
            planned.append(_planned(f"{node} {side}", ifb_place, options.bucket, ports))
    ifbs = (
        Ifb(netns=WIRE, ifname=bucket.ifname, mac=mac(_MAC_KIND, number))
        for number, bucket in enumerate(planned)
    )
    return tuple(planned), tuple(ifbs), tuple(_redirects(net, planned))


def takes_tokens(net: Topology, port: Port) -> bool:
    """Return whether a link's bucket or a shared one changes the rate of packets that leave their node by this port."""
    nodes = {**net.scenario.network.hosts, **net.scenario.network.routers}
    for node, end, sides in (
        (port.node, port, ("out", "together")),
        (port.far.node, port.far, ("in", "together")),
    ):
        bucket = nodes[node].bucket if node in nodes else None
        if bucket is None or (bucket.links is not None and end.link.key not in bucket.links):
            continue
        if any(side in sides for side in _SIDES[bucket.direction]):
            return True
    return port.conditions.bucket is not None and port.conditions.bucket.baseline is not None


def _ports(ports: list[Port], bucket: SharedBucketSpec, side: str) -> Iterator[Port]:
    """Yield the ports by which packets that the bucket limits enter links."""
    for port in ports:
        if bucket.links is not None and port.link.key not in bucket.links:
            continue
        if side in ("out", "together"):
            yield port
        if side in ("in", "together"):
            yield port.far


def _claim(net: Topology, takers: dict[Port, tuple[str, str]], ports: list[Port], node: str) -> None:
    for port in ports:
        if port in takers:
            kind = "hosts" if node in net.scenario.network.hosts else "routers"
            message = (
                f"packets on {port.out} would need tokens of the buckets of {takers[port][0]} and {node}, and a link "
                "direction takes tokens of at most one shared bucket; put a switch or a router between the two nodes, "
                "or leave the link out of one bucket's links"
            )
            raise FieldMistakesError((("network", kind, node, "bucket"), message))
        takers[port] = (node, port.out)


def _ifb_place(ifname: str, ports: list[Port], rtts_ns: dict[str, int]) -> ShapedInterface:
    """Return the ifb, with the longest frame and RTT of the links."""
    places = [place(port, rtts_ns) for port in ports]
    return ShapedInterface(
        ifname=ifname,
        frame_bytes=max(direction.frame_bytes for direction in places),
        rtt_ns=max(direction.rtt_ns for direction in places),
    )


def _planned(name: str, where: ShapedInterface, bucket: SharedBucketSpec, ports: list[Port]) -> SharedBucket:
    packets, size = configured_length(bucket.queue, where, int(bucket.peak))
    return SharedBucket(
        name=name,
        ifname=where.ifname,
        peak_bps=int(bucket.peak),
        baseline_bps=int(bucket.baseline),
        burst_bytes=int(bucket.burst),
        queue_packets=packets,
        queue_bytes=size,
        frame_bytes=where.frame_bytes,
        directions=tuple(port.out for port in ports),
    )


def _redirects(net: Topology, planned: list[SharedBucket]) -> Iterator[Redirect]:
    leaves_by = {port.out: port.far.wire_ifname for link in net.wires for port in link.ports}
    for bucket in planned:
        for direction in bucket.directions:
            yield Redirect(netns=WIRE, source=leaves_by[direction], target=bucket.ifname, hook="egress")
