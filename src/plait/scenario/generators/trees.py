"""Networks of switches: fat trees and two-layer trees of data centres, and a swarm of peers."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from plait.parts import Delay, Whole
from plait.scenario.generators.base import Description, Generator, Options, numbered
from plait.scenario.mistakes import FieldMistake
from plait.units import Queue, Rate

_PERMUTATION: list[Options] = [{"permutation": {"each": {"bulk": {"duration": "10s"}}}}]


class FatTree(Generator):
    """A fat-tree of k-port layer-3 switches with ECMP (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008).

    k pods of k/2 edge routers (`p0e0`) and k/2 aggregation routers (`p0a0`), (k/2)^2 core routers (`c0`); each edge
    router has k/2 hosts (`p0e0h0`). All links are equal, so every host can send at its full rate to any other:
    k^3/4 hosts, 5k^2/4 routers, 3k^3/4 links, and (k/2)^2 shortest paths between two pods.
    """

    SIZE: ClassVar[str] = "k"
    TRAFFIC: ClassVar[list[Options]] = _PERMUTATION

    generator: Literal["fat-tree"] = "fat-tree"
    k: Annotated[Whole, Field(ge=2)] = 4
    """Number of ports of each router; even."""
    rate: Rate = Rate.parse("100mbit")
    """Rate of every link."""
    delay: Delay = Delay.parse("100us")
    """One-way delay of every link."""
    queue: Queue | None = None
    """Queue length of every link."""

    def mistakes(self) -> list[FieldMistake]:
        """Return a mistake for an odd k."""
        if self.k % 2:
            problem = f"{self.k} is odd, but half of a router's ports are uplinks, half downlinks"
            return [(("k",), f"{problem}; write for example {self.k + 1}")]
        return []

    def describe(self) -> Description:
        """Return the network; core router (i, j) has a link to the i-th aggregation router of every pod."""
        half = self.k // 2
        alike: dict[str, Any] = {"rate": self.rate, "delay": self.delay, "queue": self.queue}
        net = Description()
        pods = range(self.k)
        cores = numbered("c", half * half, first=0)
        edges = [numbered(f"p{pod}e", half, first=0) for pod in pods]
        aggregations = [numbered(f"p{pod}a", half, first=0) for pod in pods]
        for edge in chain(*edges):
            net.add_hosts(*numbered(f"{edge}h", half, first=0))
        net.add_routers(*cores, *(name for pod in pods for name in (*aggregations[pod], *edges[pod])))
        for host in net.hosts:
            net.join(host, host.rpartition("h")[0], **alike)
        for pod in pods:
            for edge in edges[pod]:
                for aggregation in aggregations[pod]:
                    net.join(edge, aggregation, **alike)
        for pod in pods:
            for i, aggregation in enumerate(aggregations[pod]):
                for core in cores[i * half : (i + 1) * half]:
                    net.join(aggregation, core, **alike)
        net.more["routing"] = {"ecmp": True}
        return net


class TwoLayerTree(Generator):
    """Two layers with several parallel links between each edge (`e1`) and core switch (`c1`); hosts `e1h1`, ..

    The switches are OpenFlow switches with flow entries of the plan, or routers with ECMP.
    """

    SIZE: ClassVar[str] = "edges"
    TRAFFIC: ClassVar[list[Options]] = _PERMUTATION

    generator: Literal["two-layer-tree"] = "two-layer-tree"
    cores: Annotated[Whole, Field(ge=1)] = 2
    """Number of core switches."""
    edges: Annotated[Whole, Field(ge=1)] = 4
    """Number of edge switches."""
    parallel: Annotated[Whole, Field(ge=1)] = 9
    """Number of parallel links between each edge and core switch."""
    hosts_per_edge: Annotated[Whole, Field(ge=1)] = 18
    """Number of hosts per edge switch; 18 fill the 36 ports of the published example, with 2 times 9 uplinks."""
    forwarding: Literal["openflow", "ecmp"] = "openflow"
    """`openflow`: switches, with all hosts in one subnet. `ecmp`: routers, with a subnet for each link."""
    rate: Rate = Rate.parse("100mbit")
    """Rate of every link."""
    delay: Delay = Delay.parse("100us")
    """One-way delay of every link."""
    queue: Queue | None = None
    """Queue length of every link."""

    def mistakes(self) -> list[FieldMistake]:
        """Return a mistake for a network with one host."""
        if self.edges * self.hosts_per_edge < 2:
            return [
                (
                    ("hosts_per_edge",),
                    "the network has one host, but needs two; raise edges or hosts_per_edge",
                )
            ]
        return []

    def describe(self) -> Description:
        """Return the network."""
        alike: dict[str, Any] = {"rate": self.rate, "delay": self.delay, "queue": self.queue}
        net = Description()
        edges, cores = numbered("e", self.edges), numbered("c", self.cores)
        for edge in edges:
            net.add_hosts(*numbered(f"{edge}h", self.hosts_per_edge))
        if self.forwarding == "openflow":
            net.add_switches(*cores, *edges, openflow="multipath")
        else:
            net.add_routers(*cores, *edges)
            net.more["routing"] = {"ecmp": True}
        for host in net.hosts:
            net.join(host, host.rpartition("h")[0], **alike)
        for edge in edges:
            for core in cores:
                for _ in range(self.parallel):
                    net.join(edge, core, **alike)
        return net


class Swarm(Generator):
    """Hosts `seeder`, and `peer1`, `peer2`, ..: each has a link to every one of the switches `s1`, `s2`, .."""

    SIZE: ClassVar[str] = "n"
    TRAFFIC: ClassVar[list[Options]] = _PERMUTATION

    generator: Literal["swarm"] = "swarm"
    n: Annotated[Whole, Field(ge=1)] = 8
    """Number of peers, without the seeder."""
    lines: Annotated[Whole, Field(ge=1, le=8)] = 2
    """Number of links of each host, and of switches; a host has at most 8 endpoints."""
    rate: Rate = Rate.parse("20mbit")
    """Rate of each link, in each direction."""
    delay: Delay = Delay.parse("5ms")
    """One-way delay of each link; between two peers it is twice as much."""

    def describe(self) -> Description:
        """Return the network, with the first link of each host as its initial path."""
        net = Description()
        net.add_hosts("seeder", *numbered("peer", self.n))
        net.add_switches(*numbered("s", self.lines))
        for host in net.hosts:
            for switch in net.switches:
                net.join(host, switch, rate=self.rate, delay=self.delay)
        return net
