"""The qdiscs of a plan's links on stock kernels: the only place where qdiscs follow from conditions.

A kernel without links of its own has a chain of qdiscs for each direction, with handles that never change:

    1:  netem   packets in flight: loss, duplication, corruption, delay, jitter, reordering
    2:  plait_trace if the link follows a recorded trace of opportunities, otherwise
        tbf     the rate, or a token bucket with its peak rate; only if there is a rate
    3:  the queue in front of the rate: pfifo, bfifo, codel, fq_codel, plait_red, or red, whose fifo is 4:

A token bucket lets the first packet after silence go without its own transmission time; a line of netem does not. It
replaces the bucket and its queue where it can: the queue is drop-tail and counts packets, and no event changes rate or
queue, because netem computes a departure when a packet arrives. Elsewhere the chain is on an ifb, with a bucket of one
frame, and returns each frame to the interface, where a line of netem transmits it.

The laboratory's kernel makes one device of a link, unless the link has something that the device lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Any

from plait.plan.links.changes import link_changes
from plait.plan.links.distributions import UNIFORM, table
from plait.plan.links.queue_lengths import limit_bytes
from plait.plan.model.links import EFFECTS, ChangeLink, Link, LinkDirection, SharedBucket, VethEnd
from plait.plan.model.plan import Action, ChangeQdisc, Ifb, Network, Plan, Redirect
from plait.plan.model.qdiscs import Bfifo, Distribution, Netem, Pfifo, PlaitTrace, Qdisc, Red, Tbf
from plait.plan.network.model import WIRE, mac

METHOD = 2
"""Part of the identity of trials on stock kernels: raise it when the same plan gets other chains or lines."""
NETEM_LIMIT = 1_000_000
"""Packets in flight; the limit never binds (it takes no memory until packets use it)."""
_MAC_KIND = 4
RESET = {"reorder_ratio"}
"""Options that a change of netem resets if it omits them."""
LEAST_DELAY_NS = 1000
"""With it netem takes the packet out of its sender's accounting even if a link has no delay."""


def with_chains(plan: Plan, *, exact: bool = True, devices: bool = False) -> Plan:
    """Return the plan for one kind of kernel: its links as qdiscs, and changes of links as changes of qdiscs.

    `exact` replaces token buckets by lines of netem where possible. With `devices`, links become devices, except those
    of `chained`. A plan that has qdiscs stays as it is: somebody has made its chains, or an earlier version has.
    """
    if plan.network.qdiscs:
        return plan
    kept = chained(plan) if devices else {link.name for link in plan.links}
    chains = {side.name: side for link in plan.links if link.name in kept for side in link.directions}
    later: dict[str, list[LinkDirection]] = {name: [] for name in chains}
    for change in link_changes(plan):
        later.setdefault(change.now.name, []).append(change.now)
    lines = {name for name, side in chains.items() if exact and _is_line(side, later[name])}
    ifbs = _ifbs(plan, [side for side in chains.values() if exact and side.name not in lines])
    current = {name: _chain(side, ifbs.get(name)) for name, side in chains.items()}
    begin: list[Qdisc] = []
    for name, side in chains.items():
        begin += _with_line(side) if name in lines else current[name]
    for bucket in plan.buckets:
        begin += _bucket_qdiscs(bucket)
    events = []
    for event in plan.events:
        actions: list[Action] = []
        for action in event.actions:
            if isinstance(action, ChangeLink) and action.direction.name in current:
                name = action.direction.name
                before = current[name]
                current[name] = now = changed(before, _chain(action.direction, ifbs.get(name)))
                actions += (ChangeQdisc(qdisc=qdisc) for qdisc in _differing(before, now))
            else:
                actions.append(action)
        events.append(event.model_copy(update={"actions": tuple(actions)}))
    network = _without_devices(plan.network, [link for link in plan.links if link.name not in kept])
    tables = distributions(
        [*begin, *(act.qdisc for e in events for act in e.actions if isinstance(act, ChangeQdisc))]
    )
    known = {each.name: each for each in (*plan.network.distributions, *tables)}
    update = {
        "qdiscs": tuple(begin),
        "distributions": tuple(known[name] for name in sorted(known)),
        "ifbs": (*network.ifbs, *ifbs.values()),
        "redirects": (*network.redirects, *(_to_ifb(chains[name], ifb) for name, ifb in ifbs.items())),
    }
    ends = {veth.b.ifname: veth.a for veth in plan.network.veths}
    return plan.model_copy(
        update={
            "network": network.model_copy(update=update),
            "events": tuple(events),
            "links": tuple(
                _with_queues(link, ifbs) if link.name in kept else _device(link, ends) for link in plan.links
            ),
        }
    )


def chained(plan: Plan) -> set[str]:
    """Return the names of links with a middlebox, a shared token bucket, or the replay of a recorded trace."""
    boxes = {ifname for box in plan.network.middleboxes for ifname in (box.source, box.target)}
    limited = {name for bucket in plan.buckets for name in bucket.directions}
    return {
        link.name
        for link in plan.links
        for side in link.directions
        if side.ifname in boxes or side.name in limited or side.trace is not None
    }


