"""Random early detection as qdiscs: Linux's own `red` where it can draw the curve, and `plait_red` elsewhere."""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

from plait.plan.links.queues import U32_MAX, curve, queue_length
from plait.plan.model.qdiscs import PlaitRed, Red

if TYPE_CHECKING:
    from plait.plan.links.queues import ShapedInterface
    from plait.scenario.fields import conditions as asked
    from plait.scenario.fields.conditions import Conditions

_IDLE_CELLS = 256


def red_qdisc(
    red: asked.RedSpec, conditions: Conditions, place: ShapedInterface, queued: int
) -> Red | PlaitRed:
    """Linux's own where it can draw the curve, and plait_red for what it cannot."""
    assert conditions.rate is not None  # there is a queue
    frame_ns = place.frame_bytes * 8 * 10**9 / int(conditions.rate)
    if red.points is not None or red.gentle:
        return PlaitRed(
            limit_packets=queue_length(conditions, place)[0] or 1,
            weight_log=red.weight_log,
            points=tuple(
                (round(average * 256), round(p * U32_MAX)) for average, p in curve(red, conditions, place)
            ),
            ecn=red.ecn,
            idle_ns=min(max(1, round(frame_ns)), U32_MAX),
            seed=0,
        )
    (low, _), (high, probability) = curve(red, conditions, place)
    idle_log, shifts = _idle_damping(red.weight_log, frame_ns / 1000)
    return Red(
        min_bytes=max(1, round(low * place.frame_bytes)),
        max_bytes=max(1, round(high * place.frame_bytes)),
        probability=probability,
        weight_log=red.weight_log,
        idle_log=idle_log,
        idle_shifts=shifts,
        ecn=red.ecn,
        limit_bytes=queued,
    )


def _idle_damping(weight_log: int, frame_us: float) -> tuple[int, tuple[int, ...]]:
    """The kernel's table for the decay of the average while the queue is empty: (cell log, shifts by cell).

    As many empty frames as would have left multiply the average by 1 - 2^-weight_log each; the kernel shifts it
    right by the logarithm of that to base 2 (net/red.h). Cells are as large as it takes to reach a shift of 31.
    """
    halvings_per_us = -log2(1 - 2.0**-weight_log) / frame_us
    longest_us = 31 / halvings_per_us
    cell_log = max(0, ceil(log2(longest_us / (_IDLE_CELLS - 1)))) if longest_us > _IDLE_CELLS - 1 else 0
    shifts = [min(31, int((cell << cell_log) * halvings_per_us)) for cell in range(_IDLE_CELLS)]
    return min(cell_log, 31), (*shifts[:-1], 31)
