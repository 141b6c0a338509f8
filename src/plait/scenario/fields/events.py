"""Events: what happens to the network while the traffic runs, and the order in which it happens.

events:
  - {at: 5s, down: h1-s1}                       the interfaces at both ends go down
  - {at: 6s, cut: h1->s1}                       packets vanish, and nobody is told
  - {at: 8s, up: h1-s1}                         both are undone
  - {at: 9s, set: {h1-s1: {rate: 2mbit}}}       other conditions
  - {at: 12s, handover: {from: h1-ap1, to: h1-ap2, gap: 50ms}}

What happens to hosts (endpoints, limits, sysctls) is in `host_events.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.conditions import Conditions
from plait.scenario.fields.host_events import (
    EndpointChange,
    EndpointsByHost,
    LimitsByHost,
    LimitsEvent,
    SysctlsByNode,
)
from plait.scenario.fields.parts import Part, Start, listed
from plait.units import Duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.fields.settings import EndpointSpec
    from plait.scenario.mistakes import Where

MAX_EVENTS = 4096

Kind = Literal["down", "cut", "up", "set"]
What = Literal["remove", "change", "add", "limits", "sysctls"]


Names = Annotated[
    list[str],
    Field(min_length=1, max_length=256),
    BeforeValidator(listed, json_schema_input_type=str | list[str]),
]


class HandoverGap(Duration):
    """How long a handover leaves a host without either link, or with both."""

    most = 600 * 10**9
    step = 1000


class Change(Conditions):
    """Other conditions of a link, of both directions or of one; what is not given stays as it is."""

    forward: Conditions | None = None
    backward: Conditions | None = None

    def given(self, *, forward: bool) -> dict[str, object]:
        """The conditions that one direction gets, by their names."""
        direction = self.forward if forward else self.backward
        common = {name: getattr(self, name) for name in self.model_fields_set & set(Conditions.model_fields)}
        single = (
            {}
            if direction is None
            else {name: getattr(direction, name) for name in direction.model_fields_set}
        )
        return common | single


class Handover(Part):
    """One link goes, another comes."""

    from_: str = Field(alias="from")
    """The link that goes."""
    to: str
    """The link that comes; it may be there already."""
    gap: HandoverGap = HandoverGap(0)
    """So long there is neither."""
    overlap: HandoverGap = HandoverGap(0)
    """So long there are both: the new link comes first."""
    how: Literal["down", "cut"] = "down"
    """How the old link goes: its interfaces go down, or its packets vanish."""
    set: Change | None = None
    """Conditions that the new link gets as it comes."""

    @model_validator(mode="after")
    def _one_order(self) -> Handover:
        if self.gap and self.overlap:
            raise ValueError("a handover has a gap or an overlap; give at most one of them")
        return self


class EventSpec(Part):
    """One event: a time, and exactly one of the other fields."""

    at: Start
    """After the network is complete, like the start of a flow."""
    down: Names | None = None
    """Links whose interfaces go down at both ends: routes vanish, and hosts notice at once."""
    cut: Names | None = None
    """Links (`h1-s1`) or directions (`h1->s1`) in which every further packet is lost; nobody is told."""
    up: Names | None = None
    """Links that are down or cut, and are as before from now on; or cut directions."""
    set: Annotated[dict[str, Change], Field(min_length=1)] | None = None
    """By link, the conditions that it gets."""
    handover: Handover | None = None
    endpoints: EndpointsByHost | None = None
    """By host, MPTCP endpoints that come, go, or get other flags."""
    limits: LimitsByHost | None = None
    """By host, other MPTCP limits: for what the path manager does from then on."""
    sysctls: SysctlsByNode | None = None
    """By host or router, kernel settings."""

    @model_validator(mode="after")
    def _one_kind(self) -> EventSpec:
        kinds = [name for name in type(self).model_fields if name != "at"]
        given = [name for name in kinds if getattr(self, name) is not None]
        if len(given) != 1:
            problem = f"here are {' and '.join(given)}; write an event for each" if given else "here is none"
            raise ValueError(f"an event is one of {', '.join(kinds)}; {problem}")
        return self


@dataclass(frozen=True)
class Happening:
    """One change of one link, as it follows from an event."""

    at: int
    """In ns of the trial."""
    kind: Kind
    link: str
    """As the event names it: a link, or for `cut` and `up` a direction."""
    change: Change | None
    """What is set."""
    where: Where
    """The field of the scenario that says so."""


def happenings(events: Sequence[EventSpec]) -> list[Happening]:
    """All changes of links in the order of their times; those of one time in the order in which they are written."""
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


@dataclass(frozen=True)
class HostHappening:
    """One thing that happens to a host, as it follows from an event."""

    at: int
    """In ns of the trial."""
    host: str
    what: What
    detail: str | EndpointChange | EndpointSpec | LimitsEvent | tuple[str, str]
    """What is removed (a link or an address); changed; added; the limits; or a setting's name and value."""
    where: Where
    """The field of the scenario that says so."""


def host_happenings(events: Sequence[EventSpec]) -> list[HostHappening]:
    """All that happens to hosts in the order of time; what happens at one time in the order in which it is written."""
    changes: list[HostHappening] = []
    for i, event in enumerate(events):
        at, here = int(event.at), ("events", i)
        for host, ends in (event.endpoints or {}).items():
            kinds: tuple[What, ...] = ("remove", "change", "add")
            for kind in kinds:
                for k, detail in enumerate(getattr(ends, kind)):
                    changes.append(HostHappening(at, host, kind, detail, (*here, "endpoints", host, kind, k)))
        for host, limits in (event.limits or {}).items():
            changes.append(HostHappening(at, host, "limits", limits, (*here, "limits", host)))
        for node, settings in (event.sysctls or {}).items():
            changes += [
                HostHappening(at, node, "sysctls", setting, (*here, "sysctls", node, setting[0]))
                for setting in settings.items()
            ]
    return sorted(changes, key=lambda change: change.at)
