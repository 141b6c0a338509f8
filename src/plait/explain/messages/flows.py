"""Explain streams, requests, pages and UDP by their messages, because their goodput depends on the application.

A stream whose messages wait longer and longer sends more than its paths carry; its time explains it, as for a bulk
flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from plait.analysis.by_flow import known_samples
from plait.analysis.translation import path_name
from plait.dataset.model import Tables
from plait.explain.capacity import LinkSamples, NetworkTimeline, capacity_bps
from plait.explain.cause import Array, Cause
from plait.explain.causes import CAUSES, HARMLESS, RULES
from plait.explain.facts import FlowFacts
from plait.explain.link_evidence import for_links
from plait.explain.messages.late import Carrier, LateMessages, PathUse
from plait.explain.messages.timing import Messages, delivery, messages_of
from plait.explain.messages.wording import paragraph
from plait.explain.model import FlowExplanation, PathAccount, Share
from plait.explain.time.path_time import PathTime
from plait.explain.time.states import attribute_time
from plait.frames import ETHERNET_HEADER, IPV4_HEADER, IPV6_HEADER, UDP_HEADER
from plait.plan.model.plan import Flow, Path, Plan

WORTH_NAMING_MESSAGES = 0.01
"""A cause is named when it made at least this share of the messages late or lost."""
UDP_HEADERS = {
    version: ETHERNET_HEADER + ip_header + UDP_HEADER
    for version, ip_header in ((4, IPV4_HEADER), (6, IPV6_HEADER))
}
"""Bytes of the Ethernet, IP and UDP headers, by IP version."""


def with_messages(
    plan: Plan, tables: Tables, facts: FlowFacts, times: Sequence[PathTime], explanation: FlowExplanation
) -> FlowExplanation:
    """Return the explanation of a TCP or MPTCP flow by its messages; unchanged if it has none."""
    messages = messages_of(plan, tables, facts.flow)
    if messages is None:
        return explanation
    summary = delivery(messages, facts.start_us)
    if not summary.kept_pace:
        with_delivery = explanation.model_copy(update={"delivery": summary})
        return with_delivery.model_copy(update={"sentences": paragraph(with_delivery)})
    path_uses = _path_uses(tables, facts, times)
    facts = replace(facts, own_bytes={path_use.path.name: path_use.own_bytes for path_use in path_uses})
    further = [
        Carrier(other, [attribute_time(other, path, RULES) for path in other.paths])
        for other in facts.further
    ]
    late = LateMessages(facts.network, messages, path_uses, [Carrier(facts, times), *further])
    shares = _shares(late, facts.network, facts)
    changes: dict[str, object] = {"delivery": summary}
    if summary.load_us:
        changes["paths"] = _paths_of_page(facts, summary.load_us, explanation.paths)
    return _explained_by_messages(explanation.model_copy(update=changes), shares)


def _paths_of_page(
    facts: FlowFacts, load_us: float, accounts: Sequence[PathAccount]
) -> tuple[PathAccount, ...]:
    """Return the accounts of a page's paths with what all of its connections carried while it loaded."""
    carried: dict[str, float] = {}
    subflows: dict[str, set[int]] = {}
    for connection in facts.connections:
        for path in connection.paths:
            carried[path.name] = carried.get(path.name, 0.0) + connection.carried.get(path.name, np.nan)
            subflows.setdefault(path.name, set()).update(subflow.number for subflow in path.subflows)
    return tuple(
        account.model_copy(
            update={
                "goodput_bps": carried[account.path] * 8e6 / load_us
                if np.isfinite(carried[account.path])
                else None,
                "subflows": tuple(sorted(subflows.get(account.path, ()))),
            }
        )
        if account.path in carried
        else account
        for account in accounts
    )


def _explained_by_messages(explanation: FlowExplanation, shares: tuple[Share, ...]) -> FlowExplanation:
    frequent = [
        share.cause for share in shares if share.cause not in HARMLESS and share.time >= WORTH_NAMING_MESSAGES
    ]
    named = tuple(cause for cause in frequent if cause != Cause.NOT_KNOWN or cause == frequent[0])
    explained = explanation.model_copy(
        update={
            "basis": "messages",
            "shares": shares,
            "named": named,
            "first": named[0] if named else None,
            "moments": (),
        }
    )
    return explained.model_copy(update={"sentences": paragraph(explained)})


