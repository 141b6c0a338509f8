"""Paths by the addresses of subflows, also where a router translates the address under which a server sees its client.

A router that translates (`nat`) puts the address of its outside interface in place of the client's, and keeps the port
where that is free. So subflows that a server samples have other addresses than the plan's paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from plait.dataset.model import Tables
from plait.plan.model.plan import Flow, Path, Plan

_SENDING_BYTES = 10_000
"""A subflow that sent less only acknowledges, so its RTT is that of an idle line."""
SUBFLOW_ENDS = ("side", "local_address", "remote_address", "remote_port")
"""The columns of the table `subflows` that decide the path of a subflow."""
Outside = dict[str, str]
"""By the name of a link direction that leaves a translating router outwards, the address that packets take there."""


class _Translated(Path):
    """A path on which the client's address is translated."""

    seen_address: str
    """The address that the server sees in its place."""
    seen_ports: frozenset[int] = frozenset()
    """The client's ports on this path, where another path of the flow looks alike but for them."""


def with_translation(plan: Plan, tables: Tables) -> Plan:
    """Return the plan with what servers see of its flows' paths; as it is, where nothing is translated."""
    outside = _outside(plan)
    if not outside:
        return plan
    flows = tuple(_of_flow(flow, outside, tables["subflows"]) for flow in plan.flows)
    return plan.model_copy(update={"flows": flows})


def path_name(paths: Sequence[Path], subflow: Mapping[str, Any]) -> str:
    """Return the name of that of `paths` on which a subflow is (a row of that table), or both of its addresses.

    The port distinguishes paths that look alike to a server, behind a router that translates addresses.
    """
    side, local, remote, remote_port = (subflow[name] for name in SUBFLOW_ENDS)
    ends = client, server = (local, remote) if side == "client" else (remote, local)
    names = [path for path in paths if (_client_address(path, side), path.server_address) == ends]
    if not names:
        # In a tunnel that a program makes, a packet passes the router that translates with its own address.
        names = [path for path in paths if (path.client_address, path.server_address) == ends]
    for path in names:
        if isinstance(path, _Translated) and remote_port in path.seen_ports:
            return path.name
    return names[0].name if names else f"{client or '?'} to {server or '?'}"


def path_rtts_us(plan: Plan, tables: Tables) -> dict[str, float]:
    """Return the median RTT of the samples of each path that carries data, by its name.

    A subflow between addresses that the plan does not pair, such as to the only address of a server, is on the path of
    its client's address.
    """
    samples: dict[str, list[pl.Series]] = {}
    for flow in with_translation(plan, tables).flows:
        rows = tables["subflows"].filter(flow=flow.carrier, side=flow.sender)
        for part in rows.sort("t_us").partition_by("subflow"):
            if part.filter(pl.col("sent_bytes") > _SENDING_BYTES).is_empty():
                continue
            first = part.row(0, named=True)
            name = path_name(flow.paths, first)
            if name not in {path.name for path in flow.paths}:
                client = first["local_address" if flow.sender == "client" else "remote_address"]
                name = next((path.name for path in flow.paths if path.client_address == client), name)
            samples.setdefault(name, []).append(part["rtt_us"])
    medians = {name: pl.concat(parts).median() for name, parts in samples.items()}
    return {name: median for name, median in medians.items() if isinstance(median, float)}


def _client_address(path: Path, side: str) -> str:
    """The client's address as one side sees it."""
    return path.seen_address if side == "server" and isinstance(path, _Translated) else path.client_address


def _outside(plan: Plan) -> Outside:
    addresses = {
        (end.netns, end.ifname): text.split("/")[0]
        for veth in plan.network.veths
        for end in (veth.a, veth.b)
        for text in reversed(end.addresses)
        if ":" not in text
    }
    ports = {(nat.netns, ifname) for nat in plan.network.nats for ifname in nat.outside}
    directions = (
        direction for link in plan.links for direction in link.directions if direction.interface is not None
    )
    return {
        direction.name: addresses[place]
        for direction in directions
        if (place := (direction.source, direction.interface)) in ports
    }


def _of_flow(flow: Flow, outside: Outside, subflows: pl.DataFrame) -> Flow:
    paths = [_of_path(path, flow.sender, outside) for path in flow.paths]
    alike = Counter(
        (path.seen_address, path.server_address) for path in paths if isinstance(path, _Translated)
    )
    shown = [
        path.model_copy(update={"seen_ports": _ports(flow, path, subflows)})
        if isinstance(path, _Translated) and alike[path.seen_address, path.server_address] > 1
        else path
        for path in paths
    ]
    return flow.model_copy(update={"paths": tuple(shown)})


def _of_path(path: Path, sender: str, outside: Outside) -> Path:
    """The path, translated by the last router that does so on the way from client to server."""
    if isinstance(path, _Translated) or ":" in path.client_address:
        return path
    directions = path.forward if sender == "client" else path.backward
    taken = [outside[name] for name in directions if name in outside]
    return _Translated(**dict(path), seen_address=taken[-1]) if taken else path


def _ports(flow: Flow, path: Path, subflows: pl.DataFrame) -> frozenset[int]:
    """The ports that the client's samples show on the path."""
    rows = subflows.filter(
        (pl.col("flow") == flow.carrier)
        & (pl.col("side") == "client")
        & (pl.col("local_address") == path.client_address)
        & (pl.col("remote_address") == path.server_address)
    )
    return frozenset(rows["local_port"].drop_nulls().to_list())
