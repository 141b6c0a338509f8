"""Check the conditions of each direction of a link against each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil

from plait.frames import frame_bytes
from plait.parts import Delay
from plait.scenario.fields.conditions import Bucket, CodelSpec, Conditions, Jitter, RedSpec
from plait.scenario.fields.links import LinkSpec
from plait.scenario.mistakes import FieldMistake
from plait.units import Queue, Rate

SHORTEST = {"normal": 3.67, "pareto": 0.62, "paretonormal": 1.5}
"""Distance of a distribution's shortest delay below its mean, in standard deviations, rounded up."""
MAX_TOKENS = 2**32 - 1
RED_BITS = 31
"""The kernel's red keeps its average as a fixed-point number of 32 bits."""


def link_mistakes(link: LinkSpec) -> tuple[FieldMistake, ...]:
    """Return the mistakes of both directions of a link, each once."""
    if link.forward is None and link.backward is None:
        return tuple(condition_mistakes(link, link.mtu))
    mistakes: dict[FieldMistake, None] = {}
    for side, direction in (("forward", link.forward), ("backward", link.backward)):
        for fields, message in condition_mistakes(link.conditions(forward=side == "forward"), link.mtu):
            overridden = direction is not None and fields[0] in direction.model_fields_set
            mistakes[((side, *fields) if overridden else fields), message] = None
    return tuple(mistakes)


def condition_mistakes(conditions: Conditions, mtu: int) -> Iterator[FieldMistake]:
    """Yield every mistake of one direction."""
    yield from _needs_rate(conditions)
    if conditions.trace is not None:
        yield from _follows(conditions)
    yield from _whole_bytes(conditions.rate, "rate")
    yield from queue_mistakes(conditions.queue, mtu)
    yield from _delay(conditions)
    if conditions.aqm is not None and conditions.rate is not None:
        yield from _aqm(conditions, mtu)
    if conditions.bucket is not None and conditions.rate is not None:
        yield from (
            (("bucket", *fields), message)
            for fields, message in bucket_mistakes(conditions.bucket, conditions.rate, mtu, "rate")
        )


def _follows(conditions: Conditions) -> Iterator[FieldMistake]:
    """Yield conditions that a trace already sets."""
    trace = conditions.trace
    assert trace is not None  # as the caller saw
    if conditions.rate is not None and trace.kind == "mahimahi":
        yield (
            ("rate",),
            "the link has both a rate and a mahimahi trace, which sets the rate; remove one of them",
        )
    if conditions.bucket is not None:
        yield ("bucket",), "the link has both a trace and a token bucket; remove one of them"


def _needs_rate(conditions: Conditions) -> Iterator[FieldMistake]:
    if conditions.rate is not None or conditions.trace is not None:
        return
    if conditions.queue is not None:
        yield ("queue",), "a link without a rate has no queue; add a rate"
    if conditions.aqm is not None:
        yield ("aqm",), "a link without a rate has no queue to manage; add a rate"
    if conditions.bucket is not None:
        yield ("bucket",), "a token bucket needs the rate of the link as its peak rate; add a rate"


def _whole_bytes(rate: Rate | None, field: str) -> Iterator[FieldMistake]:
    if rate is not None and int(rate) % 8:
        lower = int(rate) // 8 * 8
        yield (field,), f"{rate} is not a whole number of bytes per second; write for example {lower}bit"


def queue_mistakes(queue: Queue | None, mtu: int) -> Iterator[FieldMistake]:
    """Yield a mistake if the queue cannot hold one frame."""
    frame = frame_bytes(mtu)
    if queue is not None and queue.unit == "B" and queue.amount < frame:
        yield ("queue",), f"{queue} is less than one frame ({frame} bytes); make it longer"


def _delay(conditions: Conditions) -> Iterator[FieldMistake]:
    delay = conditions.delay
    if conditions.jitter is not None:
        yield from _jitter(conditions.jitter, delay)
    if conditions.reorder and not delay:
        yield (
            ("reorder",),
            "without a delay no packet can overtake another; add a delay",
        )


def _jitter(jitter: Jitter, delay: Delay | None) -> Iterator[FieldMistake]:
    base = int(delay or 0)
    if jitter.within is not None:
        if jitter.within > base:
            yield ("jitter",), "the jitter is greater than the delay; lower it to at most the delay"
        return
    deviations = SHORTEST.get(jitter.named, 3**0.5)
    least = ceil(int(jitter.deviation or 0) * deviations)
    if least > base:
        yield (
            ("jitter",),
            (
                f"the shortest delay, {deviations:.3g} deviations below the mean, would be negative; raise the delay "
                f"to at least {least / 1e6:.4g}ms"
            ),
        )


