"""MPTCP in a plan: endpoints, limits, how events change them, joins, and middleboxes that strip its options.

These records are part of the plan's contract (`plan.py`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plait.parts import U16, Address, IfName, Record

EndpointFlag = Literal["signal", "subflow", "backup", "fullmesh"]
"""The flags of `ip mptcp endpoint`."""
Segment = Literal["syn", "synack", "ack", "data"]


class Endpoint(Record):
    """An MPTCP endpoint, with the arguments of `ip mptcp endpoint add`.

    With a `device` the kernel binds subflows to it, and then treats every destination as on-link if no route
    through the device matches. Without one, the source address and the rules decide.
    """

    address: Address
    device: IfName | None = None
    id: int = Field(ge=1, le=255)
    flags: tuple[EndpointFlag, ...]
    port: U16 | None = None


class Mptcp(Record):
    """The MPTCP path manager of one namespace: limits and endpoints."""

    netns: str
    subflows: int = Field(ge=0, le=8)
    add_addr_accepted: int = Field(ge=0, le=8)
    endpoints: tuple[Endpoint, ...] = ()


class AddEndpoint(Record):
    """An event's action: add an endpoint. The kernel opens its subflows or announces it, also in live connections."""

    kind: Literal["add_endpoint"] = "add_endpoint"
    netns: str
    endpoint: Endpoint


class ChangeEndpoint(Record):
    """An event's action: set an endpoint's flags (`ip mptcp endpoint change`); the kernel informs peers (MP_PRIO)."""

    kind: Literal["change_endpoint"] = "change_endpoint"
    netns: str
    address: Address
    id: int = Field(ge=1, le=255)
    backup: bool
    fullmesh: bool


class RemoveEndpoint(Record):
    """An event's action: remove an endpoint and its subflows.

    The id 0 refers to the initial subflow from the address.
    """

    kind: Literal["remove_endpoint"] = "remove_endpoint"
    netns: str
    address: Address
    id: int = Field(ge=0, le=255)


class SetLimits(Record):
    """An event's action: set the limits of the path manager from now on; existing subflows stay."""

    kind: Literal["set_limits"] = "set_limits"
    netns: str
    subflows: int = Field(ge=0, le=8)
    add_addr_accepted: int = Field(ge=0, le=8)


class SetSysctl(Record):
    """An event's action: set a kernel setting of a namespace, by its path below /proc/sys."""

    kind: Literal["set_sysctl"] = "set_sysctl"
    netns: str
    path: str
    value: str


class Middlebox(Record):
    """A redirect that changes TCP segments: everything that arrives on `source` leaves through `target`."""

    netns: str
    source: IfName
    target: IfName
    strip: tuple[Segment, ...] = ()
    """MPTCP options become NOPs in segments of these kinds: with SYN; with SYN and ACK; with neither and without
    payload; with neither and with payload."""
    rewrite: bool = False
    """The middlebox inverts one byte of the payload in every segment that is long enough, and corrects TCP's
    checksum."""


class Join(Record):
    """Subflows that the agent opens for a client, as its path manager, once the connection is established.

    This needs `net.mptcp.pm_type` 1 in the namespace: the kernel's own path manager is inactive then.
    """

    client_address: Address
    server_address: Address
    id: int = Field(ge=0, le=255)
    """The address id of `client_address` in this connection: 0 for that of the initial subflow."""
    backup: bool = False
    count: int = Field(ge=1, lt=2**32)
    """The number of subflows, each from another port."""
