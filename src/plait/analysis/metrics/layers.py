"""How busy the links of each layer are: from hosts to their switches, from these to the next ones, and back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque

import polars as pl

from plait.analysis.metrics.users import Rows, foreground
from plait.dataset.model import Tables
from plait.metrics import Metrics, all_known
from plait.plan.model.plan import Plan


def layers(plan: Plan) -> dict[str, list[tuple[str, int]]]:
    """Return (name, rate in bit/s) of the link directions of each layer of a network that spreads flows (ECMP).

    A node's depth is its distance from the nearest host. Layer n has the links whose deeper end has the depth n: up
    towards that end (`layer1-up`), down from it (`layer1-down`), and across between equal depths. A layer with an
    unlimited link is left out. A network whose routers have no choice has no layers.
    """
    if not any(path.spread for flow in plan.flows for path in flow.paths):
        return {}
    depth = _depths(plan)
    by_layer: dict[str, list[tuple[str, int | None]]] = {}
    for direction in (direction for link in plan.links for direction in link.directions):
        if direction.source not in depth:
            continue  # no host can reach it
        rise = depth[direction.target] - depth[direction.source]
        layer = max(depth[direction.source], depth[direction.target])
        name = f"layer{layer}-{'up' if rise > 0 else 'down' if rise < 0 else 'across'}"
        by_layer.setdefault(name, []).append((direction.name, direction.rate_bps))
    limited = {
        name: [(link, rate) for link, rate in members if rate is not None]
        for name, members in by_layer.items()
    }
    return {name: limited[name] for name in sorted(by_layer) if len(limited[name]) == len(by_layer[name])}


def _depths(plan: Plan) -> dict[str, int]:
    """Return the number of links from each node to the nearest host; without nodes that no host can reach."""
    neighbours: dict[str, set[str]] = {}
    for link in plan.links:
        a, b = link.directions[0].source, link.directions[0].target
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    depth = {space.name: 0 for space in plan.network.namespaces if space.role == "host"}
    queue = deque(depth)
    while queue:
        node = queue.popleft()
        for neighbour in neighbours.get(node, ()):
            if neighbour not in depth:
                depth[neighbour] = depth[node] + 1
                queue.append(neighbour)
    return depth


def layer_metrics(plan: Plan, tables: Tables, flows: Rows) -> Metrics:
    """Return mean and largest utilisation of the links of each layer.

    A link's utilisation is the bits that it sent over rate and time, from the last sample before the first foreground
    flow starts to the first one after the last such flow ends. None if a flow has no end, or a link no samples.
    """
    members = layers(plan)
    rows = [flows.get(flow.id, {}) for flow in foreground(plan)]
    times = all_known(row.get(name) for row in rows for name in ("start_us", "end_us"))
    span = (min(times), max(times)) if times else None
    metrics: Metrics = {}
    samples = _sent(tables["links"]) if members and span is not None else {}
    for name, links in members.items():
        shares = all_known(_utilisation(samples.get(link), rate, span) for link, rate in links)
        metrics[f"{name}.link_utilisation"] = sum(shares) / len(shares) if shares else None
        metrics[f"{name}.link_utilisation_max"] = max(shares) if shares else None
    return metrics


_Samples = tuple[list[int], list[int]]
"""Times in us, and the bytes that a link had sent by then."""


def _sent(links: pl.DataFrame) -> dict[str, _Samples]:
    """Return the samples of each link. One query for all: a network has thousands."""
    known = links.select("link", "t_us", "sent_bytes").drop_nulls().sort("t_us")
    return {
        link: (times, sent) for link, times, sent in known.group_by("link").agg("t_us", "sent_bytes").rows()
    }


def _utilisation(samples: _Samples | None, rate_bps: int, span: tuple[int, int] | None) -> float | None:
    """Return the share of its capacity that a link used between the samples that enclose a span of time."""
    if samples is None or span is None:
        return None
    times, sent = samples
    first = max(bisect_right(times, span[0]) - 1, 0)
    last = min(bisect_left(times, span[1]), len(times) - 1)
    if last <= first:
        return None
    return (sent[last] - sent[first]) * 8e6 / (rate_bps * (times[last] - times[first]))
