"""Events of hosts: MPTCP endpoints and limits that change while the traffic runs, and any kernel setting of a node.

events:
  - {at: 3s, endpoints: {phone: {add: {link: phone-lte, flags: [subflow, backup]}}}}
  - {at: 5s, endpoints: {phone: {change: {link: phone-wifi, backup: true}}}}        MP_PRIO
  - {at: 9s, endpoints: {phone: {remove: phone-wifi}}}
  - {at: 9s, limits: {phone: {subflows: 0}}}
  - {at: 9s, sysctls: {phone: {net.ipv4.tcp_sack: 0}}}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.parts import Part, Sysctls, listed
from plait.scenario.fields.settings import EndpointSpec, Limits
from plait.scenario.names import is_address
from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plait.scenario.fields.events import EventSpec
    from plait.scenario.scenario import Scenario

Where = tuple[str | int, ...]
Found = tuple[Where, str]
What = Literal["remove", "change", "add", "limits", "sysctls"]

FIELDS = ("endpoints", "limits", "sysctls")
"""Of an event."""


def _several(value: object) -> object:
    """One endpoint may stand without brackets."""
    return [value] if isinstance(value, (dict, Part)) else value


class EndpointChange(Part):
    """Another `backup` or `fullmesh` of an endpoint; what is not given stays as it is."""

    link: str | None = None
    address: str | None = None
    backup: bool | None = None
    """The kernel tells the other side at once (MP_PRIO), for each subflow of the endpoint."""
    fullmesh: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> EndpointChange:
        if (self.link is None) == (self.address is None):
            raise ValueError("an endpoint has either a link or an address; give exactly one of them")
        if self.backup is None and self.fullmesh is None:
            raise ValueError("nothing changes; write for example backup: true (other flags stay for ever)")
        return self


class EndpointEvents(Part):
    """What becomes of a host's endpoints at one moment: first some go, then some change, then some come."""

    remove: Annotated[
        list[str],
        Field(min_length=1, max_length=8),
        BeforeValidator(listed, json_schema_input_type=str | list[str]),
    ] = []
    """Links or addresses; without an endpoint there, what goes is the initial subflow from that address."""
    change: Annotated[
        list[EndpointChange],
        Field(min_length=1, max_length=8),
        BeforeValidator(_several, json_schema_input_type=EndpointChange | list[EndpointChange]),
    ] = []
    add: Annotated[
        list[EndpointSpec],
        Field(min_length=1, max_length=8),
        BeforeValidator(_several, json_schema_input_type=EndpointSpec | list[EndpointSpec]),
    ] = []

    @model_validator(mode="after")
    def _something(self) -> EndpointEvents:
        if not (self.remove or self.change or self.add):
            raise ValueError(
                "nothing happens; write add: {link: .., flags: [..]}, change: {..} or remove: .."
            )
        return self


class LimitsEvent(Limits):
    """Other limits of a host; what is not given stays as it is."""

    @model_validator(mode="after")
    def _something(self) -> LimitsEvent:
        if self.subflows is None and self.add_addr_accepted is None:
            raise ValueError("nothing is set; write for example subflows: 2")
        return self


EndpointsByHost = Annotated[dict[str, EndpointEvents], Field(min_length=1)]
LimitsByHost = Annotated[dict[str, LimitsEvent], Field(min_length=1)]
SysctlsByNode = Annotated[dict[str, Annotated[Sysctls, Field(min_length=1)]], Field(min_length=1)]


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
    found: list[HostHappening] = []
    for i, event in enumerate(events):
        at, here = int(event.at), ("events", i)
        for host, ends in (event.endpoints or {}).items():
            kinds: tuple[What, ...] = ("remove", "change", "add")
            for kind in kinds:
                for n, detail in enumerate(getattr(ends, kind)):
                    found.append(HostHappening(at, host, kind, detail, (*here, "endpoints", host, kind, n)))
        for host, limits in (event.limits or {}).items():
            found.append(HostHappening(at, host, "limits", limits, (*here, "limits", host)))
        for node, settings in (event.sysctls or {}).items():
            found += [
                HostHappening(at, node, "sysctls", setting, (*here, "sysctls", node, setting[0]))
                for setting in settings.items()
            ]
    return sorted(found, key=lambda one: one.at)


def check_host_events(scenario: Scenario, links_of: Mapping[str, set[str]]) -> Iterator[Found]:
    """Mistakes that need no addresses: nodes and links that there are not, and endpoints that nobody manages."""
    hosts, nodes = scenario.network.hosts, {**scenario.network.hosts, **scenario.network.routers}
    for one in host_happenings(scenario.events):
        known, kind = (nodes, "host or router") if one.what == "sysctls" else (hosts, "host")
        if one.host not in known:
            field = one.where[:4]
            yield field, f"no {kind} is called '{one.host[:40]}'; {nearest(one.host, known)}"
        elif one.what != "sysctls" and scenario.mptcp.subflows_per_path > 1:
            yield (
                one.where[:3],
                "with subflows_per_path plait opens the subflows, at the beginning; leave one of the two out",
            )
        elif one.what in ("remove", "change", "add"):
            yield from _place(one, links_of.get(one.host, set()))


def _place(one: HostHappening, own: set[str]) -> Iterator[Found]:
    """The link or the address of an endpoint."""
    if isinstance(one.detail, str):
        if one.detail not in own and not is_address(one.detail):
            what = f"{one.host} has no link '{one.detail[:40]}', nor is that an address; {nearest(one.detail, own)}"
            yield one.where, what
        return
    assert isinstance(one.detail, (EndpointChange, EndpointSpec))
    link, address = one.detail.link, one.detail.address
    if link is not None and link not in own:
        yield (*one.where, "link"), f"{one.host} has no link '{link[:40]}'; {nearest(link, own)}"
    if address is not None and not is_address(address):
        yield (*one.where, "address"), f"'{address[:40]}' is not an address; write for example 10.0.1.1"
