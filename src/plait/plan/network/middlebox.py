"""Middleboxes as nftables rules in `wire`, in place of a link's redirect, and as shell commands."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

from plait.plan.model.mptcp import Middlebox
from plait.plan.model.plan import Network
from plait.plan.network.model import WIRE, TopologyLink

_SEGMENTS = {
    "syn": "tcp flags & (syn|ack) == syn",
    "synack": "tcp flags & (syn|ack) == (syn|ack)",
    "ack": "tcp flags & syn == 0 meta length < 100",
    "data": "tcp flags & syn == 0 meta length >= 100",
}
"""The conditions of nft, which has no expression for the payload: short segments count as segments without one."""


def middleboxes(link: TopologyLink) -> Iterator[Middlebox]:
    """Yield a middlebox for each direction in which the link has one."""
    box = link.spec.middlebox
    for port, name in zip(link.ports, ("forward", "backward"), strict=True):
        if box is not None and box.direction in ("both", name):
            strip: tuple[Any, ...] = box.segments
            yield Middlebox(
                netns=WIRE,
                source=port.wire_ifname,
                target=port.far.wire_ifname,
                strip=strip,
                rewrite=box.rewrite,
            )


def commands(network: Network) -> Iterator[str]:
    """Yield shell commands that create the same middleboxes."""
    for box in network.middleboxes:
        run = f"ip netns exec {quote(box.netns)} nft"
        chain = f"netdev plait {box.source}"
        yield f"{run} add table netdev plait"
        yield f"{run} 'add chain {chain} {{ type filter hook ingress device {box.source} priority 0; }}'"
        if box.rewrite:
            yield "# nft cannot express what a trial also does: it inverts byte 100 of each segment"
        for kind in box.strip:
            yield f"{run} 'add rule {chain} {_SEGMENTS[kind]} reset tcp option mptcp'"
        yield f"{run} 'add rule {chain} fwd to {box.target}'"
