"""MPTCP endpoints and limits of all hosts, from the start of a trial to its end.

`pm_state.py` derives the subflows of one state, `host_events.py` the states after events. With `subflows_per_path`
the agent is the path manager: it opens the same pairs, several times each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from plait.errors import FieldMistakesError
from plait.plan.model.mptcp import Join, Mptcp, SetSysctl
from plait.plan.mptcp import host_events
from plait.plan.mptcp.host_events import HostEvent, States
from plait.plan.mptcp.pm_state import (
    MAX_ENDPOINTS,
    MAX_SUBFLOWS,
    HostEndpoint,
    PathManagerState,
)
from plait.plan.network.model import Pair, Port, Topology
from plait.plan.routes.tables import Routing
from plait.scenario.fields.settings import MAX_SUBFLOWS as MAX_JOINED

T = TypeVar("T")


class PathManager:
    """The endpoints and limits of all hosts, for the MPTCP flows of a scenario."""

    def __init__(self, topology: Topology, routing: Routing, flows: list[Pair]) -> None:
        self._topology = topology
        self._routing = routing
        self._settings = topology.scenario.mptcp
        hosts = topology.scenario.network.hosts
        of_host: dict[str, list[Pair]] = {host: [] for host in hosts}
        for initial in flows:
            for host in {port.node for port in initial}:
                of_host[host].append(initial)
        first = {host: host_events.numbered(self._endpoints_of(host, of_host[host])) for host in hosts}
        states = States(topology, first)
        most = dict.fromkeys(hosts, (MAX_SUBFLOWS, MAX_SUBFLOWS))
        self._states = [PathManagerState(routing, endpoints, most) for endpoints in states.endpoints]
        limits = {host: self._limit(host, of_host[host]) for host in hosts}
        self.events: list[HostEvent] = list(states.events(limits))
        """The events of hosts, in the order of time."""
        self._states = [
            PathManagerState(routing, endpoints, now)
            for endpoints, now in zip(states.endpoints, states.limits(limits), strict=True)
        ]

    @property
    def is_agent(self) -> bool:
        """Return whether the agent opens subflows: the kernel's path manager opens at most one for each pair."""
        return self._settings.subflows_per_path > 1

    def plan(self) -> list[Mptcp]:
        """Return the settings of each host that has endpoints or a limit above zero."""
        if self.is_agent:
            return []
        first = self._states[0]
        return [
            Mptcp(
                netns=host,
                subflows=first.limits[host][0],
                add_addr_accepted=first.limits[host][1],
                endpoints=tuple(host_events.planned(endpoint) for endpoint in endpoints),
            )
            for host, endpoints in first.endpoints.items()
            if endpoints or any(first.limits[host])
        ]

    def pairs(self, initial: Pair) -> list[Pair]:
        """Return the pairs of interfaces that a flow's subflows use at some time, the initial one first."""
        return self.at_some_time(lambda state: state.pairs(initial))

    def at_some_time(self, of_state: Callable[[PathManagerState], list[T]]) -> list[T]:
        """Return what `of_state` returns of all states, each once."""
        return list(dict.fromkeys(each for state in self._states for each in of_state(state)))

    def states_before_new_limits(self, host: str) -> list[PathManagerState]:
        """Return the states until an event sets the limits of a host: later limits are a deliberate choice."""
        first = self._states[0].limits[host]
        others = (i for i, state in enumerate(self._states) if state.limits[host] != first)
        return self._states[: next(others, None)]

    def is_backup(self, initial: Pair, pair: Pair) -> bool:
        """Return whether the subflow between them is a backup whenever it exists."""
        there = [state for state in self._states if pair in state.pairs(initial)] or self._states[:1]
        return all(state.is_backup(initial, pair) for state in there)

    def given(self, host: str) -> list[tuple[tuple[str | int, ...], HostEndpoint]] | None:
        """Return the endpoints that the scenario gives a host, now or later, each with its field.

        None: plait derives them.
        """
        if host not in self._settings.endpoints:
            return None
        here = (("mptcp", "endpoints", host, i) for i in range(len(self._settings.endpoints[host])))
        return [*zip(here, self._states[0].endpoints[host], strict=True), *self._added(host)]

    def settings(self) -> list[SetSysctl]:
        """Return the kernel settings that change."""
        return [event.action for event in self.events if isinstance(event.action, SetSysctl)]

    def joins(self, initial: Pair) -> tuple[Join, ...]:
        """Return what the agent opens for a flow beside the initial subflow; nothing if the kernel does it."""
        if not self.is_agent:
            return ()
        pairs, each = self.pairs(initial), self._settings.subflows_per_path
        if len(pairs) * each > MAX_JOINED:
            message = (
                f"{each} subflows over each of the {len(pairs)} pairs of addresses of {initial[0].node} and "
                f"{initial[1].node} make {len(pairs) * each} subflows; a connection has at most {MAX_JOINED}: lower "
                "subflows_per_path"
            )
            raise FieldMistakesError((("mptcp", "subflows_per_path"), message))
        ids = {port: i for i, port in enumerate(dict.fromkeys(port for port, _ in pairs))}
        return tuple(
            Join(
                client_address=str(client.ip),
                server_address=str(server.ip),
                id=ids[client],
                backup=self.is_backup(initial, (client, server)),
                count=each - ((client, server) == initial),
            )
            for client, server in pairs
        )

    def usable(self, pair: Pair) -> bool:
        """Return whether packets arrive in both directions."""
        return self._states[0].usable(pair)

    def crossed(self, pair: Pair) -> set[str]:
        """Return the link directions on the way there; none if packets do not arrive."""
        ways = self._routing.reach.round_trip(*pair)
        return {port.out for port in ways[0]} if ways is not None else set()

    def _added(self, host: str) -> list[tuple[tuple[str | int, ...], HostEndpoint]]:
        """Return the endpoints that events add."""
        return [
            (event.where, event.endpoint)
            for event in self.events
            if event.endpoint is not None and event.host == host
        ]

    def _endpoints_of(self, host: str, flows: list[Pair]) -> list[HostEndpoint]:
        """Return the endpoints of a host: as given, or derived from its part in the flows."""
        if host in self._settings.endpoints:
            return host_events.given(self._topology, host)
        flags: dict[Port, set[str]] = {}
        changed = host_events.changed_ports(self._topology, host)
        for initial in flows:
            for first_port, flag in zip(initial, ("subflow", "signal"), strict=True):
                if first_port.node == host:
                    for port in self._topology.ports[host]:
                        if port is not first_port or port in changed:
                            flags.setdefault(port, set()).add(flag)
        if len(flags) > MAX_ENDPOINTS:
            message = (
                f"{host} would need {len(flags)} MPTCP endpoints, and the kernel takes {MAX_ENDPOINTS}; list them "
                f"under mptcp.endpoints.{host}, or give {host} fewer links"
            )
            raise FieldMistakesError((("network", "hosts", host), message))
        return [
            HostEndpoint(port, tuple(sorted(flags[port])))
            for port in self._topology.ports[host]
            if port in flags
        ]

    def _limit(self, host: str, flows: list[Pair]) -> tuple[int, int]:
        """Return (subflows, add_addr_accepted): as given, or enough for all paths of the host's flows at any time."""
        given = self._settings.limits.get(host)
        subflows = max(
            (
                len(state.pairs(initial))
                - 1
                + (state.unanswered_subflows(initial) if host == initial[1].node else 0)
                for state in self._states
                for initial in flows
            ),
            default=0,
        )
        accepted = max(
            (
                sum("signal" in endpoint.flags for endpoint in state.endpoints[initial[1].node])
                for state in self._states
                for initial in flows
                if initial[0].node == host
            ),
            default=0,
        )
        if given is not None:
            subflows, accepted = given.over((subflows, accepted))
        return min(subflows, MAX_SUBFLOWS), min(accepted, MAX_SUBFLOWS)
