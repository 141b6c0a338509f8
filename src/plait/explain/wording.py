"""An explanation in plain words: what each path gave, what held the flow back, and what would be worth trying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import number_word, percent, rate, seconds
from plait.explain.causes import CAUSES, Cause
from plait.explain.missing import WORDS

if TYPE_CHECKING:
    from plait.explain.model import FlowExplanation, PathAccount, Share

MOST_NAMED = 3
MOST_PATHS = 6
CLOSE = 0.9
"""A flow that reached so much of what its paths could give is not held back by anything worth a name."""


def paragraph(found: FlowExplanation, *, greedy: bool) -> tuple[str, ...]:
    """Returns the paragraph of a flow, sentence by sentence."""
    return tuple(one for one in (_total(found), *paths(found), *causes(found, greedy=greedy)) if one)


def _total(found: FlowExplanation) -> str:
    got = rate(found.goodput_bps)
    if found.could_bps is None or found.goodput_bps is None:
        return f"{found.flow} got {got}; not every path has a rate, so what it could have got is not known."
    share = percent(found.goodput_bps / found.could_bps, 3)
    return (
        f"{found.flow} got {got}, {share} of the {rate(found.could_bps)} that {together(found)} could give."
    )


def together(found: FlowExplanation) -> str:
    """Returns "its path", "its two paths together"."""
    many = len(found.paths)
    return "its path" if many == 1 else f"its {number_word(many)} paths together"


def paths(found: FlowExplanation) -> list[str]:
    """Returns what each of several paths gave."""
    if len(found.paths) < 2:
        return []
    told = [_path(one) for one in found.paths[:MOST_PATHS]]
    more = len(found.paths) - MOST_PATHS
    return [f"{'; '.join(told)}{f'; and {more} further paths' if more > 0 else ''}."]


def _path(one: PathAccount) -> str:
    if not one.subflows:
        return f"{one.path} gave nothing"
    if one.could_bps is None:
        return f"{one.path} gave {rate(one.gave_bps)}"
    return f"{one.path} gave {rate(one.gave_bps)} of {rate(one.could_bps)}"


def causes(found: FlowExplanation, *, greedy: bool) -> list[str]:
    """Returns what held a flow back, the dearest first, and what to try."""
    by_cause = {share.cause: share for share in found.shares}
    named = [by_cause[cause] for cause in found.named[:MOST_NAMED]]
    if not named:
        return [_nothing(found, greedy=greedy)]
    said = [f"What held it back {'most' if len(found.named) > 1 else 'was this'}: {cause_sentence(named[0])}"]
    said += [f"Further: {cause_sentence(share)}" for share in named[1:]]
    remedy = CAUSES[named[0].cause].remedy
    if remedy:
        said.append(f"To try: {remedy}.")
    return said


def _nothing(found: FlowExplanation, *, greedy: bool) -> str:
    if found.could_bps is None or found.goodput_bps is None:
        return "No cause took enough of its time to be named."
    if found.goodput_bps >= CLOSE * found.could_bps:
        return "Nothing held it back: its links are what limits it."
    if not greedy:
        return "It sent what it had to send."
    return "No single cause cost enough to be named; see the shares."


def cause_sentence(share: Share) -> str:
    """Returns one cause with its place, its time and its cost."""
    clause = CAUSES[share.cause].clause
    if share.cause is Cause.SUBFLOW_NEVER and share.reason is not None:
        clause = f"the subflow on {share.where[0]} never came, because {WORDS[share.reason]}"
    elif share.where and share.cause is not Cause.TOO_SHORT:
        clause = f"{clause} ({', '.join(share.where[:3])})"
    since = ""
    if share.cause is Cause.BUCKET_EMPTY and share.since_us is not None:
        since = f" since {seconds(share.since_us / 1e6)}"
    cost = f", which cost {rate(share.cost_bps)}" if share.cost_bps else ""
    return f"{clause}{since}, {percent(share.time, 2)} of the time{cost}."
