"""The settings of MPTCP and TCP, of the scenario as a whole and of its hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plait.scenario.fields.parts import Buffer, Keyword, Part, Whole
from plait.units import Duration, Ratio, Size

MAX_SUBFLOWS = 32
"""Of one connection, the initial one included, where plait is the path manager; the kernel's own opens fewer."""


class LimitsSpec(Part):
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
        if "port" in self.model_fields_set and "subflow" in self.flags:
            raise ValueError(
                "a port is announced, and the flag subflow connects from any; leave one of them out"
            )
        if {"signal", "fullmesh"} <= set(self.flags):
            raise ValueError(
                "the kernel takes fullmesh for what connects, signal for what is announced; not both"
            )
        return self


class CapWindow(Duration):
    """The interval in which a cap holds."""

    least = 10 * 10**6
    most = 3600 * 10**9
    step = 10**6


class Cap(Part):
    """What the scheduler `capped` promises: with n live subflows, none carries more than 1/n + extra of the bytes."""

    extra: Ratio = Ratio(0)
    window: CapWindow = CapWindow(10**9)
    """The promise holds in every interval of this length."""
    alone: Literal["send", "hold"] = "send"
    """While only one subflow lives: the data go there, or wait until a second one does."""

    @model_validator(mode="after")
    def _check_granularity(self) -> Cap:
        if abs(self.extra * 1000 - round(self.extra * 1000)) > 1e-6:
            raise ValueError("extra is set in steps of 0.1%; write for example 5% or 2.5%")
        return self


class MptcpSettings(Part):
    """MPTCP: the packet scheduler, and what is not to be derived."""

    scheduler: Keyword = "default"
    capped: Cap | None = None
    """For the scheduler of this name."""
    limits: dict[str, LimitsSpec] = {}
    """By host. Default: as many as the flows have paths."""
    endpoints: dict[str, list[EndpointSpec]] = {}
    """By host. Default: `subflow` where flows connect from, `signal` where they connect to."""
    subflows_per_path: Annotated[Whole, Field(ge=1, le=MAX_SUBFLOWS)] = 1
    """So many subflows over each pair of addresses, as the `ndiffports` path manager made them."""


class MachineMemory(Size):
    """The memory of a machine."""

    least = 16 * 2**20
    most = 2**43


class TcpSettings(Part):
    """TCP, and what MPTCP's subflows take from it."""

    congestion_control: Keyword = "cubic"
    receive_buffer_max: Buffer = Buffer.parse("6MiB")
    """To which the kernel grows a receive buffer by itself (tcp_rmem[2])."""
    send_buffer_max: Buffer = Buffer.parse("4MiB")
    """To which the kernel grows a send buffer by itself (tcp_wmem[2])."""
    machine_memory: MachineMemory | None = None
    """All sockets together get what Linux gives them on a machine with so much memory (tcp_mem). Default: ample."""
