"""The settings of MPTCP and TCP, of the scenario as a whole and of its hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plait.scenario.parts import Buffer, Keyword, Part, Whole

MAX_SUBFLOWS = 32
"""Of one connection, the initial one included, where plait is the path manager; the kernel's own opens fewer."""


class Limits(Part):
    """The MPTCP limits of a host, as `ip mptcp limits`."""

    subflows: Annotated[Whole, Field(ge=0, le=8)] | None = None
    add_addr_accepted: Annotated[Whole, Field(ge=0, le=8)] | None = None


class EndpointSpec(Part):
    """An MPTCP endpoint of a host, as `ip mptcp endpoint add`: on a link of the host, or an address of it."""

    link: str | None = None
    address: str | None = None
    flags: Annotated[list[Literal["signal", "subflow", "backup", "fullmesh"]], Field(min_length=1)]
    id: Annotated[Whole, Field(ge=1, le=255)] | None = None
    port: Annotated[Whole, Field(ge=1, le=65535)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> EndpointSpec:
        if (self.link is None) == (self.address is None):
            raise ValueError("an endpoint has either a link or an address; give exactly one of them")
        if "port" in self.model_fields_set and "signal" not in self.flags:
            raise ValueError("a port needs the flag signal; add it, or leave the port out")
        return self


class MptcpSettings(Part):
    """MPTCP: the packet scheduler, and what is not to be derived."""

    scheduler: Keyword = "default"
    limits: dict[str, Limits] = {}
    """By host. Default: as many as the flows have paths."""
    endpoints: dict[str, list[EndpointSpec]] = {}
    """By host. Default: `subflow` where flows connect from, `signal` where they connect to."""
    subflows_per_path: Annotated[Whole, Field(ge=1, le=MAX_SUBFLOWS)] = 1
    """So many subflows over each pair of addresses, as the `ndiffports` path manager made them."""


class TcpSettings(Part):
    """TCP, and what MPTCP's subflows take from it."""

    congestion_control: Keyword = "cubic"
    receive_buffer_max: Buffer = Buffer.parse("6MiB")
    """To which the kernel grows a receive buffer by itself (tcp_rmem[2])."""
    send_buffer_max: Buffer = Buffer.parse("4MiB")
    """To which the kernel grows a send buffer by itself (tcp_wmem[2])."""
