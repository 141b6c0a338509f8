"""The flows of a plan: their sides, paths, start offsets from the seed, and the rate that the links allow them."""

from __future__ import annotations

from ipaddress import ip_address
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Literal

from plait.frames import frame_bytes
from plait.plan.links.shared_buckets import takes_tokens
from plait.plan.model.applications import SocketOptions, Udp
from plait.plan.model.plan import Flow, Path, Side
from plait.plan.mptcp.pm_state import InitialSubflow
from plait.plan.network.topology import delay_ns
from plait.plan.traffic.applications import PATIENCE_US, application
from plait.plan.traffic.flow_slots import copies, parts, slots, transport_of
from plait.plan.traffic.maxflow import maximum_flow
from plait.scenario.check.programs import program_name
from plait.scenario.fields.traffic import ConnectionSpec, PageSpec
from plait.scenario.read.located import error_at
from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.mptcp.path_manager import PathManager
    from plait.plan.network.model import Port, Topology
    from plait.plan.routes.tables import Routing
    from plait.plan.traffic.flow_slots import Slot
    from plait.scenario.fields.conditions import Conditions
    from plait.scenario.fields.traffic import Traffic
    from plait.scenario.scenario import Scenario

    Pair = tuple[Port, Port]

SideName = Literal["client", "server"]
FIRST_PORT = 5001
MAX_FLOWS = 1024
MAX_PAIRS = 65_536
DRAIN_US = 100_000
"""The wait for a UDP packet beyond its longest possible delay."""


class Entry:
    """One entry of the traffic, with what follows from it before the path manager exists."""

    def __init__(self, index: int, traffic: Traffic, topology: Topology, routing: Routing) -> None:
        self.index = index
        self.kind = traffic.kind
        self.spec = traffic.flow
        self.scenario = topology.scenario
        client, server = (self.spec.from_, self.spec.to)[:: -1 if self.spec.connects_to_sender else 1]
        self.sender: SideName = "server" if self.spec.connects_to_sender or self.spec.answers else "client"
        self._refuse_too_many_pairs(topology, client, server)
        self.usable = usable_pairs(topology, routing, client, server)
        self.initial = InitialSubflow(client, server, self._initial(topology, routing, client, server))

    @property
    def uses_mptcp(self) -> bool:
        """Return whether any of its flows uses MPTCP."""
        if not isinstance(self.spec, ConnectionSpec):
            return False
        return "mptcp" in [transport or self.scenario.transport for transport in self.spec.transports]

    def carried(self, slot: Slot) -> bool:
        """Return whether the flow of `slot` is the second direction of another flow's connection."""
        return slot.part > 0 and not isinstance(self.spec, PageSpec)

    def sender_of(self, slot: Slot) -> SideName:
        """Return the side that sends in the flow of `slot`."""
        return other_side(self.sender) if self.carried(slot) else self.sender

    def _refuse_too_many_pairs(self, topology: Topology, client: str, server: str) -> None:
        """Refuse two hosts with so many interfaces that a look at every pair would take minutes."""
        many = len(topology.ports[client]), len(topology.ports[server])
        if prod(many) > MAX_PAIRS:
            message = (
                f"{client} has {many[0]} interfaces and {server} has {many[1]}: {prod(many)} pairs of addresses; "
                f"plait examines at most {MAX_PAIRS}: let other hosts send, or remove links"
            )
            raise error_at(self.scenario, [(("traffic", self.index, self.kind, "to"), message)])

    def _initial(self, topology: Topology, routing: Routing, client: str, server: str) -> Pair:
        """Return the pair of the initial subflow: the first usable one that satisfies `via`, `bind` and `connect`."""
        here = ("traffic", self.index, self.kind)
        if not self.usable:
            message = _translated(topology, routing, client, server, self.kind) or (
                f"{self.spec.to} cannot be reached from {self.spec.from_}; connect them by links, and declare nodes "
                "that forward under routers, because hosts do not"
            )
            raise error_at(self.scenario, [((*here, "to"), message)])
        fitting = self._on_paths(routing)
        for field, fits in (("via", _starts_via), ("bind", _binds_to), ("connect", _connects_to)):
            wanted = getattr(self.spec, field)
            if wanted is None:
                continue
            fitting = [pair for pair in fitting if fits(pair, wanted)]
            if not fitting:
                path = f"no path from {client} to {server} {_FITS[field]} {wanted}"
                message = f"{path}; leave {field} out, or choose another"
                raise error_at(self.scenario, [((*here, field), message)])
        return fitting[0]

    def _on_paths(self, routing: Routing) -> list[Pair]:
        """Return the pairs that the first of the flow's paths joins; all pairs if there are no paths."""
        if not self.spec.paths:
            return self.usable
        return [pair for pair in self.usable if pair in routing.reach.explicit.named[self.index, 0]]


