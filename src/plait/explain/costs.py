"""What each cause costs: the payload that paths lose to it, alone and at once with the paths that share their links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from plait.explain.capacity import together_bps
from plait.explain.cause import Array, Cause
from plait.explain.causes import HARMLESS
from plait.explain.facts import FlowFacts, PathFacts
from plait.explain.time.path_time import PathTime
from plait.plan.model.plan import Plan

Key = tuple[str, tuple[str, ...]]
"""A cause and its places."""


def capacity_of(facts: FlowFacts) -> float | None:
    """Return the sum of the payload rates of the flow's paths, without backups; None if a path has no rate."""
    if not all(path.capacity_bps for path in facts.paths):
        return None
    return sum(path.capacity_bps or 0 for path in _regular(facts)) * facts.payload_ratio


def together_of(plan: Plan, facts: FlowFacts) -> float | None:
    """Return the payload rate of the same paths at once; None if a path has no rate."""
    planned = [path.planned for path in _regular(facts) if path.planned is not None]
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
    length = facts.end_us - facts.start_us
    # A cause costs at most what the link carries in the cause's time.
    attributed = np.minimum(lost, rate * np.maximum(total, 0)) / length
    return {key: attributed * us / np.maximum(total, 1e-9) for key, us in harmful.items()}


def sums(costs: Mapping[Key, Array]) -> dict[Key, float]:
    """Return what each cause cost in the flow's whole time."""
    return {key: float(np.sum(cost)) for key, cost in costs.items()}


def share_links(capacity: float | None, together: float | None) -> bool:
    """Return whether a link that paths share lets them carry less at once than the sum of what each carries alone."""
    return capacity is not None and together is not None and together < (1 - 1e-9) * capacity


def at_once(
    facts: FlowFacts, times: Sequence[PathTime], costs: Mapping[Key, Array], together: float
) -> dict[Key, Array]:
    """Return the costs if the paths carry `together` at once: what they lack beyond that is the link that they share.

    Each path alone would lose to a cause what only one of them could have carried.
    """
    dt, length = np.diff(facts.edges), facts.end_us - facts.start_us
    carried = np.sum(
        [
            (path_time.facts.capacity_bps or 0.0) * np.nan_to_num(path_time.utilization)
            for path_time in times
            if not path_time.facts.is_backup
        ],
        axis=0,
    )
    room = np.maximum(together - carried * facts.payload_ratio, 0) * dt / length
    others = [cost for key, cost in costs.items() if key[0] != Cause.SHARED_BOTTLENECK]
    lost = np.sum(others, axis=0) if others else np.zeros(len(dt))
    kept = np.minimum(1, room / np.maximum(lost, 1e-9))
    scaled = {key: cost * (kept if key[0] != Cause.SHARED_BOTTLENECK else 1.0) for key, cost in costs.items()}
    key = (Cause.SHARED_BOTTLENECK, _shared_places(facts))
    scaled[key] = scaled.get(key, 0.0) + lost * (1 - kept)
    return scaled


def _shared_places(facts: FlowFacts) -> tuple[str, ...]:
    """Return the link direction that carries least of what its paths carry alone."""
    crossing: dict[str, float] = {}
    for path in facts.paths:
        for name in path.planned.forward if path.planned is not None and not path.is_backup else ():
            crossing[name] = crossing.get(name, 0.0) + (path.capacity_bps or 0.0)
    rates = {name: facts.network.directions[name].rate_bps for name in crossing}
    parts = {name: rate / crossing[name] for name, rate in rates.items() if rate and crossing[name]}
    return (min(parts, key=lambda name: parts[name]),) if parts else ()
