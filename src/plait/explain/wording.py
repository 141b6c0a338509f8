"""The sentences of an explanation: goodput and capacity, what each path carried, the causes, and what to do next."""

from __future__ import annotations

import math

from plait.analysis.wording import number_word, percent, rate, seconds
from plait.explain.cause import Cause
from plait.explain.causes import CAUSES, HARMLESS, next_step
from plait.explain.model import FlowExplanation, PathAccount, Share
from plait.explain.reasons import LATE_TEXTS, REASON_TEXTS

MAX_NAMED = 3
MAX_PATHS = 6
_NO_PLACES = ("window", "handshake")
"""Places of lost time that are neither a link nor a path nor a host: the congestion window, and the start."""
MAX_PLACES = 3
LEAST_SHARE = 0.03
"""A smaller share of the time is not worth a sentence."""
LEAST_BPS = 100
"""Below this, a path carried no data: the kernel counts a byte for the SYN of each subflow."""
WITH_COPIES = 1.01
"""From this ratio of the sum over its paths to the goodput of a flow on, the copies deserve a word."""
NEAR_CAPACITY = 0.9
"""A flow that reached this share of its capacity is limited by its links alone if no cause is named."""


def paragraph(flow: FlowExplanation) -> tuple[str, ...]:
    """Return the sentences about a flow that is explained by its time."""
    return (_total(flow), *paths(flow), *causes(flow))


def _total(flow: FlowExplanation) -> str:
    if flow.goodput_bps is None:
        return f"The goodput of {flow.flow} was not measured."
    if flow.capacity_bps is None:
        return (
            f"{flow.flow} reached {rate(flow.goodput_bps)}; its capacity is unknown, as a path has no rate."
        )
    attainable = flow.attainable_bps or flow.capacity_bps
    share = percent(flow.goodput_bps / attainable, 3)
    capacity = f"{capacity_noun(flow)} ({rate(attainable)})"
    return f"{flow.flow} reached {rate(flow.goodput_bps)}, {share} of {capacity}."


def capacity_noun(flow: FlowExplanation) -> str:
    """Return "the capacity of its path", or "the combined capacity of its two paths", which may share links."""
    count = sum(not path.backup for path in flow.paths) or len(flow.paths)
    if flow.shares_links:
        return f"what its {number_word(count)} paths, which share links, carry at once"
    return (
        "the capacity of its path"
        if count == 1
        else f"the combined capacity of its {number_word(count)} paths"
    )


def paths(flow: FlowExplanation) -> list[str]:
    """Return a sentence about what each path carried; none for a single path."""
    if len(flow.paths) < 2:
        return []
    clauses = [_path(path) for path in flow.paths[:MAX_PATHS]]
    rest = len(flow.paths) - MAX_PATHS
    further = f"; and {rest} further paths" if rest > 0 else ""
    carried = sum(path.goodput_bps or 0.0 for path in flow.paths)
    is_page = (
        flow.delivery is not None and flow.delivery.load_us is not None
    )  # its goodput is of one connection
    has_copies = not is_page and carried > WITH_COPIES * (flow.goodput_bps or carried)
    copies = "; this counts copies of what another path carried as well" if has_copies else ""
    return [f"{'; '.join(clauses)}{further}{copies}."]


def _path(account: PathAccount) -> str:
    name = f"{account.path} (a backup)" if account.backup else account.path
    if account.goodput_bps is None:
        return f"what {name} carried was not measured"
    if not account.subflows or account.goodput_bps < LEAST_BPS:
        return f"{name} carried nothing"
    carried = rate(account.goodput_bps)
    if account.capacity_bps is None:
        return f"{name} carried {carried}"
    capacity = rate(account.capacity_bps)
    number, _, unit = carried.partition(" ")
    return f"{name} carried {number if capacity.endswith(f' {unit}') else carried} of {capacity}"