def _translated(topology: Topology, routing: Routing, client: str, server: str, kind: str) -> str | None:
    """Return an error message for a client that only address translation separates from its server, or None."""
    opposite = usable_pairs(topology, routing, server, client)
    ways = (port for pair in opposite for port in directed("client", pair, routing)[0])
    routers = list(dict.fromkeys(port.node for port in ways if port in routing.reach.outside))
    if not routers:
        return None
    remedy = {
        "udp": f"write from: {server}, to: {client}, and back: true if packets should go both ways",
        "request": f"let {server} send the requests (from: {server}, to: {client})",
        "page": f"let {server} send the requests (from: {server}, to: {client})",
    }.get(kind, "invert reverse, so that the other side connects")
    return (
        f"{server} is behind {' and '.join(routers)}, which translates addresses (nat) and admits only answers from "
        f"{client}; {remedy}"
    )


_FITS = {"via": "goes via", "bind": "begins at", "connect": "satisfies the other fields and ends at"}


def _starts_via(pair: Pair, via: str) -> bool:
    return pair[0].link.key == via or _has_address(pair[1], via)


def _binds_to(pair: Pair, bind: str) -> bool:
    return pair[0].link.key == bind or _has_address(pair[0], bind)


def _connects_to(pair: Pair, connect: str) -> bool:
    return pair[1].link.key == connect or _has_address(pair[1], connect)


def _has_address(port: Port, address: str) -> bool:
    try:
        return ip_address(address) == port.ip
    except ValueError:
        return False


def usable_pairs(topology: Topology, routing: Routing, client: str, server: str) -> list[Pair]:
    """Return all pairs of a client's and a server's interface that exchange packets; IPv6 first.

    Applications try the addresses of a name in this order (RFC 6724), and only a connection that began over
    IPv6 may have subflows over both families.
    """
    pairs = [
        (c, s)
        for c, s in product(topology.ports[client], topology.ports[server])
        if c.ip.version == s.ip.version and routing.reach.round_trip(c, s) is not None
    ]
    return sorted(pairs, key=lambda pair: -pair[0].ip.version)


