"""Links drop packets, at random or because a queue is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import size
from plait.explain.cause import Cause
from plait.explain.causes.kind import Kind
from plait.explain.changes import link_change
from plait.explain.link_evidence import drop_sentences

if TYPE_CHECKING:
    from plait.explain.facts import FlowFacts

Places = tuple[str, ...]


def drops(facts: FlowFacts, places: Places) -> list[str]:
    """Return what links dropped, and what TCP retransmitted."""
    return [*drop_sentences(facts.network, places), retransmitted(facts)]


def retransmitted(facts: FlowFacts) -> str:
    """Return how much TCP retransmitted in the whole flow."""
    resent = sum(subflow.totals["retransmitted_bytes"] for path in facts.paths for subflow in path.subflows)
    return f"TCP retransmitted {size(resent)}."


KINDS = (
    Kind(
        Cause.LOSS_RECOVERY,
        title="loss",
        clause="packet loss kept the congestion window small",
        next_step="repair the lossy link, or choose a congestion control that distinguishes loss from congestion (bbr)",
        prototype_step="repair the lossy link, or use a scheduler that sends parities (parity)",
        message_words=("packets were lost on the way", "repair the lossy link, or send over another path"),
        evidence=drops,
        change=link_change("loss", "0%", "no random loss on {links}"),
        is_marked=True,
    ),
    Kind(
        Cause.QUEUE_FULL,
        title="queue too short",
        clause="a queue overflowed while its link was not full",
        next_step="give that link a longer queue (one bandwidth-delay product)",
        message_words=("a queue was full", "send smaller bursts, or change the queue of that link"),
        evidence=drops,
        change=link_change("queue", "2bdp", "a queue of two bandwidth-delay products on {links}"),
        is_marked=True,
    ),
)
