"""From the conditions of one direction of a link to its qdiscs, with handles that never change. Pure.

    1:  netem   what happens to packets under way: loss, duplication, corruption, delay, jitter, reordering
    2:  plait_trace where a link follows a recorded trace of opportunities, else
        tbf     the rate, or a token bucket with its peak rate; only where there is a rate
    3:  the queue in front of the rate: pfifo, bfifo, codel, fq_codel, plait_red, or red, whose fifo is 4:

`qdiscs` is the one place where options follow from conditions: a change of conditions in the course of a trial is
what it says for the conditions then, on the same handles.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING

from plait.plan.links.distributions import UNIFORM, netem_jitter_ns
from plait.plan.links.queues import configured_length, limit_bytes, queue_bytes, queue_length
from plait.plan.links.red import red_qdisc
from plait.plan.links.traces import Followed
from plait.plan.model.applications import File
from plait.plan.model.qdiscs import (
    Bfifo,
    Codel,
    FqCodel,
    Gemodel,
    Netem,
    Pfifo,
    PlaitRed,
    PlaitTrace,
    Qdisc,
    Red,
    Tbf,
)
from plait.scenario.read.traces import OPPORTUNITY_BYTES, Opportunities
from plait.units import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.links.queues import ShapedInterface
    from plait.scenario.fields import conditions as asked
    from plait.scenario.fields.conditions import Conditions

NETEM_LIMIT = 1_000_000
"""Packets under way; never reached (it takes no memory until it is used)."""
LEAST_DELAY_NS = 1000
"""So that netem takes the packet over from its sender's accounting also where a link has no delay."""


def qdiscs(place: ShapedInterface, conditions: Conditions, *, keep_order: bool = False) -> tuple[Qdisc, ...]:
    """The qdiscs of a direction, each parent before its child, with seeds of 0.

    `keep_order` keeps packets in order although their delay is constant: for a delay that will change.
    """
    keep_order = keep_order or (isinstance(conditions.trace, Followed) and conditions.trace.moves_delay)
    out = [_at(place, "root", "1:", _netem(conditions, keep_order=keep_order))]
    if conditions.rate is not None:
        queued = queue_bytes(conditions, place)
        shaper = _trace(conditions.trace) or _tbf(conditions, place, queued)
        out.append(_at(place, "1:1", "2:", shaper))
        out += _queue(conditions, place, queued)
    return tuple(out)


def _trace(trace: object) -> PlaitTrace | None:
    """The replay of delivery opportunities, where that is what the direction follows."""
    if not isinstance(trace, Followed) or not isinstance(trace.content, Opportunities):
        return None
    return PlaitTrace(
        file=File(name=trace.facts.name, bytes=trace.facts.bytes, sha256=trace.facts.sha256),
        opportunity_bytes=OPPORTUNITY_BYTES,
        repeated=trace.spec.loop,
    )


def settled(conditions: Conditions, place: ShapedInterface) -> Conditions:
    """The same conditions, with their queue in packets or bytes: it stays so when the rate changes."""
    packets, size = queue_length(conditions, place)
    if packets is None and size is None:
        return conditions
    queue = Queue(packets, "pkt") if packets is not None else Queue(size or 0, "B")
    return conditions.model_copy(update={"queue": queue})


def changed(old: Qdisc, new: Qdisc) -> Qdisc:
    """What to say for the new options: the kernel keeps of netem's what it is not told."""
    before, after = old.options, new.options
    if not isinstance(before, Netem) or not isinstance(after, Netem):
        return new
    kept: dict[str, object] = {}
    if before.corrupt_ratio is not None and after.corrupt_ratio is None:
        kept["corrupt_ratio"] = 0.0
    if before.distribution is not None and after.distribution is None:
        kept["distribution"] = UNIFORM
    return new.model_copy(update={"options": after.model_copy(update=kept)})


def bucket_qdiscs(
    place: ShapedInterface, bucket: asked.Bucket, peak_bps: int, queue: Queue | None
) -> tuple[Qdisc, ...]:
    """A token bucket by itself, with a drop-tail queue in front of it, measured by the peak rate."""
    packets, size = configured_length(queue, place, peak_bps)
    limit = limit_bytes(packets, size, place)
    shaper = _bucket(bucket, peak_bps, place, limit)
    fifo = Pfifo(limit_packets=packets) if packets is not None else Bfifo(limit_bytes=limit)
    return (_at(place, "root", "1:", shaper), _at(place, "1:1", "2:", fifo))


