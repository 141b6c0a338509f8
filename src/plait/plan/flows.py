"""The flows of a plan: their sides, paths, seeds' start offsets and what the links allow them. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from itertools import product
from math import inf
from typing import TYPE_CHECKING

from plait.plan.endpoints import Ends, PathManager
from plait.plan.maxflow import maximum_flow
from plait.plan.model import File, Flow, Path, Side
from plait.plan.topology import delay_ns
from plait.scenario.model import Bulk, Transfer
from plait.scenario.source import error_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.routing import Routing
    from plait.plan.topology import Port, Topology
    from plait.scenario import model

    Pair = tuple[Port, Port]

FIRST_PORT = 5001
MAX_FLOWS = 1024


class Entry:
    """One entry of the traffic, with what follows from it before the path manager is known."""

    def __init__(self, index: int, traffic: model.Traffic, topology: Topology, routing: Routing) -> None:
        self.index = index
        self.kind = traffic.kind
        self.spec = traffic.flow
        self.transport = self.spec.transport or topology.scenario.transport
        client, server = (self.spec.from_, self.spec.to)[:: -1 if self.spec.reverse else 1]
        self.usable = usable_pairs(topology, routing, client, server)
        self.ends = Ends(client, server, self._initial(topology, client, server))

    def _initial(self, topology: Topology, client: str, server: str) -> Pair:
        """The pair of the initial subflow: the first that can be used, and that fits `via`."""
        here = ("traffic", self.index, self.kind)
        if not self.usable:
            what = (
                f"{self.spec.to} cannot be reached from {self.spec.from_}; join them by links, and note that hosts do "
                "not forward: declare what should forward under routers"
            )
            raise error_at(topology.scenario, [((*here, "to"), what)])
        via = self.spec.via
        if via is None:
            return self.usable[0]
        fitting = [pair for pair in self.usable if _fits(pair, via)]
        if not fitting:
            what = f"no path from {client} to {server} begins so; leave it out, or choose another"
            raise error_at(topology.scenario, [((*here, "via"), what)])
        return fitting[0]


def _fits(pair: Pair, via: str) -> bool:
    client, server = pair
    if client.wired.key == via:
        return True
    try:
        return ip_address(via) == server.ip
    except ValueError:
        return False


def usable_pairs(topology: Topology, routing: Routing, client: str, server: str) -> list[Pair]:
    """All pairs of a client's and a server's interface between which packets arrive, both ways; IPv6 first.

    That is the order in which applications try the addresses of a name (RFC 6724); and only a connection that
    began over IPv6 may have subflows over both families.
    """
    found = [
        (c, s)
        for c, s in product(topology.ports[client], topology.ports[server])
        if c.ip.version == s.ip.version and routing.reach.round_trip(c, s) is not None
    ]
    return sorted(found, key=lambda pair: -pair[0].ip.version)


def flows(entries: list[Entry], topology: Topology, routing: Routing, manager: PathManager) -> Iterator[Flow]:
    """The flows, in the order of the traffic and before any jitter of their start; a count gives several."""
    number = 0
    for entry in entries:
        spec = entry.spec
        pairs = manager.pairs(entry.ends) if entry.transport == "mptcp" else [entry.ends.initial]
        joins = manager.joins(entry.ends) if entry.transport == "mptcp" else ()
        paths = _paths(entry, pairs, routing)
        ideal = _ideal(entry, pairs, routing)
        base = spec.name or f"{entry.kind}{entry.index + 1}"
        c0, s0 = entry.ends.initial
        for copy in range(spec.count):
            name = base if spec.count == 1 else f"{base}.{copy + 1}"
            yield Flow(
                id=number,
                name=name,
                kind=entry.kind,
                transport=entry.transport,
                client=Side(netns=entry.ends.client, address=str(c0.ip), port=0),
                server=Side(netns=entry.ends.server, address=str(s0.ip), port=FIRST_PORT + number),
                sender="server" if spec.reverse else "client",
                start_us=spec.start.us,
                duration_us=spec.duration.us if isinstance(spec, Bulk) else None,
                bytes=_bytes(entry, topology.scenario),
                file=_file(entry, topology.scenario),
                congestion_control=spec.congestion_control,
                send_buffer=spec.send_buffer and int(spec.send_buffer),
                receive_buffer=spec.receive_buffer and int(spec.receive_buffer),
                joins=joins,
                paths=paths,
                ideal_rate_bps=ideal,
            )
            number += 1


def _file(entry: Entry, scenario: model.Scenario) -> File | None:
    if not isinstance(entry.spec, Transfer) or entry.spec.file is None:
        return None
    name = entry.spec.file
    facts = scenario.files.get(name)
    if facts is None:
        what = f"the size of '{name}' is not known; read the scenario with plait.scenario.load"
        raise error_at(scenario, [(("traffic", entry.index, "transfer", "file"), what)])
    return File(name=facts.name, bytes=facts.bytes, sha256=facts.sha256)


def _bytes(entry: Entry, scenario: model.Scenario) -> int | None:
    file = _file(entry, scenario)
    if file is not None:
        return file.bytes
    return (
        int(entry.spec.bytes) if isinstance(entry.spec, Transfer) and entry.spec.bytes is not None else None
    )


def directed(entry: Entry, pair: Pair, routing: Routing) -> tuple[list[Port], list[Port]]:
    """The ports left on the way from the sending to the receiving side, and back."""
    client, server = pair
    ways = routing.reach.round_trip(client, server)
    assert ways is not None  # only usable pairs come here
    there, back = ways
    return (back, there) if entry.spec.reverse else (there, back)


def _paths(entry: Entry, pairs: list[Pair], routing: Routing) -> tuple[Path, ...]:
    out: list[Path] = []
    taken: set[str] = set()
    for pair in pairs:
        forward, backward = directed(entry, pair, routing)
        rates = [port.wired.link.conditions(forward=port.at_a).rate for port in forward]
        name = _unique(_path_name(forward), taken)
        out.append(
            Path(
                name=name,
                client_address=str(pair[0].ip),
                server_address=str(pair[1].ip),
                forward=tuple(port.out for port in forward),
                backward=tuple(port.out for port in backward),
                spread=_others(spread(pair, routing), forward + backward),
                rate_bps=min((int(rate) for rate in rates if rate is not None), default=None),
                base_rtt_us=(delay_ns(forward) + delay_ns(backward)) / 1000,
            )
        )
    return tuple(out)


def _others(every: list[Port], one_way: list[Port]) -> tuple[str, ...]:
    """The link directions beside those of one way."""
    return tuple(dict.fromkeys(port.out for port in every if port not in one_way))


def spread(pair: Pair, routing: Routing) -> list[Port]:
    """The ports that a packet may leave between a pair of interfaces, forth and back, whatever ECMP chooses."""
    if not routing.reach.ecmp:
        return []
    return [*routing.reach.spread(*pair), *routing.reach.spread(pair[1], pair[0])]


def _path_name(ports: list[Port]) -> str:
    """`h1-s1-h2`; the numbers of parallel links follow, `h1-h2#2`."""
    nodes = "-".join([ports[0].node, *(port.far.node for port in ports)])
    return nodes + "".join(port.wired.name.suffix for port in ports)


def _unique(name: str, taken: set[str]) -> str:
    """The name, or with a number where several pairs of addresses cross the same links."""
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}~{number}"
    taken.add(unique)
    return unique


def _ideal(entry: Entry, pairs: list[Pair], routing: Routing) -> int | None:
    """The maximum flow through the links of the paths, in bit/s; None when nothing limits it.

    Of the links that ECMP may choose from, one subflow crosses one way, and several may cross all of them.
    """
    ports = {port.out: port for pair in pairs for port in directed(entry, pair, routing)[0]}
    if len(pairs) > 1 and routing.reach.ecmp:
        sent = (pair[::-1] if entry.spec.reverse else pair for pair in pairs)
        ports |= {port.out: port for ends in sent for port in routing.reach.spread(*ends)}
    capacities: dict[tuple[str, str], float] = {}
    for port in ports.values():
        rate = port.wired.link.conditions(forward=port.at_a).rate
        arc = (port.node, port.far.node)
        capacities[arc] = capacities.get(arc, 0) + (inf if rate is None else int(rate))
    flow = maximum_flow(capacities, entry.spec.from_, entry.spec.to)
    return None if flow == inf else int(flow)
