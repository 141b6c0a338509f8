"""A connection has only begun: handshakes, and a congestion window that still grows."""

from __future__ import annotations

from itertools import chain

import numpy as np

from plait.analysis.wording import micros, plain, seconds, size
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.causes.subflows import late_subflows
from plait.explain.changes import LONGER, Remedy, Suspect
from plait.explain.facts import FlowFacts
from plait.explain.link_evidence import MAX_PLACES


def _start(facts: FlowFacts, _: Places) -> list[str]:
    """Return the size of the congestion windows for late messages, else how many round trips the flow lasted."""
    return _windows(facts) if facts.own_bytes else _duration(facts)


def _windows(facts: FlowFacts) -> list[str]:
    windows: dict[str, list[float]] = {}
    for path in chain.from_iterable(connection.paths for connection in facts.connections):
        for subflow in path.subflows:
            cwnd_bytes = subflow.samples["cwnd_segments"] * subflow.samples["mss_bytes"]
            windows.setdefault(path.name, []).extend(cwnd_bytes[np.isfinite(cwnd_bytes)].tolist())
    return [
        f"The congestion window on {name} was {size(min(sizes))} to {size(max(sizes))} in the samples."
        for name, sizes in list(windows.items())[:MAX_PLACES]
        if sizes
    ]


def _duration(facts: FlowFacts) -> list[str]:
    longest = max((path.base_rtt_us for path in facts.flow.paths), default=0)
    sentences = f"The flow lasted {seconds(facts.lasted_us / 1e6)}"
    return [
        f"{sentences}, {facts.lasted_us / longest:.0f} round trips of its longest path."
        if longest
        else f"{sentences}."
    ]


def _longer_transfer(suspect: Suspect) -> Remedy | None:
    spec = suspect.scenario.traffic[suspect.entry[0]].flow if suspect.entry is not None else None
    size, duration = getattr(spec, "bytes", None), getattr(spec, "duration", None)
    if size is not None:
        return suspect.setting(f"a transfer {LONGER} times as large", "bytes", f"{int(size) * LONGER}B")
    if duration is not None:
        longer = f"{int(duration) * LONGER}ns"
        return suspect.setting(f"a duration {LONGER} times as long", "duration", longer)
    return None


def _initial_path(facts: FlowFacts, _: Places) -> list[str]:
    return [
        f"Base RTT: {', '.join(f'{path.name} {plain(micros(path.base_rtt_us))}' for path in facts.flow.paths)}.",
        *late_subflows(facts, _),
    ]


def _start_on_best_path(suspect: Suspect) -> Remedy | None:
    flow = suspect.planned
    best = min(flow.paths, key=lambda path: path.base_rtt_us)
    first = best.forward[0] if flow.sender == "client" else best.backward[0]
    names = (
        link.name for link in suspect.plan.links if first in {direction.name for direction in link.directions}
    )
    name = next(names, None)
    if name is None or best is flow.paths[0]:
        return None
    return suspect.setting(f"{best.name} as the initial path", "via", name)


KINDS = (
    Kind(
        Cause.TOO_SHORT,
        title="start-up",
        clause="the connection was still starting (handshake, growing congestion window)",
        next_step="send more data over one connection; the start weighs less in a longer transfer",
        message_words=(
            "the congestion window was small, at the start or after a pause",
            "keep the connection busy, or set net.ipv4.tcp_slow_start_after_idle to 0 at the sender (`sysctls`)",
        ),
        evidence=_start,
        change=_longer_transfer,
        names_place=True,
        keeps_messages="whole segments",
    ),
    Kind(
        Cause.INITIAL_PATH_POOR,
        title="slow initial path",
        clause="the handshakes had to use an initial path with a far higher RTT than another path",
        next_step="start on the other path (`via`)",
        evidence=_initial_path,
        change=_start_on_best_path,
    ),
)
