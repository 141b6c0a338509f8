"""Packets are lost, at random or because a queue is full, or overtake others, so that TCP takes them for lost."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import size
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect, link_change
from plait.explain.facts import FlowFacts, PathFacts
from plait.explain.link_evidence import MAX_PLACES, drop_sentences
from plait.explain.time.path_time import PathTime


def _drops(facts: FlowFacts, places: Places) -> list[str]:
    return [*drop_sentences(facts.network, places), *_retransmitted(facts)]


def _retransmitted(facts: FlowFacts) -> list[str]:
    """Return how much TCP retransmitted in the whole flow; nothing if a subflow did not count it."""
    total = facts.total("retransmitted_bytes")
    return [] if np.isnan(total) else [f"TCP retransmitted {size(total)}."]


def _overtaken(facts: FlowFacts, path: PathFacts, path_time: PathTime) -> None:
    """Attribute retransmissions without a drop to links of the path on which packets may overtake others."""
    names = path.planned.forward if path.planned is not None else ()
    links = tuple(name for name in names if facts.network.reorders(name))
    if links and (Cause.LOSS_RECOVERY, ()) in path_time.time:
        path_time.move((Cause.LOSS_RECOVERY, ()), np.ones(facts.slices), "reordering", links)


def _overtaking(facts: FlowFacts, places: Places) -> list[str]:
    links = [name for name in places[:MAX_PLACES] if facts.network.reorders(name)]
    dropped = sum(float(facts.network.dropped(name).sum()) for name in links)
    drops = f"dropped {dropped:.0f} packets" if dropped else "dropped none"
    return [f"Packets may overtake others on {', '.join(links)}, which {drops}.", *_retransmitted(facts)]


def _in_order(suspect: Suspect) -> Remedy | None:
    """Return links without anything that lets packets overtake others, in both directions."""
    calm, straight = (
        link_change(field, value, "packets in order on {links}")(suspect)
        for field, value in (("jitter", "0ms"), ("reorder", None))
    )
    if calm is None or straight is None:
        return None
    return Remedy(calm.description, (*calm.fields, *straight.fields))


KINDS = (
    Kind(
        Cause.LOSS_RECOVERY,
        title="loss",
        clause="packet loss kept the congestion window small",
        next_step="repair the lossy link, or choose a congestion control that distinguishes loss from congestion (bbr)",
        prototype_step="repair the lossy link, or use a scheduler that sends parities (parity)",
        message_words=("packets were lost on the way", "repair the lossy link, or send over another path"),
        evidence=_drops,
        change=link_change("loss", "0%", "no random loss on {links}"),
        is_marked=True,
        keeps_messages="whole segments",
    ),
    Kind(
        Cause.QUEUE_FULL,
        title="queue too short",
        clause="a queue overflowed while its link was not full",
        next_step="give that link a longer queue (one bandwidth-delay product)",
        message_words=("a queue was full", "send smaller bursts, or change the queue of that link"),
        evidence=_drops,
        change=link_change("queue", "2bdp", "a queue of two bandwidth-delay products on {links}"),
        is_marked=True,
        keeps_messages="whole segments",
    ),
    Kind(
        "reordering",
        title="reordering",
        clause="packets overtook others on a link, and TCP took the late ones for lost",
        next_step="keep the packets of a flow in order on that link",
        evidence=_overtaking,
        change=_in_order,
        rule=_overtaken,
        precedence=5,
        is_marked=True,
    ),
)
