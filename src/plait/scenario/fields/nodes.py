"""Nodes of a network, and how its routers choose: hosts, switches, routers, addresses and routing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.links import SharedBucketSpec
from plait.scenario.fields.parts import Keyword, Part, Sysctls, listed

Families = Literal["ipv4", "ipv6", "dual"]
SCHEDULER, CONGESTION_CONTROL = "net.mptcp.scheduler", "net.ipv4.tcp_congestion_control"


Addresses = Annotated[
    list[str],
    Field(min_length=1, max_length=2),
    BeforeValidator(listed, json_schema_input_type=str | list[str]),
]


class GivenRoute(Part):
    """A route of a node, in place of what would be derived for the destinations it covers."""

    to: Annotated[str, Field(min_length=1, max_length=60)]
    """A node (all its addresses), a prefix, or `default`."""
    via: Annotated[str, Field(min_length=1, max_length=80)]
    """The next router: its name, an address of it, or the link to it."""


class Node(Part):
    """What hosts and routers have: addresses by link, kernel settings and routes of their own."""

    addresses: dict[str, Addresses] = {}
    """By the name of a link of this host: `{h1-s1: 192.168.1.1/24}`, or one of each family in a list. Others are
    derived."""
    sysctls: Sysctls = {}
    routes: Annotated[list[GivenRoute], Field(max_length=256)] = []
    """Others are derived."""
    bucket: SharedBucketSpec | None = None
    """A token bucket that its interfaces share: a cloud instance's burst allowance."""


class Host(Node):
    """A host: it runs applications, and does not forward."""

    scheduler: Keyword | None = None
    """Of its MPTCP connections. Default: mptcp.scheduler."""
    congestion_control: Keyword | None = None
    """Of its TCP connections and subflows. Default: tcp.congestion_control."""

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> Host:
        for field, name in (("scheduler", SCHEDULER), ("congestion_control", CONGESTION_CONTROL)):
            if getattr(self, field) is not None and {name, name.replace(".", "/")} & set(self.sysctls):
                raise ValueError(f"{field} and the sysctl {name} are the same; give one of them")
        return self


class Switch(Part):
    """A switch: a Linux bridge without spanning tree, or a datapath of Open vSwitch."""

    openflow: Literal["learning", "multipath"] | None = None
    """An Open vSwitch in the kernel: `learning`, as a bridge; `multipath`, with flows of the plan's own that use all of
    the best ways between switches, also where those form cycles."""


class Router(Node):
    """A router: it forwards, as the network's `routing` says."""

    nat: list[str] = []
    """Links of this router that lead outside: IPv4 packets leave there with the router's own address, and what
    is not outside cannot be reached from there."""


class RoutingSpec(Part):
    """How derived routes are chosen, and whether routers spread flows over routes that are equally good."""

    metric: Literal["delay", "hops"] = "delay"
    """`delay`: the least sum of link delays, then the fewest hops; `hops`: the fewest routers, then the least delay."""
    ecmp: bool = False
    """Each TCP connection (a subflow, too) takes one of the best ways, by a hash of its addresses and ports."""
