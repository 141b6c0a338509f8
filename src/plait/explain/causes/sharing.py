"""A full link carries other data as well: of the flow itself, or of others."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import percent, plain, rate
from plait.explain.cause import FILLED, Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect, link_change
from plait.explain.facts import FlowFacts, PathFacts
from plait.explain.link_evidence import MAX_PLACES, full_sentences
from plait.explain.time.history import sharers
from plait.explain.time.path_time import PathTime


def _filled_by_siblings(facts: FlowFacts, path: PathFacts, path_time: PathTime) -> None:
    """Attribute what a path lacks while a link is full to the flow's other paths, as far as they fill the link."""
    for name in path.planned.forward if path.planned is not None else ():
        full = facts.network.full(name)
        sibling_bytes, other_bytes = sharers(facts, path, name)
        if not np.any(full & (sibling_bytes > 0)):
            continue
        share = full * sibling_bytes / np.maximum(sibling_bytes + other_bytes, 1e-9)
        for key in [key for key in path_time.time if key[0] in FILLED]:
            path_time.move(key, share, Cause.SHARED_BOTTLENECK, (name,))


def _shared_link(facts: FlowFacts, places: Places) -> list[str]:
    sentences = []
    for name in places[:MAX_PLACES]:
        if name not in facts.network.directions:
            continue
        crossing = [path.name for path in facts.paths if path.planned and name in path.planned.forward]
        rate_bps = facts.network.directions[name].rate_bps
        capacity = f" ({plain(rate(rate_bps))})" if rate_bps else ""
        sentences.append(f"{name}{capacity} carries the paths {', '.join(crossing)}.")
    return [*sentences, *full_sentences(facts.network, places)]


def _competing(facts: FlowFacts, places: Places) -> list[str]:
    sentences = []
    for name in places[:MAX_PLACES]:
        crossing = facts.network.plan.crossing.get(name, set())
        siblings = [flow.name for flow in facts.others if flow.id in crossing]
        total = facts.network.sent(name)
        if total is None or total.sum() <= 0 or not siblings:
            continue
        own_bytes = [
            float(facts.own_bytes.get(path.name, path.growth("sent_bytes") / facts.payload_ratio).sum())
            for path in facts.paths
            if path.planned and name in path.planned.forward
        ]
        rest = f" and {len(siblings) - MAX_PLACES} more" if len(siblings) > MAX_PLACES else ""
        others = f"Other flows ({', '.join(siblings[:MAX_PLACES])}{rest})"
        share = percent(max(0.0, 1 - sum(own_bytes) / float(total.sum())), 2)
        # No table counts the frames of ACKs and requests apart.
        sentences.append(
            f"{others} took {share} of what {name} carried."
            if own_bytes
            else f"{others} used {name}, which also carried the requests and ACKs of this flow."
        )
    return [*sentences, *full_sentences(facts.network, places)]


def _without_other_traffic(suspect: Suspect) -> Remedy | None:
    if suspect.entry is None or len(suspect.scenario.traffic) < 2:
        return None
    number, _ = suspect.entry
    entry = suspect.scenario.traffic[number].model_dump(mode="json", by_alias=True, exclude_unset=True)
    return Remedy("no other traffic", (("traffic", [entry]),))


KINDS = (
    Kind(
        Cause.SHARED_BOTTLENECK,
        title="shared bottleneck",
        clause="the flow's own paths share a full link",
        next_step="give each path its own links; a further subflow over the same link gains nothing",
        evidence=_shared_link,
        change=link_change("rate", None, "no rate limit on {links}"),
        rule=_filled_by_siblings,
        precedence=3,
    ),
    Kind(
        Cause.COMPETING_TRAFFIC,
        title="competing traffic",
        clause="other flows used a part of a full link",
        next_step="look at what else crosses that link",
        message_words=(
            "other flows filled the queue of a link",
            "use a queue that isolates flows on that link (fq_codel), or a shorter queue",
        ),
        evidence=_competing,
        change=_without_other_traffic,
        is_marked=True,
    ),
)
