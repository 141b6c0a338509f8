"""Why a case was not faster, beside its figures over time: a paragraph and where the time of each flow went."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plait.analysis.wording import percent, rate
from plait.explain.causes import CAUSES, HARMLESS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.explain.model import FlowExplanation, Share

MOST_FLOWS = 4
"""Of more flows those are told that lost most; `plait explain --flow` tells of any."""
LEAST_SHARE = 0.01
MOST_SHARES = 6


def why(explained: Sequence[FlowExplanation]) -> str:
    """Returns the paragraphs of a case's flows; empty when none could be explained."""
    explained = [flow for flow in explained if not flow.background] or explained
    if not explained:
        return ""
    dear = sorted(explained, key=lambda flow: -(flow.capacity_bps or 0) + (flow.goodput_bps or 0))
    shown = [flow for flow in explained if flow in dear[:MOST_FLOWS]]
    left = len(explained) - len(shown)
    more = (
        f'<p class="note">{left} further flows: <code>plait explain --flow NAME</code>.</p>' if left else ""
    )
    return f'<div class="why"><h4>Why it is not faster</h4>{"".join(map(_flow, shown))}{more}</div>'


def _flow(flow: FlowExplanation) -> str:
    shares = [share for share in flow.shares if share.time >= LEAST_SHARE][:MOST_SHARES]
    of = " of the time" if flow.basis == "time" else ""
    bar = "".join(
        f'<i class="{_class(share, flow)}" style="flex-grow:{share.time:.4f}" title="{escape(_title(share, of))}"></i>'
        for share in shares
    )
    rows = "".join(_row(share, flow) for share in shares)
    evidence = [line for share in flow.shares if share.cause in flow.named for line in share.evidence]
    said = "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(evidence))
    more = f"<details><summary>Evidence</summary><ul>{said}</ul></details>" if said else ""
    return (
        f'<p>{escape(" ".join(flow.sentences))}</p><div class="shares" aria-hidden="true">{bar}</div>'
        f'<ul class="causes">{rows}</ul>{more}'
    )


def _class(share: Share, flow: FlowExplanation) -> str:
    return "good" if share.cause in HARMLESS else "named" if share.cause in flow.named else "small"


def _title(share: Share, of: str) -> str:
    return f"{CAUSES[share.cause].title}: {percent(share.time, 2)}{of}"


def _row(share: Share, flow: FlowExplanation) -> str:
    cost = f", {rate(share.cost_bps)}" if share.cost_bps and share.cause not in HARMLESS else ""
    return (
        f'<li><i class="{_class(share, flow)}"></i><code>{escape(share.cause)}</code> '
        f"{percent(share.time, 2)}{cost}</li>"
    )
