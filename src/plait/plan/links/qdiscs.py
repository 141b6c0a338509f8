"""The qdiscs of one direction of a link, with handles that never change.

    1:  netem   packets in flight: loss, duplication, corruption, delay, jitter, reordering
    2:  plait_trace if the link follows a recorded trace of opportunities, otherwise
        tbf     the rate, or a token bucket with its peak rate; only if there is a rate
    3:  the queue in front of the rate: pfifo, bfifo, codel, fq_codel, plait_red, or red, whose fifo is 4:

Only `qdiscs` derives options from conditions: a change of conditions during a trial replaces the options on the same
handles by those of the new conditions.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING

from plait.plan.links.distributions import UNIFORM, netem_jitter_ns
from plait.plan.links.queue_lengths import configured_length, limit_bytes, queue_length
from plait.plan.links.red import plait_red, red
from plait.plan.links.traces import Followed
from plait.plan.links.values import direction_values
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
    Tbf,
)
from plait.scenario.fields.traces import OPPORTUNITY_BYTES, Opportunities
from plait.units import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.links.queue_lengths import ShapedInterface
    from plait.plan.links.values import DirectionValues
    from plait.scenario.fields import conditions as asked
    from plait.scenario.fields.conditions import Conditions

NETEM_LIMIT = 1_000_000
"""Packets in flight; the limit never binds (it takes no memory until packets use it)."""
LEAST_DELAY_NS = 1000
"""With it netem takes the packet out of its sender's accounting even if a link has no delay."""


def qdiscs(place: ShapedInterface, conditions: Conditions, *, keep_order: bool = False) -> tuple[Qdisc, ...]:
    """Return the qdiscs of a direction, each parent before its child, with seeds of 0.

    `keep_order` keeps packets in order although their delay is constant: for a delay that will change.
    """
    keep_order = keep_order or (isinstance(conditions.trace, Followed) and conditions.trace.moves_delay)
    values = direction_values(conditions, place)
    out = [_qdisc_at(place, "root", "1:", _netem(values, conditions, keep_order=keep_order))]
    if values.rate_bps is not None:
        queued = limit_bytes(values.queue_packets, values.queue_bytes, place)
        shaper = _trace(conditions.trace) or _tbf(values, values.rate_bps, place, queued)
        out.append(_qdisc_at(place, "1:1", "2:", shaper))
        out += _queue(values, conditions, place, queued)
    return tuple(out)


def _trace(trace: object) -> PlaitTrace | None:
    """Return the replay of delivery opportunities, if the direction follows such a trace."""
    if not isinstance(trace, Followed) or not isinstance(trace.content, Opportunities):
        return None
    return PlaitTrace(
        file=File(name=trace.facts.name, bytes=trace.facts.bytes, sha256=trace.facts.sha256),
        opportunity_bytes=OPPORTUNITY_BYTES,
        repeated=trace.spec.loop,
    )


def settled(conditions: Conditions, place: ShapedInterface) -> Conditions:
    """Return the same conditions with their queue in packets or bytes, so that it stays when the rate changes."""
    packets, size = queue_length(conditions, place)
    if packets is None and size is None:
        return conditions
    queue = Queue(packets, "pkt") if packets is not None else Queue(size or 0, "B")
    return conditions.model_copy(update={"queue": queue})


def changed(old: Qdisc, new: Qdisc) -> Qdisc:
    """Return the qdisc for a change request: it resets the options of netem that the kernel would keep if omitted."""
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
    """Return a token bucket by itself behind a drop-tail queue; the peak rate defines a `bdp` of the queue."""
    packets, size = configured_length(queue, place, peak_bps)
    limit = limit_bytes(packets, size, place)
    shaper = _bucket(int(bucket.baseline), int(bucket.burst), peak_bps, place, limit)
    fifo = Pfifo(limit_packets=packets) if packets is not None else Bfifo(limit_bytes=limit)
    return (_qdisc_at(place, "root", "1:", shaper), _qdisc_at(place, "1:1", "2:", fifo))