def qdiscs(direction: LinkDirection, *, bucket_frames: int = 2) -> tuple[Qdisc, ...]:
    """Return the chain of a direction, each parent before its child; the bucket of its rate holds `frames` frames."""
    netem = _qdisc(direction.ifname, "root", "1:", _netem(direction))
    if direction.rate_bps is None:
        return (netem,)
    queued = limit_bytes(direction.queue_packets, direction.queue_bytes, direction.frame_bytes)
    replay = direction.trace
    shaper = (
        _tbf(direction, direction.rate_bps, queued, bucket_frames)
        if replay is None
        else PlaitTrace(**dict(replay))
    )
    fifo = _fifo(direction.queue_packets, direction.queue_bytes or queued)
    chain = [netem, _qdisc(direction.ifname, "1:1", "2:", shaper)]
    chain.append(_qdisc(direction.ifname, "2:1", "3:", direction.manager or fifo))
    if isinstance(direction.manager, Red):
        chain.append(_qdisc(direction.ifname, "3:1", "4:", fifo))
    return tuple(chain)


def can_become(before: LinkDirection, after: LinkDirection) -> bool:
    """Return whether an event can change these conditions in any kernel.

    The set of qdiscs never changes, so that no packet in them is lost. A token bucket changes its rates and its size; a
    link has one from the start, or never.
    """
    chains = [
        [(qdisc.handle, qdisc.options.kind) for qdisc in qdiscs(direction)] for direction in (before, after)
    ]
    return chains[0] == chains[1] and _bucket_fields(before) == _bucket_fields(after)


def _bucket_fields(direction: LinkDirection) -> tuple[bool, bool]:
    return direction.baseline_bps is None, direction.burst_bytes is None


def changed(before: tuple[Qdisc, ...], now: tuple[Qdisc, ...]) -> tuple[Qdisc, ...]:
    """Return a chain for change requests: it resets the options of netem that the kernel would keep if omitted."""
    old, new = before[0].options, now[0].options
    assert isinstance(old, Netem)
    assert isinstance(new, Netem)
    kept: dict[str, object] = {
        name: 0.0
        for name in EFFECTS
        if name not in RESET and getattr(old, name) is not None and getattr(new, name) is None
    }
    if old.distribution is not None and new.distribution is None:
        kept["distribution"] = UNIFORM
    return (now[0].model_copy(update={"options": new.model_copy(update=kept)}), *now[1:])


def distributions(chains: Iterable[Qdisc]) -> tuple[Distribution, ...]:
    """Return each distribution table that netem needs."""
    options = (qdisc.options for qdisc in chains)
    named = (netem.distribution for netem in options if isinstance(netem, Netem))
    return tuple(table(name) for name in sorted({name for name in named if name is not None}))


def _differing(before: tuple[Qdisc, ...], now: tuple[Qdisc, ...]) -> Iterator[Qdisc]:
    """Yield the qdiscs whose options changed. A tbf sets the limit of its queue in its own unit, so that follows."""
    follows = False
    for old, new in zip(before, now, strict=True):
        if follows or old.options.model_copy(update=_seed(new)) != new.options:
            yield new
            follows = isinstance(new.options, Tbf)
        else:
            follows = False


def _seed(qdisc: Qdisc) -> dict[str, object]:
    """Return the seed of its options, which a change leaves alone."""
    return {"seed": qdisc.options.seed} if hasattr(qdisc.options, "seed") else {}


def _is_line(first: LinkDirection, later: Iterable[LinkDirection]) -> bool:
    """Return whether one netem can replace the bucket and the queue of a direction with these conditions."""
    if first.rate_bps is None or first.queue_packets is None or first.duplicate_ratio:
        return False  # Linux refuses a netem that duplicates beside another one
    if first.manager is not None or first.trace is not None or first.burst_bytes is not None:
        return False
    kept = (first.rate_bps, first.queue_packets)
    return all((now.rate_bps, now.queue_packets) == kept and not now.duplicate_ratio for now in later)


def _with_line(direction: LinkDirection) -> tuple[Qdisc, Qdisc]:
    netem, rate, *_ = qdiscs(direction)
    queue = (direction.queue_packets or 0) + 1
    line = Netem(delay_ns=0, limit_packets=queue, rate_bps=direction.rate_bps, seed=0)
    return netem, rate.model_copy(update={"options": line})


def _ifbs(plan: Plan, directions: Iterable[LinkDirection]) -> dict[str, Ifb]:
    """Return, for each direction whose queue needs an interface of its own in front of the line, that ifb.

    A direction that takes tokens of a shared bucket has an ifb already, and an interface can redirect to one only.
    """
    shared = {name for bucket in plan.buckets for name in bucket.directions}
    queued = [side for side in directions if side.rate_bps and side.trace is None and side.name not in shared]
    return {
        side.name: Ifb(netns=WIRE, ifname=f"queue{number}", mac=mac(_MAC_KIND, number))
        for number, side in enumerate(queued)
    }


