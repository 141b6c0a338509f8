"""The possible connections of programs: between which hosts, and over which paths.

Only the programs know which connections they will make. So each host in which a program runs may connect to each
other one, on any initial pair of addresses: every interface gets the endpoint that it then needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from plait.plan.model.plan import Peers
from plait.plan.network.model import Pair, Topology
from plait.plan.routes.tables import Routing
from plait.plan.traffic.entries import usable_pairs
from plait.plan.traffic.flow_paths import ideal_bps, paths_of


class ProgramPairs:
    """All ordered pairs of the hosts in which programs run."""

    def __init__(self, topology: Topology, routing: Routing) -> None:
        scenario = topology.scenario
        self._topology, self._routing = topology, routing
        self._transports = {
            program.node: program.transport or scenario.transport
            for program in scenario.programs
            if program.node in scenario.network.hosts
        }
        usable = {
            (source, target): usable_pairs(topology, routing, source, target)
            for source, target in permutations(self._transports, 2)
        }
        #: By ordered pair of hosts, the usable pairs of their interfaces.
        self.pairs = {hosts: pairs for hosts, pairs in usable.items() if pairs}

    def _transport(self, source: str, target: str) -> str:
        both = {self._transports[source], self._transports[target]}
        return "mptcp" if both == {"mptcp"} else "tcp"

    def mptcp_initials(self) -> Iterator[Pair]:
        """Yield every initial subflow that an MPTCP connection between them can have."""
        for (source, target), pairs in self.pairs.items():
            if self._transport(source, target) == "mptcp":
                yield from pairs

    def peers(self) -> Iterator[Peers]:
        """Yield the paths from each host to each other one."""
        for (source, target), pairs in self.pairs.items():
            yield Peers(
                source=source,
                target=target,
                transport=self._transport(source, target),  # type: ignore[arg-type]  # one of the two
                paths=paths_of("client", pairs, [], self._routing),
                ideal_rate_bps=ideal_bps("client", pairs, self._routing, self._topology),
            )