def causes(flow: FlowExplanation) -> list[str]:
    """Return the named causes, the most costly first, and what to do about the first one."""
    by_cause = {share.cause: share for share in flow.shares}
    named = [by_cause[cause] for cause in flow.named[:MAX_NAMED]]
    if not named:
        return [_no_cause(flow), *refutation(flow)]
    sharing = [share for share in named if _is_beyond(flow, share)]  # the last one, if there is one
    within = [share for share in named if share not in sharing]
    among = "Within what its paths carry at once, the" if within and sharing else "The"
    mostly = "mostly " if len(flow.named) - len(sharing) > 1 else ""
    begin = [f"{among} flow was limited {mostly}by", *["It was also limited by"] * (len(within) - 1)]
    sentences = [f"{words} {_cause_text(share)}" for words, share in zip(begin, within, strict=False)]
    words = "Beyond that, it" if within else "The flow"
    sentences += [f"{words} was limited by {_sharing_text(share)}" for share in sharing]
    remedy = next_step(named[0].cause, flow.transport, named[0].reason)
    if remedy:
        sentences.append(f"Next step: {remedy}.")
    return [*sentences, *refutation(flow)]


def refutation(flow: FlowExplanation) -> list[str]:
    """Return a sentence about the causes that a test refuted."""
    if not flow.refuted:
        return []
    them = "it" if len(flow.refuted) == 1 else "them"
    return [f"Refuted: {', '.join(flow.refuted)}; the flow was no faster without {them}."]


def _no_cause(flow: FlowExplanation) -> str:
    """Return that no cause is large enough to be named, and the largest one if it is no trifle."""
    if flow.goodput_bps is not None and flow.goodput_bps >= NEAR_CAPACITY * (flow.attainable_bps or math.inf):
        return "The links are the bottleneck."
    shares = [
        share for share in flow.shares if share.cause not in HARMLESS and share.cause not in flow.refuted
    ]
    longest = max(shares, key=lambda share: share.time, default=None)
    if longest is None or longest.time < LEAST_SHARE:
        return "No cause is large enough to be named."
    if longest.cause == Cause.SENDER_IDLE:
        return "The flow sent what its application offered."
    largest = max(shares, key=lambda share: (not _is_beyond(flow, share), share.cost_bps or 0, share.time))
    remedy = next_step(largest.cause, flow.transport, largest.reason)
    step = f" If it matters: {remedy}." if remedy else ""
    took = f"{largest.cause} ({percent(largest.time, 2)} of the time)"
    clause = CAUSES[largest.cause].clause
    return f"No cause is large enough to be named; the largest is {took}: {clause}.{step}"


def _cause_text(share: Share) -> str:
    """Return one cause with its clause, its time, its cost and its places."""
    clause = CAUSES[share.cause].clause
    if share.cause == Cause.SUBFLOW_NEVER and share.reason is not None:
        clause = (
            f"the subflow on {share.where[0]} was never established, because {REASON_TEXTS[share.reason]}"
        )
    if share.cause == Cause.SUBFLOW_LATE and share.reason is not None:
        clause = f"the subflow on {share.where[0]} was established late, because {LATE_TEXTS[share.reason]}"
    if share.cause == Cause.BUCKET_EMPTY and share.since_us is not None:
        clause = f"{clause}, first at {seconds(share.since_us / 1e6)}"
    cost = f" and cost {rate(share.cost_bps)}" if share.cost_bps else ""
    places = "" if CAUSES[share.cause].names_place else places_text(share)
    return f"{share.cause}: {clause}. It took {percent(share.time, 2)} of the time{cost}{places}."


def _is_beyond(flow: FlowExplanation, share: Share) -> bool:
    """Return whether the cost of a cause is no part of what the paths carry at once, so that it may be the greatest."""
    return share.cause == Cause.SHARED_BOTTLENECK and flow.shares_links


def _sharing_text(share: Share) -> str:
    more = f"ith links of their own, its paths would carry up to {rate(share.cost_bps)} more"
    time = f"It took {percent(share.time, 2)} of the time{places_text(share)}; w" if share.time else "W"
    return f"{share.cause}: {CAUSES[share.cause].clause}. {time}{more}."


def places_text(share: Share) -> str:
    """Return " (on a->b, b->c and 2 more)"; empty for a cause without a place in the network."""
    places = [place for place in share.where if place not in _NO_PLACES]
    if not places:
        return ""
    rest = len(places) - MAX_PLACES
    return f" (on {', '.join(places[:MAX_PLACES])}{f' and {rest} more' if rest > 0 else ''})"