def _chain(direction: LinkDirection, ifb: Ifb | None) -> tuple[Qdisc, ...]:
    """Return the chain of a direction; with an ifb, the chain there and the line on the interface."""
    if ifb is None:
        return qdiscs(direction)
    line = Netem(delay_ns=0, limit_packets=NETEM_LIMIT, rate_bps=direction.rate_bps, seed=0)
    queue = direction.model_copy(update={"ifname": ifb.ifname})
    return (*qdiscs(queue, bucket_frames=1), _qdisc(direction.ifname, "root", "1:", line))


def _to_ifb(direction: LinkDirection, ifb: Ifb) -> Redirect:
    return Redirect(netns=WIRE, source=direction.ifname, target=ifb.ifname, hook="egress")


def _with_queues(link: Link, ifbs: Mapping[str, Ifb]) -> Link:
    """Return the link with directions at the interfaces that hold their queues."""
    sides = (
        side.model_copy(update={"ifname": ifbs[side.name].ifname}) if side.name in ifbs else side
        for side in link.directions
    )
    return link.model_copy(update={"directions": tuple(sides)})


def _netem(direction: LinkDirection) -> Netem:
    distribution = direction.jitter_distribution
    effects: dict[str, Any] = {name: ratio for name in EFFECTS if (ratio := getattr(direction, name))}
    return Netem(
        delay_ns=max(LEAST_DELAY_NS, direction.delay_ns),
        jitter_ns=direction.jitter_factor_ns,
        distribution=None if distribution == UNIFORM else distribution,
        in_order=direction.in_order,
        loss_ratio=direction.loss_ratio if direction.gemodel is None else 0.0,
        gemodel=direction.gemodel,
        limit_packets=NETEM_LIMIT,
        seed=direction.seed,
        **effects,
    )


def _tbf(direction: LinkDirection, rate_bps: int, queued: int, bucket_frames: int) -> Tbf:
    burst = _frames_bytes(rate_bps, direction.frame_bytes, bucket_frames)
    if direction.baseline_bps is None or direction.burst_bytes is None:
        return Tbf(rate_bps=rate_bps, burst_bytes=direction.burst_bytes or burst, limit_bytes=queued)
    return Tbf(
        rate_bps=direction.baseline_bps,
        burst_bytes=direction.burst_bytes,
        limit_bytes=queued,
        peak_bps=rate_bps,
        peak_burst_bytes=burst,
    )


def _frames_bytes(rate_bps: int, frame_bytes: int, frames: int = 2) -> int:
    """Return the burst of a token bucket filter: two frames, or what takes 20 us. Less would miss the rate.

    One frame in front of a line needs what takes 20 us besides: the bucket must not wait for a late timer.
    """
    late_bytes = ceil(rate_bps * 20 / 8_000_000)
    return frame_bytes + late_bytes if frames == 1 else max(frames * frame_bytes, late_bytes)


def _bucket_qdiscs(bucket: SharedBucket) -> tuple[Qdisc, Qdisc]:
    """Return a shared token bucket behind a drop-tail queue."""
    queued = limit_bytes(bucket.queue_packets, bucket.queue_bytes, bucket.frame_bytes)
    shaper = Tbf(
        rate_bps=bucket.baseline_bps,
        burst_bytes=bucket.burst_bytes,
        limit_bytes=queued,
        peak_bps=bucket.peak_bps,
        peak_burst_bytes=_frames_bytes(bucket.peak_bps, bucket.frame_bytes),
    )
    fifo = _fifo(bucket.queue_packets, queued)
    return _qdisc(bucket.ifname, "root", "1:", shaper), _qdisc(bucket.ifname, "1:1", "2:", fifo)


def _fifo(packets: int | None, size: int) -> Pfifo | Bfifo:
    return Bfifo(limit_bytes=size) if packets is None else Pfifo(limit_packets=packets)


def _qdisc(ifname: str, parent: str, handle: str, options: object) -> Qdisc:
    return Qdisc.model_validate(
        {"netns": WIRE, "ifname": ifname, "parent": parent, "handle": handle, "options": options}
    )


def _device(link: Link, ends: Mapping[str, VethEnd]) -> Link:
    """Return the link with the interfaces of its nodes, which `ends` has by those of the link."""
    forward, backward = link.directions
    return link.model_copy(update={"ends": (ends[backward.ifname], ends[forward.ifname])})


def _without_devices(network: Network, devices: list[Link]) -> Network:
    """Return the network without the veth pairs and the redirects that devices replace."""
    absent = {side.ifname for link in devices for side in link.directions}
    return network.model_copy(
        update={
            "veths": tuple(veth for veth in network.veths if veth.b.ifname not in absent),
            "redirects": tuple(redirect for redirect in network.redirects if redirect.source not in absent),
        }
    )
