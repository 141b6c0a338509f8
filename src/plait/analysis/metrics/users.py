"""Groups of flows that count as one: users, and flows that follow each other or load one page together.

Goodput is that of all of them over the time in which any is active: what goes on at once adds up, what follows not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plait.plan.model.plan import Flow, Plan

Rows = Mapping[int, Mapping[str, Any]]
"""The rows of the table `flows` by the id of the flow."""


def foreground(plan: Plan) -> list[Flow]:
    """Return the flows that the figures of the trial as a whole are about."""
    return [flow for flow in plan.flows if not flow.background]


def chains(flows: Sequence[Flow]) -> list[list[Flow]]:
    """Return the flows in groups: those that follow each other, and the connections of a page, are in one group."""
    group: dict[int | None, list[Flow]] = {}
    for flow in flows:
        chain = [flow]
        predecessors = (group.get(number) for number in (*flow.after, flow.application.page_flow))
        joined = {id(earlier): earlier for earlier in predecessors if earlier}
        for member_chain in joined.values():
            chain = [*member_chain, *chain]
        for member in chain:
            group[member.id] = chain
    return list({id(members): members for members in group.values()}.values())


def users(flows: Sequence[Flow]) -> dict[str, list[Flow]]:
    """Return the flows of each user, by name; without users, each chain is one, without what shares a connection."""
    if any(flow.user is not None for flow in flows):
        by_user: dict[str, list[Flow]] = {}
        for flow in flows:
            if flow.user is not None:
                by_user.setdefault(flow.user, []).append(flow)
        return by_user
    alone = [flow for flow in flows if flow.connection is None]
    return {members[0].name: members for members in chains(alone)}


def may_compare(flows: Sequence[Flow]) -> bool:
    """Return whether fairness between these flows has a meaning: a call that keeps its pace wants no equal share.

    Whoever gives flows users compares the users, whatever their flows are.
    """
    paced = {flow.application.PACED or flow.transport == "udp" for flow in flows}
    return len(paced) < 2 or any(flow.user is not None for flow in flows)


def finished_span(row: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return when a flow started and ended, in us, from its row of the table `flows`; None if it did not complete."""
    if not row or not row["completed"] or row["start_us"] is None or row["end_us"] is None:
        return None
    return row["start_us"], row["end_us"]


def goodput_bps(flows: Sequence[Flow], rows: Rows) -> float | None:
    """Return application bits per second of these flows over the time in which any of them was active.

    None when one of them did not complete. Of one flow it is what it received over its own time.
    """
    received = 0
    spans = []
    for flow in flows:
        row = rows.get(flow.id, {})
        count, span = row.get("received_bytes"), finished_span(row)
        if span is None or count is None:
            return None
        received += count
        spans.append(span)
    active_us = sum(end - start for start, end in merged(spans))
    return received * 8e6 / active_us if active_us > 0 else None


def merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of time that these cover together, in order and apart."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if apart and start <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], end)
        else:
            apart.append((start, end))
    return apart
