"""The rules that keep the packets of a pair of addresses on the path that the scenario names for them.

At every node that would, or might, send them elsewhere, a rule for this pair of addresses looks up a table that
holds only the next hop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.model.plan import Route, Rule
from plait.plan.routes.explicit_paths import twin

if TYPE_CHECKING:
    from plait.plan.network.model import Port, Topology
    from plait.plan.routes.explicit_paths import Pin
    from plait.plan.routes.reach import Reach

FIRST_TABLE = 2001
FIRST_PRIORITY = 100
_WIDTH = {4: 32, 6: 128}


def path_rules(reach: Reach, topology: Topology) -> tuple[list[Route], list[Rule]]:
    """Return the routes and rules of all pins, at the nodes that would, or might, forward otherwise."""
    routes: list[Route] = []
    rules: list[Rule] = []
    for pin in reach.explicit.pins.values():
        for number, hop in enumerate(pin.hops):
            port, far = hop[0], hop[-1].far
            last = number == len(pin.hops) - 1
            if _follows_pin(reach, topology, pin, port, None if last else far):
                continue
            table = FIRST_TABLE + len(rules)
            width = _WIDTH[pin.source.segment.version]
            to = f"{pin.target.ip}/{width}"
            gateway = twin(topology, far, pin.source.segment.version)
            via = None if last or gateway is None else str(gateway.ip)
            routes.append(Route(netns=port.node, destination=to, device=port.ifname, via=via, table=table))
            rules.append(
                Rule(
                    netns=port.node,
                    source=f"{pin.source.ip}/{width}",
                    destination=to,
                    table=table,
                    priority=FIRST_PRIORITY + len(rules),
                )
            )
    return routes, rules


def _follows_pin(reach: Reach, topology: Topology, pin: Pin, port: Port, following: Port | None) -> bool:
    """Return whether a node sends packets of a pin as the pin demands without a rule."""
    target = pin.target.segment
    nearby = reach.attached(port.node, target)
    if port is pin.source and nearby is not None and nearby is not port:
        nearby = port if port.segment is target else None
    if nearby is not None:
        return following is None and nearby is port
    ports = [port] if port is pin.source else topology.ports[port.node]
    gates = reach.towards(ports, pin.target)
    if port is pin.source:
        gates = gates[:1]
    return (
        len(gates) == 1
        and gates[0][0] is port
        and following is not None
        and gates[0][1].node == following.node
    )
