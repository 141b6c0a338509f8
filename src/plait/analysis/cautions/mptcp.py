"""Problems of MPTCP in one trial, as data: fallbacks, refused or unanswered joins, unused announcements.

The kernel's counters say that something happened and why, its events and samples say when. Counters are those of a
node: plait attributes them to a flow only if no other MPTCP flow uses the node, and omits them otherwise.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface, ip_network
from typing import Any

import polars as pl

from plait.analysis.cautions.join_time import had_time_to_join
from plait.analysis.metrics.programs import is_control
from plait.dataset.model import Tables
from plait.plan.model.plan import Flow, Plan
from plait.traffic.program import Connection

Counters = Mapping[tuple[str, str], int]
Event = Mapping[str, Any]
"""A row of the table `events`."""

FALLBACK_REASONS = {
    "MPCapableFallbackSYNACK": "the SYN/ACK came without MP_CAPABLE",
    "MPCapableFallbackACK": "the third packet came without MP_CAPABLE",
    "MPCapableDataFallback": "the first data or its acknowledgement came without MPTCP's options",
    "DssFallback": "data came without their mapping (DSS)",
    "DSSCorruptionFallback": "a mapping (DSS) was damaged",
    "DSSNoMatchTCP": "a mapping (DSS) did not fit its data",
    "DataCsumErr": "a checksum over data was wrong: something on the way changes them",
    "InfiniteMapRx": "the other side went back to TCP (infinite mapping)",
    "MPFallbackTokenInit": "no token could be made",
    "MD5SigFallback": "TCP's MD5 signatures leave no room for options",
    "SimultConnectFallback": "both sides connected to each other at once",
    "MPCapableSYNTXDisabled": "MPTCP was off after earlier connections had failed (blackhole detection)",
    "MPCapableSYNTXDrop": "SYNs with MP_CAPABLE were lost, and one without was not",
}
"""By the kernel's counter (net/mptcp/mib.c), what happened."""
JOIN_REFUSALS = {
    "MPJoinNoTokenFound": "the token was not known",
    "MPJoinAckHMacFailure": "the client could not prove that it has the key",
    "MPJoinSynAckHMacFailure": "the server could not prove that it has the key",
    "MPJoinSynTxBindErr": "the local address or port could not be used",
    "MPJoinSynTxConnectErr": "there was no way to the address, or the answer was no join",
    "MPJoinSynTxCreatSkErr": "no socket could be made",
    "MismatchPortSynRx": "it came to another port than was announced",
    "MismatchPortAckRx": "it came to another port than was announced",
}
UNANSWERED = {
    errno.ETIMEDOUT: "nothing answered its SYNs",
    errno.EHOSTUNREACH: "no neighbour answered ARP, or a router found no way",
    errno.ENETUNREACH: "a router has no way to the address",
}
"""By the error that ended a handshake, what did not answer; a reset gives another error or none."""


@dataclass(frozen=True)
class Observation:
    """Something that a trial's data show. Those with the same code and text are equal."""

    code: str
    """FELL_BACK, JOIN_REFUSED, JOIN_UNANSWERED, ADD_ADDR_UNUSED, SUBFLOW_CLOSED, or one of other data."""
    text: str
    """In words, without time."""
    t_us: int | None = field(default=None, compare=False)
    """When it was seen: exactly for events and handshakes, else by the first sample that shows it; null: unknown."""
    flow: str = field(default="", compare=False)
    reasons: tuple[str, ...] = field(default=(), compare=False)
    """The counters that give the reason, client first: `h1 MPCapableFallbackSYNACK`."""


def findings(plan: Plan, tables: Tables) -> list[Observation]:
    """Return what went wrong with the MPTCP flows of one trial, flow by flow."""
    counted = _counted(tables["counters"])
    happened = _by_flow(tables["events"])
    rows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    multipath = [flow for flow in plan.flows if flow.transport == "mptcp" and flow.connection is None]
    plain = {frozenset((peers.source, peers.target)) for peers in plan.peers if peers.transport == "tcp"}
    results: list[Observation] = []
    for flow in multipath:
        row = rows.get(flow.id)
        if row is None:
            continue
        ends = (flow.client.netns, flow.server.netns)
        alone = not any(
            rival is not flow and {rival.client.netns, rival.server.netns} & set(ends) for rival in multipath
        )
        own_counters = counted if alone else {}
        if row["fallback"] and isinstance(flow.application, Connection) and frozenset(ends) in plain:
            continue  # the other program was given TCP
        if row["fallback"]:
            results.append(_fallback(flow, row, tables["events"], own_counters))
        else:
            results += _joins(flow, happened.get((flow.id, flow.client.netns), ()), own_counters)
            if not is_control(
                flow
            ):  # one that carried next to nothing may have been over before it could join
                results += _announcements(plan, flow, row, happened.get((flow.id, flow.client.netns), ()))
    return results


def _counted(counters: pl.DataFrame) -> dict[tuple[str, str], int]:
    """By node and name without group, by how much each of MPTCP's counters grew."""
    rows = counters.filter(pl.col("counter").str.starts_with("MPTcpExt"))
    return {
        (node, name.removeprefix("MPTcpExt")): last - first
        for node, name, first, last in rows.select("node", "counter", "before", "after").iter_rows()
        if last > first
    }


