"""Switches that forward by the plan's own flows: their shortest paths and their flow tables.

Frames take the shortest paths between switches, by the network's metric, and use all equal-cost ones, so that
cycles and parallel links are allowed. Where several ports have equal cost, a flow computes a hash of addresses and
ports with a basis that the trial gives to each switch, and recirculates the packet; the low bits of the hash then
choose the port, like the `select` groups of OpenFlow. Broadcast and multicast frames (ARP, neighbour discovery)
follow a spanning tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.plan.model.forwarding import Datapath, FlowRule
from plait.plan.network.model import Port, Segment, Topology

BRIDGE = "br0"
FOR_GROUPS = "01:00:00:00:00:00/01:00:00:00:00:00"
"""Broadcast and multicast: the first transmitted bit of the address is set."""
_BUCKETS = 64
"""Buckets if the number of ports is no power of two; of 9 ports, the busiest one gets at most a sixteenth too much."""


def datapaths(topology: Topology) -> Iterator[Datapath]:
    """Yield the OpenFlow switches in the order of their declaration; flows that hash have no basis yet."""
    for switch, options in topology.scenario.network.switches.items():
        if options.openflow is None:
            continue
        ports = topology.ports[switch]
        segment = ports[0].segment
        learning = options.openflow == "learning"
        yield Datapath(
            netns=switch,
            ifname=BRIDGE,
            ports=tuple(port.ifname for port in ports),
            learning=learning,
            rules=() if learning else tuple(_rules(switch, ports, segment)),
        )


def _rules(switch: str, ports: list[Port], segment: Segment) -> Iterator[FlowRule]:
    fabric = segment.fabric
    assert fabric is not None  # every segment of such a switch has one
    groups: dict[tuple[str, ...], int] = {}
    for link in segment.wires:
        for target in link.ports:
            if target.node in segment.depth:
                continue
            attached = target.far.node
            best = (target.far,) if attached == switch else fabric.towards(attached)[switch]
            names = tuple(port.ifname for port in best)
            if len(names) == 1:
                yield FlowRule(destination=target.mac, output=names)
            else:
                group = groups.setdefault(names, len(groups) + 1)
                yield FlowRule(destination=target.mac, hash_basis=0, recirculate=group)
    for names, group in groups.items():
        yield from _buckets(names, group)
    tree = [port for port in ports if _in_tree(port, segment)]
    for port in tree:
        output = tuple(other.ifname for other in tree if other is not port)
        yield FlowRule(in_port=port.ifname, destination=FOR_GROUPS, output=output)


def _buckets(names: tuple[str, ...], group: int) -> Iterator[FlowRule]:
    count = len(names) if len(names).bit_count() == 1 else _BUCKETS
    for bucket in range(count):
        output = (names[bucket % len(names)],)
        yield FlowRule(recirculation=group, hash=bucket, hash_mask=count - 1, output=output)


def _in_tree(port: Port, segment: Segment) -> bool:
    """Return whether a switch's port is on the spanning tree.

    Such a port leads towards the root, away from it, or to a node that is no switch.
    """
    far = port.far
    return (
        far.node not in segment.depth or segment.up.get(port.node) is port or segment.up.get(far.node) is far
    )


def reseeded(datapath: Datapath, seed: int) -> Datapath:
    """Return the datapath with this seed as the basis of its hashes."""
    basis = {"hash_basis": seed % 2**32}
    rules = (rule if rule.hash_basis is None else rule.model_copy(update=basis) for rule in datapath.rules)
    return datapath.model_copy(update={"rules": tuple(rules)})
