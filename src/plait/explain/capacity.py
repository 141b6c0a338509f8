"""The capacity of links over time: their rates after events, their outages, and the levels of token buckets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from plait.analysis.by_flow import known_samples
from plait.explain.cause import Array
from plait.plan.links.chain import with_chains
from plait.plan.links.changes import link_changes
from plait.plan.model.plan import Path, Plan
from plait.plan.model.qdiscs import Netem
from plait.plan.traffic.flow_paths import maximum_flow

EMPTY_SHARE = 0.02
"""A bucket counts as empty below this share of its burst .."""
EMPTY_FRAMES = 4
""".. or below this many of the longest frames."""


SATURATED = 0.9
"""A link is full in a slice when it carried at least this share of its rate .."""
SATURATED_QUEUE = 0.8
""".. or at least this share, and packets waited at both ends of the slice."""


class LinkSamples:
    """What a trial's plan and its table `links` say of its links, read once for all flows."""

    def __init__(self, plan: Plan, table: pl.DataFrame) -> None:
        self.plan, self.table = plan, table
        self.changes = _rate_changes(plan)
        self.down = _down_times(plan)
        self.frames = {name: direction.frame_bytes for name, direction in plan.directions.items()}
        self.out_of_order = {
            qdisc.ifname
            for qdisc in with_chains(plan, exact=False).network.qdiscs
            if isinstance(qdisc.options, Netem) and qdisc.options.jitter_ns and not qdisc.options.in_order
        }
        self.buckets = dict(_buckets(plan))
        self._parts = {str(name[0]): part for name, part in table.partition_by("link", as_dict=True).items()}
        self._samples: dict[tuple[str, str], tuple[Array, Array]] = {}

    def samples(self, direction: str, column: str) -> tuple[Array, Array]:
        """Return the times in us and the known values of a column of one link direction; both may be empty."""
        key = (direction, column)
        if key not in self._samples:
            self._samples[key] = known_samples(self._parts.get(direction, self.table.clear()), column)
        return self._samples[key]

    def edges(self, start: float, end: float) -> Array:
        """Return the times of the samples between two times, with these."""
        times = self.table["t_us"].unique().sort().to_numpy().astype(float)
        return np.concatenate(([start], times[(times > start) & (times < end)], [end])).astype(float)


