"""Records of the plan for nodes that forward: OpenFlow switches, equal-cost routes, address translation."""

from __future__ import annotations

from plait.parts import U32, Address, IfName, Record


class Nexthop(Record):
    """One of the equal-cost next hops of a route."""

    device: IfName
    via: Address


class FlowRule(Record):
    """One flow of a datapath: the packets that match all given fields, and the actions on them.

    Flows have no priorities: no packet matches two. Without output and hash the datapath drops the packet.
    """

    recirculation: U32 = 0
    """0: a packet as it arrived; otherwise the recirculation id that an earlier flow gave it."""
    in_port: IfName | None = None
    destination: str | None = None
    """An Ethernet address, or an address with a mask (`01:00:00:00:00:00/01:00:00:00:00:00`)."""
    hash: U32 = 0
    hash_mask: U32 | None = None
    """These bits of the computed hash must equal `hash`; None: any hash, or none."""
    output: tuple[IfName, ...] = ()
    hash_basis: U32 | None = None
    """The flow computes a hash of addresses and ports with this basis, and recirculates the packet as `recirculate`."""
    recirculate: U32 = 0


class Datapath(Record):
    """An OpenFlow switch: a datapath of Open vSwitch in the kernel. Its ports have numbers from 1.

    With `learning`, the engine handles each packet that matches no flow, and learns addresses as a switch does;
    otherwise the datapath drops it.
    """

    netns: str
    ifname: IfName
    ports: tuple[IfName, ...]
    learning: bool = False
    rules: tuple[FlowRule, ...] = ()


class Nat(Record):
    """Address translation at a router, by nftables (chain postrouting, masquerade).

    IPv4 packets that leave through an outside interface get its address; the kernel translates answers back.
    """

    netns: str
    outside: tuple[IfName, ...]
