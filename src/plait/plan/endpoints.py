"""MPTCP endpoints, limits, and the paths that the kernel's path manager makes of them. Pure.

The in-kernel path manager of the connecting side opens, beside the initial subflow from c0 to s0:
- from each of its `subflow` endpoints to s0 (to every known address with `fullmesh`);
- to each address that the other side announces (`signal`): from its `fullmesh` endpoints, or else from the
  address that the main table chooses.
A pair that cannot be routed fails at once and uses up no limit.

With `subflows_per_path` the agent is the path manager: it opens the same pairs, several times each.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from plait.plan.multipath import Endpoint, Join, Mptcp
from plait.scenario.settings import MAX_SUBFLOWS as MAX_JOINED
from plait.scenario.source import error_at

if TYPE_CHECKING:
    from plait.plan.routing import Routing
    from plait.plan.topology import Port, Topology
    from plait.scenario.settings import EndpointSpec

    Pair = tuple[Port, Port]

MAX_ENDPOINTS = 8
MAX_SUBFLOWS = 8
"""In addition to the initial one."""


@dataclass(frozen=True)
class Ends:
    """Who connects to whom, and over which pair of interfaces first."""

    client: str
    server: str
    initial: Pair


@dataclass(frozen=True)
class Own:
    """An endpoint of a host, and the interface that has its address."""

    port: Port
    flags: tuple[str, ...]
    id: int | None = None
    listen: int | None = None


class PathManager:
    """The endpoints and limits of all hosts, for the MPTCP flows of a scenario."""

    def __init__(self, topology: Topology, routing: Routing, flows: list[Ends]) -> None:
        self._topology = topology
        self._routing = routing
        self._settings = topology.scenario.mptcp
        hosts = topology.scenario.network.hosts
        self._endpoints = {host: self._of(host, flows) for host in hosts}
        self._limits = dict.fromkeys(hosts, (MAX_SUBFLOWS, MAX_SUBFLOWS))
        self._limits = {host: self._limit(host, flows) for host in hosts}

    @property
    def is_agent(self) -> bool:
        """Whether the agent opens subflows, because the kernel's path manager opens one for each pair at most."""
        return self._settings.subflows_per_path > 1

    def plan(self) -> list[Mptcp]:
        """What to set in each host that has endpoints, or to which a limit other than none applies."""
        out: list[Mptcp] = []
        if self.is_agent:
            return out
        for host, endpoints in self._endpoints.items():
            subflows, accepted = self._limits[host]
            if not endpoints and not subflows and not accepted:
                continue
            used = {own.id for own in endpoints if own.id is not None}
            free = (number for number in range(1, 256) if number not in used)
            planned = tuple(
                Endpoint(
                    address=str(own.port.ip),
                    id=next(free) if own.id is None else own.id,
                    flags=own.flags,  # type: ignore[arg-type]  # checked by the scenario
                    port=own.listen,
                )
                for own in endpoints
            )
            out.append(Mptcp(netns=host, subflows=subflows, add_addr_accepted=accepted, endpoints=planned))
        return out

    def pairs(self, ends: Ends) -> list[Pair]:
        """The pairs of interfaces that a flow's subflows take, the initial one first."""
        subflows, accepted = self._limits[ends.client]
        subflows = min(subflows, self._limits[ends.server][0])
        return self.wanted(ends, accepted)[: 1 + subflows]

    def wanted(self, ends: Ends, accepted: int) -> list[Pair]:
        """The pairs that would come up with as many subflows as there are, and so many announcements accepted."""
        pairs = [ends.initial, *filter(self.usable, self.attempts(ends, accepted))]
        return list(dict.fromkeys(pairs))

    def attempts(self, ends: Ends, accepted: int) -> list[Pair]:
        """The pairs of one family that the client tries beside the initial one, whether they are usable or not."""
        mesh = [own.port for own in self._endpoints[ends.client] if "fullmesh" in own.flags]
        plain = [
            own.port
            for own in self._endpoints[ends.client]
            if "subflow" in own.flags and own.port not in mesh
        ]
        tried = [(port, ends.initial[1]) for port in (*plain, *mesh)]
        for target in self.announced(ends)[:accepted]:
            chosen = self._routing.reach.main_source(ends.client, target)
            meshed = [(port, target) for port in mesh if port.ip.version == target.ip.version]
            tried += meshed or ([(chosen, target)] if chosen is not None else [])
        return [pair for pair in tried if pair[0].ip.version == pair[1].ip.version]

    def announced(self, ends: Ends) -> list[Port]:
        """The addresses that the server announces and to which there is no subflow from the beginning."""
        s0 = ends.initial[1]
        # a socket that began over IPv4 knows nothing else; one that began over IPv6 takes subflows of both
        families = (4,) if s0.ip.version == 4 else (4, 6)
        return [
            own.port
            for own in self._endpoints[ends.server]
            if "signal" in own.flags and own.port is not s0 and own.port.ip.version in families
        ]

    def is_backup(self, ends: Ends, pair: Pair) -> bool:
        """Whether either end wants the subflow between them for times when there is no other."""
        return any(
            own.port is port and "backup" in own.flags
            for host, port in zip((ends.client, ends.server), pair, strict=True)
            for own in self._endpoints[host]
        )

    def limits(self, host: str) -> tuple[int, int]:
        """(subflows, add_addr_accepted)."""
        return self._limits[host]

    def given(self, host: str) -> list[Own] | None:
        """The endpoints that the scenario gives a host, by their places; None: they are derived."""
        return self._endpoints[host] if host in self._settings.endpoints else None

    def joins(self, ends: Ends) -> tuple[Join, ...]:
        """What the agent opens for a flow beside the initial subflow; nothing when the kernel does it."""
        if not self.is_agent:
            return ()
        pairs, each = self.pairs(ends), self._settings.subflows_per_path
        if len(pairs) * each > MAX_JOINED:
            what = (
                f"{each} subflows over each of the {len(pairs)} pairs of addresses of {ends.client} and {ends.server} "
                f"are {len(pairs) * each}; a connection has at most {MAX_JOINED}"
            )
            raise error_at(self._topology.scenario, [(("mptcp", "subflows_per_path"), what)])
        ids = {port: i for i, port in enumerate(dict.fromkeys(port for port, _ in pairs))}
        return tuple(
            Join(
                client_address=str(client.ip),
                server_address=str(server.ip),
                id=ids[client],
                backup=self.is_backup(ends, (client, server)),
                count=each - ((client, server) == ends.initial),
            )
            for client, server in pairs
        )

    def usable(self, pair: Pair) -> bool:
        """Whether packets arrive, both ways."""
        return self._routing.reach.round_trip(*pair) is not None

    def crossed(self, pair: Pair) -> set[str]:
        """The directions of links that packets take on the way there; none when they do not arrive."""
        ways = self._routing.reach.round_trip(*pair)
        return {port.out for port in ways[0]} if ways is not None else set()

    def _of(self, host: str, flows: list[Ends]) -> list[Own]:
        """The endpoints of a host: as given, or derived from its part in the flows."""
        if host in self._settings.endpoints:
            return [self._given(host, i, spec) for i, spec in enumerate(self._settings.endpoints[host])]
        flags: dict[Port, set[str]] = {}
        for ends in flows:
            for node, flag, initial in (
                (ends.client, "subflow", ends.initial[0]),
                (ends.server, "signal", ends.initial[1]),
            ):
                if node == host:
                    for port in self._topology.ports[host]:
                        if port is not initial:
                            flags.setdefault(port, set()).add(flag)
        if len(flags) > MAX_ENDPOINTS:
            what = (
                f"{host} would need {len(flags)} MPTCP endpoints and the kernel takes {MAX_ENDPOINTS}; choose them "
                f"under mptcp.endpoints.{host}, or give {host} fewer links"
            )
            raise error_at(self._topology.scenario, [(("network", "hosts", host), what)])
        return [Own(port, tuple(sorted(flags[port]))) for port in self._topology.ports[host] if port in flags]

    def _given(self, host: str, i: int, spec: EndpointSpec) -> Own:
        for port in self._topology.ports[host]:
            by_address = spec.address is not None and ip_address(spec.address) == port.ip
            if by_address or port.wired.key == spec.link:
                return Own(port, tuple(spec.flags), spec.id, spec.port)
        have = ", ".join(str(port.ip) for port in self._topology.ports[host])
        what = f"{host} has no address {spec.address}; it has {have}"
        raise error_at(self._topology.scenario, [(("mptcp", "endpoints", host, i, "address"), what)])

    def _limit(self, host: str, flows: list[Ends]) -> tuple[int, int]:
        """(subflows, add_addr_accepted): as given, or enough for all paths of the host's flows."""
        given = self._settings.limits.get(host)
        mine = [ends for ends in flows if host in (ends.client, ends.server)]
        subflows = max((len(self.pairs(ends)) - 1 for ends in mine), default=0)
        accepted = max(
            (
                sum("signal" in own.flags for own in self._endpoints[ends.server])
                for ends in mine
                if ends.client == host
            ),
            default=0,
        )
        if given is not None:
            subflows = subflows if given.subflows is None else given.subflows
            accepted = accepted if given.add_addr_accepted is None else given.add_addr_accepted
        return min(subflows, MAX_SUBFLOWS), min(accepted, MAX_SUBFLOWS)