class NetworkTimeline:
    """The links of a plan over a time grid: `edges` in us, n + 1 edges around n slices."""

    def __init__(self, links: LinkSamples, edges: Array) -> None:
        self.edges = edges
        self.plan = links.plan
        self._links = links
        self._counters: dict[tuple[str, str], Array | None] = {}
        self.directions = links.plan.directions
        self.buckets = links.buckets

    def counter(self, direction: str, column: str) -> Array | None:
        """Return a column of the table `links`, interpolated at the edges; None if it was not measured."""
        key = (direction, column)
        if key not in self._counters:
            times_us, values = self._links.samples(direction, column)
            self._counters[key] = np.interp(self.edges, times_us, values) if len(times_us) else None
        return self._counters[key]

    def sent(self, direction: str) -> Array | None:
        """Return the frame bytes that a link direction sent in each slice."""
        return self._growth(direction, "sent_bytes")

    def overflowed(self, direction: str) -> Array:
        """Return the packets that a full queue dropped in each slice; zeros if there is no queue."""
        return _or_zeros(self._growth(direction, "overflow_packets"), self.edges)

    def dropped(self, direction: str) -> Array:
        """Return the packets that were dropped in each slice, for any reason."""
        return _or_zeros(self._growth(direction, "dropped_packets"), self.edges)

    def load(self, direction: str) -> Array:
        """Return the share of its rate that a link direction sent in each slice; zeros without a rate or samples."""
        sent, rate = self.sent(direction), self.rate(direction)
        if sent is None or not np.isfinite(rate).any():
            return np.zeros(len(self.edges) - 1)
        return np.asarray(sent * 8e6 / np.maximum(rate * np.diff(self.edges), 1e-9))

    def queued(self, direction: str) -> Array:
        """Return the slices at both ends of which packets waited in the queue of a link direction."""
        queue = self.counter(direction, "queue_packets")
        if queue is None:
            return np.zeros(len(self.edges) - 1, dtype=bool)
        return np.asarray((queue[:-1] > 0) & (queue[1:] > 0))

    def full(self, direction: str) -> Array:
        """Return the slices in which a link direction was full."""
        load = self.load(direction)
        return np.asarray((load >= SATURATED) | ((load >= SATURATED_QUEUE) & self.queued(direction)))

    def _growth(self, direction: str, column: str) -> Array | None:
        counts = self.counter(direction, column)
        return None if counts is None else np.diff(counts)

    def rate(self, direction: str) -> Array:
        """Return the rate in each slice in bit/s, with the changes that events made; inf without a limit."""
        first = self.directions[direction].rate_bps
        times, rates = [0.0], [float(first) if first else np.inf]
        for t_us, rate in self._links.changes.get(direction, ()):
            times.append(t_us)
            rates.append(rate)
        return _means(np.array(times), np.array(rates), self.edges)

    def reorders(self, direction: str) -> bool:
        """Return whether packets may overtake others on a link direction."""
        link = self.directions.get(direction)
        return link is not None and (link.reorder_ratio > 0 or link.ifname in self._links.out_of_order)

    def down_shares(self, path: Iterable[str]) -> Array:
        """Return the share of each slice in which a link of the path was down or cut."""
        names = set(path)
        shares = np.zeros(len(self.edges) - 1)
        for direction, begin, end in self._links.down:
            if direction in names:
                shares = np.maximum(shares, _overlap(self.edges, begin, end))
        return shares

    def empty_buckets(self, path: Sequence[str]) -> dict[str, Array]:
        """Return, for each token bucket on the path whose level is known, the slices in which it was empty."""
        return {
            name: empty
            for name, bucket in self.buckets.items()
            if any(direction in bucket.members for direction in path)
            and (empty := self.empty_slices(name)) is not None
        }

    def empty_slices(self, name: str) -> Array | None:
        """Return the slices in which a token bucket was empty; None if its level is not known."""
        bucket = self.buckets[name]
        times, levels = self._links.samples(name, "bucket_bytes")
        if not len(times):
            if len(bucket.rates) > 1:
                return None  # Events changed it, and the bytes that passed do not show its level.
            times, levels = self._levels_by_bytes(bucket)
        if not len(times):
            return np.zeros(len(self.edges) - 1, dtype=bool)
        frame = max(self._links.frames[member] for member in bucket.members)
        burst = _latest(bucket.times, bucket.bursts, self.edges)
        low = np.interp(self.edges, times, levels) <= np.maximum(EMPTY_SHARE * burst, EMPTY_FRAMES * frame)
        return np.asarray(low[1:] & low[:-1])

    def _levels_by_bytes(self, bucket: _BucketHistory) -> tuple[Array, Array]:
        """Compute a bucket's level from the bytes that passed since the trial began: tbf does not report it."""
        samples = self._links.table.filter(pl.col("link").is_in(list(bucket.members)))
        total = samples.group_by("t_us").agg(pl.col("sent_bytes").sum()).sort("t_us")
        times, passed = total["t_us"].to_numpy().astype(float), total["sent_bytes"].to_numpy().astype(float)
        (burst,), (rate,) = bucket.bursts, bucket.rates
        level, levels = burst, []
        previous_t, previous_b = 0.0, 0.0
        for t, b in zip(times, passed, strict=True):
            level = min(burst, max(0.0, level + rate / 8e6 * (t - previous_t) - (b - previous_b)))
            levels.append(level)
            previous_t, previous_b = t, b
        return times, np.array(levels)

    def baseline(self, bucket: str) -> Array:
        """Return the rate in each slice at which a bucket fills, in bit/s, with the changes that events made."""
        record = self.buckets[bucket]
        return _means(np.array(record.times), np.array(record.rates), self.edges)


@dataclass(frozen=True)
class _BucketHistory:
    """A token bucket: the link directions that take its tokens, and its conditions from each time on, in us."""

    members: tuple[str, ...]
    times: tuple[float, ...]
    rates: tuple[float, ...]
    """In bit/s: the baseline."""
    bursts: tuple[float, ...]
    """In bytes."""


def capacity_bps(plan: Plan, path: Path) -> float | None:
    """Return the initial frame rate of a path's slowest link towards the receiver in bit/s; None without a rate."""
    return slowest_bps(plan, path.forward)


def slowest_bps(plan: Plan, names: Sequence[str]) -> float | None:
    """Return the initial frame rate of the slowest of these link directions in bit/s; None if none has a rate."""
    directions = (plan.directions[name] for name in names if name in plan.directions)
    limits = [direction.rate_bps for direction in directions if direction.rate_bps is not None]
    limits += [bucket.peak_bps for bucket in plan.buckets if set(bucket.directions) & set(names)]
    return float(min(limits)) if limits else None


