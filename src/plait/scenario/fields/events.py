"""Events: changes of the network while the traffic runs, and their order.

events:
  - {at: 5s, down: h1-s1}                       the interfaces at both ends go down
  - {at: 6s, cut: h1->s1}                       every packet is lost; the interfaces stay up
  - {at: 8s, up: h1-s1}                         undo both
  - {at: 9s, set: {h1-s1: {rate: 2mbit}}}       change conditions
  - {at: 12s, handover: {from: h1-ap1, to: h1-ap2, gap: 50ms}}

`host_events.py` defines changes of hosts (endpoints, limits, sysctls).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from plait.parts import Listed, Part, Start
from plait.scenario.fields.conditions import Conditions
from plait.scenario.fields.host_events import (
    EndpointChange,
    EndpointsByHost,
    LimitsByHost,
    SysctlsByNode,
)
from plait.scenario.fields.settings import EndpointSpec, LimitsSpec
from plait.scenario.mistakes import Where
from plait.units import Duration, Within

MAX_EVENTS = 4096

Kind = Literal["down", "cut", "up", "set", "remove", "change", "add", "limits", "sysctls"]


Names = Annotated[list[str], Field(min_length=1, max_length=256), Listed]


HandoverGap = Annotated[Duration, Within(most=600 * 10**9, step=1000)]
"""Time in a handover without either link, or with both."""


class Change(Conditions):
    """New conditions of a link, for both directions or for one; other conditions do not change."""

    forward: Conditions | None = None
    backward: Conditions | None = None

    def given(self, *, forward: bool) -> dict[str, object]:
        """Return the new conditions of one direction, by name."""
        direction = self.forward if forward else self.backward
        common = {name: getattr(self, name) for name in self.model_fields_set & set(Conditions.model_fields)}
        single = (
            {}
            if direction is None
            else {name: getattr(direction, name) for name in direction.model_fields_set}
        )
        return common | single


class Handover(Part):
    """Replace a link by another."""

    from_: str = Field(alias="from")
    """Old link, which goes down."""
    to: str
    """New link, which comes up; it may be up already."""
    gap: HandoverGap = Duration(0)
    """How long the host has neither link."""
    overlap: HandoverGap = Duration(0)
    """How long the host has both links: the new link comes up first."""
    how: Literal["down", "cut"] = "down"
    """How the old link fails: its interfaces go down, or it loses every packet."""
    set: Change | None = None
    """Conditions of the new link from when it comes up."""

    @model_validator(mode="after")
    def _one_order(self) -> Handover:
        if self.gap and self.overlap:
            raise ValueError("a handover has either a gap or an overlap; remove one of them")
        return self


class EventSpec(Part):
    """One event: a time, and exactly one of the other fields."""

    at: Start
    """Time after the network is complete, like the start of a flow."""
    down: Names | None = None
    """Links whose interfaces go down at both ends: routes disappear, and hosts notice at once."""
    cut: Names | None = None
    """Links (`h1-s1`) or directions (`h1->s1`) that lose every further packet, while their interfaces stay up."""
    up: Names | None = None
    """Links that are down or cut, or cut directions, to restore."""
    set: Annotated[dict[str, Change], Field(min_length=1)] | None = None
    """New conditions by link."""
    handover: Handover | None = None
    endpoints: EndpointsByHost | None = None
    """By host, MPTCP endpoints to add, remove or change."""
    limits: LimitsByHost | None = None
    """By host, new MPTCP limits, which affect later actions of the path manager."""
    sysctls: SysctlsByNode | None = None
    """By host or router, kernel settings to change."""

    @model_validator(mode="after")
    def _one_kind(self) -> EventSpec:
        kinds = [name for name in type(self).model_fields if name != "at"]
        given = [name for name in kinds if getattr(self, name) is not None]
        if len(given) != 1:
            if given:
                raise ValueError(f"the event has {' and '.join(given)}; write an event for each")
            raise ValueError(f"the event changes nothing; add one of {', '.join(kinds)}")
        return self


@dataclass(frozen=True)
class Happening:
    """One change of a link, a host or a router, which an event causes."""

    at: int
    """Time in the trial, in ns."""
    kind: Kind
    subject: str
    """The name in the event: a link, a host or a router; for `cut` and `up` also a direction of a link."""
    detail: Change | str | EndpointChange | EndpointSpec | LimitsSpec | tuple[str, str] | None
    """The new conditions; the removed link or address; the changed or added endpoint; the limits; or a setting's name
    and value."""
    where: Where
    """The field of the scenario that causes it."""


def happenings(events: Sequence[EventSpec]) -> list[Happening]:
    """Return all changes of links in the order of time; at equal times in the order of the file."""
    changes: list[Happening] = []
    for i, event in enumerate(events):
        at, here = int(event.at), ("events", i)
        for kind in ("down", "cut", "up"):
            names = getattr(event, kind) or ()
            changes += [Happening(at, kind, name, None, (*here, kind)) for name in names]
        changes += [
            Happening(at, "set", name, change, (*here, "set", name))
            for name, change in (event.set or {}).items()
        ]
        if event.handover is not None:
            changes += _handover(event.handover, at, (*here, "handover"))
    return sorted(changes, key=lambda change: change.at)


def _handover(handover: Handover, at: int, here: Where) -> list[Happening]:
    goes, comes = at + int(handover.overlap), at + int(handover.gap)
    changes = [
        Happening(goes, handover.how, handover.from_, None, (*here, "from")),
        Happening(comes, "up", handover.to, None, (*here, "to")),
    ]
    if handover.set is not None:
        changes.insert(1, Happening(comes, "set", handover.to, handover.set, (*here, "set")))
    return changes


def host_happenings(events: Sequence[EventSpec]) -> list[Happening]:
    """Return all changes of hosts in the order of time; at equal times in the order of the file."""
    changes: list[Happening] = []
    for i, event in enumerate(events):
        at, here = int(event.at), ("events", i)
        for host, ends in (event.endpoints or {}).items():
            kinds: tuple[Kind, ...] = ("remove", "change", "add")
            for kind in kinds:
                for k, detail in enumerate(getattr(ends, kind)):
                    changes.append(Happening(at, kind, host, detail, (*here, "endpoints", host, kind, k)))
        for host, limits in (event.limits or {}).items():
            changes.append(Happening(at, "limits", host, limits, (*here, "limits", host)))
        for node, settings in (event.sysctls or {}).items():
            changes += [
                Happening(at, "sysctls", node, setting, (*here, "sysctls", node, setting[0]))
                for setting in settings.items()
            ]
    return sorted(changes, key=lambda change: change.at)