def bucket_mistakes(bucket: Bucket, peak: Rate, mtu: int, peak_field: str) -> Iterator[FieldMistake]:
    """Yield mistakes if the bucket never empties, or cannot hold a frame."""
    frame = frame_bytes(mtu)
    if bucket.baseline is not None:
        yield from _whole_bytes(bucket.baseline, "baseline")
    if peak_field == "peak":
        yield from _whole_bytes(peak, "peak")
    if bucket.baseline is not None and bucket.baseline >= peak:
        yield (
            ("baseline",),
            f"{bucket.baseline} is not below the {peak_field} {peak}, so the bucket would never empty; lower it",
        )
    if not frame <= bucket.burst <= MAX_TOKENS:
        yield (
            ("burst",),
            f"{bucket.burst} is out of range; write one frame ({frame} bytes) to {MAX_TOKENS} bytes",
        )


def _aqm(conditions: Conditions, mtu: int) -> Iterator[FieldMistake]:
    aqm, queue = conditions.aqm, conditions.queue
    assert aqm is not None  # as the caller saw
    counts_packets = aqm.codel or aqm.fq_codel or (aqm.red is not None and aqm.red.needs_plait_red)
    if counts_packets and queue is not None and queue.unit == "B":
        how = "red with gentle or points" if aqm.red is not None else aqm.kind
        yield (
            ("queue",),
            f"{how} counts packets; write for example {max(1, int(queue.amount) // frame_bytes(mtu))}pkt",
        )
    if aqm.red is not None:
        yield from _red(aqm.red, mtu)
    for spec in (aqm.codel, aqm.fq_codel):
        if spec is not None:
            yield from _codel(spec, aqm.kind)


def _codel(spec: CodelSpec, kind: str) -> Iterator[FieldMistake]:
    if not spec.target:
        yield ("aqm", kind, "target"), "a target of 0s would drop every packet; write for example 5ms"
    elif spec.target >= spec.interval:
        yield (
            ("aqm", kind, "interval"),
            (
                f"the interval of {spec.interval} is not above the target of {spec.target}; write a long RTT as "
                "the interval, such as 100ms, and a twentieth of it as the target"
            ),
        )


def _red(red: RedSpec, mtu: int) -> Iterator[FieldMistake]:
    here = ("aqm", "red")
    if red.points is not None:
        yield from _points(red, here)
        return
    assert red.min is not None  # as the model checks
    assert red.max is not None
    low, high = _comparable(red.min, mtu), _comparable(red.max, mtu)
    if red.min.unit != red.max.unit and "bdp" in (red.min.unit, red.max.unit):
        yield (*here, "max"), "min and max are not comparable; write both in pkt or bytes, or both in bdp"
    elif low >= high:
        yield (*here, "max"), f"max ({red.max}) is not above min ({red.min}); raise it"
    elif not red.gentle and red.max.unit != "bdp" and int(high).bit_length() + red.weight_log > RED_BITS:
        yield (
            (*here, "weight_log"),
            (
                f"the kernel keeps the average in {RED_BITS} bits, too few for max {red.max} with weight_log "
                f"{red.weight_log}; at most {RED_BITS - int(high).bit_length()}"
            ),
        )


def _points(red: RedSpec, here: tuple[str, ...]) -> Iterator[FieldMistake]:
    points = list((red.points or {}).items())
    if len({queue.unit for queue, _ in points}) > 1:
        yield (*here, "points"), "the points have several units; write all of them in pkt, in bytes or in bdp"
        return
    for (queue, p), (following, later) in pairwise(points):
        if following.amount <= queue.amount:
            yield (*here, "points"), f"{following} comes after {queue}; write the queues in ascending order"
        elif later < p:
            yield (
                (*here, "points"),
                f"{later} at {following} is less than {p} at {queue}; write a probability that does not fall",
            )


def _comparable(queue: Queue, mtu: int) -> float:
    """Return the queue in bytes, or in bandwidth-delay products."""
    return float(queue.amount) * (frame_bytes(mtu) if queue.unit == "pkt" else 1)
