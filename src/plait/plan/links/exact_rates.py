"""Rates with exact departures on a stock kernel: a line of netem instead of a token bucket with a queue.

A token bucket lets the first packet after silence go without its own transmission time; a line does not, nor does a
link as a device. So a chain has a line wherever netem can stand for the bucket and its queue: the queue is drop-tail
and counts packets, and no event changes it, because netem computes a departure when a packet arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.model.plan import ChangeQdisc
from plait.plan.model.qdiscs import Netem, Pfifo, Tbf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plait.plan.model.plan import Plan
    from plait.plan.model.qdiscs import Qdisc

_DELAY, _RATE, _QUEUE = "1:", "2:", "3:"
"""The handles of a direction's qdiscs; see `qdiscs.py`."""


def with_exact_rates(plan: Plan) -> Plan:
    """Return the plan for a kernel that makes links of qdiscs, with lines instead of token buckets where possible."""
    chains: dict[str, dict[str, Qdisc]] = {}
    for qdisc in plan.network.qdiscs:
        chains.setdefault(qdisc.ifname, {})[qdisc.handle] = qdisc
    changes: dict[str, list[Qdisc]] = {}
    for event in plan.events:
        for action in event.actions:
            if isinstance(action, ChangeQdisc):
                changes.setdefault(action.qdisc.ifname, []).append(action.qdisc)
    lines = {
        ifname: line
        for ifname, chain in chains.items()
        if (line := _line(chain, changes.get(ifname, ()))) is not None
    }
    qdiscs = tuple(
        lines[qdisc.ifname] if qdisc.ifname in lines and qdisc.handle == _RATE else qdisc
        for qdisc in plan.network.qdiscs
        if qdisc.ifname not in lines or qdisc.handle != _QUEUE
    )
    return plan.model_copy(update={"network": plan.network.model_copy(update={"qdiscs": qdiscs})})


def _line(chain: dict[str, Qdisc], changes: Iterable[Qdisc]) -> Qdisc | None:
    """Return the line that replaces the token bucket and the queue of a chain; None if netem cannot do what they do."""
    if set(chain) != {_DELAY, _RATE, _QUEUE}:
        return None
    rate, queue = chain[_RATE], chain[_QUEUE].options
    if not isinstance(rate.options, Tbf) or rate.options.peak_bps is not None or not isinstance(queue, Pfifo):
        return None
    if any(qdisc.handle != _DELAY for qdisc in changes):
        return None
    delays = [qdisc.options for qdisc in (chain[_DELAY], *changes)]
    if any(not isinstance(netem, Netem) or netem.duplicate_ratio for netem in delays):
        return None  # Linux refuses a netem that duplicates beside another one
    line = Netem(delay_ns=0, limit_packets=queue.limit_packets + 1, rate_bps=rate.options.rate_bps, seed=0)
    return rate.model_copy(update={"options": line})