def _shares(late: LateMessages, network: NetworkTimeline, facts: FlowFacts | None) -> tuple[Share, ...]:
    """Return one share for each cause, the greatest first, and the messages on time last."""
    by_cause = late.shares()
    shares = []
    for cause in dict.fromkeys(cause for cause, _ in by_cause):
        keys = sorted((key for key in by_cause if key[0] == cause), key=lambda key: -by_cause[key])
        places = tuple(dict.fromkeys(name for _, names in keys for name in names))
        sentences = (
            tuple(write(facts, places))
            if facts is not None and (write := CAUSES[cause].evidence) is not None
            else ()
            if facts is not None
            else for_links(network, cause, places)
        )
        share = sum(by_cause[key] for key in keys)
        shares.append(Share(cause=cause, time=share, where=places, evidence=sentences))
    on_time = max(0.0, 1 - sum(share.time for share in shares))
    shares.sort(key=lambda share: -share.time)
    return (*shares, Share(cause=Cause.ON_TIME, time=on_time))


def _path_uses(tables: Tables, facts: FlowFacts, times: Sequence[PathTime]) -> list[PathUse]:
    """Return what each planned path carried and retransmitted of the flow, including all connections of a page."""
    flow, edges = facts.flow, facts.edges
    none = np.zeros(facts.slices)
    carried: dict[str, tuple[Array, Array]] = {}
    rows = tables["subflows"].filter(pl.col("flow").is_in(facts.carriers)).sort("t_us")
    for _, part in rows.group_by("flow", "side", "subflow", maintain_order=True):
        name = path_name(flow.paths, part.row(0, named=True))
        sent = _growth(part, "sent_bytes", edges) / facts.payload_ratio
        known = carried.get(name, (none, none))
        carried[name] = (known[0] + sent, known[1] + _growth(part, "retransmitted_segments", edges))
    return [
        PathUse(path_time.facts.planned, *carried[path_time.facts.name])
        for path_time in times
        if path_time.facts.planned is not None and path_time.facts.name in carried
    ]


def _growth(part: pl.DataFrame, column: str, edges: Array) -> Array:
    """Return the growth of a subflow's counter in each slice; it is 0 before the first sample."""
    times_us, counts = known_samples(part, column)
    if not len(times_us):
        return np.zeros(len(edges) - 1)
    return np.asarray(np.diff(np.interp(edges, times_us, counts, left=0.0)))


def explain_datagrams(tables: Tables, links: LinkSamples, flow: Flow) -> FlowExplanation | None:
    """Return why packets of a UDP flow were lost or late; None if it sent none."""
    messages = messages_of(links.plan, tables, flow)
    rows = tables["flows"].filter(pl.col("flow") == flow.id).to_dicts()
    if messages is None or not rows:
        return None
    start = float(messages.sent[0])
    end = float(np.nanmax([messages.sent[-1] + messages.base[-1], *messages.received]))
    path, network = flow.paths[0], NetworkTimeline(links, links.edges(start, end))
    version = 6 if ":" in path.server_address else 4
    frames = messages.size + UDP_HEADERS[version]
    own_bytes, _ = np.histogram(messages.sent, network.edges, weights=frames)
    path_use = PathUse(path, own_bytes, np.zeros(len(own_bytes)))
    shares = _shares(LateMessages(network, messages, [path_use]), network, None)
    duration_us = (rows[0]["end_us"] or end) - (rows[0]["start_us"] or start)
    goodput = float(np.sum(messages.size[~messages.lost])) * 8e6 / duration_us
    explanation = FlowExplanation(
        flow=flow.name,
        flow_id=flow.id,
        transport=flow.transport,
        background=flow.background,
        start_us=round(start),
        end_us=round(end),
        completed=bool(rows[0]["completed"]),
        goodput_bps=goodput,
        capacity_bps=_payload_capacity_bps(links.plan, path, messages, frames),
        first=None,
        named=(),
        shares=shares,
        paths=(
            PathAccount(
                path=path.name,
                goodput_bps=goodput,
                capacity_bps=_payload_capacity_bps(links.plan, path, messages, frames),
                shares=shares,
            ),
        ),
        kernel=None,
        delivery=delivery(messages, start),
    )
    return _explained_by_messages(explanation, shares)


def _payload_capacity_bps(plan: Plan, path: Path, messages: Messages, frames: Array) -> float | None:
    """Return the payload rate of the path's slowest link for packets of this size; None without a rate."""
    rate = capacity_bps(plan, path)
    return None if rate is None else rate * float(np.sum(messages.size) / np.sum(frames))
