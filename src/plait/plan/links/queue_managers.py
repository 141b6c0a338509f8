"""The management of a link's queue as the kernel's options: red, plait_red, codel or fq_codel, with seeds of 0.

Random early detection is Linux's `red` if that can draw the curve, otherwise `plait_red`.
"""

from __future__ import annotations

from math import ceil, log2

from plait.plan.links.queue_lengths import U32_MAX, ShapedInterface, curve, limit_bytes
from plait.plan.model.qdiscs import Codel, FqCodel, PlaitRed, Red
from plait.scenario.fields.conditions import Aqm, Conditions, RedSpec

_IDLE_CELLS = 256


def manager(
    conditions: Conditions, place: ShapedInterface, packets: int | None, size: int | None
) -> Red | PlaitRed | Codel | FqCodel | None:
    """Return what manages a queue of this length in front of a rate; None: it is drop-tail."""
    aqm = conditions.aqm
    if aqm is None or aqm.droptail is not None:
        return None
    if aqm.red is None:
        return _codel(aqm, packets or 1, place)
    if aqm.red.needs_plait_red:
        return _plait_red(aqm.red, conditions, place, packets or 1)
    return _red(aqm.red, conditions, place, limit_bytes(packets, size, place.frame_bytes))


def _codel(aqm: Aqm, packets: int, place: ShapedInterface) -> Codel | FqCodel:
    spec = aqm.codel or aqm.fq_codel
    assert spec is not None  # the caller handles the other kinds
    target_us, interval_us = max(1, spec.target.us), max(1, spec.interval.us)
    if aqm.fq_codel is None:
        return Codel(limit_packets=packets, target_us=target_us, interval_us=interval_us, ecn=spec.ecn)
    quantum = aqm.fq_codel.quantum
    return FqCodel(
        limit_packets=packets,
        target_us=target_us,
        interval_us=interval_us,
        ecn=spec.ecn,
        flows=aqm.fq_codel.flows,
        quantum_bytes=place.frame_bytes if quantum is None else int(quantum),
    )


def _plait_red(spec: RedSpec, conditions: Conditions, place: ShapedInterface, limit_packets: int) -> PlaitRed:
    """Return `plait_red` with every point of the drop curve."""
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


def _red(spec: RedSpec, conditions: Conditions, place: ShapedInterface, limit: int) -> Red:
    """Return Linux's own `red`, whose curve has two points."""
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
        limit_bytes=limit,
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
