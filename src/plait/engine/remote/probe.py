"""Short connections before the first trial: they show whether the lines between real hosts carry a plan's flows.

A probe is a plan like that of a trial, with requests of a few bytes instead of the traffic, on the ports and with the
options of the flows. One probe has each flow on one pair of its addresses; further probes have the other pairs. A last
one shows whether MPTCP opens a subflow on every pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from plait.engine.remote.configure import planned_endpoints
from plait.engine.remote.mapping import Mapping as RealMapping
from plait.engine.remote.mapping import Pair, planned_pairs
from plait.engine.remote.preflight import real_pairs
from plait.plan.model.monitors import Monitors
from plait.plan.model.plan import Flow, Plan
from plait.traffic.gaps import Gap
from plait.traffic.request import Request
from plait.traffic.stream import Stream
from plait.traffic.udp import Udp

PROBE_US = 5_000_000
"""How long hosts have to connect, and to exchange a few bytes."""
JOIN_US = 3_000_000
"""How long MPTCP has to open its subflows."""
_GAP_US = 50_000
_SAMPLE_US = 100_000
_BYTES = 64


@dataclass(frozen=True)
class LineProbe:
    """A plan of short connections, and the numbers of the real flows that they represent."""

    plan: Plan
    flows: tuple[Flow, ...]
    """By the id of the connection."""
    joins: bool = False
    """Whether every path of a flow must have a subflow."""


def probes(plan: Plan, real: RealMapping) -> Iterator[LineProbe]:
    """Yield the probes for a plan, in the order in which they run."""
    flows = [flow for flow in plan.flows if flow.connection is None or flow.kind == "udp"]
    pairs = {flow.id: _different(flow, real) for flow in flows}
    for number in range(max(map(len, pairs.values()), default=0)):
        of_round = [flow for flow in flows if number < len(pairs[flow.id])]
        yield _probe(plan, of_round, {flow.id: pairs[flow.id][number] for flow in of_round})
    joining = [flow for flow in flows if flow.transport == "mptcp" and joined_pairs(plan, flow, real)]
    if joining:
        yield _probe(plan, joining, {flow.id: pairs[flow.id][0] for flow in joining}, joins=True)


def _different(flow: Flow, real: RealMapping) -> list[Pair]:
    """Return pairs of the plan's addresses, one for each pair of real addresses of which one side can connect."""
    chosen: dict[tuple[str, ...], Pair] = {}
    for pair in planned_pairs(flow):
        client, server = (flow.client.netns, pair[0]), (flow.server.netns, pair[1])
        public = real.public[client], real.public[server]
        if public != (None, None):
            key = real.addresses[client], real.addresses[server], *map(str, public)
            chosen.setdefault(key, pair)
    return list(chosen.values())


def joined_pairs(plan: Plan, flow: Flow, real: RealMapping) -> list[tuple[str, str]]:
    """Return the pairs of `real_pairs` on which MPTCP opens further subflows, by the plan's endpoints and limits."""
    limits = {mptcp.netns: mptcp.subflows for mptcp in plan.network.mptcp}
    first, *others = real_pairs(flow, real)
    opener = real.opener(flow)
    seen = real.flow_at(flow, opener)
    opening = planned_endpoints(plan, opener, real)
    announcing = planned_endpoints(plan, seen.server.netns, real)
    pairs = [
        pair
        for pair in others
        if (pair[0] != first[0] and "subflow" in opening.get(pair[0], ()))
        or (pair[1] != first[1] and "signal" in announcing.get(pair[1], ()))
    ]
    return pairs if len(pairs) <= limits.get(opener, 0) else []


def _probe(plan: Plan, flows: list[Flow], pairs: Mapping[int, Pair], *, joins: bool = False) -> LineProbe:
    numbers = {flow.id: number for number, flow in enumerate(flows)}
    short = []
    for flow in flows:
        client, server = pairs[flow.id]
        application = _application(flow, joins=joins)
        options = flow.socket.model_copy(update={"scheduler": None, "mark": None})
        short.append(
            flow.model_copy(
                update={
                    "id": numbers[flow.id],
                    "application": application,
                    "client": flow.client.model_copy(update={"address": client}),
                    "server": flow.server.model_copy(update={"address": server}),
                    "sender": "server" if isinstance(application, Request) else flow.sender,
                    "start_us": 0,
                    "after": (),
                    "after_programs": (),
                    "connection": numbers.get(flow.connection) if flow.connection is not None else None,
                    "socket": options,
                }
            )
        )
    update = {
        "flows": tuple(short),
        "end_us": PROBE_US,
        "sample_interval_us": _SAMPLE_US,
        "monitors": Monitors(),
        "measure": None,
        "events": (),
        "programs": (),
        "pause": (),
    }
    return LineProbe(plan.model_copy(update=update), tuple(flows), joins)


