"""An explanation in plain words: what each path gave, what held the flow back, and what would be worth trying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import number_word, percent, rate, seconds
from plait.explain.causes import CAUSES, Cause
from plait.explain.missing import REASON_TEXTS

if TYPE_CHECKING:
    from plait.explain.model import FlowExplanation, PathAccount, Share

MAX_NAMED = 3
MAX_PATHS = 6
NEAR_CAPACITY = 0.9
"""A flow that reached so much of what its paths could give is not held back by anything worth a name."""


def paragraph(flow: FlowExplanation, *, greedy: bool) -> tuple[str, ...]:
    """Returns the paragraph of a flow, sentence by sentence."""
    return tuple(
        sentence for sentence in (_total(flow), *paths(flow), *causes(flow, greedy=greedy)) if sentence
    )


def _total(flow: FlowExplanation) -> str:
    goodput = rate(flow.goodput_bps)
    if flow.capacity_bps is None or flow.goodput_bps is None:
        return (
            f"{flow.flow} got {goodput}; not every path has a rate, so what it could have got is not known."
        )
    share = percent(flow.goodput_bps / flow.capacity_bps, 3)
    return f"{flow.flow} got {goodput}, {share} of the {rate(flow.capacity_bps)} that {together(flow)} could give."


def together(flow: FlowExplanation) -> str:
    """Returns "its path", "its two paths together"."""
    count = len(flow.paths)
    return "its path" if count == 1 else f"its {number_word(count)} paths together"


def paths(flow: FlowExplanation) -> list[str]:
    """Returns what each of several paths gave."""
    if len(flow.paths) < 2:
        return []
    clauses = [_path(path) for path in flow.paths[:MAX_PATHS]]
    more = len(flow.paths) - MAX_PATHS
    return [f"{'; '.join(clauses)}{f'; and {more} further paths' if more > 0 else ''}."]


def _path(account: PathAccount) -> str:
    if not account.subflows:
        return f"{account.path} gave nothing"
    if account.capacity_bps is None:
        return f"{account.path} gave {rate(account.goodput_bps)}"
    return f"{account.path} gave {rate(account.goodput_bps)} of {rate(account.capacity_bps)}"


def causes(flow: FlowExplanation, *, greedy: bool) -> list[str]:
    """Returns what held a flow back, the dearest first, and what to try."""
    by_cause = {share.cause: share for share in flow.shares}
    named = [by_cause[cause] for cause in flow.named[:MAX_NAMED]]
    if not named:
        return [_nothing(flow, greedy=greedy)]
    sentences = [
        f"What held it back {'most' if len(flow.named) > 1 else 'was this'}: {cause_sentence(named[0])}"
    ]
    sentences += [f"Further: {cause_sentence(share)}" for share in named[1:]]
    remedy = CAUSES[named[0].cause].remedy
    if remedy:
        sentences.append(f"To try: {remedy}.")
    return sentences


def _nothing(flow: FlowExplanation, *, greedy: bool) -> str:
    if flow.capacity_bps is None or flow.goodput_bps is None:
        return "No cause took enough of its time to be named."
    if flow.goodput_bps >= NEAR_CAPACITY * flow.capacity_bps:
        return "Nothing held it back: its links are what limits it."
    if not greedy:
        return "It sent what it had to send."
    return "No single cause cost enough to be named; see the shares."


def cause_sentence(share: Share) -> str:
    """Returns one cause with its place, its time and its cost."""
    clause = CAUSES[share.cause].clause
    if share.cause is Cause.SUBFLOW_NEVER and share.reason is not None:
        clause = f"the subflow on {share.where[0]} never came, because {REASON_TEXTS[share.reason]}"
    elif share.where and share.cause is not Cause.TOO_SHORT:
        clause = f"{clause} ({', '.join(share.where[:3])})"
    since = ""
    if share.cause is Cause.BUCKET_EMPTY and share.since_us is not None:
        since = f" since {seconds(share.since_us / 1e6)}"
    cost = f", which cost {rate(share.cost_bps)}" if share.cost_bps else ""
    return f"{clause}{since}, {percent(share.time, 2)} of the time{cost}."
