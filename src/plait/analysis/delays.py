"""The distribution of the delays of messages in a trial: for each kind, the share of messages by delay."""

from __future__ import annotations

import numpy as np

from plait.analysis.metrics.messages import PREFIX, delays_us
from plait.analysis.metrics.users import foreground
from plait.dataset.model import Tables
from plait.plan.model.plan import Plan

Points = tuple[tuple[float, float], ...]
"""Pairs (delay in us, share of the messages with at most this delay), both growing."""

POINTS = 200
"""Number of quantiles, at equal distances, that represent more messages, including minimum and maximum."""


def distributions(plan: Plan, tables: Tables) -> dict[str, Points]:
    """Return the empirical distribution of `message_delay`, `request_latency` and `udp_delay`, of those there are.

    Messages that never arrived are not part of it; those of flows in the background neither.
    """
    messages = tables.get("messages")
    if messages is None:
        return {}
    points = {}
    for name in [*dict.fromkeys(PREFIX.values()), "udp_delay"]:
        flows = [
            flow for flow in foreground(plan) if PREFIX.get(flow.measured_as, f"{flow.kind}_delay") == name
        ]
        delays = np.sort(delays_us(messages, flows).to_numpy())
        if delays.size:
            points[name] = _ecdf(delays)
    return points


def _ecdf(delays: np.ndarray) -> Points:
    ranks = np.unique(np.linspace(0, delays.size - 1, min(POINTS, delays.size)).round().astype(int))
    shares = (ranks + 1) / delays.size
    return tuple(zip(delays[ranks].astype(float).tolist(), shares.tolist(), strict=True))
