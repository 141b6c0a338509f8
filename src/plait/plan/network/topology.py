"""The network as kernel devices: interfaces, segments, and the paths of frames through switches.

Switches run no spanning tree protocol, so a segment must be a tree, and plait refuses a cycle; except among
switches that forward by the plan's own flows (`openflow`).
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.errors import refuse_fields
from plait.plan.network import ifnames
from plait.plan.network.model import Fabric, Port, Segment, Topology, TopologyLink
from plait.plan.network.traces import followed
from plait.scenario.names import LinkName, read_link_name
from plait.scenario.scenario import Scenario

BRIDGE_PORTS_MAX = 1023


def build(scenario: Scenario, *, traces: bool = True) -> Topology:
    """Return the topology of a scenario. Raise FieldMistakesError for cycles of switches and nodes without links."""
    network = scenario.network
    nodes = {**network.hosts, **network.switches, **network.routers}
    names = [read_link_name(key, nodes) for key in network.links]
    groups = _segment_numbers(scenario, names)
    wires: list[TopologyLink] = []
    ports: dict[str, list[Port]] = {node: [] for node in nodes}
    segments: dict[int, Segment] = {}
    for index, (key, spec) in enumerate(network.links.items()):
        name = names[index]
        link = TopologyLink(index, key, name, followed(scenario, key, spec) if traces else spec)
        segment = segments.setdefault(groups[index], Segment())
        segment.wires.append(link)
        for node in (name.a, name.b):
            port = Port(node, len(ports[node]), link, segment, at_a=node == name.a)
            link.ports.append(port)
            ports[node].append(port)
        wires.append(link)
    _refuse_isolated_nodes(scenario, ports)
    _refuse_large_bridges(scenario, ports)
    _name_interfaces(ports)
    multipath = {switch for switch, options in network.switches.items() if options.openflow == "multipath"}
    for segment in segments.values():
        _build_tree(segment, ports, set(network.switches))
        if not multipath.isdisjoint(segment.depth):
            inside = {switch: ports[switch] for switch in segment.depth}
            segment.fabric = Fabric(inside, network.routing.metric)
    _refuse_mixed_mtus(segments.values())
    return Topology(scenario, wires, ports, list(segments.values()))


def _segment_numbers(scenario: Scenario, names: list[LinkName]) -> list[int]:
    """Return the segment of each link, as the number of its first link. Refuse cycles of switches."""
    switches = scenario.network.switches
    parent = {switch: switch for switch in switches}

    def root(switch: str) -> str:
        while parent[switch] != switch:
            parent[switch] = parent[parent[switch]]
            switch = parent[switch]
        return switch

    # a cycle among switches with the plan's own flows is a choice of paths; with any other switch, an endless loop
    multipath = {switch for switch, options in switches.items() if options.openflow == "multipath"}
    for name in names:
        if name.a in multipath and name.b in multipath:
            parent[root(name.b)] = root(name.a)
    cycles = []
    for key, name in zip(scenario.network.links, names, strict=True):
        if name.a in switches and name.b in switches and not (name.a in multipath and name.b in multipath):
            a, b = root(name.a), root(name.b)
            if a == b:
                message = (
                    f"this link closes a cycle of switches ({name.a} and {name.b} are already connected), in which "
                    "frames would circulate forever, because plait's switches run no spanning tree protocol; remove "
                    "the link, declare a node of the cycle under routers, or give all its switches "
                    "`openflow: multipath`"
                )
                cycles.append((("network", "links", key), message))
            parent[b] = a
    refuse_fields(cycles)
    first: dict[str, int] = {}
    return [
        next((first.setdefault(root(node), index) for node in (name.a, name.b) if node in switches), index)
        for index, name in enumerate(names)
    ]


def _refuse_isolated_nodes(scenario: Scenario, ports: dict[str, list[Port]]) -> None:
    """Refuse nodes without links: they are a mistake, or unreachable."""
    refuse_fields(
        (("network", kind, node), f"no link leads to '{node}'; add one, or remove the node")
        for kind in ("hosts", "switches", "routers")
        for node in getattr(scenario.network, kind)
        if not ports[node]
    )


def _refuse_large_bridges(scenario: Scenario, ports: dict[str, list[Port]]) -> None:
    """Refuse bridges with more ports than Linux supports.

    The limit is BR_MAX_PORTS of net/bridge/br_private.h; number 0 means no port.
    """
    mistakes = []
    for switch, options in scenario.network.switches.items():
        links = len(ports[switch])
        if options.openflow is None and links > BRIDGE_PORTS_MAX:
            message = (
                f"'{switch}' has {links} links, and a Linux bridge has at most {BRIDGE_PORTS_MAX} ports; use "
                "several switches, or give it `openflow: learning`"
            )
            mistakes.append((("network", "switches", switch), message))
    refuse_fields(mistakes)


def _name_interfaces(ports: dict[str, list[Port]]) -> None:
    """Give the interfaces of every node their names."""
    stems = ifnames.stems({node: len(of_node) for node, of_node in ports.items()})
    for node, of_node in ports.items():
        for port in of_node:
            port.stem = stems[node]


def _build_tree(segment: Segment, ports: dict[str, list[Port]], switches: set[str]) -> None:
    """Attach the segment's switches below the first one, so that a climb finds the path between two ports."""
    start = next((port.node for link in segment.wires for port in link.ports if port.node in switches), None)
    if start is None:
        return
    segment.depth[start] = 0
    waiting = [start]
    for switch in waiting:
        for port in ports[switch]:
            below = port.far
            if below.node in switches and below.node not in segment.depth:
                segment.depth[below.node] = segment.depth[switch] + 1
                segment.up[below.node] = below
                waiting.append(below.node)


