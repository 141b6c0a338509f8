"""Paths of connections inside tunnels.

The plan does not know the addresses of a tunnel. The counters of the links show the path: it is the one between the two
hosts whose first link carried as much as the subflow sent, at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from plait.analysis.metrics.programs import peers_between
from plait.explain.cause import Tables
from plait.plan.model.plan import Flow, Path, Plan
from plait.traffic.program import Connection

CARRIED = 0.9
"""A link that carried less than this share of a subflow's bytes does not carry the subflow."""


def with_tunnels(plan: Plan, tables: Tables) -> Plan:
    """Return the plan with paths for the connections that have none; the same plan if every connection has paths."""
    if not any(_is_in_tunnel(flow) for flow in plan.flows):
        return plan
    flows = tuple(
        _with_paths_below(plan, tables, flow) if _is_in_tunnel(flow) else flow for flow in plan.flows
    )
    return plan.model_copy(update={"flows": flows})


def _is_in_tunnel(flow: Flow) -> bool:
    return isinstance(flow.application, Connection) and not flow.paths


def _with_paths_below(plan: Plan, tables: Tables, flow: Flow) -> Flow:
    nodes = (flow.client.netns, flow.server.netns)
    source, target = nodes if flow.sender == "client" else nodes[::-1]
    peers = peers_between(plan, source, target)
    if peers is None:
        return flow
    rows = tables["subflows"].filter((pl.col("flow") == flow.carrier) & (pl.col("side") == flow.sender))
    paths: dict[str, Path] = {}
    for _, part in rows.sort("t_us").group_by("subflow", maintain_order=True):
        path = _path_below(part, tables["links"], peers.paths)
        if path is None:
            continue
        first = part.row(0, named=True)
        addresses = (first["local_address"], first["remote_address"])
        client, server = addresses if flow.sender == "client" else addresses[::-1]
        name = f"{path.name} (tunnel)"
        name = name if name not in paths else f"{name} {len(paths) + 1}"
        paths[name] = path.model_copy(
            update={"name": name, "client_address": client, "server_address": server}
        )
    return flow.model_copy(update={"paths": tuple(paths.values())})


def _path_below(part: pl.DataFrame, links: pl.DataFrame, paths: Sequence[Path]) -> Path | None:
    """Return the path whose first link correlates best with a subflow's bytes, among those that carried enough."""
    sent = part.select("t_us", "sent_bytes").drop_nulls()
    if sent.height < 2:
        return None
    edges = sent["t_us"].to_numpy().astype(float)
    sent_bytes = np.diff(sent["sent_bytes"].to_numpy().astype(float))
    best: tuple[float, Path | None] = (-2.0, None)
    for path in paths:
        samples = links.filter(pl.col("link") == path.forward[0]).select("t_us", "sent_bytes").drop_nulls()
        if samples.is_empty():
            continue
        carried = np.diff(np.interp(edges, samples["t_us"].to_numpy(), samples["sent_bytes"].to_numpy()))
        if carried.sum() < CARRIED * sent_bytes.sum():
            continue
        steady = not sent_bytes.std() or not carried.std()
        correlation = -1.0 if steady else float(np.corrcoef(sent_bytes, carried)[0, 1])
        if correlation > best[0]:
            best = (correlation, path)
    return best[1]
