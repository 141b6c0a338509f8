"""What belongs to MPTCP in a plan: endpoints, limits, how events change them, joins, and boxes that strip its options.

Part of the plan's contract (`model.py`); `agent/src/plan/mptcp.rs` reads the same.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plait.plan.model.record import IfName, Record


class Endpoint(Record):
    """An MPTCP endpoint, as `ip mptcp endpoint add` takes it.

    With a `device` the kernel binds subflows to it (and then takes every destination for on-link when no route
    through it fits); without, the source address and the rules decide.
    """

    address: str
    device: IfName | None = None
    id: int = Field(ge=1, le=255)
    flags: tuple[Literal["signal", "subflow", "backup", "fullmesh"], ...]
    port: int | None = None


class Mptcp(Record):
    """The MPTCP path manager of one namespace: limits and endpoints."""

    netns: str
    subflows: int = Field(ge=0, le=8)
    add_addr_accepted: int = Field(ge=0, le=8)
    endpoints: tuple[Endpoint, ...] = ()


class AddEndpoint(Record):
    """Of an event: an endpoint comes. The kernel opens its subflows, or announces it, in live connections, too."""

    kind: Literal["add_endpoint"] = "add_endpoint"
    netns: str
    endpoint: Endpoint


class ChangeEndpoint(Record):
    """Of an event: what an endpoint is from now on, as `ip mptcp endpoint change`; the kernel tells peers (MP_PRIO)."""

    kind: Literal["change_endpoint"] = "change_endpoint"
    netns: str
    address: str
    id: int = Field(ge=1, le=255)
    backup: bool
    fullmesh: bool


class RemoveEndpoint(Record):
    """Of an event: an endpoint goes, with its subflows. The id 0 stands for the initial subflow from the address."""

    kind: Literal["remove_endpoint"] = "remove_endpoint"
    netns: str
    address: str
    id: int = Field(ge=0, le=255)


class SetLimits(Record):
    """Of an event: limits for what the path manager does from now on; subflows that are there stay."""

    kind: Literal["set_limits"] = "set_limits"
    netns: str
    subflows: int = Field(ge=0, le=8)
    add_addr_accepted: int = Field(ge=0, le=8)


class SetSysctl(Record):
    """Of an event: a kernel setting of a namespace, by its path below /proc/sys."""

    kind: Literal["set_sysctl"] = "set_sysctl"
    netns: str
    path: str
    value: str


class Middlebox(Record):
    """Everything that arrives on `source` leaves through `target`, as with a redirect; TCP segments are changed."""

    netns: str
    source: IfName
    target: IfName
    strip: tuple[Literal["syn", "synack", "ack", "data"], ...] = ()
    """In segments of these kinds MPTCP options become NOPs: with SYN; with SYN and ACK; neither, and without or with
    payload."""
    rewrite: bool = False
    """A byte of the payload is turned over in every segment that is long enough, and TCP's checksum is mended."""


class Join(Record):
    """Subflows that the agent opens for a client, as its path manager, once the connection is established.

    Only where the namespace's `net.mptcp.pm_type` is 1: the kernel's own path manager keeps still then.
    """

    client_address: str
    server_address: str
    id: int = Field(ge=0, le=255)
    """The address id of `client_address` in this connection: 0 for that of the initial subflow."""
    backup: bool = False
    count: int = Field(ge=1)
    """So many, from different ports."""