def flows(entries: list[Entry], topology: Topology, routing: Routing, manager: PathManager) -> Iterator[Flow]:
    """Yield the flows in the order of the traffic, before the seed affects them."""
    scenario = topology.scenario
    first = 0
    before: dict[int, tuple[int, ...]] = {}
    names: dict[str, list[int]] = {}
    programs = frozenset(program_name(program, i) for i, program in enumerate(scenario.programs))
    ways = Ways(topology, routing, manager)
    for number, slot in enumerate(slots(scenario)):
        entry = entries[slot.entry]
        spec = entry.spec
        first = number if slot.part == 0 else first
        if slot.turn == 0 and slot.part == 0:
            before[slot.copy] = () if spec.after in programs else _preceding_flows(scenario, entry, names)
        transport = transport_of(scenario, slot)
        carried, sender = entry.carried(slot), entry.sender_of(slot)
        paths, ideal = ways.paths_and_ideal(entry, transport, sender)
        start_us = nominal_start_us(scenario, slot)
        job = application(scenario, slot, first, start_us, seed=0)
        if isinstance(job, Udp):
            job = job.model_copy(update={"drain_us": _drain_us(entry, sender, routing, topology)})
        c0, s0 = entry.initial.pair
        yield Flow(
            id=number,
            name=slot.name,
            application=job,
            transport=transport,  # type: ignore[arg-type]  # one of the three
            client=Side(netns=entry.initial.client, address=str(c0.ip), port=0),
            server=Side(
                netns=entry.initial.server,
                address=str(s0.ip),
                port=FIRST_PORT + (first if carried else number),
            ),
            sender=sender,
            start_us=start_us,
            after=before[slot.copy],
            after_programs=(spec.after,) if spec.after in programs and slot.turn == 0 else (),
            connection=first if carried else None,
            user=slot.user,
            background=spec.background,
            group=spec.group,
            socket=_socket(entry, transport),
            joins=manager.joins(entry.initial) if transport == "mptcp" and not carried else (),
            paths=paths,
            ideal_rate_bps=ideal,
        )
        if slot.part == parts(spec) - 1:
            before[slot.copy] = tuple(range(first, number + 1))
        _register_names(scenario, slot, number, names)


def other_side(side: SideName) -> SideName:
    """Return the other side of a flow."""
    return "client" if side == "server" else "server"


def nominal_start_us(scenario: Scenario, slot: Slot) -> int:
    """Return the start of a flow without its jitter, from zero or from the end of the flow before it."""
    spec = scenario.traffic[slot.entry].flow
    if slot.turn:
        return spec.gap.us
    return spec.start.us + spec.spread.us * slot.copy // copies(spec)


def _preceding_flows(scenario: Scenario, entry: Entry, names: dict[str, list[int]]) -> tuple[int, ...]:
    """Return the flows that an entry follows."""
    if entry.spec.after is None:
        return ()
    numbers = names.get(entry.spec.after)
    if numbers is None:
        message = f"no flow above is called '{entry.spec.after[:60]}'; {nearest(entry.spec.after, names) or 'name one'}"
        raise error_at(scenario, [(("traffic", entry.index, entry.kind, "after"), message)])
    return tuple(numbers)


def _register_names(scenario: Scenario, slot: Slot, number: int, names: dict[str, list[int]]) -> None:
    """Record the names by which other flows can refer to this flow: its own, and its entry's."""
    traffic = scenario.traffic[slot.entry]
    if slot.name in names:
        message = f"there is a flow '{slot.name}' above already; give this entry another name"
        raise error_at(scenario, [(("traffic", slot.entry, traffic.kind), message)])
    names[slot.name] = [number]
    whole = traffic.flow.name or f"{traffic.kind}{slot.entry + 1}"
    if whole != slot.name:
        names.setdefault(whole, []).append(number)


def _socket(entry: Entry, transport: str) -> SocketOptions:
    spec = entry.spec
    common = SocketOptions(
        send_buffer=spec.send_buffer and int(spec.send_buffer),
        receive_buffer=spec.receive_buffer and int(spec.receive_buffer),
        mark=spec.mark,
        dscp=spec.dscp,
    )
    for field, option in _options_refused_by_mptcp(entry) if transport == "mptcp" else ():
        if getattr(spec, field) is not None:
            message = f"Linux 6.12 refuses {option} on MPTCP sockets; leave it out, or set transport: tcp"
            raise error_at(entry.scenario, [(("traffic", entry.index, entry.kind, field), message)])
    if not isinstance(spec, ConnectionSpec):
        return common
    of_tcp = {
        "scheduler": spec.scheduler if transport == "mptcp" else None,
        "congestion_control": spec.congestion_control,
        "nodelay": spec.nodelay,
        "notsent_lowat": spec.notsent_lowat and int(spec.notsent_lowat),
        "mss": spec.mss,
    }
    return common.model_copy(update=of_tcp)


