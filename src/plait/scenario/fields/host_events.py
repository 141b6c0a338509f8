"""Events of hosts: changes of MPTCP endpoints, MPTCP limits and kernel settings while the traffic runs.

events:
  - {at: 3s, endpoints: {phone: {add: {link: phone-lte, flags: [subflow, backup]}}}}
  - {at: 5s, endpoints: {phone: {change: {link: phone-wifi, backup: true}}}}        MP_PRIO
  - {at: 9s, endpoints: {phone: {remove: phone-wifi}}}
  - {at: 9s, limits: {phone: {subflows: 0}}}
  - {at: 9s, sysctls: {phone: {net.ipv4.tcp_sack: 0}}}
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from plait.parts import Listed, Part, Sysctls
from plait.scenario.fields.settings import EndpointSpec, LimitsSpec


def _several(value: object) -> object:
    """Accept a single endpoint without brackets."""
    return [value] if isinstance(value, (dict, Part)) else value


class EndpointChange(Part):
    """New value of `backup` or `fullmesh` of an endpoint; the other flag does not change."""

    link: str | None = None
    address: str | None = None
    backup: bool | None = None
    """The kernel announces it to the peer at once (MP_PRIO), for each subflow of the endpoint."""
    fullmesh: bool | None = None

    @model_validator(mode="after")
    def _require_a_change(self) -> EndpointChange:
        if (self.link is None) == (self.address is None):
            raise ValueError("an endpoint has either a link or an address; write exactly one of them")
        if self.backup is None and self.fullmesh is None:
            raise ValueError(
                "the event changes nothing; write for example backup: true (other flags cannot change)"
            )
        return self


class EndpointEvents(Part):
    """Changes of a host's endpoints at one time: first removals, then changes, then additions."""

    remove: Annotated[list[str], Field(max_length=8), Listed] = []
    """Links or addresses of endpoints to remove; without an endpoint there, the initial subflow from it closes."""
    change: Annotated[
        list[EndpointChange],
        Field(max_length=8),
        BeforeValidator(_several, json_schema_input_type=EndpointChange | list[EndpointChange]),
    ] = []
    add: Annotated[
        list[EndpointSpec],
        Field(max_length=8),
        BeforeValidator(_several, json_schema_input_type=EndpointSpec | list[EndpointSpec]),
    ] = []

    @model_validator(mode="after")
    def _require_a_change(self) -> EndpointEvents:
        if not (self.remove or self.change or self.add):
            raise ValueError(
                "the event changes nothing; write add: {link: .., flags: [..]}, change: {..} or remove: .."
            )
        return self


def _limiting(limits: LimitsSpec) -> LimitsSpec:
    """Return new limits of a host; a missing one does not change."""
    if limits.subflows is None and limits.add_addr_accepted is None:
        raise ValueError("the event sets nothing; write for example subflows: 2")
    return limits


EndpointsByHost = Annotated[dict[str, EndpointEvents], Field(min_length=1)]
LimitsByHost = Annotated[dict[str, Annotated[LimitsSpec, AfterValidator(_limiting)]], Field(min_length=1)]
SysctlsByNode = Annotated[dict[str, Annotated[Sysctls, Field(min_length=1)]], Field(min_length=1)]
