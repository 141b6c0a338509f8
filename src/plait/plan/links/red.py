"""Random early detection as qdiscs: Linux's `red` if it can draw the curve, otherwise `plait_red`."""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

from plait.plan.links.queue_lengths import U32_MAX, curve
from plait.plan.model.qdiscs import PlaitRed, Red

if TYPE_CHECKING:
    from plait.plan.links.queue_lengths import ShapedInterface
    from plait.scenario.fields.conditions import Aqm, Conditions

_IDLE_CELLS = 256


def plait_red(aqm: Aqm, conditions: Conditions, place: ShapedInterface, limit_packets: int) -> PlaitRed:
    """Return `plait_red` with every point of the drop curve."""
    spec = aqm.red
    assert spec is not None  # the caller chose red
    return PlaitRed(
        limit_packets=limit_packets,
        weight_log=spec.weight_log,
        points=tuple(
            (round(average * 256), round(p * U32_MAX)) for average, p in curve(spec, conditions, place)
        ),
        ecn=spec.ecn,
        idle_ns=min(max(1, round(_frame_ns(conditions, place))), U32_MAX),
        seed=0,
    )


def red(aqm: Aqm, conditions: Conditions, place: ShapedInterface, limit_bytes: int) -> Red:
    """Return Linux's own `red`, whose curve has two points."""
    spec = aqm.red
    assert spec is not None  # the caller chose red
    (low, _), (high, probability) = curve(spec, conditions, place)
    idle_log, shifts = _idle_damping(spec.weight_log, _frame_ns(conditions, place) / 1000)
    return Red(
        min_bytes=max(1, round(low * place.frame_bytes)),
        max_bytes=max(1, round(high * place.frame_bytes)),
        probability=probability,
        weight_log=spec.weight_log,
        idle_log=idle_log,
        idle_shifts=shifts,
        ecn=spec.ecn,
        limit_bytes=limit_bytes,
    )


def _frame_ns(conditions: Conditions, place: ShapedInterface) -> float:
    """Return the transmission time of a full frame."""
    assert conditions.rate is not None  # there is a queue
    return place.frame_bytes * 8 * 10**9 / int(conditions.rate)


def _idle_damping(weight_log: int, frame_us: float) -> tuple[int, tuple[int, ...]]:
    """Return the kernel's table for the decay of the average while the queue is empty: (cell log, shifts by cell).

    Each full frame that could have left in the idle time multiplies the average by 1 - 2^-weight_log; the
    kernel shifts the average right by the negative base-2 logarithm of the product (net/red.h). Cells are large
    enough to reach a shift of 31.
    """
    halvings_per_us = -log2(1 - 2.0**-weight_log) / frame_us
    longest_us = 31 / halvings_per_us
    cell_log = max(0, ceil(log2(longest_us / (_IDLE_CELLS - 1)))) if longest_us > _IDLE_CELLS - 1 else 0
    shifts = [min(31, int((cell << cell_log) * halvings_per_us)) for cell in range(_IDLE_CELLS)]
    return min(cell_log, 31), (*shifts[:-1], 31)
