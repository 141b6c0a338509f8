"""Derives the paths of observed connections from their tables, so that plait can analyse them as a scenario's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from plait.dataset.model import Tables
from plait.plan.model.plan import Namespace, Path, Peers, Plan
from plait.plan.model.sockets import StreamTransport


def with_paths(plan: Plan, tables: Tables, interfaces: Mapping[str, str]) -> Plan:
    """Return the plan of an observation with the other ends as nodes, and the paths to each of them.

    A path is a pair of addresses between which a subflow was seen. Its base RTT is the lowest `min_rtt` of its
    subflows; its rate is unknown. `interfaces` has the name of the interface of local addresses: a path is called by
    its interface, by its address at the other end if all have one interface, and by both if neither differs alone.
    """
    node = plan.network.namespaces[0].name
    connections = tables["program_flows"]
    subflows = subflows_of(node, tables)
    peers: list[Peers] = []
    others: dict[str, None] = {}
    for stranger, flows in _by_stranger(connections, node).items():
        others[stranger] = None
        seen = subflows.filter(pl.col("flow").is_in(flows))
        paths = tuple(_paths(seen, interfaces))
        transports = set(tables["flows"].filter(pl.col("flow").is_in(flows))["transport"].to_list())
        transport: StreamTransport = "mptcp" if "mptcp" in transports else "tcp"
        outwards, backwards = zip(*paths, strict=True) if paths else ((), ())
        for source, target, ways in ((node, stranger, outwards), (stranger, node, backwards)):
            peers.append(
                Peers(source=source, target=target, transport=transport, paths=ways, ideal_rate_bps=None)
            )
    nodes = (*plan.network.namespaces, *(Namespace(name=name, role="host") for name in others))
    return plan.model_copy(
        update={"network": plan.network.model_copy(update={"namespaces": nodes}), "peers": tuple(peers)}
    )


def subflows_of(node: str, tables: Tables) -> pl.DataFrame:
    """Return the samples of subflows that `node` made; a trial that both ends observed has those of the other too."""
    sides = tables["program_flows"].select(
        "flow",
        pl.when(pl.col("client") == node).then(pl.lit("client")).otherwise(pl.lit("server")).alias("side"),
    )
    return tables["subflows"].join(sides, on=["flow", "side"], how="semi", maintain_order="left")


def _by_stranger(connections: pl.DataFrame, node: str) -> dict[str, list[int]]:
    """Return the numbers of the connections with each other end."""
    flows: dict[str, list[int]] = {}
    for row in connections.iter_rows(named=True):
        stranger = row["server"] if row["client"] == node else row["client"]
        flows.setdefault(stranger, []).append(row["flow"])
    return flows


def _paths(subflows: pl.DataFrame, interfaces: Mapping[str, str]) -> Iterable[tuple[Path, Path]]:
    """Yield each path of some subflows, from here and to here."""
    pairs = (
        subflows.group_by("local_address", "remote_address", maintain_order=True)
        .agg(pl.col("min_rtt_us").min())
        .iter_rows()
    )
    found = list(pairs)
    called = path_names([(local, remote) for local, remote, _ in found], interfaces)
    for (local, remote, rtt_us), name in zip(found, called, strict=True):
        base = float(rtt_us or 0)
        yield _path(name, local, remote, base), _path(name, remote, local, base)


def _path(name: str, client: str, server: str, base_rtt_us: float) -> Path:
    return Path(
        name=name,
        client_address=client,
        server_address=server,
        forward=(),
        backward=(),
        rate_bps=None,
        base_rtt_us=base_rtt_us,
    )


def path_names(pairs: list[tuple[str, str]], interfaces: Mapping[str, str]) -> list[str]:
    """Return what to call the path of each pair of a local and a remote address."""
    near = [interfaces.get(local, local) for local, _ in pairs]
    far = [remote for _, remote in pairs]
    if len(set(near)) == len(pairs):
        return near
    if len(set(far)) == len(pairs):
        return far
    counts = Counter(near)
    return [name if counts[name] == 1 else f"{name} {remote}" for name, remote in zip(near, far, strict=True)]
