"""Scenario changes that test whether a cause is the real one: each removes one cause from a case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plait.explain.model import FlowExplanation, Share
from plait.plan.model.plan import Flow, Plan
from plait.plan.traffic.flow_slots import slots
from plait.scenario import Scenario

LONGER = 10
"""A transfer that may have been too short becomes this many times as long."""
BUFFER = 4
"""A buffer becomes this many times what fills the paths: half of it is overhead, and losses need as much again."""
LEAST_BUFFER = 2**20


@dataclass(frozen=True)
class Remedy:
    """One change to try: a description, and fields by their path in the form of `--set`."""

    description: str
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Suspect:
    """A cause of one flow, and everything that a remedy depends on."""

    scenario: Scenario
    """The scenario of the case; nothing in it varies."""
    plan: Plan
    flow: FlowExplanation
    share: Share

    @property
    def entry(self) -> tuple[int, str] | None:
        """The number and the kind of the `traffic` entry of the flow; None if a program opened the flow."""
        for slot, flow in zip(slots(self.scenario), self.plan.flows, strict=False):
            if flow.id == self.flow.flow_id:
                return slot.entry, self.scenario.traffic[slot.entry].kind
        return None

    @property
    def planned(self) -> Flow:
        """The flow in the plan."""
        return next(planned for planned in self.plan.flows if planned.id == self.flow.flow_id)

    @property
    def prototype(self) -> str | None:
        """The path of the fields of a prototype flow in the form of `--set`; None for other flows."""
        if self.entry is None or self.entry[1] != "prototype":
            return None
        return f"traffic.{self.entry[0]}.prototype"

    def setting(self, description: str, field: str, value: Any) -> Remedy | None:
        """Return the change of a field of the flow's `traffic` entry; None if a program opened the flow."""
        if self.entry is None:
            return None
        number, kind = self.entry
        return Remedy(description, ((f"traffic.{number}.{kind}.{field}", value),))

    def links(self) -> list[str]:
        """Return the links of the directions that the cause affects."""
        return [
            link.name
            for link in self.plan.links
            if {direction.name for direction in link.directions} & set(self.share.where)
        ]

    def fill_bytes(self) -> int:
        """Return how many bytes fill the flow's paths: their total rate times the longest RTT."""
        longest = max((path.base_rtt_us for path in self.planned.paths), default=0.0)
        return int((self.flow.capacity_bps or 0) * longest / 8e6)


def host_setting(suspect: Suspect, description: str, name: str, value: int) -> Remedy:
    """Return a sysctl of all hosts, also of those that have their own value."""
    fields: list[tuple[str, Any]] = [("sysctls", {**suspect.scenario.sysctls, name: value})]
    for host, options in suspect.scenario.network.hosts.items():
        if name in options.sysctls:
            fields.append((f"network.hosts.{host}.sysctls", {**options.sysctls, name: value}))
    return Remedy(description, tuple(fields))


def link_change(field: str, value: Any, description: str) -> Callable[[Suspect], Remedy | None]:
    """Return a remedy that sets a condition on every affected link, in both directions."""

    def make(suspect: Suspect) -> Remedy | None:
        fields: list[tuple[str, Any]] = []
        for name in suspect.links():
            fields.append((f"network.links.{name}.{field}", value))
            link = suspect.scenario.network.links.get(name)
            for side in ("forward", "backward"):
                conditions = getattr(link, side) if link is not None else None
                if conditions is not None and field in conditions.model_fields_set:
                    fields.append((f"network.links.{name}.{side}.{field}", value))
        names = ", ".join(suspect.links())
        return Remedy(description.format(links=names), tuple(fields)) if fields else None

    return make


def without_events(suspect: Suspect) -> Remedy | None:
    """Return the scenario without its events; None if it has none."""
    return Remedy("no events", (("events", []),)) if suspect.scenario.events else None
