"""Why a case was not faster, beside its figures over time: a paragraph and where the time of each flow went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plait.analysis.wording import percent, rate
from plait.explain.causes import CAUSES, HARMLESS
from plait.report.page.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from plait.explain.model import FlowExplanation, Share

MOST_FLOWS = 4
"""Of more flows, those that lost most are shown; `plait explain --flow` explains any."""
LEAST_SHARE = 0.01
MOST_SHARES = 6


@dataclass(frozen=True)
class ShareView:
    """A part of a flow's time, as a piece of a bar and a line below it."""

    cause: str
    weight: Literal["good", "named", "small"]
    part: str
    amount: str
    title: str


@dataclass(frozen=True)
class FlowView:
    """One flow: sentences, where its time went, and the evidence."""

    text: str
    shares: tuple[ShareView, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The flows that are explained, and how many are not."""

    flows: tuple[FlowView, ...]
    left_out: int


def why(explained: Sequence[FlowExplanation]) -> Markup | str:
    """Return the paragraphs of a case's flows; empty when none could be explained."""
    explained = [flow for flow in explained if not flow.background] or explained
    if not explained:
        return ""
    dear = sorted(explained, key=lambda flow: -(flow.capacity_bps or 0) + (flow.goodput_bps or 0))
    shown = [flow for flow in explained if flow in dear[:MOST_FLOWS]]
    return fill("explanation", Explanation(tuple(map(_flow, shown)), len(explained) - len(shown)))


def _flow(flow: FlowExplanation) -> FlowView:
    shares = [share for share in flow.shares if share.time >= LEAST_SHARE][:MOST_SHARES]
    evidence = [line for share in flow.shares if share.cause in flow.named for line in share.evidence]
    return FlowView(
        " ".join(flow.sentences),
        tuple(_share(share, flow) for share in shares),
        tuple(dict.fromkeys(evidence)),
    )


def _share(share: Share, flow: FlowExplanation) -> ShareView:
    harmless = share.cause in HARMLESS
    part = percent(share.time, 2)
    of_time = " of the time" if flow.basis == "time" else ""
    return ShareView(
        share.cause,
        "good" if harmless else "named" if share.cause in flow.named else "small",
        f"{share.time:.4f}",
        f"{part}, {rate(share.cost_bps)}" if share.cost_bps and not harmless else part,
        f"{CAUSES[share.cause].title}: {part}{of_time}",
    )
