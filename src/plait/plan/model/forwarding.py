"""Records of the plan for nodes that forward: OpenFlow switches, equally good routes, address translation."""

from __future__ import annotations

from pydantic import Field

from plait.plan.model.record import IfName, Record


class Nexthop(Record):
    """One of the equally good ways of a route."""

    device: IfName
    via: str


class FlowRule(Record):
    """One flow of a datapath: packets that match all given fields, and what becomes of them.

    Flows have no priorities: no packet matches two. Without output and hash a packet is dropped.
    """

    recirculation: int = Field(default=0, ge=0)
    """0: as it came in; else the number with which a flow has sent it round again."""
    in_port: IfName | None = None
    destination: str | None = None
    """An Ethernet address, or one with a mask (`01:00:00:00:00:00/01:00:00:00:00:00`)."""
    hash: int = Field(default=0, ge=0)
    hash_mask: int | None = None
    """These bits of the hash that a flow has computed must be `hash`; None: any hash, also none."""
    output: tuple[IfName, ...] = ()
    hash_basis: int | None = Field(default=None, ge=0, lt=2**32)
    """A hash of addresses and ports is computed with this basis, and the packet sent round with `recirculate`."""
    recirculate: int = Field(default=0, ge=0)


class Datapath(Record):
    """An OpenFlow switch: a datapath of Open vSwitch in the kernel. Its ports are numbered from 1.

    With `learning`, a packet that no flow matches is answered for by the engine, which learns addresses as a switch
    does; otherwise it is dropped.
    """

    netns: str
    ifname: IfName
    ports: tuple[IfName, ...]
    learning: bool = False
    rules: tuple[FlowRule, ...] = ()


class Nat(Record):
    """Address translation at a router, by nftables (chain postrouting, masquerade).

    IPv4 packets that leave through an outside interface take its address; answers are translated back.
    """

    netns: str
    outside: tuple[IfName, ...]
