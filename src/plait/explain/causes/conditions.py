"""The conditions of a link: its bucket, its changes, its delay, and a source that exceeds its rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.analysis.wording import plain, rate, seconds, size
from plait.explain.capacity import stretches
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect, link_change, without_events
from plait.explain.facts import FlowFacts
from plait.explain.link_evidence import MAX_PLACES, jitter_sentences


def _bucket(facts: FlowFacts, places: Places) -> list[str]:
    sentences = []
    for name in places[:MAX_PLACES]:
        bucket = facts.network.buckets[name]
        pairs = zip(bucket.bursts, bucket.rates, strict=True)
        conditions = [
            f"holds {plain(size(burst))} and refills at {plain(rate(fill))}" for burst, fill in pairs
        ]
        later = [
            f"from {seconds(t_us / 1e6)} it {text}"
            for t_us, text in zip(bucket.times[1:], conditions[1:], strict=True)
        ]
        sentences.append(f"The token bucket {name} {'; '.join([conditions[0], *later[:MAX_PLACES]])}.")
        empty = facts.network.empty_slices(name)
        spans = facts.edges[stretches(empty)].tolist() if empty is not None else []
        if spans:
            listed = [f"{seconds(begin / 1e6)} to {seconds(end / 1e6)}" for begin, end in spans[:MAX_PLACES]]
            further = len(spans) - MAX_PLACES
            rest = f", and {further} more time{'s' * (further > 1)}" if further > 0 else ""
            sentences.append(f"It was empty from {', '.join(listed)}{rest}.")
    return sentences


def _without_bucket(suspect: Suspect) -> Remedy | None:
    fields: list[tuple[str, Any]] = [(f"network.links.{name}.bucket", None) for name in suspect.links()]
    for kind in ("hosts", "routers"):
        for name, node in getattr(suspect.scenario.network, kind).items():
            if node.bucket is not None and any(place.split(" ")[0] == name for place in suspect.share.where):
                fields.append((f"network.{kind}.{name}.bucket", None))
    return Remedy("no token bucket", tuple(fields)) if fields else None


def _events(facts: FlowFacts, _: Places) -> list[str]:
    return [
        f"At {seconds(event.t_us / 1e6)}: {event.text}."
        for event in facts.network.plan.events
        if event.text and facts.start_us <= event.t_us <= facts.end_us
    ][:MAX_PLACES]


def _lower_rates(facts: FlowFacts, places: Places) -> list[str]:
    """Return the events, and for links that follow a trace, which has no words, their lowest rate."""
    if sentences := _events(facts, places):
        return sentences
    names = dict.fromkeys(
        name
        for path in facts.paths
        if path.name in places and path.planned is not None
        for name in path.planned.forward
    )
    for name in names:
        rates, first = facts.network.rate(name), facts.network.directions[name].rate_bps
        slowest = int(np.argmin(rates))
        if first and rates[slowest] < first:
            lowest = f"its rate was lowest at {seconds(float(facts.edges[slowest]) / 1e6)}"
            sentences.append(
                f"{name} began with {plain(rate(first))}; {lowest}: {rate(float(rates[slowest]))}."
            )
    return sentences[:MAX_PLACES]


def _jitter(facts: FlowFacts, places: Places) -> list[str]:
    return list(jitter_sentences(facts.network, places))


KINDS = (
    Kind(
        Cause.BUCKET_EMPTY,
        title="empty token bucket",
        clause="a token bucket was empty and passed only its baseline",
        next_step="wait until the bucket is full again, or raise its baseline",
        evidence=_bucket,
        change=_without_bucket,
        is_marked=True,
    ),
    Kind(
        Cause.PATH_DOWN,
        title="path down",
        clause="a link of the path was down, or the path had not yet recovered from it",
        next_step="compare with the scenario's `events`",
        evidence=_events,
        change=without_events,
        is_marked=True,
    ),
    Kind(
        Cause.RATE_CHANGED,
        title="slower link",
        clause="a full link had become slower than at the start",
        next_step="compare with the scenario's `events` and traces",
        evidence=_lower_rates,
        change=without_events,
        is_marked=True,
    ),
    Kind(
        Cause.RATE_TOO_HIGH,
        title="rate too high",
        clause="the source sends more than a link of its path carries",
        next_step="send less, or give that link a higher rate",
        change=link_change("rate", None, "no rate limit on {links}"),
    ),
    Kind(
        Cause.JITTER,
        title="jitter",
        clause="the delay of a link varies",
        next_step="reduce the jitter, or use a receiver that absorbs it (a jitter buffer)",
        evidence=_jitter,
        change=link_change("jitter", "0ms", "no jitter on {links}"),
    ),
)