def _at(place: ShapedInterface, parent: str, handle: str, options: object) -> Qdisc:
    return Qdisc.model_validate(
        {"netns": place.netns, "ifname": place.ifname, "parent": parent, "handle": handle, "options": options}
    )


def _netem(conditions: Conditions, *, keep_order: bool) -> Netem:
    jitter_ns, distribution = _jitter(conditions.jitter)
    loss = conditions.loss
    model = None if loss is None else loss.as_gemodel()
    return Netem(
        delay_ns=max(LEAST_DELAY_NS, int(conditions.delay or 0)),
        jitter_ns=jitter_ns,
        distribution=distribution,
        in_order=keep_order or (conditions.jitter is not None and not conditions.jitter.reorder),
        loss_ratio=0.0 if loss is None or model is not None else loss.mean,
        gemodel=None if model is None else _gemodel(model),
        duplicate_ratio=float(conditions.duplicate or 0),
        reorder_ratio=None if conditions.reorder is None else float(conditions.reorder),
        corrupt_ratio=None if conditions.corrupt is None else float(conditions.corrupt),
        limit_packets=NETEM_LIMIT,
        seed=0,
    )


def _gemodel(model: asked.GemodelSpec) -> Gemodel:
    return Gemodel(
        p=float(model.p),
        r=float(model.r),
        loss_bad=float(model.loss_bad),
        loss_good=float(model.loss_good),
    )


def _jitter(jitter: asked.Jitter | None) -> tuple[int, str | None]:
    """Netem's jitter, and the name of its table (None: uniform)."""
    if jitter is None:
        return 0, None
    if jitter.within is not None:
        return int(jitter.within), None
    deviation = int(jitter.deviation or 0)
    if jitter.named == "uniform":
        return round(deviation * sqrt(3)), None
    return netem_jitter_ns(jitter.named, deviation), jitter.named


def _tbf(conditions: Conditions, place: ShapedInterface, queued: int) -> Tbf:
    assert conditions.rate is not None  # as the caller saw
    rate = int(conditions.rate)
    if conditions.bucket is not None:
        return _bucket(conditions.bucket, rate, place, queued)
    return Tbf(rate_bps=rate, burst_bytes=_frames_bytes(rate, place), limit_bytes=queued)


def _frames_bytes(rate_bps: int, place: ShapedInterface) -> int:
    """What may pass at once: two frames, or what takes 20 us. Less would miss the rate."""
    return max(2 * place.frame_bytes, ceil(rate_bps * 20 / 8_000_000))


def _bucket(bucket: asked.Bucket, peak_bps: int, place: ShapedInterface, queued: int) -> Tbf:
    return Tbf(
        rate_bps=int(bucket.baseline),
        burst_bytes=int(bucket.burst),
        limit_bytes=queued,
        peak_bps=peak_bps,
        peak_burst_bytes=_frames_bytes(peak_bps, place),
    )


def _queue(conditions: Conditions, place: ShapedInterface, queued: int) -> Iterator[Qdisc]:
    packets, size = queue_length(conditions, place)
    fifo = Pfifo(limit_packets=packets) if packets is not None else Bfifo(limit_bytes=size or queued)
    aqm = conditions.aqm
    if aqm is None or aqm.droptail is not None:
        yield _at(place, "2:1", "3:", fifo)
    elif aqm.red is not None:
        managed = red_qdisc(aqm.red, conditions, place, queued)
        yield _at(place, "2:1", "3:", managed)
        if isinstance(managed, Red):
            yield _at(place, "3:1", "4:", fifo)
    else:
        yield _at(place, "2:1", "3:", _codel(aqm, packets or 1, place))


def _codel(aqm: asked.Aqm, packets: int, place: ShapedInterface) -> Codel | FqCodel:
    spec = aqm.codel or aqm.fq_codel
    assert spec is not None  # the caller has seen to the others
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


def reseeded(qdisc: Qdisc, seed: int) -> Qdisc:
    """The qdisc, with this seed if it has one."""
    if not isinstance(qdisc.options, (Netem, PlaitRed)):
        return qdisc
    return qdisc.model_copy(update={"options": qdisc.options.model_copy(update={"seed": seed})})
