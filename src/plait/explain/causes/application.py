"""The application has nothing to send, or writes less than a segment."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import percent
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect
from plait.explain.facts import FlowFacts, LateMessage
from plait.plan.model.plan import Flow
from plait.traffic.kinds import GREEDY

DELAYED_ACKS = "TcpExtDelayedACKs"
DELAYED_ACK_US = 40_000
"""How long a receiver delays an ACK at least (TCP_DELACK_MIN) .."""
LONGEST_DELAYED_ACK_US = 200_000
""".. and at most (TCP_DELACK_MAX)."""
DELAYED_SHARE = 0.5
"""Delayed ACKs explain late answers if there are at least this many for each answer that is late by as much."""


def _nothing_unsent(facts: FlowFacts, _: Places) -> list[str]:
    if np.isnan(facts.unsent).all():
        return []  # the data come from captures
    empty = float(np.mean(np.nan_to_num(facts.unsent) == 0))
    return [f"No data waited to be sent in {percent(empty, 2)} of the samples."]


def _always_sending(suspect: Suspect) -> Remedy | None:
    if suspect.entry is None:
        return None
    number, kind = suspect.entry
    spec = suspect.scenario.traffic[number].flow
    duration = getattr(spec, "duration", None)
    if kind in GREEDY or duration is None:
        return None
    ends = {"from": spec.from_, "to": spec.to, "duration": str(duration)}
    return Remedy("an application that always has data", ((f"traffic.{number}", {"bulk": ends}),))


def _partial_segments(facts: FlowFacts, _: Places) -> list[str]:
    parts = [
        float(
            np.mean(
                (subflow.samples["notsent_bytes"] > 0)
                & (subflow.samples["notsent_bytes"] < subflow.samples["mss_bytes"])
            )
        )
        for path in facts.paths
        for subflow in path.subflows
    ]
    return [
        f"In {percent(max(parts, default=0.0), 2)} of the samples, less than one segment waited to be sent."
    ]


def _without_nagle(suspect: Suspect) -> Remedy | None:
    return suspect.setting("Nagle's algorithm off (nodelay)", "nodelay", True)


def _partial_segment_waits(message: LateMessage) -> Places:
    """Blame Nagle's algorithm: a partial segment waits until earlier data is acknowledged, or for more data."""
    flow = message.facts.flow
    if not _has_nagle(flow) or flow.application.ANSWERS:
        return ()
    is_short = message.excess_us <= message.longest_rtt_us + DELAYED_ACK_US
    return (message.facts.sender,) if is_short else ()


def _has_nagle(flow: Flow) -> bool:
    return flow.transport in {"tcp", "mptcp"} and not flow.socket.nodelay


def _request_waits(message: LateMessage) -> Places:
    """Blame the end that answers if it delayed ACKs: the last segment of a request waited for one (Nagle).

    An answer that leaves at once acknowledges its request, so what this end delays is the ACK of an incomplete one.
    What the end that asks delays proves nothing: it has nothing to send before its next request.
    """
    flow, answers = message.facts.flow, message.facts.sender
    if not _has_nagle(flow) or not flow.application.ANSWERS:
        return ()
    longest = LONGEST_DELAYED_ACK_US + 2 * message.longest_rtt_us
    alike = np.count_nonzero((message.all_excess_us >= DELAYED_ACK_US) & (message.all_excess_us <= longest))
    is_alike = DELAYED_ACK_US <= message.excess_us <= longest
    count = message.facts.counted(DELAYED_ACKS).get(answers, 0)
    return (answers,) if is_alike and 0 < count >= DELAYED_SHARE * alike else ()


def _delayed_acks(facts: FlowFacts, places: Places) -> list[str]:
    """Return how many ACKs the end that answers delayed."""
    return [
        f"{node} sent {count} ACKs only when its timer for delayed ACKs expired (DelayedACKs)."
        for node, count in facts.counted(DELAYED_ACKS).items()
        if node in places
    ]


KINDS = (
    Kind(
        Cause.SENDER_IDLE,
        title="nothing to send",
        clause="the application had nothing to send",
        next_step="look at the application: its pace, its pauses, and what it waits for (disk, peer)",
        evidence=_nothing_unsent,
        change=_always_sending,
    ),
    Kind(
        "nagle",
        title="Nagle",
        clause="the last segment of a message waited for an ACK (Nagle's algorithm)",
        next_step="set nodelay",
        evidence=_partial_segments,
        change=_without_nagle,
        late_rule=_partial_segment_waits,
    ),
    Kind(
        "delayed-ack",
        title="delayed ACK",
        clause="the last segment of a request waited for an ACK that the other end delayed",
        next_step="set nodelay, or write each request with one call",
        evidence=_delayed_acks,
        change=_without_nagle,
        late_rule=_request_waits,
    ),
)
