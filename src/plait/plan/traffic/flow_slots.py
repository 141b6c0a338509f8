"""The flows of the entries of the traffic: parallel copies, consecutive turns, and parts of one flow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.scenario.scenario import Scenario
from plait.traffic.kinds import Traffic
from plait.traffic.spec import FlowSpec


@dataclass(frozen=True)
class Slot:
    """The position of one flow of the plan in the traffic."""

    entry: int
    copy: int
    """The index among parallel flows, from 0."""
    turn: int
    """The index of the repetition, from 0."""
    part: int
    """0; from 1 on, related flows: the other direction of its connection, or further connections of its page."""
    name: str
    user: str | None


def slots(scenario: Scenario) -> Iterator[Slot]:
    """Yield the slots in the order of the plan; the position of a flow is its id."""
    users = 0
    for index, traffic in enumerate(scenario.traffic):
        spec = traffic.flow
        for copy in range(copies(spec)):
            user = None
            if spec.users is not None:
                users += 1
                user = f"user{users}"
            for turn in range(spec.rounds):
                name = _name(traffic, index, copy, turn, user)
                for part in range(spec.parts):
                    suffix = spec.part_suffix(part) if part else ""
                    yield Slot(index, copy, turn, part, f"{name}{suffix}", user)


def copies(spec: FlowSpec) -> int:
    """Return the number of parallel flows, or users."""
    return spec.count if spec.users is None else spec.users


def total(scenario: Scenario) -> int:
    """Return the number of flows."""
    return sum(copies(entry.flow) * entry.flow.rounds * entry.flow.parts for entry in scenario.traffic)


def transport_of(scenario: Scenario, slot: Slot) -> str:
    """Return the transport of a flow: its own, the one of its turn, or the scenario's."""
    return scenario.traffic[slot.entry].flow.transport_of(slot.copy, scenario.transport)


def _name(traffic: Traffic, index: int, copy: int, turn: int, user: str | None) -> str:
    spec = traffic.flow
    name = user or spec.name or f"{traffic.kind}{index + 1}"
    if user is None and spec.count > 1:
        name += f".{copy + 1}"
    return name if spec.rounds == 1 else f"{name}.{turn + 1}"
