"""MPTCP and TCP settings of the whole scenario and of single hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plait.parts import Buffer, Keyword, Part, Whole
from plait.units import Duration, Ratio, Size, Within

MAX_SUBFLOWS = 32
"""Most subflows of a connection, with the initial one, if plait is the path manager; the kernel's opens fewer."""


class LimitsSpec(Part):
    """MPTCP limits of a host, as in `ip mptcp limits`."""

    subflows: Annotated[Whole, Field(ge=0, le=8)] | None = None
    """Additional subflows per connection."""
    add_addr_accepted: Annotated[Whole, Field(ge=0, le=8)] | None = None
    """Accepted ADD_ADDR announcements per connection."""

    def over(self, limits: tuple[int, int]) -> tuple[int, int]:
        """Return limits (subflows, add_addr_accepted), with those of this record where it has any."""
        subflows, accepted = limits
        return (
            subflows if self.subflows is None else self.subflows,
            accepted if self.add_addr_accepted is None else self.add_addr_accepted,
        )


class EndpointSpec(Part):
    """MPTCP endpoint of a host, as in `ip mptcp endpoint add`: a link or an address of the host."""

    link: str | None = None
    """Link of the host, whose address it has."""
    address: str | None = None
    """Address of the host, instead of a link."""
    flags: Annotated[list[Literal["signal", "subflow", "backup", "fullmesh"]], Field(min_length=1)]
    """Flags of `ip mptcp endpoint`."""
    id: Annotated[Whole, Field(ge=1, le=255)] | None = None
    """Address ID. Default: assigned automatically."""
    port: Annotated[Whole, Field(ge=1, le=65535)] | None = None
    """Port to announce with the address."""

    @model_validator(mode="after")
    def _one_place(self) -> EndpointSpec:
        if (self.link is None) == (self.address is None):
            raise ValueError("an endpoint has either a link or an address; write exactly one of them")
        if "port" in self.model_fields_set and "signal" not in self.flags:
            raise ValueError("a port needs the flag signal; add the flag, or remove the port")
        if "port" in self.model_fields_set and "subflow" in self.flags:
            raise ValueError(
                "a port is only for announced endpoints, not for the flag subflow; remove one of them"
            )
        if {"signal", "fullmesh"} <= set(self.flags):
            raise ValueError(
                "an endpoint cannot have both the flags fullmesh (it connects) and signal (it is announced); remove one"
            )
        return self


class Cap(Part):
    """Guarantee of the scheduler `capped`: with n live subflows, none carries more than 1/n + extra of the bytes."""

    extra: Ratio = Ratio(0)
    """Share of the bytes that a subflow may carry above 1/n, in steps of 0.1%."""
    window: Annotated[Duration, Within(least=10 * 10**6, most=3600 * 10**9, step=10**6)] = Duration(10**9)
    """The cap holds in every interval of this length."""
    alone: Literal["send", "hold"] = "send"
    """With only one live subflow: send on it, or hold the data until a second one is live."""

    @model_validator(mode="after")
    def _check_granularity(self) -> Cap:
        if abs(self.extra * 1000 - round(self.extra * 1000)) > 1e-6:
            raise ValueError("extra is not a multiple of 0.1%; write for example 5% or 2.5%")
        return self


class MptcpSettings(Part):
    """MPTCP settings: the packet scheduler, and limits and endpoints instead of derived ones."""

    scheduler: Keyword = "default"
    """Packet scheduler."""
    capped: Cap | None = None
    """Parameters of the scheduler `capped`."""
    limits: dict[str, LimitsSpec] = {}
    """MPTCP limits by host. Default: enough for all paths of the flows."""
    endpoints: dict[str, list[EndpointSpec]] = {}
    """MPTCP endpoints by host. Default: `subflow` on connecting hosts, `signal` on hosts that they connect to."""
    subflows_per_path: Annotated[Whole, Field(ge=1, le=MAX_SUBFLOWS)] = 1
    """Number of subflows for each pair of addresses, as with the `ndiffports` path manager."""


class TcpSettings(Part):
    """TCP settings, which also apply to MPTCP subflows."""

    congestion_control: Keyword = "cubic"
    """Congestion control."""
    receive_buffer_max: Buffer = Size.parse("6MiB")
    """Limit of receive buffer autotuning (tcp_rmem[2])."""
    send_buffer_max: Buffer = Size.parse("4MiB")
    """Limit of send buffer autotuning (tcp_wmem[2])."""
    machine_memory: Annotated[Size, Within(least=16 * 2**20, most=2**43)] | None = None
    """Limit the memory of all sockets (tcp_mem) to Linux's default on a machine of this size. Default: ample."""
