"""The protocols and options of the sockets of a flow, as part of the plan's contract (`plan.py`)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plait.parts import U64, Record

Transport = Literal["tcp", "mptcp", "udp", "prototype"]
"""The protocol of a flow's sockets; `prototype` is the transport of `plait.prototype`, over UDP."""
StreamTransport = Literal["tcp", "mptcp"]


class SocketOptions(Record):
    """The options of both sockets of a flow. None: the kernel's default, or the namespace's setting."""

    scheduler: str | None = None
    """MPTCP only. There is no socket option: the namespace has this setting while the socket is created."""
    congestion_control: str | None = None
    send_buffer: U64 | None = None
    receive_buffer: U64 | None = None
    """SO_SNDBUF and SO_RCVBUF in bytes, as passed to setsockopt."""
    mark: int | None = Field(default=None, ge=1, lt=2**32)
    """SO_MARK."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The upper six bits of IP_TOS or IPV6_TCLASS."""
    nodelay: bool = False
    """TCP_NODELAY."""
    notsent_lowat: int | None = Field(default=None, ge=1, lt=2**32)
    """TCP_NOTSENT_LOWAT in bytes."""
    mss: int | None = Field(default=None, ge=88, le=32767)
    """TCP_MAXSEG in bytes; TCP only."""
