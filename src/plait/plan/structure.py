"""The shape of a case, before links and applications matter: topology, routes, the traffic's ends, and subflows. Pure.

Nothing here needs the content of a file that the scenario names, except of traces (see `without_traces`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.plan.mptcp.missing_subflows import absent
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.network import addressing, topology
from plait.plan.routes.tables import Routing
from plait.plan.traffic.entries import Entry
from plait.plan.traffic.flow_slots import slots, transport_of
from plait.plan.traffic.flows import Ways
from plait.plan.traffic.program_paths import ProgramPairs

if TYPE_CHECKING:
    from plait.plan.model.plan import Path
    from plait.plan.mptcp.missing_subflows import MissingSubflow
    from plait.plan.network.model import Topology
    from plait.scenario import Scenario
    from plait.scenario.fields.conditions import Conditions


@dataclass(frozen=True)
class Structure:
    """What a plan's flows are derived from."""

    net: Topology
    routing: Routing
    entries: list[Entry]
    """Of the traffic, in its order."""
    program_pairs: ProgramPairs
    """Hosts between which programs may connect."""
    manager: PathManager

    @property
    def mptcp_entries(self) -> list[Entry]:
        """The entries with flows over MPTCP."""
        return [entry for entry in self.entries if entry.uses_mptcp]

    def missing_subflows(self) -> list[list[MissingSubflow]]:
        """What each entry will lack although its hosts have what it takes (see `plait.plan.mptcp.missing_subflows`)."""
        mptcp = self.mptcp_entries
        return [absent(self.manager, entry, mptcp) if entry in mptcp else [] for entry in self.entries]

    def paths(self) -> list[tuple[Path, ...]]:
        """The paths of each flow, in the order of the plan."""
        ways = Ways(self.net, self.routing, self.manager)
        scenario = self.net.scenario
        return [
            ways.paths_and_ideal(entry, transport_of(scenario, slot), entry.sender_of(slot))[0]
            for slot in slots(scenario)
            for entry in (self.entries[slot.entry],)
        ]


def structure(scenario: Scenario) -> Structure:
    """Return the shape of a case (ScenarioError: hosts that are not reachable, addresses that clash, cycles)."""
    net = topology.build(scenario)
    routing = Routing(net, addressing.assign(net))
    entries = [Entry(i, traffic, net, routing) for i, traffic in enumerate(scenario.traffic)]
    program_pairs = ProgramPairs(net, routing)
    initials = [entry.initial for entry in entries if entry.uses_mptcp]
    manager = PathManager(net, routing, [*initials, *program_pairs.mptcp_initials()])
    return Structure(net, routing, entries, program_pairs, manager)


def without_traces(scenario: Scenario) -> Scenario:
    """Return the scenario with links that follow no trace: which paths there are does not depend on one."""
    links = {
        key: link.model_copy(
            update={
                "trace": None,
                "forward": _without_trace(link.forward),
                "backward": _without_trace(link.backward),
            }
        )
        for key, link in scenario.network.links.items()
    }
    return scenario.model_copy(update={"network": scenario.network.model_copy(update={"links": links})})


def _without_trace(conditions: Conditions | None) -> Conditions | None:
    return None if conditions is None else conditions.model_copy(update={"trace": None})
