"""What the links allow: the greatest goodput that headers and rates leave, from the plan alone.

    goodput = rate * payload / frame

A frame is counted as `tc` counts it: 14 bytes of Ethernet header and the IP packet (MTU at most), no FCS. The
payload of a full frame is what is left of the MTU by

    IPv4 header 20 (RFC 791) or IPv6 header 40 (RFC 8200)
    TCP header 20 (RFC 9293), time stamps 10 + 2 of padding (RFC 7323)
    MPTCP: the DSS option (RFC 8684, section 3.3) on every data segment: 4 bytes of kind, length, subtype and flags,
           14 of mapping with a 64-bit sequence number, 4 of 32-bit acknowledgement; 22, padded to 24.
           (Linux, net/mptcp/options.c, mptcp_established_options_dss; the acknowledgement takes 8 bytes, 28
           together, at a side that also receives data. One-way flows are what is counted here.)

At MTU 1500: TCP 1448 of 1514 bytes (95.6 %), MPTCP 1424 of 1514 (94.1 %); Linux 6.12 was measured to send just
these (a few of MPTCP's segments are shorter, where a mapping ends: 1423 in the mean). Handshakes, slow start, loss
and what the application itself does are not taken off: the figure is a ceiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.network.framing import full_segment

if TYPE_CHECKING:
    from plait.plan.model.plan import Flow, Plan


def payload_ratio(plan: Plan, flow: Flow, *, transport: str) -> float:
    """Return the ratio of payload to frame bytes in a full segment of `flow`, if `transport` ("tcp", "mptcp") sends it.

    It uses the smallest MTU of the plan's interfaces: routes over the other interfaces have the same headers.
    """
    payload, frame = full_segment(plan, flow, transport=transport)
    return payload / frame


def ideal_goodput_bps(plan: Plan, flow: Flow) -> float | None:
    """Return the goodput that the links allow `flow` alone, in bit/s; None when no link limits it."""
    if flow.ideal_rate_bps is None:
        return None
    return flow.ideal_rate_bps * payload_ratio(plan, flow, transport=flow.transport)


def single_path_goodputs_bps(plan: Plan, flow: Flow) -> list[float] | None:
    """Return the TCP goodput that each path of `flow` allows alone, in bit/s; None when any is unlimited."""
    ratio = payload_ratio(plan, flow, transport="tcp")
    rates = [path.rate_bps for path in flow.paths]
    if not rates or any(rate is None for rate in rates):
        return None
    return [rate * ratio for rate in rates if rate is not None]
