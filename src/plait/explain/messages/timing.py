"""The messages of a flow: how long each took, and how long the network alone takes.

Messages are those of a stream, responses, objects of a page or UDP packets; see the table `messages` in
`docs/reference/results.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from plait.analysis.metrics.catalogue import speaks_for
from plait.dataset.model import Tables
from plait.explain.capacity import capacity_bps, slowest_bps
from plait.explain.cause import Array
from plait.explain.model import Delivery
from plait.metrics import nearest_rank
from plait.plan.model.plan import Flow, Path, Plan
from plait.traffic.page import Page
from plait.traffic.request import Request

LATE = 1.5
"""A message is late when it took more than this many times as long as the network alone takes .."""
LATE_US = 10_000
""".. and more than this much longer: a retransmission, a queue or a longer path, not the resolution of timers."""
FIRST_WINDOW = 10
"""Segments that Linux sends before the first acknowledgement (RFC 6928)."""
SEGMENT = 1400
BEHIND_SHARE = 0.05
"""A source falls behind if its last messages take this share of its duration: the paths carry less than it sends."""
LAST_SHARE = 0.05
"""The share of the messages that counts as the last ones."""


@dataclass(frozen=True)
class Messages:
    """The messages of one flow in the order in which they were due; NaN if one never arrived."""

    flow: Flow
    sent: Array
    received: Array
    size: Array
    base: Array
    """The time that the network alone takes for each, in us."""

    @property
    def delay(self) -> Array:
        """The delay of each message in us."""
        return np.asarray(self.received - self.sent)

    @property
    def lost(self) -> Array:
        """Whether each message never arrived."""
        return np.asarray(np.isnan(self.received))

    @property
    def late(self) -> Array:
        """Whether each message arrived later than the network alone explains."""
        limit = np.maximum(LATE * self.base, self.base + LATE_US)
        return np.asarray(~self.lost & (np.nan_to_num(self.delay) > limit))

    @property
    def behind(self) -> bool:
        """Whether a paced source sends more than the paths carry, so that its messages wait longer and longer."""
        if not self.flow.application.PACED or len(self.sent) < 2:
            return False
        last_delays = self.delay[-max(1, int(LAST_SHARE * len(self.sent))) :]
        duration_us = self.sent[-1] - self.sent[0]
        return bool(
            np.isnan(last_delays).any() or np.median(last_delays) > self.base[-1] + BEHIND_SHARE * duration_us
        )

    @property
    def asked_bps(self) -> float | None:
        """The rate that the source offers while it sends; None if it waits for responses."""
        job = self.flow.application
        if job.offered_bps is not None:
            return job.offered_bps
        duration_us = float(self.sent[-1] - self.sent[0]) if len(self.sent) > 1 else 0.0
        if job.ANSWERS or not duration_us:
            return None
        return float(np.sum(self.size[:-1])) * 8e6 / duration_us


def messages_of(plan: Plan, tables: Tables, flow: Flow) -> Messages | None:
    """Return the messages of a flow; None if it has none."""
    table = tables.get("messages")
    if table is None:
        return None
    rows = table.filter(pl.col("flow") == flow.id).drop_nulls("sent_us").sort("index")
    if rows.is_empty() or not flow.paths:
        return None
    size = rows["bytes"].cast(pl.Float64).to_numpy()
    sent = rows["sent_us"].cast(pl.Float64).to_numpy()
    received = rows["received_us"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    together = _loaded_together(sent, received, size) if isinstance(flow.application, Page) else size
    return Messages(flow, sent, received, size, _base_us(plan, flow, size, together))


def _loaded_together(sent: Array, received: Array, size: Array) -> Array:
    """Return the bytes of all objects that a page loads at the same time as each of its objects."""
    by_sent, by_received = np.argsort(sent), np.argsort(received)
    begun = np.concatenate(([0.0], np.cumsum(size[by_sent])))
    ended = np.concatenate(([0.0], np.cumsum(size[by_received])))
    arrived_us = np.where(np.isnan(received), np.inf, received)
    return np.asarray(
        begun[np.searchsorted(sent[by_sent], arrived_us)]
        - ended[np.searchsorted(received[by_received], sent, side="right")]
    )


def _base_us(plan: Plan, flow: Flow, size: Array, together: Array) -> Array:
    """Return the least time over all paths: delay, request and `together` at their rates, and rounds of slow start."""
    request_bits = 8 * flow.application.request_bytes if isinstance(flow.application, Request) else 0
    answers = flow.application.ANSWERS
    rates = [rate for path in flow.paths if (rate := capacity_bps(plan, path))]
    leaving = together * 8e6 / max(rates) if len(rates) == len(flow.paths) else np.zeros(len(size))
    least = np.full(len(size), math.inf)
    rounds = np.zeros(len(size))
    if flow.transport != "udp":
        rounds = np.ceil(np.log2(np.maximum(size / (FIRST_WINDOW * SEGMENT), 1)))
    for path in flow.paths:
        single_us = path.base_rtt_us if answers else one_way_us(plan, path)
        asking_us = request_bits * 1e6 / (slowest_bps(plan, path.backward) or math.inf)
        least = np.minimum(least, single_us + asking_us + rounds * path.base_rtt_us)
    return least + leaving


def one_way_us(plan: Plan, path: Path) -> float:
    """Return the delay of a path's links from sender to receiver in us."""
    return sum(plan.directions[name].delay_ns for name in path.forward) / 1000


def delivery(messages: Messages, start_us: float) -> Delivery:
    """Return the summary of a flow's messages; `start_us` is the time of its connect()."""
    delays = np.sort(messages.delay[~messages.lost]).tolist()
    median, p95, longest = (nearest_rank(delays, share) for share in (0.5, 0.95, 1.0))
    return Delivery(
        kind=messages.flow.measured_as,
        metric=speaks_for(messages.flow.measured_as),
        messages=len(messages.sent),
        lost=int(messages.lost.sum()),
        late=int(messages.late.sum()),
        p50_us=median,
        p95_us=p95,
        max_us=longest,
        jitter_us=_jitter_us(messages) if messages.flow.kind == "udp" else None,
        base_us=float(np.median(messages.base)),
        base_max_us=float(np.max(messages.base)),
        load_us=float(np.max(messages.received) - start_us) if messages.flow.kind == "page" else None,
        asked_bps=messages.asked_bps,
        kept_pace=not messages.behind,
    )


def _jitter_us(messages: Messages) -> float | None:
    """Return the mean difference in delay between consecutive arrivals, as `udp_jitter_us` does."""
    order = np.argsort(messages.received[~messages.lost], kind="stable")
    steps = np.abs(np.diff(messages.delay[~messages.lost][order]))
    return float(steps.mean()) if len(steps) else None
