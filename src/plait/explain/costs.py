"""What each cause costs: the payload that paths lose to it, alone and at once with the paths that share their links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from plait.explain.capacity import together_bps
from plait.explain.cause import Array, Cause
from plait.explain.causes import HARMLESS
from plait.explain.facts import FlowFacts, PathFacts
from plait.explain.model import share_links
from plait.explain.time.path_time import PathTime, drained
from plait.plan.model.plan import Plan

Key = tuple[str, tuple[str, ...]]
"""A cause and its places."""


def capacity_of(facts: FlowFacts) -> float | None:
    """Return the sum of the payload rates of the flow's paths, without backups; None if a path has no rate."""
    if not all(path.capacity_bps for path in facts.paths):
        return None
    return sum(path.capacity_bps or 0 for path in _regular(facts)) * facts.payload_ratio


def together_of(plan: Plan, facts: FlowFacts, *, with_backups: bool = False) -> float | None:
    """Return the payload rate of the same paths at once; None if a path has no rate."""
    paths = facts.paths if with_backups else _regular(facts)
    planned = [path.planned for path in paths if path.planned is not None]
    bps = together_bps(plan, planned) if all(path.capacity_bps for path in facts.paths) else None
    return None if bps is None else bps * facts.payload_ratio


def _regular(facts: FlowFacts) -> Sequence[PathFacts]:
    return [path for path in facts.paths if not path.is_backup] or facts.paths


def costs_of(facts: FlowFacts, path_time: PathTime) -> dict[Key, Array]:
    """Return the payload that each cause cost on this path in each slice, in bit/s averaged over the flow's time.

    When several causes share a slice, its lost payload is split among them by time.
    """
    if not path_time.facts.capacity_bps:
        return {}
    dt = np.diff(facts.edges)
    rate = path_time.facts.capacity_bps * facts.payload_ratio
    lost = rate * dt * np.maximum(1 - np.nan_to_num(path_time.utilization), 0)
    harmful = {key: us for key, us in path_time.time.items() if key[0] not in HARMLESS}
    total = np.sum(list(harmful.values()), axis=0) if harmful else np.zeros(len(dt))
    # A cause costs at most what the link carries in the cause's time.
    attributed = np.minimum(lost, rate * np.maximum(total, 0)) / facts.lasted_us
    return {key: attributed * us / np.maximum(total, 1e-9) for key, us in harmful.items()}


def sums(costs: Mapping[Key, Array]) -> dict[Key, float]:
    """Return what each cause cost in the flow's whole time."""
    return {key: float(np.sum(cost)) for key, cost in costs.items()}


def flow_costs(
    plan: Plan, facts: FlowFacts, times: Sequence[PathTime], goodput_bps: float | None
) -> dict[Key, float]:
    """Return the payload that each cause cost the flow, in bit/s; empty if a path has no rate.

    The costs of causes but `shared-bottleneck` and the goodput are what the paths carry at once. Each path alone would
    lose to a cause what only one of them could have carried. What regular paths lose beyond that is the link that they
    share; a backup loses at most what it adds to them.
    """
    together, attainable = together_of(plan, facts), together_of(plan, facts, with_backups=True)
    if together is None or attainable is None:
        return {}
    regular = _regular(facts)
    main = [path_time for path_time in times if path_time.facts in regular]
    lost, beyond = _added(costs_of(facts, path_time) for path_time in main), dict[Key, Array]()
    if share_links(capacity_of(facts), together):
        shared = {key: cost for key, cost in lost.items() if key[0] == Cause.SHARED_BOTTLENECK}
        others = {key: cost for key, cost in lost.items() if key not in shared}
        room = _room(facts, main, together)
        lost = _within(others, room)
        key: Key = (Cause.SHARED_BOTTLENECK, _shared_places(facts))
        beyond = _added([shared, {key: _sum(others, room) - _sum(lost, room)}])
    room = _room(facts, times, attainable)
    lost = _within(lost, room)  # a backup may carry what a regular path lost
    spare = _added(costs_of(facts, path_time) for path_time in times if path_time not in main)
    spare = _within(spare, room - _sum(lost, room))
    within = sums(_added([lost, spare]))
    # What the samples show of senders may be less than what arrived, as where a path repeats what another one repeats.
    left = max(0.0, attainable - (goodput_bps or 0.0))
    part = min(1.0, left / max(sum(within.values()), 1e-9))
    within = {key: cost * part for key, cost in within.items()}
    return within | {key: within.get(key, 0.0) + cost for key, cost in sums(beyond).items()}


def _added(parts: Iterable[Mapping[Key, Array]]) -> dict[Key, Array]:
    total: dict[Key, Array] = {}
    for key, cost in chain.from_iterable(part.items() for part in parts):
        total[key] = total.get(key, 0.0) + cost
    return total


def _room(facts: FlowFacts, times: Sequence[PathTime], limit: float) -> Array:
    """Return what paths left of `limit` in each slice, in bit/s averaged over the flow's time.

    What they send beyond it waits in the queue of the link that they share, and takes the room of later slices.
    """
    dt = np.diff(facts.edges)
    rates = [(part.facts.capacity_bps or 0.0) * np.nan_to_num(part.utilization) for part in times]
    sent = np.sum(rates, axis=0) * facts.payload_ratio * dt
    return np.asarray(limit * dt - drained(sent, limit * dt)) / facts.lasted_us


def _within(costs: Mapping[Key, Array], room: Array) -> dict[Key, Array]:
    """Return the costs, scaled down in each slice to what has room."""
    share = np.clip(room / np.maximum(_sum(costs, room), 1e-9), 0, 1)
    return {key: cost * share for key, cost in costs.items()}


def _sum(costs: Mapping[Key, Array], like: Array) -> Array:
    return np.asarray(sum(costs.values(), np.zeros(len(like))))


def _shared_places(facts: FlowFacts) -> tuple[str, ...]:
    """Return the link direction that carries least of what its paths carry alone."""
    crossing: dict[str, float] = {}
    for path in facts.paths:
        for name in path.planned.forward if path.planned is not None and not path.is_backup else ():
            crossing[name] = crossing.get(name, 0.0) + (path.capacity_bps or 0.0)
    rates = {name: facts.network.directions[name].rate_bps for name in crossing}
    parts = {name: rate / crossing[name] for name, rate in rates.items() if rate and crossing[name]}
    return (min(parts, key=lambda name: parts[name]),) if parts else ()
