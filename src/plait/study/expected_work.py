"""The expected work of a trial: frames over links, and rows of samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING

from plait.frames import DEFAULT_MTU
from plait.plan.network.framing import full_segment

if TYPE_CHECKING:
    from plait.plan.model.links import LinkDirection
    from plait.plan.model.plan import Flow, Plan

_UNLIMITED_BPS = 1e9
_SEGMENT_BITS = 8 * DEFAULT_MTU
"""For the rate under random loss (Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997); other estimates are no closer."""
_ACKS = 0.5
"""ACK frames per data frame; Linux acknowledges every second one."""


@dataclass(frozen=True)
class Work:
    """The work of a trial whose flows share the links evenly."""

    frame_hops: float
    """Frames, including ACKs, times the links that each frame crosses."""
    rows: float
    """Rows of samples."""


def expected_work(plan: Plan) -> Work:
    """Return the work of one trial."""
    crossing = Counter(
        name for flow in plan.flows for name in {link for path in flow.paths for link in path.forward}
    )
    directions = {side.name: side for link in plan.links for side in link.directions}
    hops, longest_us = 0.0, 0.0
    for flow in plan.flows:
        rate = _rate_bps(flow, directions, crossing)
        payload, frame = full_segment(plan, flow, transport=flow.transport)
        mean_hops = sum(len(path.forward) for path in flow.paths) / max(1, len(flow.paths))
        hops += _frames(flow, rate, payload, frame) * mean_hops * (1 + _ACKS)
        longest_us = max(longest_us, flow.start_us + _duration_us(flow, rate, payload, frame))
    rows = sum(2 * (1 + len(flow.paths)) for flow in plan.flows) + 2 * len(plan.links)
    return Work(hops, rows * longest_us / plan.sample_interval_us)


def _rate_bps(flow: Flow, directions: dict[str, LinkDirection], crossing: Counter[str]) -> float:
    """Return the rate of a flow under even sharing of each link, bounded by random loss."""
    shares = []
    for path in flow.paths:
        links = [directions[name] for name in path.forward if name in directions]
        shares.append(
            min(
                (link.rate_bps / crossing[link.name] for link in links if link.rate_bps),
                default=_UNLIMITED_BPS,
            )
        )
        loss_ratio = 1 - prod(1 - link.loss_ratio for link in links)
        if loss_ratio and path.base_rtt_us:
            shares[-1] = min(shares[-1], _SEGMENT_BITS * 1e6 / path.base_rtt_us * sqrt(1.5 / loss_ratio))
    return min(sum(shares) or _UNLIMITED_BPS, flow.ideal_rate_bps or _UNLIMITED_BPS)


def _frames(flow: Flow, rate: float, payload: int, frame: int) -> float:
    """Return the number of data frames of a flow at `rate` bit/s, with `payload` bytes in each `frame` bytes."""
    return flow.application.frames(flow, rate, payload, frame)


def _duration_us(flow: Flow, rate: float, payload: int, frame: int) -> float:
    """Return the approximate duration of a flow in virtual time."""
    sends_ns = flow.application.sends_ns
    if sends_ns is not None:
        return sends_ns / 1000
    return _frames(flow, rate, payload, frame) * frame * 8e6 / rate
