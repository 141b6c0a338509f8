"""Why a subflow was never established, from the plan, kernel events and counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plait.analysis.cautions.join_time import patience_us
from plait.analysis.cautions.mptcp import findings
from plait.analysis.wording import capital
from plait.plan.mptcp.missing_subflows import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plait.explain.facts import FlowFacts, PathFacts
    from plait.plan.model.plan import Plan

    Tables = Mapping[str, pl.DataFrame]

REASONS = {
    Reason.SUBFLOW_LIMIT: "limit",
    Reason.ADD_ADDR_LIMIT: "limit",
    Reason.NO_ROUTE: "no-route",
    Reason.NO_SIGNAL: "no-add-addr",
    Reason.NO_ENDPOINT: "no-endpoint",
    Reason.WRONG_SIDE: "no-endpoint",
}
REASON_TEXTS = {
    "limit": "a limit of the path manager prevented it",
    "no-route": "packets cannot travel both ways between its addresses",
    "no-add-addr": "the server never announced the address (no ADD_ADDR)",
    "no-endpoint": "the client has no `subflow` endpoint for it",
    "join-refused": "its join was refused",
    "fallback": "the connection had fallen back to TCP",
    "mptcp-off": "MPTCP was off",
    "no-answer": "its handshake was not answered",
    "too-late": "the connection ended first",
}


def why_never(
    plan: Plan, tables: Tables, facts: FlowFacts, path: PathFacts, plan_reason: Reason | None
) -> tuple[str, tuple[str, ...]]:
    """Return the reason (a stable name) and its evidence.

    `plan_reason` is the reason that follows from the plan, if there is one.
    """
    view = facts.view
    if facts.row.get("fallback"):
        fallbacks = [
            finding
            for finding in findings(plan, tables)
            if finding.flow == view.name and finding.code == "FELL_BACK"
        ]
        return "fallback", tuple(_sentence(finding.text, finding.reasons) for finding in fallbacks)
    if plan_reason is not None:
        text = REASON_TEXTS[REASONS[plan_reason]]
        return REASONS[plan_reason], (f"{capital(text)}.",)
    if any(
        ("net/mptcp/enabled", "0") in space.sysctls
        for space in plan.network.namespaces
        if space.name in (view.client, view.server)
    ):
        return "mptcp-off", ("net.mptcp.enabled is 0.",)
    refused = _refusals(plan, tables, facts, path)
    if refused:
        return "join-refused", refused
    if path.planned is not None and facts.end_us - facts.connected_us < patience_us(
        view.paths[0] if view.paths else None, path.planned
    ):
        return "too-late", ("The connection ended before a join could complete.",)
    if unannounced := _unannounced(plan, facts, path):
        return "no-add-addr", unannounced
    return "no-answer", ("No event mentions the subflow: its SYN was not answered, or never sent.",)


def _unannounced(plan: Plan, facts: FlowFacts, path: PathFacts) -> tuple[str, ...]:
    """Return what the server announced instead of the path's address; empty if the client knew it."""
    view = facts.view
    if path.planned is None or not view.paths:
        return ()
    announced = facts.events.filter((pl.col("event") == "announced") & (pl.col("node") == view.client))
    known_addresses = [
        view.paths[0].server_address,
        *announced["remote_address"].unique(maintain_order=True).to_list(),
    ]
    if path.planned.server_address in known_addresses:
        return ()
    sentences = [
        f"{view.server} announced {', '.join(map(str, known_addresses[1:])) or 'nothing'} to {view.client}."
    ]
    endpoints = [
        endpoint for host in plan.network.mptcp if host.netns == view.server for endpoint in host.endpoints
    ]
    if (
        known_addresses[1:]
        and sum({"subflow", "signal"} <= set(endpoint.flags) for endpoint in endpoints) > 1
    ):
        sentences.append(
            "If endpoints are both `subflow` and `signal`, Linux announces only one of them: it marks the others as "
            "used as soon as this side tries to open subflows from them."
        )
    return tuple(sentences)


def _refusals(plan: Plan, tables: Tables, facts: FlowFacts, path: PathFacts) -> tuple[str, ...]:
    """Return what the kernel reported about joins between the addresses of a path."""
    if path.planned is None:
        return ()
    ends = {path.planned.client_address, path.planned.server_address}
    refusals = [
        finding
        for finding in findings(plan, tables)
        if finding.flow == facts.view.name
        and finding.code == "JOIN_REFUSED"
        and all(f" {address}" in finding.text for address in ends)
        and (finding.t_us is None or finding.t_us < facts.end_us)
    ]
    if refusals:
        return tuple(_sentence(finding.text, finding.reasons) for finding in refusals)
    closed = facts.events.filter(
        (pl.col("event") == "sub_closed")
        & (pl.col("local_address") == path.planned.client_address)
        & (pl.col("remote_address") == path.planned.server_address)
        # The end of the connection closes subflows, too; that is no refusal.
        & (pl.col("t_us") < facts.end_us)
    )
    return ("The kernel closed the subflow before it was established.",) if len(closed) else ()


def _sentence(text: str, reasons: tuple[str, ...]) -> str:
    counters = f" [{', '.join(reasons)}]" if reasons else ""
    return f"{capital(text)}{counters}."
