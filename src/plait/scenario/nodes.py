"""Nodes of a network, and how its routers choose: hosts, switches, routers, addresses and routing."""

from __future__ import annotations

from typing import Literal

from plait.scenario.parts import Part, Sysctls

Family = Literal["ipv4", "ipv6", "dual"]


class Host(Part):
    """A host: addresses by link, and kernel settings of its own."""

    addresses: dict[str, str] = {}
    """By the name of a link of this host: `{h1-s1: 192.168.1.1/24}`. Others are derived."""
    sysctls: Sysctls = {}


class Switch(Part):
    """A switch: a Linux bridge without spanning tree."""


class Router(Host):
    """A router: it forwards, as the network's `routing` says."""


class Routing(Part):
    """How derived routes are chosen, and whether routers spread flows over routes that are equally good."""

    metric: Literal["delay", "hops"] = "delay"
    """`delay`: the least sum of link delays, then the fewest hops; `hops`: the fewest routers, then the least delay."""
    ecmp: bool = False
    """Each TCP connection (a subflow, too) takes one of the best ways, by a hash of its addresses and ports."""
