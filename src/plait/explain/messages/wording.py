"""An explanation of messages in words: whether a source got what it asked for, what they took, what delayed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import micros, percent, rate, seconds
from plait.explain.causes import CAUSES, Cause
from plait.explain.wording import MOST_NAMED, causes, paths, together

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


def paragraph(found: FlowExplanation, kind: str) -> tuple[str, ...]:
    """Returns the paragraph of a flow that is explained by its messages."""
    account = found.delivery
    assert account is not None
    noun = NOUNS.get(kind, "messages")
    said = [_total(found, account, noun, kind), *paths(found), _took(account, noun)]
    if account.kept_pace:
        return (*said, *_late(found, noun))
    return (*said, *causes(found, greedy=False))


def _total(found: FlowExplanation, account: Delivery, noun: str, kind: str) -> str:
    if kind == "udp":
        lost = percent(account.lost / account.messages) if account.lost else "none"
        sent = f" ({rate(account.asked_bps)} of payload)" if account.asked_bps is not None else ""
        return f"{found.flow} lost {lost} of its {account.messages} packets{sent}."
    if account.asked_bps is None:
        within = f" in {seconds(account.load_us / 1e6)}" if account.load_us is not None else ""
        missing = f"; {account.lost} never came" if account.lost else ""
        return f"{found.flow} got {account.messages - account.lost} {noun}{within}{missing}."
    if account.kept_pace:
        of = f", of the {rate(found.could_bps)} that {together(found)} could give" if found.could_bps else ""
        return f"{found.flow} got all that it asked for: {rate(account.asked_bps)}{of}."
    whose = f"; {together(found)} could give {rate(found.could_bps)}" if found.could_bps else ""
    return f"{found.flow} got {rate(found.goodput_bps)} of the {rate(account.asked_bps)} that it asks for{whose}."


def _took(account: Delivery, noun: str) -> str:
    if account.p50_us is None:
        return f"None of its {noun} arrived."
    jitter = f"; jitter {micros(account.jitter_us)}" if account.jitter_us is not None else ""
    return (
        f"Half of its {noun} took at most {micros(account.p50_us)}, 95 % at most {micros(account.p95_us)}, the slowest "
        f"{micros(account.max_us)}; the best path alone takes {micros(account.base_us)}{jitter}."
    )


def _late(found: FlowExplanation, noun: str) -> list[str]:
    by_cause = {share.cause: share for share in found.shares}
    named = [by_cause[cause] for cause in found.named[:MOST_NAMED]]
    if not named:
        return ["Nothing made more than single ones late."]
    account = found.delivery
    what = "late or lost" if account is not None and account.lost else "late"
    said = [f"What made {noun} {what}{' most' if len(found.named) > 1 else ''}: {_sentence(named[0], noun)}"]
    said += [f"Further: {_sentence(share, noun)}" for share in named[1:]]
    cause = named[0].cause
    remedy = CLAUSES[cause][1] if cause in CLAUSES else CAUSES[cause].remedy
    return [*said, f"To try: {remedy}."] if remedy else said


def _sentence(share: Share, noun: str) -> str:
    where = f" ({', '.join(share.where[:3])})" if share.where else ""
    clause = CLAUSES[share.cause][0] if share.cause in CLAUSES else CAUSES[share.cause].clause
    return f"{clause}{where}, {percent(share.time, 2)} of the {noun}."
