"""The structure of a case without links and applications: topology, routes, the traffic's hosts, and subflows.

This module reads no file that the scenario names, except traces.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plait.plan.finding import LintFinding
from plait.plan.model.plan import Path, SideName
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.network import addressing, topology
from plait.plan.network.model import Topology
from plait.plan.routes.tables import Routing
from plait.plan.traffic.entries import Entry
from plait.plan.traffic.flow_paths import ideal_bps, paths_of
from plait.plan.traffic.flow_slots import slots, transport_of
from plait.plan.traffic.missing_subflows import absent
from plait.plan.traffic.program_paths import ProgramPairs
from plait.scenario import Scenario
from plait.scenario.located import locating


@dataclass(frozen=True)
class Structure:
    """The base from which plait derives a plan's flows."""

    net: Topology
    routing: Routing
    entries: list[Entry]
    """The entries of the traffic, in the order of the scenario."""
    program_pairs: ProgramPairs
    """Pairs of hosts between which programs may connect."""
    manager: PathManager
    _computed: dict[tuple[int, str, SideName], tuple[tuple[Path, ...], int | None]] = field(
        default_factory=dict, init=False
    )

    def missing_subflows(self) -> list[list[LintFinding]]:
        """Return the missing subflows of each entry (see `plait.plan.traffic.missing_subflows`)."""
        mptcp = [entry for entry in self.entries if entry.uses_mptcp]
        return [absent(self.manager, entry, mptcp) if entry in mptcp else [] for entry in self.entries]

    def paths(self) -> list[tuple[Path, ...]]:
        """Return the paths of each flow, in the order of the plan."""
        scenario = self.net.scenario
        return [
            self.paths_and_ideal(entry, transport_of(scenario, slot), entry.sender_of(slot))[0]
            for slot in slots(scenario)
            for entry in (self.entries[slot.entry],)
        ]

    def paths_and_ideal(
        self, entry: Entry, transport: str, sender: SideName
    ) -> tuple[tuple[Path, ...], int | None]:
        """Return the paths of a flow of an entry, and the rate that the links allow it in bit/s (None: no limit)."""
        key = (entry.index, transport, sender)
        if key not in self._computed:
            wide = transport in {"mptcp", "prototype"}
            pairs = self.manager.pairs(entry.initial) if wide else [entry.initial]
            several = pairs if len(pairs) > 1 else ()
            backups = [pair for pair in several if self.manager.is_backup(entry.initial, pair)]
            counted = [pair for pair in pairs if pair not in backups] or pairs
            paths = paths_of(sender, pairs, backups, self.routing)
            self._computed[key] = (paths, ideal_bps(sender, counted, self.routing, self.net))
        return self._computed[key]


@locating
def structure(scenario: Scenario, *, traces: bool = True) -> Structure:
    """Return the structure of a case. Raise ScenarioError for unreachable hosts, address conflicts and cycles.

    Paths do not depend on traces: without `traces`, links have none.
    """
    net = topology.build(scenario, traces=traces)
    routing = Routing(net, addressing.assign(net))
    entries = [Entry(i, traffic, net, routing) for i, traffic in enumerate(scenario.traffic)]
    program_pairs = ProgramPairs(net, routing)
    initials = [entry.initial for entry in entries if entry.multipath]
    manager = PathManager(net, routing, [*initials, *program_pairs.mptcp_initials()])
    return Structure(net, routing, entries, program_pairs, manager)
