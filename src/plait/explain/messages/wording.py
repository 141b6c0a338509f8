"""An explanation of messages in words: whether a source got what it asked for, what they took, what delayed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import micros, percent, rate, seconds
from plait.explain.causes import CAUSES, Cause
from plait.explain.wording import MAX_NAMED, causes, paths, together

if TYPE_CHECKING:
    from plait.explain.model import Delivery, FlowExplanation, Share

NOUNS = {"request": "answers", "page": "objects", "udp": "packets"}
CLAUSES: dict[Cause, tuple[str, str]] = {
    Cause.LOSS_RECOVERY: ("packets were lost on the way", "mend the lossy link, or send over another path"),
    Cause.QUEUE_FULL: ("a queue was full", "send less at once, or give that link another queue"),
    Cause.COMPETING_TRAFFIC: (
        "other flows filled the queue of a link",
        "a queue that keeps flows apart there (fq_codel), or a shorter one",
    ),
    Cause.HEAD_OF_LINE: (
        "they waited for what went over a farther path",
        "leave that path out (a backup endpoint), or choose another mptcp.scheduler",
    ),
}
"""Of messages, where another clause or remedy fits than for what sends as fast as it can."""


def paragraph(flow: FlowExplanation, kind: str) -> tuple[str, ...]:
    """Returns the paragraph of a flow that is explained by its messages."""
    delivery = flow.delivery
    assert delivery is not None
    noun = NOUNS.get(kind, "messages")
    sentences = [_total(flow, delivery, noun, kind), *paths(flow), _took(delivery, noun)]
    if delivery.kept_pace:
        return (*sentences, *_late(flow, noun))
    return (*sentences, *causes(flow, greedy=False))


def _total(flow: FlowExplanation, delivery: Delivery, noun: str, kind: str) -> str:
    if kind == "udp":
        lost = percent(delivery.lost / delivery.messages) if delivery.lost else "none"
        sent = f" ({rate(delivery.asked_bps)} of payload)" if delivery.asked_bps is not None else ""
        return f"{flow.flow} lost {lost} of its {delivery.messages} packets{sent}."
    if delivery.asked_bps is None:
        within = f" in {seconds(delivery.load_us / 1e6)}" if delivery.load_us is not None else ""
        missing = f"; {delivery.lost} never came" if delivery.lost else ""
        return f"{flow.flow} got {delivery.messages - delivery.lost} {noun}{within}{missing}."
    if delivery.kept_pace:
        of = (
            f", of the {rate(flow.capacity_bps)} that {together(flow)} could give"
            if flow.capacity_bps
            else ""
        )
        return f"{flow.flow} got all that it asked for: {rate(delivery.asked_bps)}{of}."
    whose = f"; {together(flow)} could give {rate(flow.capacity_bps)}" if flow.capacity_bps else ""
    return (
        f"{flow.flow} got {rate(flow.goodput_bps)} of the {rate(delivery.asked_bps)} that it asks for{whose}."
    )


def _took(delivery: Delivery, noun: str) -> str:
    if delivery.p50_us is None:
        return f"None of its {noun} arrived."
    jitter = f"; jitter {micros(delivery.jitter_us)}" if delivery.jitter_us is not None else ""
    return (
        f"Half of its {noun} took at most {micros(delivery.p50_us)}, 95 % at most {micros(delivery.p95_us)}, "
        f"the slowest {micros(delivery.max_us)}; the best path alone takes {micros(delivery.base_us)}{jitter}."
    )


def _late(flow: FlowExplanation, noun: str) -> list[str]:
    by_cause = {share.cause: share for share in flow.shares}
    named = [by_cause[cause] for cause in flow.named[:MAX_NAMED]]
    if not named:
        return ["Nothing made more than single ones late."]
    delivery = flow.delivery
    fate = "late or lost" if delivery is not None and delivery.lost else "late"
    sentences = [
        f"What made {noun} {fate}{' most' if len(flow.named) > 1 else ''}: {_sentence(named[0], noun)}"
    ]
    sentences += [f"Further: {_sentence(share, noun)}" for share in named[1:]]
    cause = named[0].cause
    remedy = CLAUSES[cause][1] if cause in CLAUSES else CAUSES[cause].remedy
    return [*sentences, f"To try: {remedy}."] if remedy else sentences


def _sentence(share: Share, noun: str) -> str:
    where = f" ({', '.join(share.where[:3])})" if share.where else ""
    clause = CLAUSES[share.cause][0] if share.cause in CLAUSES else CAUSES[share.cause].clause
    return f"{clause}{where}, {percent(share.time, 2)} of the {noun}."
