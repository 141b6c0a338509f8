"""Connections that programs made, as flows of the plan; and the metrics that programs have beside those of flows.

Before a trial it is unknown which connections programs will make. Afterwards they are flows like any other, except
that their demand is unknown: they are no measure of the links.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from plait.analysis.gaps import part
from plait.analysis.metrics.users import goodput_bps
from plait.analysis.translation import with_translation
from plait.dataset.model import Tables
from plait.metrics import Metrics
from plait.plan.model.plan import Flow, Path, Peers, Plan, Side
from plait.traffic.program import Connection

Row = dict[str, Any]
SMALL = 0.01
"""A connection that carried less than this share of the largest one is in the background: it controls others."""


def _serves(plan: Plan, connection: Row) -> bool:
    """Return whether a connection is one between services, in a trial that waits for other programs.

    A tunnel below the measured flows is an example: it carries the same bytes again.
    """
    awaited = {program.name for program in plan.programs if program.awaited}
    return (
        bool(awaited)
        and connection["program"] is not None
        and not awaited & {connection["program"], connection["server_program"]}
    )


def with_connections(plan: Plan, tables: Tables) -> Plan:
    """Return the plan with a flow for each connection between its nodes that programs made, and what servers see of it.

    The latter are the addresses of paths behind routers that translate.
    """
    return part(
        "connections of programs", lambda: with_translation(_with_programs(plan, tables), tables), plan
    )


def _with_programs(plan: Plan, tables: Tables) -> Plan:
    connections = tables.get("program_flows")
    if (
        connections is None
        or connections.is_empty()
        or any(isinstance(f.application, Connection) for f in plan.flows)
    ):
        return plan
    rows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    carried = _carried(connections, tables["connections"])
    largest = max(carried.values(), default=0)
    # The connection of `iperf3 -u` only controls what it measures.
    datagrams = {name for name, _ in udp_figures(tables)}
    flows = [
        _flow(
            plan,
            connection,
            rows[connection["flow"]],
            background=carried[connection["flow"]] < SMALL * largest
            or _serves(plan, connection)
            or bool(datagrams & {connection["program"], connection["server_program"]}),
        )
        for connection in connections.iter_rows(named=True)
    ]
    return plan.model_copy(update={"flows": (*plan.flows, *flows)})


def without_control(plan: Plan) -> Plan:
    """Return the plan without connections of programs in the background, if any is not: what figures over time show."""
    shown = [flow for flow in plan.flows if not is_control(flow)]
    return plan.model_copy(update={"flows": tuple(shown)}) if shown else plan


def is_control(flow: Flow) -> bool:
    """Return whether a flow is a connection of programs that carried next to nothing, or other connections."""
    return flow.background and isinstance(flow.application, Connection)


def _carried(flows: pl.DataFrame, connections: pl.DataFrame) -> dict[int, int]:
    """Return the bytes that the receiving side of each connection had at its last sample, or the other had sent."""
    counts = connections.select("flow", "sent_bytes", "received_bytes").group_by("flow").max()
    bytes_by_flow = {row[0]: max(row[1] or 0, row[2] or 0) for row in counts.iter_rows()}
    return {flow: bytes_by_flow.get(flow, 0) for flow in flows["flow"].to_list()}


def _flow(plan: Plan, connection: Row, row: Row, *, background: bool) -> Flow:
    ends = (connection["client"], connection["server"])[:: 1 if connection["sender"] == "client" else -1]
    peers = peers_between(plan, *ends)
    paths = () if peers is None else _paths_from_client(peers, connection)
    used = [path for path in paths if path.client_address == connection["client_address"]]
    used = [path for path in used if path.server_address == connection["server_address"]]
    # One that begins elsewhere, in a tunnel, has none of the plan's paths.
    mptcp = row["transport"] == "mptcp" and bool(used)
    ideal = peers.ideal_rate_bps if peers is not None else None
    return Flow(
        id=connection["flow"],
        name=row["name"],
        application=Connection(program=connection["program"], server_program=connection["server_program"]),
        transport=row["transport"],
        client=_side(connection, "client"),
        server=_side(connection, "server"),
        sender=connection["sender"],
        start_us=row["start_us"] or 0,
        background=background,
        paths=(*used, *(path for path in paths if path not in used)) if mptcp else tuple(used),
        ideal_rate_bps=ideal if mptcp else next((path.rate_bps for path in used), None),
    )


def _side(connection: Row, side: str) -> Side:
    address, port = connection[f"{side}_address"], connection[f"{side}_port"]
    return Side(netns=connection[side] or "?", address=address, port=port)


def peers_between(plan: Plan, source: str, target: str) -> Peers | None:
    """Return the paths between the hosts that data went from and to; None when a node is unknown."""
    peers = {(pair.source, pair.target): pair for pair in plan.peers}
    # Nothing connects to a host behind a translating router, but answers reach it: on its own path, backwards.
    return peers.get((source, target)) or _backwards(plan, peers.get((target, source)))


def _backwards(plan: Plan, peers: Peers | None) -> Peers | None:
    """Return the paths that answers take."""
    if peers is None:
        return None
    paths = tuple(
        path.model_copy(
            update={
                "client_address": path.server_address,
                "server_address": path.client_address,
                "forward": path.backward,
                "backward": path.forward,
                "rate_bps": min(
                    (rate for name in path.backward if (rate := plan.directions[name].rate_bps)), default=None
                ),
            }
        )
        for path in peers.paths
    )
    return peers.model_copy(
        update={"source": peers.target, "target": peers.source, "paths": paths, "ideal_rate_bps": None}
    )


def _paths_from_client(peers: Peers, connection: Row) -> tuple[Path, ...]:
    """Return the paths with the addresses at the connection's client and server; they are from source to target."""
    if connection["sender"] == "client":
        return peers.paths
    return tuple(
        path.model_copy(update={"client_address": path.server_address, "server_address": path.client_address})
        for path in peers.paths
    )


