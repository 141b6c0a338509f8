"""Data-centre networks: the fat-tree of k-port switches, and two layers with several parallel links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from plait.scenario.fields.parts import Delay, Whole
from plait.scenario.generators.base import Description, Generator, Options
from plait.units import Queue, Rate

if TYPE_CHECKING:
    from plait.scenario.mistakes import FieldMistake

_PERMUTATION: list[Options] = [{"permutation": {"each": {"bulk": {"duration": "10s"}}}}]


class FatTree(Generator):
    """A fat-tree of k-port layer-3 switches with ECMP (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008).

    k pods of k/2 edge routers (`p0e0`) and k/2 aggregation routers (`p0a0`), (k/2)^2 core routers (`c0`); each edge
    router has k/2 hosts (`p0e0h0`). All links are alike, so that every host could send at its full rate to any other:
    k^3/4 hosts, 5k^2/4 routers, 3k^3/4 links, and (k/2)^2 shortest paths between two pods.
    """

    SIZE: ClassVar[str] = "k"
    TRAFFIC: ClassVar[list[Options]] = _PERMUTATION

    generator: Literal["fat-tree"] = "fat-tree"
    k: Annotated[Whole, Field(ge=2)] = 4
    """Ports of each router; even."""
    rate: Rate = Rate.parse("100mbit")
    """Of every link."""
    delay: Delay = Delay.parse("100us")
    """Of every link, one way."""
    queue: Queue | None = None
    """Of every link."""

    def mistakes(self) -> list[FieldMistake]:
        """Half of the ports go up, half down."""
        if self.k % 2:
            message = f"{self.k} is odd, and half of a router's ports go up, half down; write for example {self.k + 1}"
            return [(("k",), message)]
        return []

    def count_links(self) -> int:
        """k^3/4 on each of three layers."""
        return 3 * self.k**3 // 4

    def describe(self) -> Description:
        """Core router (i, j) joins the i-th aggregation router of every pod."""
        half = self.k // 2
        alike: dict[str, Any] = {"rate": self.rate, "delay": self.delay, "queue": self.queue}
        out = Description()
        pods = range(self.k)
        edges = [[f"p{pod}e{i}" for i in range(half)] for pod in pods]
        aggregations = [[f"p{pod}a{i}" for i in range(half)] for pod in pods]
        cores = [f"c{i}" for i in range(half * half)]
        out.add_hosts(*(f"{edge}h{i}" for pod in pods for edge in edges[pod] for i in range(half)))
        out.add_routers(*cores, *(name for pod in pods for name in (*aggregations[pod], *edges[pod])))
        for pod in pods:
            for edge in edges[pod]:
                for i in range(half):
                    out.join(f"{edge}h{i}", edge, **alike)
        for pod in pods:
            for edge in edges[pod]:
                for aggregation in aggregations[pod]:
                    out.join(edge, aggregation, **alike)
        for pod in pods:
            for i, aggregation in enumerate(aggregations[pod]):
                for core in cores[i * half : (i + 1) * half]:
                    out.join(aggregation, core, **alike)
        out.more["routing"] = {"ecmp": True}
        return out


class TwoLayerTree(Generator):
    """Two layers with several parallel links between each edge (`e1`) and core switch (`c1`); hosts `e1h1`, ..

    The switches are OpenFlow switches with flows of the plan's own; or, on wish, routers with ECMP.
    """

    SIZE: ClassVar[str] = "edges"
    TRAFFIC: ClassVar[list[Options]] = _PERMUTATION

    generator: Literal["two-layer-tree"] = "two-layer-tree"
    cores: Annotated[Whole, Field(ge=1)] = 2
    edges: Annotated[Whole, Field(ge=1)] = 4
    parallel: Annotated[Whole, Field(ge=1)] = 9
    """Links between each edge and core switch."""
    hosts_per_edge: Annotated[Whole, Field(ge=1)] = 18
    """18 fill the 36 ports of the published example: 2 times 9 links up, 18 down."""
    forwarding: Literal["openflow", "ecmp"] = "openflow"
    """OpenFlow switches, all hosts in one subnet; or routers with ECMP, each link a subnet of its own."""
    rate: Rate = Rate.parse("100mbit")
    """Of every link."""
    delay: Delay = Delay.parse("100us")
    """Of every link, one way."""
    queue: Queue | None = None
    """Of every link."""

    def mistakes(self) -> list[FieldMistake]:
        """Traffic needs two hosts."""
        if self.edges * self.hosts_per_edge < 2:
            return [(("hosts_per_edge",), "this network has one host; a network needs two")]
        return []

    def count_links(self) -> int:
        """Parallel links between the layers, and one for each host."""
        return self.cores * self.edges * self.parallel + self.edges * self.hosts_per_edge

    def describe(self) -> Description:
        """Hosts first."""
        alike: dict[str, Any] = {"rate": self.rate, "delay": self.delay, "queue": self.queue}
        out = Description()
        edges = [f"e{i + 1}" for i in range(self.edges)]
        cores = [f"c{i + 1}" for i in range(self.cores)]
        out.add_hosts(*(f"{edge}h{i + 1}" for edge in edges for i in range(self.hosts_per_edge)))
        if self.forwarding == "openflow":
            out.add_switches(*cores, *edges, openflow="multipath")
        else:
            out.add_routers(*cores, *edges)
            out.more["routing"] = {"ecmp": True}
        for edge in edges:
            for i in range(self.hosts_per_edge):
                out.join(f"{edge}h{i + 1}", edge, **alike)
        for edge in edges:
            for core in cores:
                for _ in range(self.parallel):
                    out.join(edge, core, **alike)
        return out