def _refuse_mixed_mtus(segments: Iterable[Segment]) -> None:
    """Refuse a segment with several MTUs: a bridge silently drops frames that are too large for a port."""
    mistakes = []
    for segment in segments:
        first = segment.wires[0]
        for link in segment.wires[1:]:
            if link.spec.mtu != first.spec.mtu:
                message = (
                    f"the MTU is {link.spec.mtu} here and {first.spec.mtu} on {first.key}, and switches connect the "
                    "two links; give them the same MTU, or connect them by a router"
                )
                mistakes.append((("network", "links", link.key, "mtu"), message))
    refuse_fields(mistakes)


def way(source: Port, target: Port) -> list[Port]:
    """Return the ports by which a frame leaves the nodes on its way from `source` to `target` of one segment."""
    if source.far is target:
        return [source]
    segment = source.segment
    if segment.fabric is not None:
        return segment.fabric.way(source, target)
    a, b = source.far.node, target.far.node
    rising, falling = [source], [target.far]
    while a != b:
        if segment.depth[a] >= segment.depth[b]:
            port = segment.up[a]
            rising.append(port)
            a = port.far.node
        else:
            port = segment.up[b]
            falling.append(port.far)
            b = port.far.node
    return rising + falling[::-1]


def every_way(source: Port, target: Port) -> list[Port]:
    """Return all ports that a frame may leave by from `source` to `target` of one segment, for every choice."""
    fabric = source.segment.fabric
    return way(source, target) if fabric is None or source.far is target else fabric.every(source, target)


def delay_ns(ports: list[Port]) -> int:
    """Return the sum of the one-way delays of the links behind these ports."""
    return sum(port.link.delay_ns(forward=port.at_a) for port in ports)


def add_second_family(topology: Topology, segment: Segment) -> Segment:
    """Give a segment's hosts and routers ports in a second family; return the segment of those."""
    twin = Segment(segment.wires, segment.depth, segment.up, second=True, fabric=segment.fabric)
    for link in segment.wires:
        for port in link.ports:
            if port.node in segment.depth:
                link.second.append(port)
                continue
            other = Port(port.node, port.index, link, twin, at_a=port.at_a, stem=port.stem)
            link.second.append(other)
            topology.ports[port.node].append(other)
    topology.segments.append(twin)
    return twin