def _application(flow: Flow, *, joins: bool) -> Request | Stream | Udp:
    """Return the short connections that represent the traffic of a flow."""
    if flow.transport == "udp":
        return Udp(packet_bytes=_BYTES, interval_ns=_GAP_US * 1000, count=20, drain_us=PROBE_US - JOIN_US)
    count = JOIN_US // _GAP_US if joins else 2
    if joins and not flow.application.ANSWERS:
        # Which side sends first decides which subflows the kernel opens first.
        return Stream(message_bytes=_BYTES, interval_ns=_GAP_US * 1000, count=count)
    gap = Gap(mean_us=_GAP_US)
    return Request(request_bytes=_BYTES, response_bytes=_BYTES, loop="closed", gap=gap, count=count)


def problems(probe: LineProbe, tables: Mapping[str, pl.DataFrame], real: RealMapping) -> Iterator[str]:
    """Yield what the tables of a probe show to be blocked, in one sentence each."""
    for row, short, flow in zip(tables["flows"].to_dicts(), probe.plan.flows, probe.flows, strict=True):
        seen = real.flow_at(short, real.opener(short))
        line = _line(seen)
        if flow.transport == "udp":
            arrived = tables["messages"].filter(flow=short.id)["received_us"].drop_nulls()
            if not len(arrived):
                yield (
                    f"no UDP packet arrived {line} within {PROBE_US // 1_000_000} s; allow the port in the "
                    "firewalls of both hosts, and check the line"
                )
        elif row["connected_us"] is None:
            reason = f" ({row['error']})" if row["error"] else ""
            yield (
                f"no connection {line} within {PROBE_US // 1_000_000} s{reason}; allow the port in the firewall of "
                f"{seen.server.netns} (`ports` in the hosts file names those that plait uses), and check the line"
            )
        elif not row["completed"] and not probe.joins:
            yield (
                f"a connection {line} carries no data: {row['error'] or 'no answer arrived'}; check the line for "
                "firewalls, and for a smaller MTU than that of the interfaces"
            )
        elif flow.transport == "mptcp" and row["fallback"]:
            yield (
                f"MPTCP is not negotiated {line}: something on the line removes its options, or a host has MPTCP "
                "disabled (net.mptcp.enabled). Use transport tcp, or leave this line out"
            )
        elif probe.joins:
            yield from _missing_subflows(probe.plan, short, seen, tables["subflows"], real)


def unconnected(plan: Plan, tables: Mapping[str, pl.DataFrame], real: RealMapping) -> Iterator[str]:
    """Yield a sentence for each flow of a trial that started, and never had a connection."""
    for row, flow in zip(tables["flows"].to_dicts(), plan.flows, strict=True):
        if flow.transport in ("tcp", "mptcp") and row["start_us"] is not None and row["connected_us"] is None:
            line = _line(real.flow_at(flow, real.opener(flow)))
            yield (
                f"no connection {line} for the {plan.end_us // 1_000_000} s of a trial, so the study "
                "ends; check the line and the firewalls"
            )


def _missing_subflows(
    plan: Plan, flow: Flow, seen: Flow, subflows: pl.DataFrame, real: RealMapping
) -> Iterator[str]:
    opener, reached = seen.client.netns, seen.server.netns
    side = "server" if real.is_turned(flow) else "client"
    rows = subflows.filter(flow=flow.id, side=side).select("local_address", "remote_address").drop_nulls()
    present = {
        (real.addresses.get((opener, local), local), real.public.get((reached, remote)) or remote)
        for local, remote in rows.unique().rows()
    }
    for local, public in joined_pairs(plan, flow, real):
        # Linux may join from this address to another one of the peer, if that answers before the announcement of the
        # right one arrives. The line carries MPTCP then; the tables of a trial show which addresses it joined.
        if any(own == local for own, _ in present):
            continue
        yield (
            f"MPTCP opens no subflow from {opener} ({local}) to {reached} ({public}) within "
            f"{JOIN_US // 1_000_000} s: the hosts have no endpoints for it or too low limits (--configure sets both), "
            "or the line removes MPTCP's options. Use --configure, or leave this line out"
        )


def _line(seen: Flow) -> str:
    """Return the ends of the connection of a flow, as its opener sees it."""
    client, server = seen.client, seen.server
    return f"from {client.netns} ({client.address}) to {server.netns} ({server.address}, port {server.port})"