def together_bps(plan: Plan, paths: Sequence[Path]) -> float | None:
    """Return what paths carry at once in bit/s of frames, by the maximum flow; None if a path has no rate."""
    alone = [capacity_bps(plan, path) for path in paths]
    known = [bps for bps in alone if bps]
    if not paths or len(known) < len(paths):
        return None
    directions = plan.directions
    used = [
        directions[name]
        for name in dict.fromkeys(name for path in paths for name in (*path.forward, *path.spread))
        if name in directions
    ]
    capacities: dict[tuple[str, str], float] = {}
    for direction in used:
        arc = (direction.source, direction.target)
        capacities[arc] = capacities.get(arc, 0.0) + (direction.rate_bps or np.inf)
    first, last = (directions.get(paths[0].forward[end]) for end in (0, -1))
    flow = 0.0 if first is None or last is None else maximum_flow(capacities, first.source, last.target)
    return min(sum(known), flow or np.inf)


def _or_zeros(counts: Array | None, edges: Array) -> Array:
    return np.zeros(len(edges) - 1) if counts is None else counts


def _buckets(plan: Plan) -> Iterable[tuple[str, _BucketHistory]]:
    changes = list(link_changes(plan))
    for link in plan.links:
        for side in link.directions:
            if side.burst_bytes and side.baseline_bps:
                later = [
                    (change.event.t_us, change.now) for change in changes if change.now.name == side.name
                ]
                steps = [
                    (float(t_us), float(now.baseline_bps or 0), float(now.burst_bytes or 0))
                    for t_us, now in ((0, side), *later)
                ]
                times, rates, bursts = zip(*steps, strict=True)
                yield side.name, _BucketHistory((side.name,), times, rates, bursts)
    for bucket in plan.buckets:
        yield (
            bucket.name,
            _BucketHistory(
                bucket.directions, (0.0,), (float(bucket.baseline_bps),), (float(bucket.burst_bytes),)
            ),
        )


def _rate_changes(plan: Plan) -> dict[str, list[tuple[float, float]]]:
    changes: dict[str, list[tuple[float, float]]] = {}
    for change in link_changes(plan):
        if change.moves_rate and change.now.rate_bps is not None:
            changes.setdefault(change.now.name, []).append(
                (float(change.event.t_us), float(change.now.rate_bps))
            )
    return changes


def _down_times(plan: Plan) -> list[tuple[str, float, float]]:
    """Return (direction, from, to) for every interval in which a link is down, cut, or loses every packet."""
    members = {link.name: [direction.name for direction in link.directions] for link in plan.links}
    down_since: dict[str, float] = {}
    intervals = []
    for event in plan.events:
        for name in members.get(event.subject, [event.subject]):
            if event.name in ("link_down", "link_cut"):
                down_since.setdefault(name, event.t_us)
            elif event.name == "link_up" and name in down_since:
                intervals.append((name, down_since.pop(name), float(event.t_us)))
    lossy_since: dict[str, float] = {}
    for change in link_changes(plan):
        if change.now.loss_ratio >= 1:
            lossy_since.setdefault(change.now.name, change.event.t_us)
        elif change.now.name in lossy_since:
            intervals.append((change.now.name, lossy_since.pop(change.now.name), float(change.event.t_us)))
    intervals += [(name, begin, float(plan.end_us)) for name, begin in lossy_since.items()]
    return intervals + [(name, begin, float(plan.end_us)) for name, begin in down_since.items()]


def overlap_us(edges: Array, begin: float, end: float) -> Array:
    """Return how much of each slice lies between two times, in us."""
    return np.asarray(np.maximum(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0))


def stretches(held: Array) -> Array:
    """Return the first slice of each stretch of slices that hold something, and the one behind its last."""
    return np.flatnonzero(np.diff(np.concatenate(([False], held, [False])))).reshape(-1, 2)


def _overlap(edges: Array, begin: float, end: float) -> Array:
    return np.asarray(overlap_us(edges, begin, end) / np.maximum(np.diff(edges), 1e-9))


def _latest(times: Sequence[float], values: Sequence[float], moments: Array) -> Array:
    """Return the value of a step function at each moment, and its first value before its first step."""
    places = np.searchsorted(np.array(times), moments, side="right") - 1
    return np.array(values)[np.maximum(places, 0)]


def _means(times: Array, rates: Array, edges: Array) -> Array:
    """Return the mean of a step function over each slice."""
    if len(times) == 1:
        return np.full(len(edges) - 1, rates[0])
    shares = np.zeros(len(edges) - 1)
    for i, rate in enumerate(rates):
        end = times[i + 1] if i + 1 < len(times) else np.inf
        share = _overlap(edges, times[i], end)
        shares += np.where(share > 0, share * rate, 0)
    return shares
