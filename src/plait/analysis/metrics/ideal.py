"""The ideal goodput: the greatest goodput that headers and rates leave, from the plan alone.

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

The scheduler `capped` bounds the share of each path. With a cap c, a total rate T is possible when each path i carries
at most min(R_i, c T), and all together T. The best is the greatest T with sum(min(R_i, c T)) >= T; for two paths
R1 >= R2 min(R1 + R2, R2 / (1 - c)).
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.metrics import all_known
from plait.plan.model.plan import Flow, Plan
from plait.plan.network.framing import full_segment
from plait.traffic.transfer import Transfer

SCHEDULER, EXTRA = "net/mptcp/scheduler", "net/mptcp_capped/e_permille"


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
    rates = all_known(path.rate_bps for path in flow.paths)
    return None if rates is None else [rate * ratio for rate in rates]


def capped_goodput_bps(plan: Plan, flow: Flow) -> float | None:
    """Return the best goodput of a flow under the cap of its sender, in bit/s.

    None where the sender's scheduler is not `capped` with an `extra` of its own, a path has no limit, or paths share
    links.
    """
    extra = _extra(plan, flow)
    rates = all_known(path.rate_bps for path in flow.paths if not path.backup) or []
    crossed = [name for path in flow.paths for name in path.forward]
    if not flow.multipath or extra is None or len(rates) < 2 or len(set(crossed)) < len(crossed):
        return None
    share = min(1.0, 1 / len(rates) + extra)
    ratio = payload_ratio(plan, flow, transport="mptcp")
    return best_rate(list(map(float, rates)), share) * ratio


def best_rate(rates: Sequence[float], share: float) -> float:
    """Return the largest total rate T at which each path carries at most `share` of T and at most its own rate.

    T has the unit of `rates`. The cap limits the k fastest paths to c T each (c is `share`), and the other paths carry
    their rates R_i: T = k c T + sum of R_i. The function returns the smallest T over all k: with a larger k the formula
    would assign a path more than its rate.
    """
    ordered = sorted(rates, reverse=True)
    totals = [
        sum(ordered[k:]) / (1 - k * share)
        for k in range(len(ordered))
        if 1 - k * share > 1e-9 and ordered[k:]
    ]
    return min(totals)


def _extra(plan: Plan, flow: Flow) -> float | None:
    settings = plan.sysctls.get(flow.ends[0].netns, {})
    chosen = flow.socket.scheduler or settings.get(SCHEDULER)
    if chosen != "capped" or EXTRA not in settings:
        return None
    return int(settings[EXTRA]) / 1000


def slowdown(plan: Plan, flow: Flow, completion_s: float | None) -> float | None:
    """Return a transfer's completion time over the least one that the links allow it alone; None without such a one.

    The least time is a round trip for the handshake, half a round trip on the first path for the last byte, and the
    bytes at the ideal goodput. Slow start and what routers take to receive a packet whole are not in it, so the
    slowdown is above 1 in an idle network, too. Transfers that wait by themselves have none.
    """
    job = flow.application
    goodput_bps = ideal_goodput_bps(plan, flow)
    if (
        completion_s is None
        or not isinstance(job, Transfer)
        or job.first
        or not goodput_bps
        or not flow.paths
    ):
        return None
    round_trips = 1.5 if flow.connection is None else 0.5
    return completion_s / (round_trips * flow.paths[0].base_rtt_us / 1e6 + job.bytes * 8 / goodput_bps)
