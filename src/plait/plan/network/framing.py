"""The lengths of frames and segments of a plan, from the MTUs of its interfaces."""

from __future__ import annotations

from plait.frames import (
    DSS,
    IPV4_HEADER,
    IPV6_HEADER,
    TCP_HEADER,
    TIMESTAMPS,
    frame_bytes,
)
from plait.plan.model.plan import Flow, Plan


def full_segment(plan: Plan, flow: Flow, *, transport: str) -> tuple[int, int]:
    """Return the payload bytes and the frame bytes of a full segment of `flow`, sent by `transport` ("tcp", "mptcp").

    The lowest MTU of the plan's interfaces counts: a route over the others has headers of the same length.
    """
    mtu = plan.lowest_mtu
    headers = (IPV6_HEADER if ":" in flow.server.address else IPV4_HEADER) + TCP_HEADER
    if _timestamps(plan, flow):
        headers += TIMESTAMPS
    if transport == "mptcp":
        headers += DSS
    return mtu - headers, frame_bytes(mtu)


def _timestamps(plan: Plan, flow: Flow) -> bool:
    """Return whether both hosts of `flow` use TCP timestamps, the kernel's default."""
    ends = (flow.client.netns, flow.server.netns)
    return all(plan.sysctls.get(end, {}).get("net/ipv4/tcp_timestamps") != "0" for end in ends)