def _options_refused_by_mptcp(entry: Entry) -> list[tuple[str, str]]:
    """Return the options that MPTCP sockets refuse.

    net/mptcp/sockopt.c sets IP_TOS, but neither TCP_MAXSEG nor IPV6_TCLASS.
    """
    refused = [("mss", "TCP_MAXSEG")]
    if entry.initial.pair[0].ip.version == 6:
        refused.append(("dscp", "IPV6_TCLASS"))
    return refused


def _drain_us(entry: Entry, sender: SideName, routing: Routing, topology: Topology) -> int:
    """Return how long the last packet can take: all delays, and all queues full before it."""
    forward, _ = directed(sender, entry.initial.pair, routing)
    longest = DRAIN_US
    for port in forward:
        conditions = port.conditions
        longest += (
            (conditions.delay or 0) + (0 if conditions.jitter is None else conditions.jitter.most_ns)
        ) // 1000
        if conditions.aqm is not None or takes_tokens(topology, port):
            return PATIENCE_US
        if conditions.rate is not None:
            longest += _queue_us(conditions, port.link.spec.mtu)
    return min(longest, PATIENCE_US)


def _queue_us(conditions: Conditions, mtu: int) -> int:
    """Return the time that a full queue takes to drain; for a multiple of the BDP, one second and 100 frames."""
    queue, rate = conditions.queue, conditions.rate
    assert rate is not None
    if queue is None or queue.unit == "bdp":
        return 1_000_000 + 100 * frame_bytes(mtu) * 8_000_000 // int(rate)
    size = int(queue.amount) * (1 if queue.unit == "B" else frame_bytes(mtu))
    return size * 8_000_000 // int(rate)


class Ways:
    """The paths and ideal rates of the flows of an entry, each computed once."""

    def __init__(self, topology: Topology, routing: Routing, manager: PathManager) -> None:
        self._topology, self._routing, self._manager = topology, routing, manager
        self._computed: dict[tuple[int, str, SideName], tuple[tuple[Path, ...], int | None]] = {}

    def paths_and_ideal(
        self, entry: Entry, transport: str, sender: SideName
    ) -> tuple[tuple[Path, ...], int | None]:
        """Return the paths of a flow of an entry, and the rate that the links allow it in bit/s (None: no limit)."""
        key = (entry.index, transport, sender)
        if key not in self._computed:
            pairs = self._manager.pairs(entry.initial) if transport == "mptcp" else [entry.initial.pair]
            several = pairs if len(pairs) > 1 else ()
            backups = [pair for pair in several if self._manager.is_backup(entry.initial, pair)]
            counted = [pair for pair in pairs if pair not in backups] or pairs
            paths = paths_of(sender, pairs, backups, self._routing)
            self._computed[key] = (paths, ideal_bps(sender, counted, self._routing, self._topology))
        return self._computed[key]


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
                spread=_others(spread(pair, routing), forward + backward),
                backup=pair in backups,
                rate_bps=min((int(rate) for rate in rates if rate is not None), default=None),
                base_rtt_us=(delay_ns(forward) + delay_ns(backward)) / 1000,
            )
        )
    return tuple(out)


def _others(every: list[Port], one_way: list[Port]) -> tuple[str, ...]:
    """Return the link directions beside those of one way."""
    return tuple(dict.fromkeys(port.out for port in every if port not in one_way))


def spread(pair: Pair, routing: Routing) -> list[Port]:
    """Return the ports by which a packet may leave between two interfaces, both ways, for every choice of ECMP."""
    if not routing.reach.spreads:
        return []
    return [*routing.reach.spread(*pair), *routing.reach.spread(pair[1], pair[0])]


def _path_name(ports: list[Port]) -> str:
    """Return a path's name, `h1-s1-h2`; the numbers of parallel links follow, `h1-h2#2`."""
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
