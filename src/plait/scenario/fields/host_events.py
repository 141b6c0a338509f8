"""Events of hosts: MPTCP endpoints and limits that change while the traffic runs, and any kernel setting of a node.

events:
  - {at: 3s, endpoints: {phone: {add: {link: phone-lte, flags: [subflow, backup]}}}}
  - {at: 5s, endpoints: {phone: {change: {link: phone-wifi, backup: true}}}}        MP_PRIO
  - {at: 9s, endpoints: {phone: {remove: phone-wifi}}}
  - {at: 9s, limits: {phone: {subflows: 0}}}
  - {at: 9s, sysctls: {phone: {net.ipv4.tcp_sack: 0}}}
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.parts import Part, Sysctls, listed
from plait.scenario.fields.settings import EndpointSpec, LimitsSpec

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
    def _require_a_change(self) -> EndpointChange:
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
    def _require_a_change(self) -> EndpointEvents:
        if not (self.remove or self.change or self.add):
            raise ValueError(
                "nothing happens; write add: {link: .., flags: [..]}, change: {..} or remove: .."
            )
        return self


class LimitsEvent(LimitsSpec):
    """Other limits of a host; what is not given stays as it is."""

    @model_validator(mode="after")
    def _require_a_change(self) -> LimitsEvent:
        if self.subflows is None and self.add_addr_accepted is None:
            raise ValueError("nothing is set; write for example subflows: 2")
        return self


EndpointsByHost = Annotated[dict[str, EndpointEvents], Field(min_length=1)]
LimitsByHost = Annotated[dict[str, LimitsEvent], Field(min_length=1)]
SysctlsByNode = Annotated[dict[str, Annotated[Sysctls, Field(min_length=1)]], Field(min_length=1)]
