"""The conditions of one direction of a link as numbers: its qdiscs and its `LinkDirection` follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.plan.links.queue_lengths import queue_length

if TYPE_CHECKING:
    from plait.plan.links.queue_lengths import ShapedInterface
    from plait.scenario.fields.conditions import Aqm, Conditions


@dataclass(frozen=True)
class DirectionValues:
    """The values of one direction of a link. `LinkDirection` has the same fields and documents them."""

    rate_bps: int | None
    delay_ns: int
    jitter_ns: int
    jitter_distribution: str | None
    loss_ratio: float
    loss_burst_packets: float | None
    reorder_ratio: float
    duplicate_ratio: float
    corrupt_ratio: float
    queue_packets: int | None
    queue_bytes: int | None
    aqm: str | None
    baseline_bps: int | None
    burst_bytes: int | None


def direction_values(conditions: Conditions, place: ShapedInterface) -> DirectionValues:
    """Return the values of these conditions; a `bdp` of the queue is one of the RTT of `place`."""
    packets, size = queue_length(conditions, place)
    jitter, loss, bucket = conditions.jitter, conditions.loss, conditions.bucket
    model = None if loss is None else loss.as_gemodel()
    return DirectionValues(
        rate_bps=None if conditions.rate is None else int(conditions.rate),
        delay_ns=int(conditions.delay or 0),
        jitter_ns=0 if jitter is None else int(jitter.within or jitter.deviation or 0),
        jitter_distribution=None if jitter is None or jitter.within is not None else jitter.named,
        loss_ratio=0.0 if loss is None else loss.mean,
        loss_burst_packets=None if model is None or not model.r else 1 / model.r,
        reorder_ratio=float(conditions.reorder or 0),
        duplicate_ratio=float(conditions.duplicate or 0),
        corrupt_ratio=float(conditions.corrupt or 0),
        queue_packets=packets,
        queue_bytes=size,
        aqm=None if conditions.rate is None else _queue_manager(conditions.aqm),
        baseline_bps=None if bucket is None else int(bucket.baseline),
        burst_bytes=None if bucket is None else int(bucket.burst),
    )


def _queue_manager(aqm: Aqm | None) -> str | None:
    """Return the kind of the qdisc that manages the queue; None: drop-tail.

    Linux's `red` draws neither a curve of several points nor a gentle one: `plait_red` does.
    """
    if aqm is None or aqm.droptail is not None:
        return None
    if aqm.red is not None and (aqm.red.points is not None or aqm.red.gentle):
        return "plait_red"
    return aqm.kind
