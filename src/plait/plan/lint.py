"""What will run but may not show what was hoped for, told from the plan alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.applications import Bulk
from plait.units import Rate
from plait.warnings import Caution, Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.model import Flow, Path, Plan

_INITIAL_WINDOW_BYTES = 14_480
"""RFC 6928: ten segments."""
_SEGMENT_BYTES = 1448
_STEADY_FACTOR = 5
"""A run should be so many times as long as its start."""


def lint(plan: Plan) -> list[Caution]:
    """The cautions of a plan, flow by flow, then link by link."""
    found: list[Caution] = []
    for flow in plan.flows:
        found += [*_single_path(flow), *_receive_buffer(plan, flow), *_duration(flow), *_shared(plan, flow)]
    found += _queues(plan)
    return list(dict.fromkeys(found))


def _single_path(flow: Flow) -> Iterator[Caution]:
    if flow.transport == "mptcp" and len(flow.paths) < 2 and not flow.joins:
        yield Caution(
            code=Code.SINGLE_PATH,
            where=flow.name,
            message=f"MPTCP has only one path ({flow.paths[0].name}) and cannot gain anything over TCP",
            remedy=(
                f"give {flow.client.netns} and {flow.server.netns} a second link each, or endpoints and limits that "
                "allow more subflows"
            ),
        )


def _receive_buffer(plan: Plan, flow: Flow) -> Iterator[Caution]:
    """Raiciu et al., NSDI 2012: without sum(rate) * max(RTT) of buffer, one path waits for another."""
    rates = [path.rate_bps for path in flow.paths]
    if any(rate is None for rate in rates) or flow.ideal_rate_bps is None:
        return
    needed = int(flow.ideal_rate_bps * max(path.base_rtt_us for path in flow.paths) / 8e6)
    receiver = flow.server.netns if flow.sender == "client" else flow.client.netns
    usable = _usable_receive_bytes(plan, flow, receiver)
    if usable < needed:
        yield Caution(
            code=Code.RECEIVE_BUFFER,
            where=flow.name,
            message=(
                f"the receive buffer lets about {usable} bytes be under way, and its paths hold {needed} "
                "(their rates together times the largest RTT), so that the links cannot be filled"
            ),
            remedy="raise tcp.receive_buffer_max, or the flow's receive_buffer, to at least twice that",
        )


def _usable_receive_bytes(plan: Plan, flow: Flow, receiver: str) -> int:
    """How much the receiver's window can open: the kernel takes half of the buffer for data, half for bookkeeping."""
    if flow.socket.receive_buffer is not None:
        return flow.socket.receive_buffer  # SO_RCVBUF is doubled by the kernel
    sysctls = dict(next(ns.sysctls for ns in plan.network.namespaces if ns.name == receiver))
    return int(sysctls["net/ipv4/tcp_rmem"].split()[-1]) // 2


def _duration(flow: Flow) -> Iterator[Caution]:
    """Slow start doubles the window every round trip, from ten segments to one bandwidth-delay product."""
    lasts_us = flow.application.duration_us if isinstance(flow.application, Bulk) else None
    if lasts_us is None:
        return
    start_us = max((_slow_start_us(path) for path in flow.paths), default=0)
    if lasts_us < _STEADY_FACTOR * start_us:
        yield Caution(
            code=Code.DURATION,
            where=flow.name,
            message=(
                f"it runs for {lasts_us / 1e6:g} s, and slow start alone takes about {start_us / 1e6:.2g} s; "
                "goodput will mostly show the start"
            ),
            remedy=f"let it run for at least {_STEADY_FACTOR * start_us / 1e6:.2g} s",
        )


def _slow_start_us(path: Path) -> float:
    """Connection set-up (two round trips for a joined subflow) and the doublings up to one BDP."""
    if path.rate_bps is None:
        return 2 * path.base_rtt_us
    product = path.rate_bps * path.base_rtt_us / 8e6
    doublings = max(0, int(product / _INITIAL_WINDOW_BYTES)).bit_length()
    return (2 + doublings) * path.base_rtt_us


def _shared(plan: Plan, flow: Flow) -> Iterator[Caution]:
    """Paths that cross the same limited link, when that keeps them from adding up."""
    rates = {d.name: d.rate_bps for link in plan.links for d in link.directions}
    total = sum(path.rate_bps or 0 for path in flow.paths)
    if len(flow.paths) < 2 or flow.ideal_rate_bps is None or flow.ideal_rate_bps >= total:
        return
    crossed = [name for path in flow.paths for name in path.forward if rates[name] is not None]
    shared = sorted({name for name in crossed if crossed.count(name) > 1}, key=lambda name: rates[name] or 0)
    if shared:
        yield Caution(
            code=Code.SHARED_BOTTLENECK,
            where=flow.name,
            message=(
                f"its paths share {shared[0]}, so that all {len(flow.paths)} together carry at most "
                f"{_spoken(flow.ideal_rate_bps)} and not {_spoken(total)}"
            ),
            remedy="give the paths links of their own, if they are meant to add up",
        )


def _queues(plan: Plan) -> Iterator[Caution]:
    """A queue shorter than one bandwidth-delay product empties whenever one TCP flow halves its window."""
    rtts: dict[str, float] = {}
    for flow in plan.flows:
        for path in flow.paths:
            for name in path.forward:
                rtts[name] = max(rtts.get(name, 0), path.base_rtt_us)
    for link in plan.links:
        for direction in link.directions:
            if direction.rate_bps is None or direction.name not in rtts:
                continue
            product = direction.rate_bps * rtts[direction.name] / 8e6
            held = direction.queue_bytes or (direction.queue_packets or 0) * (_SEGMENT_BYTES + 66)
            if held < product - 1:
                yield Caution(
                    code=Code.QUEUE,
                    where=direction.name,
                    message=f"its queue holds {held} bytes, less than a bandwidth-delay product ({product:.0f} bytes)",
                    remedy="queue: 1bdp, if the link is meant to stay busy after a loss",
                )


def _spoken(rate_bps: int) -> str:
    return str(Rate(rate_bps))