def _named(flow: Flow, counted: Counters, meanings: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The counters of both ends that are `known` and grew, and the first of their meanings."""
    increases = [
        (node, name)
        for node in (flow.client.netns, flow.server.netns)
        for name in meanings
        if counted.get((node, name))
    ]
    names = tuple(f"{node} {name}" for node, name in increases)
    return names, f" ({meanings[increases[0][1]]})" if increases else ""


def _fallback(flow: Flow, row: Mapping[str, object], events: pl.DataFrame, counted: Counters) -> Observation:
    """Return a fallback: at the handshake if the client reported no MPTCP connection, else at the first sample."""
    at_server = (pl.col("node") == flow.client.netns) & (pl.col("remote_port") == flow.server.port)
    created = events.filter((pl.col("event") == "created") & at_server)
    connected = row["connected_us"]
    if created.is_empty() and isinstance(connected, int):
        t_us: int | None = connected
    else:
        times = events.filter((pl.col("event") == "fallback") & (pl.col("flow") == flow.id))[
            "t_us"
        ].drop_nulls()
        t_us = int(times.to_list()[0]) if len(times) and not flow.unsampled else None
    reasons, explanation = _named(flow, counted, FALLBACK_REASONS)
    text = f"flow {flow.name} fell back to TCP{explanation}"
    return Observation("FELL_BACK", text, t_us, flow.name, reasons)


def _by_flow(events: pl.DataFrame) -> dict[tuple[object, object], list[Event]]:
    """Return the events of connections by flow and node."""
    happened: dict[tuple[object, object], list[Event]] = {}
    for event in events.iter_rows(named=True):
        happened.setdefault((event["flow"], event["node"]), []).append(event)
    return happened


def _joins(flow: Flow, mine: Sequence[Event], counted: Counters) -> Iterator[Observation]:
    """Subflows that the client tried and that were refused, and those that an error closed later."""
    came: set[tuple[object, ...]] = set()
    for event in mine:
        ends = tuple(event[name] for name in ("local_address", "local_port", "remote_address", "remote_port"))
        addresses = f"{event['local_address']} to {event['remote_address']}"
        if event["event"] == "sub_established":
            came.add(ends)
        elif event["event"] == "sub_closed" and ends not in came and event["error"] in UNANSWERED:
            text = (
                f"flow {flow.name}: the subflow from {addresses} got no answer ({UNANSWERED[event['error']]})"
            )
            yield Observation("JOIN_UNANSWERED", text, event["t_us"], flow.name)
        elif event["event"] == "join_failed" or (event["event"] == "sub_closed" and ends not in came):
            reasons, explanation = _named(flow, counted, JOIN_REFUSALS)
            text = f"flow {flow.name}: the subflow from {addresses} was refused{explanation}"
            yield Observation("JOIN_REFUSED", text, event["t_us"], flow.name, reasons)
        elif event["event"] == "sub_closed" and (event["error"] or event["reset_reason"]):
            reset = _RESETS.get(event["reset_reason"] or 0, "")
            text = f"flow {flow.name}: the subflow from {addresses} was reset{reset}"
            yield Observation("SUBFLOW_CLOSED", text, event["t_us"], flow.name)


_RESETS = {
    1: " (MPTCP-specific error)",
    2: " (lack of resources)",
    3: " (administratively prohibited)",
    4: " (too much outstanding data)",
    5: " (unacceptable performance)",
    6: " (middlebox interference)",
}
"""RFC 8684, section 3.6."""


def _announcements(
    plan: Plan, flow: Flow, row: Mapping[str, Any], mine: Sequence[Event]
) -> Iterator[Observation]:
    """Yield announced addresses that the client has a route to and had time to join, but tried no subflow to."""
    tried = [event for event in mine if event["event"] in ("sub_established", "sub_closed")]
    reached = {flow.server.address, *(event["remote_address"] for event in tried)}
    paths = {path.server_address: path for path in flow.paths}
    for event in mine:
        address = event["remote_address"]
        if (
            event["event"] != "announced"
            or address in reached
            or not _has_route(plan, flow.client.netns, address)
        ):
            continue
        if had_time_to_join(flow, paths.get(address), row["connected_us"], row["end_us"]):
            text = f"flow {flow.name}: {address} was announced, and no subflow was opened to it"
            yield Observation("ADD_ADDR_UNUSED", text, event["t_us"], flow.name)


def _has_route(plan: Plan, node: str, address: str) -> bool:
    """Return whether a node has a route to an address: a connected network, or a route of any of its tables."""
    target = ip_address(address)
    connected = (
        ip_interface(address_text).network
        for veth in plan.network.veths
        for end in (veth.a, veth.b)
        if end.netns == node
        for address_text in end.addresses
    )
    routed = (
        ip_network("::/0" if target.version == 6 else "0.0.0.0/0")
        if route.destination == "default"
        else ip_network(route.destination)
        for route in plan.network.routes
        if route.netns == node and route.kind == "unicast"
    )
    return any(target in network for network in (*connected, *routed))
