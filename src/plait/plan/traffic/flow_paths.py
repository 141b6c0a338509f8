"""The paths between pairs of addresses, and the maximum flow through their links."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from math import inf

from plait.plan.links.shared_buckets import takes_tokens
from plait.plan.model.plan import Path, SideName
from plait.plan.network.model import Pair, Port, Topology
from plait.plan.network.topology import delay_ns
from plait.plan.routes.tables import Routing


def directed(sender: SideName, pair: Pair, routing: Routing) -> tuple[list[Port], list[Port]]:
    """Return the ports left on the way from the sending to the receiving side, and back."""
    client, server = pair
    ways = routing.reach.round_trip(client, server)
    assert ways is not None  # the caller passes usable pairs only
    there, back = ways
    return (back, there) if sender == "server" else (there, back)


def paths_of(sender: SideName, pairs: list[Pair], backups: list[Pair], routing: Routing) -> tuple[Path, ...]:
    """Return the paths between pairs of addresses, in the direction of the data."""
    out: list[Path] = []
    taken: set[str] = set()
    for pair in pairs:
        forward, backward = directed(sender, pair, routing)
        rates = [port.conditions.rate for port in forward]
        name = _unique(_path_name(forward), taken)
        out.append(
            Path(
                name=name,
                client_address=str(pair[0].ip),
                server_address=str(pair[1].ip),
                forward=tuple(port.out for port in forward),
                backward=tuple(port.out for port in backward),
                spread=_other_directions(spread(pair, routing), forward + backward),
                backup=pair in backups,
                rate_bps=min((int(rate) for rate in rates if rate is not None), default=None),
                base_rtt_us=(delay_ns(forward) + delay_ns(backward)) / 1000,
            )
        )
    return tuple(out)


def _other_directions(every: list[Port], one_way: list[Port]) -> tuple[str, ...]:
    """Return the link directions beside those of one way."""
    return tuple(dict.fromkeys(port.out for port in every if port not in one_way))


def spread(pair: Pair, routing: Routing) -> list[Port]:
    """Return the ports by which a packet may leave between two interfaces, both ways, for every choice of ECMP."""
    if not routing.reach.spreads:
        return []
    return [*routing.reach.spread(*pair), *routing.reach.spread(pair[1], pair[0])]


def _path_name(ports: list[Port]) -> str:
    """Return a path's name: that of its only link, or its nodes from the sender, `h1-s1-h2`.

    The numbers of parallel links follow: `h1-s1-h2#2`.
    """
    if len(ports) == 1:
        return ports[0].link.key
    nodes = "-".join([ports[0].node, *(port.far.node for port in ports)])
    return nodes + "".join(port.link.name.suffix for port in ports)


def _unique(name: str, taken: set[str]) -> str:
    """Return the name, with a number if several pairs of addresses cross the same links."""
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}~{number}"
    taken.add(unique)
    return unique


def ideal_bps(sender: SideName, pairs: list[Pair], routing: Routing, topology: Topology) -> int | None:
    """Return the maximum flow through the links of the paths, in bit/s.

    None if nothing limits it, or if a token bucket does: its allowance depends on earlier traffic. Of the links
    that ECMP may choose from, one subflow crosses one way, and several may cross all of them.
    """
    ports = {port.out: port for pair in pairs for port in directed(sender, pair, routing)[0]}
    if len(pairs) > 1 and routing.reach.spreads:
        sent = (pair[::-1] if sender == "server" else pair for pair in pairs)
        ports |= {port.out: port for pair in sent for port in routing.reach.spread(*pair)}
    if any(takes_tokens(topology, port) for port in ports.values()):
        return None
    capacities: dict[tuple[str, str], float] = {}
    for port in ports.values():
        rate = port.conditions.rate
        arc = (port.node, port.far.node)
        capacities[arc] = capacities.get(arc, 0) + (inf if rate is None else int(rate))
    source, target = pairs[0][:: -1 if sender == "server" else 1]
    flow = maximum_flow(capacities, source.node, target.node)
    return None if flow == inf else int(flow)


Arc = tuple[str, str]


def maximum_flow(capacities: Mapping[Arc, float], source: str, sink: str) -> float:
    """Return the greatest flow from `source` to `sink` over arcs with these capacities; `inf` if nothing limits it."""
    residual: dict[str, dict[str, float]] = {source: {}, sink: {}}
    for (a, b), capacity in capacities.items():
        residual.setdefault(a, {})[b] = residual.get(a, {}).get(b, 0) + capacity
        residual.setdefault(b, {}).setdefault(a, 0)
    total: float = 0
    while path := _shortest(residual, source, sink):
        arcs = list(pairwise(path))
        room = min(residual[a][b] for a, b in arcs)
        if room == inf:
            return inf
        for a, b in arcs:
            residual[a][b] -= room
            residual[b][a] += room
        total += room
    return total


def _shortest(residual: Mapping[str, Mapping[str, float]], source: str, sink: str) -> list[str]:
    """Return a path with the fewest arcs among those with residual capacity; empty if there is none."""
    before: dict[str, str] = {source: source}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for following, room in residual[node].items():
            if room > 0 and following not in before:
                before[following] = node
                if following == sink:
                    path = [sink]
                    while path[-1] != source:
                        path.append(before[path[-1]])
                    return path[::-1]
                waiting.append(following)
    return []
