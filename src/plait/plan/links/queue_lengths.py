"""The length of the queue in front of a rate, and the drop curve of random early detection in full frames."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from plait.scenario.fields import conditions as asked
from plait.scenario.fields.conditions import Conditions
from plait.units import Queue

DEFAULT_QUEUE_PACKETS = 100
CODEL_PACKETS = 1000
FQ_CODEL_PACKETS = 10_240
"""The kernel's defaults: time keeps these queues short, not their limit."""
U32_MAX = 2**32 - 1


@dataclass(frozen=True)
class ShapedInterface:
    """The interface in `wire` of a direction, and the units of its queue."""

    ifname: str
    frame_bytes: int
    """The longest frame, as `tc` counts it."""
    rtt_ns: int
    """The RTT of a bandwidth-delay product."""


def queue_length(conditions: Conditions, place: ShapedInterface) -> tuple[int | None, int | None]:
    """Return (packets, bytes) of the queue in front of the rate: one of them, or neither if there is no rate."""
    if conditions.rate is None:
        return None, None
    if conditions.queue is None and conditions.aqm is not None:
        if conditions.aqm.codel is not None:
            return CODEL_PACKETS, None
        if conditions.aqm.fq_codel is not None:
            return FQ_CODEL_PACKETS, None
    packets, size = configured_length(conditions.queue, place, int(conditions.rate))
    red = None if conditions.aqm is None else conditions.aqm.red
    if conditions.queue is None and red is not None and packets is not None:
        packets = max(packets, ceil(_longest_average(red, conditions, place)))
    return packets, size


def configured_length(
    queue: Queue | None, place: ShapedInterface, rate_bps: int
) -> tuple[int | None, int | None]:
    """Return (packets, bytes) of a queue in front of this rate; exactly one of them is set."""
    if queue is not None and queue.unit == "B":
        return None, int(queue.amount)
    if queue is not None and queue.unit == "pkt":
        return int(queue.amount), None
    amount = 1 if queue is None else queue.amount
    packets = ceil(rate_bps * place.rtt_ns * amount / (8 * 10**9 * place.frame_bytes))
    return max(packets, DEFAULT_QUEUE_PACKETS if queue is None else 1), None


def limit_bytes(packets: int | None, size: int | None, frame_bytes: int) -> int:
    """Return the length of a queue in bytes; each packet counts as a full frame."""
    return min(size or (packets or 1) * frame_bytes, U32_MAX)


def curve(red: asked.RedSpec, conditions: Conditions, place: ShapedInterface) -> list[tuple[float, float]]:
    """Return the points of the drop curve: average queue in full frames, probability."""
    if red.points is not None:
        return [(frames(average, conditions, place), float(p)) for average, p in red.points.items()]
    assert red.min is not None  # as the model checks
    assert red.max is not None
    low, high = (frames(bound, conditions, place) for bound in (red.min, red.max))
    points = [(low, 0.0), (high, float(red.probability))]
    return [*points, (2 * high, 1.0)] if red.gentle else points


def _longest_average(red: asked.RedSpec, conditions: Conditions, place: ShapedInterface) -> float:
    """Return the average queue at the end of the curve: its last point, or twice `max` without `gentle`."""
    last = curve(red, conditions, place)[-1][0]
    return last if red.points is not None or red.gentle else 2 * last


def frames(queue: Queue, conditions: Conditions, place: ShapedInterface) -> float:
    """Return a queue length in full frames."""
    if queue.unit == "pkt":
        return float(queue.amount)
    if queue.unit == "B":
        return float(queue.amount) / place.frame_bytes
    assert conditions.rate is not None  # there is a queue
    return float(int(conditions.rate) * place.rtt_ns * queue.amount / (8 * 10**9 * place.frame_bytes))
