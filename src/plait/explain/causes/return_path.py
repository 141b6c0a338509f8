"""ACKs wait, or are dropped, at a full link of the return path."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import micros, percent, plain, rate
from plait.explain.cause import SLOWED, WINDOWS, Array, Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect
from plait.explain.facts import FlowFacts, PathFacts
from plait.explain.link_evidence import MAX_PLACES, drop_sentences
from plait.explain.time.history import LOOK_BACK
from plait.explain.time.path_time import PathTime

LONG_WAIT = 0.5
"""ACKs that wait for this share of the base RTT at a link slow the path down."""


def _waits_for_acks(facts: FlowFacts, path: PathFacts, path_time: PathTime) -> None:
    """Attribute what a path lacks to its return path, or to that of a path for whose data it waits."""
    for awaited in facts.paths:
        if awaited.planned is None or not awaited.subflows:
            continue
        causes = SLOWED if awaited is path else WINDOWS - {Cause.NOT_KNOWN}
        for name in awaited.planned.backward:
            slowed = _slowed_acks(facts, awaited, name)
            if not np.any(slowed):
                continue
            for cause, places in [key for key in path_time.time if key[0] in causes]:
                if not (cause == Cause.LOSS_RECOVERY and places) and places != ("handshake",):
                    path_time.move((cause, places), slowed, "ack-path", (name,))


def _slowed_acks(facts: FlowFacts, path: PathFacts, name: str) -> Array:
    """Return the slices in which a link of the return path was busy, and made ACKs wait long or dropped packets."""
    network = facts.network
    busy = network.full(name) | network.queued(name)
    queue, rate = network.counter(name, "queue_bytes"), network.rate(name)
    if path.planned is None or queue is None or not np.any(busy):
        return np.zeros(facts.slices, dtype=bool)
    waits_us = np.minimum(queue[:-1], queue[1:]) * 8e6 / rate
    dropped = np.convolve(network.dropped(name), np.ones(LOOK_BACK))[: facts.slices] > 0
    return np.asarray(busy & ((waits_us >= LONG_WAIT * path.planned.base_rtt_us) | dropped))


def _return_path(facts: FlowFacts, places: Places) -> list[str]:
    """Return how full the return path was, and what its queue did to ACKs."""
    sentences = []
    for name in places[:MAX_PLACES]:
        direction, queue = facts.network.directions[name], facts.network.counter(name, "queue_bytes")
        if not direction.rate_bps or queue is None:
            continue
        waits = plain(micros(float(np.max(queue)) * 8e6 / direction.rate_bps))
        full = percent(float(np.mean(facts.network.full(name))), 2)
        sentences.append(
            f"{name} ({plain(rate(direction.rate_bps))}) was full in {full} of the time; packets waited there for up "
            f"to {waits}."
        )
    return [*sentences, *drop_sentences(facts.network, places)]


def _unlimited_return_path(suspect: Suspect) -> Remedy | None:
    """Return the links without a rate limit in the direction of the ACKs."""
    fields = []
    for name in suspect.links():
        link = next(link for link in suspect.plan.links if link.name == name)
        side = ("forward", "backward")[link.directions[1].name in suspect.share.where]
        fields.append((f"network.links.{name}.{side}.rate", None))
    links = ", ".join(suspect.links())
    return Remedy(f"no rate limit on the return path over {links}", tuple(fields)) if fields else None


KINDS = (
    Kind(
        "ack-path",
        title="slow return path",
        clause="ACKs waited or were dropped at a full link of the return path",
        next_step="raise the rate of the return path, or look at what else crosses it",
        evidence=_return_path,
        change=_unlimited_return_path,
        rule=_waits_for_acks,
        precedence=4,
    ),
)
