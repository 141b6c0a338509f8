"""Nodes of a network: hosts, switches and routers, with addresses, routes and routing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plait.parts import Keyword, Label, Listed, Part, Sysctls
from plait.scenario.fields.links import SharedBucketSpec

Families = Literal["ipv4", "ipv6", "dual"]
SCHEDULER, CONGESTION_CONTROL = "net.mptcp.scheduler", "net.ipv4.tcp_congestion_control"


Addresses = Annotated[list[str], Field(min_length=1, max_length=2), Listed]


class GivenRoute(Part):
    """A static route of a node, which replaces derived routes to its destinations."""

    to: Annotated[str, Field(min_length=1, max_length=60)]
    """Destination: a node (all its addresses), a prefix, or `default`."""
    via: Annotated[str, Field(min_length=1, max_length=80)]
    """Next hop: the name of a router, an address of it, or the link to it."""


class Node(Part):
    """The fields of hosts and routers."""

    label: Label | None = None
    """Text that figures, tables and sentences show instead of its name."""
    addresses: dict[str, Addresses] = {}
    """Addresses by link of this node: `{h1-s1: 192.168.1.1/24}`, or a list with one of each family. plait derives
    the others."""
    sysctls: Sysctls = {}
    routes: Annotated[list[GivenRoute], Field(max_length=256)] = []
    """Static routes. plait derives the others."""
    bucket: SharedBucketSpec | None = None
    """Token bucket that its interfaces share, such as the burst allowance of a cloud instance."""


class Host(Node):
    """A host, which runs applications and does not forward."""

    scheduler: Keyword | None = None
    """Packet scheduler of its MPTCP connections. Default: mptcp.scheduler."""
    congestion_control: Keyword | None = None
    """Congestion control of its TCP connections and subflows. Default: tcp.congestion_control."""

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> Host:
        for field, name in (("scheduler", SCHEDULER), ("congestion_control", CONGESTION_CONTROL)):
            if getattr(self, field) is not None and {name, name.replace(".", "/")} & set(self.sysctls):
                raise ValueError(f"{field} and the sysctl {name} set the same value; remove one of them")
        return self


class Switch(Part):
    """A switch: a Linux bridge without spanning tree, or an Open vSwitch datapath."""

    label: Label | None = None
    """Text that figures, tables and sentences show instead of its name."""
    openflow: Literal["learning", "multipath"] | None = None
    """Use an Open vSwitch datapath: `learning` forwards like a bridge; `multipath` has flow entries that use all best
    paths between switches, also in topologies with cycles."""


class Router(Node):
    """A router, which forwards by the routes that `routing` selects."""

    nat: list[str] = []
    """Outside links of a source NAT: IPv4 packets leave there with the router's address, and hosts outside cannot
    reach hosts inside."""


class RoutingSpec(Part):
    """How plait selects derived routes, and whether routers spread flows over equal routes."""

    metric: Literal["delay", "hops"] = "delay"
    """`delay`: least sum of link delays, then fewest hops; `hops`: fewest routers, then least delay."""
    ecmp: bool = False
    """Whether each TCP connection or subflow takes one of the best paths, by a hash of its addresses and ports."""
