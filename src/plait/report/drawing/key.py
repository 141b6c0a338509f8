"""What stands below the drawing of a network: links by their numbers, and what nodes do to packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import plain, rate, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.labels.study_labels import StudyLabels
    from plait.plan.model.plan import Plan

MOST_NOTES = 12


def link_key(links: Sequence[tuple[int, str, str]]) -> list[str]:
    """Return the rows of links that have a number in the drawing: number, name, and conditions in words."""
    return [f"{number}  {name}: {label}" for number, name, label in links]


def node_notes(plan: Plan, called: StudyLabels) -> list[str]:
    """Return what nodes do to packets: address translation, and token buckets that several links share.

    `called` says what people call nodes.
    """
    outside = {
        (nat.netns, port): next(
            (d.target for link in plan.links for d in link.directions if (d.source, d.interface) == (nat.netns, port)),
            port,
        )
        for nat in plan.network.nats
        for port in nat.outside
    }  # fmt: skip
    notes = [
        f"{called.node(router)}: NAT towards {called.node(towards)}"
        for (router, _), towards in outside.items()
    ]
    for bucket in plan.buckets:
        limit = f"{plain(rate(bucket.peak_bps))} while its token bucket of {plain(size(bucket.burst_bytes))} lasts"
        node, _, rest = bucket.name.partition(" ")
        notes.append(f"{called.node(node)} {rest}: {limit}, then {plain(rate(bucket.baseline_bps))}")
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"{len(notes) - MOST_NOTES} more notes on NAT and token buckets are not drawn"]
    return notes
