"""What is known beforehand of the connections that programs make: between which hosts, and over which paths. Pure.

Who will connect to whom, and to which address, only the programs know. So each host in which a program runs may
connect to each other one, beginning on any pair of addresses: every interface gets the endpoint that it needs then.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from plait.plan.model.plan import Peers
from plait.plan.mptcp.pm_state import InitialSubflow
from plait.plan.traffic.flows import ideal_bps, paths_of, usable_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.network.model import Port, Topology
    from plait.plan.routes.tables import Routing

    Pair = tuple[Port, Port]


class ProgramPairs:
    """The hosts of a scenario in which programs run, each with each other."""

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
        #: By ordered pairs of hosts, the pairs of their interfaces between which packets arrive.
        self.pairs = {hosts: pairs for hosts, pairs in usable.items() if pairs}

    def _transport(self, source: str, target: str) -> str:
        both = {self._transports[source], self._transports[target]}
        return "mptcp" if both == {"mptcp"} else "tcp"

    def mptcp_initials(self) -> Iterator[InitialSubflow]:
        """Every way in which an MPTCP connection between them can begin."""
        for (source, target), pairs in self.pairs.items():
            if self._transport(source, target) == "mptcp":
                yield from (InitialSubflow(source, target, pair) for pair in pairs)

    def peers(self) -> Iterator[Peers]:
        """The paths from each of them to each other one."""
        for (source, target), pairs in self.pairs.items():
            yield Peers(
                source=source,
                target=target,
                transport=self._transport(source, target),  # type: ignore[arg-type]  # one of the two
                paths=paths_of("client", pairs, [], self._routing),
                ideal_rate_bps=ideal_bps("client", pairs, self._routing, self._topology),
            )