def _qdisc_at(place: ShapedInterface, parent: str, handle: str, options: object) -> Qdisc:
    return Qdisc.model_validate(
        {"netns": place.netns, "ifname": place.ifname, "parent": parent, "handle": handle, "options": options}
    )


def _netem(values: DirectionValues, conditions: Conditions, *, keep_order: bool) -> Netem:
    jitter_ns, distribution = _jitter(values.jitter_ns, values.jitter_distribution)
    model = None if conditions.loss is None else conditions.loss.as_gemodel()
    return Netem(
        delay_ns=max(LEAST_DELAY_NS, values.delay_ns),
        jitter_ns=jitter_ns,
        distribution=distribution,
        in_order=keep_order or (conditions.jitter is not None and not conditions.jitter.reorder),
        loss_ratio=values.loss_ratio if model is None else 0.0,
        gemodel=None if model is None else _gemodel(model),
        duplicate_ratio=values.duplicate_ratio,
        reorder_ratio=None if conditions.reorder is None else values.reorder_ratio,
        corrupt_ratio=None if conditions.corrupt is None else values.corrupt_ratio,
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


def _jitter(jitter_ns: int, distribution: str | None) -> tuple[int, str | None]:
    """Return netem's jitter, and the name of its table (None: uniform)."""
    if distribution is None:
        return jitter_ns, None
    if distribution == UNIFORM:
        return round(jitter_ns * sqrt(3)), None
    return netem_jitter_ns(distribution, jitter_ns), distribution


def _tbf(values: DirectionValues, rate_bps: int, place: ShapedInterface, queued: int) -> Tbf:
    if values.baseline_bps is not None and values.burst_bytes is not None:
        return _bucket(values.baseline_bps, values.burst_bytes, rate_bps, place, queued)
    return Tbf(rate_bps=rate_bps, burst_bytes=_frames_bytes(rate_bps, place), limit_bytes=queued)


def _frames_bytes(rate_bps: int, place: ShapedInterface) -> int:
    """Return the burst of a token bucket filter: two frames, or what takes 20 us. Less would miss the rate."""
    return max(2 * place.frame_bytes, ceil(rate_bps * 20 / 8_000_000))


def _bucket(baseline_bps: int, burst_bytes: int, peak_bps: int, place: ShapedInterface, queued: int) -> Tbf:
    return Tbf(
        rate_bps=baseline_bps,
        burst_bytes=burst_bytes,
        limit_bytes=queued,
        peak_bps=peak_bps,
        peak_burst_bytes=_frames_bytes(peak_bps, place),
    )


def _queue(
    values: DirectionValues, conditions: Conditions, place: ShapedInterface, queued: int
) -> Iterator[Qdisc]:
    packets, aqm = values.queue_packets, conditions.aqm
    fifo = (
        Pfifo(limit_packets=packets)
        if packets is not None
        else Bfifo(limit_bytes=values.queue_bytes or queued)
    )
    if values.aqm is None or aqm is None:
        yield _qdisc_at(place, "2:1", "3:", fifo)
    elif values.aqm == "plait_red":
        yield _qdisc_at(place, "2:1", "3:", plait_red(aqm, conditions, place, packets or 1))
    elif values.aqm == "red":
        yield _qdisc_at(place, "2:1", "3:", red(aqm, conditions, place, queued))
        yield _qdisc_at(place, "3:1", "4:", fifo)
    else:
        yield _qdisc_at(place, "2:1", "3:", _codel(aqm, packets or 1, place))


def _codel(aqm: asked.Aqm, packets: int, place: ShapedInterface) -> Codel | FqCodel:
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


def reseeded(qdisc: Qdisc, seed: int) -> Qdisc:
    """Return the qdisc with this seed, if it has one."""
    if not isinstance(qdisc.options, (Netem, PlaitRed)):
        return qdisc
    return qdisc.model_copy(update={"options": qdisc.options.model_copy(update={"seed": seed})})
