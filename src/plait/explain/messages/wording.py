"""The sentences of an explanation by messages: whether a source kept its pace, the delays, and what caused them."""

from __future__ import annotations

from plait.analysis.wording import micros, percent, plain, rate, seconds
from plait.explain.cause import Cause
from plait.explain.causes import CAUSES, next_step
from plait.explain.model import Delivery, FlowExplanation, Share
from plait.explain.wording import MAX_NAMED, capacity_noun, causes, paths, places_text, refutation
from plait.traffic.kinds import JOBS

LEAST_UNKNOWN = 0.1
"""Messages without a known cause have a sentence from this ratio to those of the main cause on."""


def paragraph(flow: FlowExplanation) -> tuple[str, ...]:
    """Return the sentences about a flow that has messages."""
    delivery = flow.delivery
    assert delivery is not None
    kind = delivery.kind
    noun, delay_noun = JOBS[kind].NOUNS
    sentences = [_total(flow, delivery, noun, kind), *paths(flow), _delays(delivery, noun, delay_noun)]
    if delivery.kept_pace:
        return (*sentences, *_causes(flow, delivery, noun, kind))
    return (*sentences, *causes(flow))


def _total(flow: FlowExplanation, delivery: Delivery, noun: str, kind: str) -> str:
    if kind == "udp":
        lost = plain(percent(delivery.lost / delivery.messages)) if delivery.lost else "none"
        sent = f" ({plain(rate(delivery.asked_bps))} of payload)" if delivery.asked_bps is not None else ""
        return f"{flow.flow} lost {lost} of its {delivery.messages} packets{sent}."
    if delivery.asked_bps is None:
        within = f" in {seconds(delivery.load_us / 1e6)}" if delivery.load_us is not None else ""
        missing = f"; {delivery.lost} never arrived" if delivery.lost else ""
        return f"{flow.flow} received {delivery.messages - delivery.lost} {noun}{within}{missing}."
    capacity = f"; {capacity_noun(flow)} is {rate(flow.attainable_bps)}" if flow.attainable_bps else ""
    if delivery.kept_pace:
        return f"{flow.flow} kept its pace of {plain(rate(delivery.asked_bps))}{capacity}."
    offered = plain(rate(delivery.asked_bps))
    return f"{flow.flow} reached {rate(flow.goodput_bps)} of the {offered} that it offers{capacity}."


def _delays(delivery: Delivery, noun: str, delay_noun: str) -> str:
    if delivery.p50_us is None:
        return f"None of its {noun} arrived."
    jitter = f", jitter {micros(delivery.jitter_us)}" if delivery.jitter_us is not None else ""
    median, longest = micros(delivery.base_us), micros(delivery.base_max_us or delivery.base_us)
    base = median if median == longest else f"{median} (median) to {longest}"
    return (
        f"{delay_noun}: median {micros(delivery.p50_us)}, 95th percentile {micros(delivery.p95_us)}, "
        f"maximum {micros(delivery.max_us)}{jitter}; an idle network takes at most {base}."
    )


def _causes(flow: FlowExplanation, delivery: Delivery, noun: str, kind: str) -> list[str]:
    by_cause = {share.cause: share for share in flow.shares}
    named = [by_cause[cause] for cause in flow.named[:MAX_NAMED]]
    if not named:
        on_time = not delivery.late and not delivery.lost
        no_cause = f"All {noun} were on time." if on_time else f"No cause affected enough {noun} to be named."
        if on_time and kind == "request":
            no_cause = f"All {noun} were on time: a shorter RTT is all that makes them faster."
        return [no_cause, *refutation(flow)]
    fate = "late or lost" if delivery.lost else "late"
    sentences = [
        f"The {'main ' if len(flow.named) > 1 else ''}cause of {fate} {noun} is {_cause_text(named[0], noun)}"
    ]
    sentences += [f"A further cause is {_cause_text(share, noun)}" for share in named[1:]]
    unknown = by_cause.get(Cause.NOT_KNOWN)
    if unknown is not None and unknown not in named and unknown.time >= LEAST_UNKNOWN * named[0].time:
        sentences.append(f"For {percent(unknown.time, 2)} of the {noun}, no cause is known.")
    cause = named[0].cause
    words = CAUSES[cause].message_words
    remedy = words[1] if words else next_step(cause, flow.transport, named[0].reason)
    return [*sentences, *([f"Next step: {remedy}."] if remedy else []), *refutation(flow)]


def _cause_text(share: Share, noun: str) -> str:
    affected = f"It affected {percent(share.time, 2)} of the {noun}{places_text(share)}"
    return f"{share.cause}: {clause_of(share.cause)}. {affected}."


def clause_of(cause: str) -> str:
    """Return the clause of a cause that delays or loses messages."""
    kind = CAUSES[cause]
    return kind.message_words[0] if kind.message_words else kind.clause
