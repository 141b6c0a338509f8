"""Explains flows that have a pace, or ask for answers, by their messages: goodput says nothing of them. Pure.

A stream whose messages wait ever longer is explained like one that sends as fast as it can: it is held back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plait.analysis.metrics.paths import path_name
from plait.explain import evidence
from plait.explain.capacity import Network, could_bps
from plait.explain.causes import HARMLESS, Cause
from plait.explain.messages.late import Suspects, Way
from plait.explain.messages.timing import delivery, messages_of
from plait.explain.messages.wording import paragraph
from plait.explain.model import FlowExplanation, PathAccount, Share
from plait.plan.model.applications import PageConnection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.explain.facts import FlowFacts
    from plait.explain.messages.timing import Messages
    from plait.explain.states import PathTime
    from plait.plan.model.plan import Flow, Path, Plan

    Tables = Mapping[str, pl.DataFrame]

Array = np.ndarray

WORTH_NAMING_MESSAGES = 0.01
"""A cause is named when it made so many of the messages late, or lost them."""
UDP_HEADERS = {4: 14 + 20 + 8, 6: 14 + 40 + 8}
"""Bytes of Ethernet, IP and UDP before the payload, by the version of IP."""


def with_messages(
    plan: Plan, tables: Tables, facts: FlowFacts, times: Sequence[PathTime], found: FlowExplanation
) -> FlowExplanation:
    """Returns the explanation of a flow over TCP by its messages; as it is, where it has none."""
    messages = messages_of(plan, tables, facts.view.flow)
    if messages is None:
        return found
    account = delivery(messages, facts.start_us)
    if not account.kept_pace:
        shown = found.model_copy(update={"delivery": account})
        return shown.model_copy(update={"sentences": paragraph(shown, facts.view.flow.kind)})
    ways = _ways(plan, tables, facts, times)
    shares = _shares(Suspects(facts.network, messages, ways), facts.network, facts)
    return _shown(found.model_copy(update={"delivery": account}), facts.view.flow, shares)


def _shown(found: FlowExplanation, flow: Flow, shares: tuple[Share, ...]) -> FlowExplanation:
    enough = [
        share.cause for share in shares if share.cause not in HARMLESS and share.time >= WORTH_NAMING_MESSAGES
    ]
    named = tuple(cause for cause in enough if cause is not Cause.NOT_KNOWN or cause is enough[0])
    shown = found.model_copy(
        update={
            "basis": "messages",
            "shares": shares,
            "named": named,
            "first": named[0] if named else None,
            "moments": (),
        }
    )
    return shown.model_copy(update={"sentences": paragraph(shown, flow.kind)})


def _shares(suspects: Suspects, network: Network, facts: FlowFacts | None) -> tuple[Share, ...]:
    """One share for each cause, the greatest first."""
    counted = suspects.shares()
    found = []
    for cause in dict.fromkeys(cause for cause, _ in counted):
        places = sorted((one for one in counted if one[0] is cause), key=lambda one: -counted[one])
        where = tuple(dict.fromkeys(name for _, names in places for name in names))
        said = (
            evidence.of(facts, cause, where)
            if facts is not None
            else evidence.of_links(network, cause, where)
        )
        share = sum(counted[one] for one in places)
        found.append(Share(cause=cause, time=share, where=where, evidence=said))
    on_time = max(0.0, 1 - sum(share.time for share in found))
    found.sort(key=lambda share: -share.time)
    return (*found, Share(cause=Cause.ON_TIME, time=on_time))


def _ways(plan: Plan, tables: Tables, facts: FlowFacts, times: Sequence[PathTime]) -> list[Way]:
    """What each planned path carried of the flow, of all connections of a page, and what was sent again there."""
    flow, edges = facts.view.flow, facts.edges
    carriers = [flow.carrier] + [
        other.carrier
        for other in plan.flows
        if isinstance(other.application, PageConnection) and other.application.page == flow.id
    ]
    none = np.zeros(facts.slices)
    carried: dict[str, tuple[Array, Array]] = {}
    rows = tables["subflows"].filter(pl.col("flow").is_in(carriers)).sort("t_us")
    for _, part in rows.group_by("flow", "side", "subflow", maintain_order=True):
        first = part.row(0, named=True)
        name = path_name(
            flow, first["side"], first["local_address"], first["remote_address"], first["remote_port"]
        )
        sent = _grown(part, "sent_bytes", edges) / facts.payload_ratio
        before = carried.get(name, (none, none))
        carried[name] = (before[0] + sent, before[1] + _grown(part, "retransmitted_segments", edges))
    return [
        Way(one.facts.planned, *carried[one.facts.name], one)
        for one in times
        if one.facts.planned is not None and one.facts.name in carried
    ]


def _grown(part: pl.DataFrame, column: str, edges: Array) -> Array:
    """By how much a counter of one subflow grew in each slice; from nothing before its first sample."""
    known = part.select("t_us", column).drop_nulls()
    if known.is_empty():
        return np.zeros(len(edges) - 1)
    at, counts = known["t_us"].to_numpy().astype(float), known[column].to_numpy().astype(float)
    return np.asarray(np.diff(np.interp(edges, at, counts, left=0.0)))


def explain_datagrams(plan: Plan, tables: Tables, flow: Flow) -> FlowExplanation | None:
    """Returns why packets of a UDP flow were lost or late; None when it sent none."""
    messages = messages_of(plan, tables, flow)
    rows = tables["flows"].filter(pl.col("flow") == flow.id).to_dicts()
    if messages is None or not rows:
        return None
    start = float(messages.sent[0])
    end = float(np.nanmax([messages.sent[-1] + messages.base[-1], *messages.received]))
    (path, *_), network = flow.paths, Network(plan, tables["links"], _edges(tables, start, end))
    version = 6 if ":" in path.server_address else 4
    frames = messages.size + UDP_HEADERS[version]
    own, _ = np.histogram(messages.sent, network.edges, weights=frames)
    way = Way(path, own, np.zeros(len(own)))
    shares = _shares(Suspects(network, messages, [way]), network, None)
    lasted = (rows[0]["end_us"] or end) - (rows[0]["start_us"] or start)
    goodput = float(np.sum(messages.size[~messages.lost])) * 8e6 / lasted
    found = FlowExplanation(
        flow=flow.name,
        flow_id=flow.id,
        transport=flow.transport,
        background=flow.background,
        start_us=round(start),
        end_us=round(end),
        completed=bool(rows[0]["completed"]),
        goodput_bps=goodput,
        could_bps=_could_bps(plan, path, messages, frames),
        first=None,
        named=(),
        shares=shares,
        paths=(
            PathAccount(
                path=path.name,
                gave_bps=goodput,
                could_bps=_could_bps(plan, path, messages, frames),
                shares=shares,
            ),
        ),
        kernel=None,
        delivery=delivery(messages, start),
    )
    return _shown(found, flow, shares)


def _edges(tables: Tables, start: float, end: float) -> Array:
    """The samples of links while the flow lasted, its beginning and its end."""
    times = tables["links"]["t_us"].unique().sort().to_numpy().astype(float)
    return np.concatenate(([start], times[(times > start) & (times < end)], [end]))


def _could_bps(plan: Plan, path: Path, messages: Messages, frames: Array) -> float | None:
    """The payload that the path's links carry of packets of this size."""
    rate = could_bps(plan, path)
    return None if rate is None else rate * float(np.sum(messages.size) / np.sum(frames))