def program_metrics(plan: Plan, tables: Tables) -> Metrics:
    """Return the duration of each program that ended by itself, its reported results and its connections' goodput."""
    metrics: Metrics = {}
    programs = tables.get("programs")
    if programs is None:
        return metrics
    rows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    for program, flows in _by_program(plan).items():
        metrics[f"{program}.goodput_bps"] = goodput_bps(flows, rows)
    for row in programs.iter_rows(named=True):
        if not row["stopped"]:
            start, end = row["start_us"], row["end_us"]
            is_timed = start is not None and end is not None
            metrics[f"{row['program']}.duration_s"] = (end - start) / 1e6 if is_timed else None
    for row in tables["program_figures"].iter_rows(named=True):
        metrics[f"{row['program']}.{row['figure']}"] = row["value"]
        if row["figure"] == "completion_us":
            metrics[f"{row['program']}.completion_s"] = row["value"] / 1e6
    return metrics | _datagram_metrics(tables)


def udp_figures(tables: Tables) -> list[tuple[str, Metrics]]:
    """Return what each program reports about the UDP packets that it sent, by its name."""
    figures = tables.get("program_figures")
    if figures is None:
        return []
    by_program: dict[str, Metrics] = {}
    for row in figures.iter_rows(named=True):
        by_program.setdefault(row["program"], {})[row["figure"]] = row["value"]
    return [(name, values) for name, values in by_program.items() if values.get("iperf3_packets")]


def _datagram_metrics(tables: Tables) -> Metrics:
    """Return loss and jitter of the UDP packets of all programs together; nothing where none sent any."""
    reports = [figures for _, figures in udp_figures(tables)]
    if not reports:
        return {}
    packets = [report["iperf3_packets"] or 0 for report in reports]
    lost, jitter = (
        [report.get(name) for report in reports] for name in ("iperf3_lost_packets", "iperf3_jitter_us")
    )
    return {
        "iperf3_udp_loss_ratio": None if None in lost else sum(n or 0 for n in lost) / sum(packets),
        "iperf3_udp_jitter_us": None
        if None in jitter
        else sum((us or 0) * n for us, n in zip(jitter, packets, strict=True)) / sum(packets),
    }


def _by_program(plan: Plan) -> dict[str, list[Flow]]:
    """Return the connections that each program opened, without those in the background."""
    by_program: dict[str, list[Flow]] = {}
    for flow in plan.flows:
        if isinstance(flow.application, Connection) and flow.application.program and not flow.background:
            by_program.setdefault(flow.application.program, []).append(flow)
    return by_program


def flow_prefix(plan: Plan, flow: Flow) -> str:
    """Return the prefix of the metrics of one flow among several; connections of programs are counted together."""
    return "" if len(plan.flows) == 1 or isinstance(flow.application, Connection) else f"{flow.name}."
