"""UDP that a program measures by itself (`iperf3 -u`): the loss that it reports, and what dropped the packets.

Single packets cannot be followed. The kernel counts what the sockets of a host dropped, and links what they dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from plait.analysis.by_flow import increases
from plait.analysis.metrics.programs import is_control, udp_figures
from plait.analysis.wording import micros, percent, rate
from plait.dataset.model import Tables
from plait.explain.capacity import LinkSamples, NetworkTimeline
from plait.explain.cause import Cause
from plait.explain.link_evidence import drop_sentences
from plait.explain.messages.flows import WORTH_NAMING_MESSAGES
from plait.explain.messages.late import FULL
from plait.explain.messages.wording import clause_of
from plait.explain.model import FlowExplanation, Share
from plait.explain.wording import places_text
from plait.plan.model.plan import Plan

Figures = Mapping[str, float | None]


def explain_program_udp(plan: Plan, tables: Tables) -> Iterator[FlowExplanation]:
    """Yield for each program why its UDP packets were lost."""
    rows = tables["programs"].iter_rows(named=True) if "programs" in tables else ()
    spans = {row["program"]: (row["start_us"] or 0, row["end_us"] or plan.end_us) for row in rows}
    first = max((flow.id for flow in plan.flows), default=-1) + 1
    reports = udp_figures(tables)
    in_sockets = _of_sockets(tables, sum(_lost(figures) for _, figures in reports))
    for number, (name, figures) in enumerate(reports, start=first):
        span = spans.get(name, (0, plan.end_us))
        packets, lost = figures["iperf3_packets"] or 1, _lost(figures)
        losses = [in_sockets, _of_links(plan, tables, span, 1 - in_sockets.time)]
        losses = [share.model_copy(update={"time": share.time * lost / packets}) for share in losses]
        losses = sorted((share for share in losses if share.time > 0), key=lambda share: -share.time)
        named = tuple(share for share in losses if share.time >= WORTH_NAMING_MESSAGES)
        sent = figures.get("iperf3_udp_bps")
        yield FlowExplanation(
            flow=f"{name} (UDP)",
            flow_id=number,
            transport="udp",
            start_us=span[0],
            end_us=span[1],
            completed=True,
            goodput_bps=sent * (1 - lost / packets) if sent is not None else None,
            capacity_bps=None,
            first=named[0].cause if named else None,
            named=tuple(share.cause for share in named),
            basis="messages",
            shares=(*losses, Share(cause=Cause.ON_TIME, time=1 - lost / packets)),
            paths=(),
            kernel=None,
            sentences=(_total(name, figures), *map(_cause_sentence, named)),
        )


def _lost(figures: Figures) -> float:
    return figures.get("iperf3_lost_packets") or 0


def _of_sockets(tables: Tables, lost: float) -> Share:
    """Return the share of the lost packets that sockets dropped because their buffers were full.

    The kernel counts for each host. All programs share what it counted.
    """
    grown = increases(tables["counters"], "UdpRcvbufErrors")
    return Share(
        cause=Cause.SOCKET_BUFFER,
        time=min(1.0, sum(grown.values()) / lost) if lost else 0.0,
        evidence=tuple(
            f"{node} dropped {count} UDP packets because the buffer of their socket was full (UdpRcvbufErrors)."
            for node, count in grown.items()
        ),
    )


def _of_links(plan: Plan, tables: Tables, span: tuple[int, int], time: float) -> Share:
    """Return the share of the lost packets that sockets did not drop, with the link that dropped most meanwhile."""
    links = LinkSamples(plan, tables["links"])
    network = NetworkTimeline(links, links.edges(*span))
    dropped = {name: float(network.dropped(name).sum()) for name in network.directions}
    worst = max(dropped, key=lambda name: dropped[name], default="")
    if not worst or not dropped[worst]:
        return Share(cause=Cause.NOT_KNOWN, time=time)
    overflowed = network.overflowed(worst)
    if np.any(network.down_shares((worst,))[network.dropped(worst) > 0] > 0):
        cause: str = Cause.PATH_DOWN
    elif overflowed.sum() < 0.5 * dropped[worst]:
        cause = Cause.LOSS_RECOVERY
    else:
        cause = _cause_of_overflow(plan, network, worst, overflowed > 0)
    return Share(cause=cause, time=time, where=(worst,), evidence=drop_sentences(network, (worst,)))


def _total(name: str, figures: Figures) -> str:
    packets, lost = figures["iperf3_packets"] or 1, _lost(figures)
    return (
        f"{name} lost {lost:.0f} of {packets:.0f} UDP packets ({percent(lost / packets)}), as iperf3 reports; it sent "
        f"{rate(figures.get('iperf3_udp_bps'))} with a jitter of {micros(figures.get('iperf3_jitter_us'))}."
    )


def _cause_sentence(share: Share) -> str:
    if share.cause == Cause.NOT_KNOWN:
        return "No link dropped packets: look at the programs on the way and at their socket buffers."
    clause = clause_of(share.cause)
    return f"The cause is {share.cause}: {clause}{places_text(share)}."


def _cause_of_overflow(plan: Plan, network: NetworkTimeline, name: str, at: np.ndarray) -> str:
    """Return why a queue overflowed: competing traffic, more than the link carries, or a short queue."""
    if any(name in path.forward for flow in plan.flows if not is_control(flow) for path in flow.paths):
        return Cause.COMPETING_TRAFFIC
    sent, room = network.sent(name), network.rate(name) * np.diff(network.edges) / 8e6
    carried = float(sent[at].sum()) if sent is not None else 0.0
    return Cause.RATE_TOO_HIGH if carried >= FULL * float(room[at].sum()) else Cause.QUEUE_FULL
