"""The evidence that links alone give: their drops and their jitter."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import micros, percent, plain
from plait.explain.capacity import NetworkTimeline
from plait.explain.cause import Cause, Places

MAX_PLACES = 3


def for_links(network: NetworkTimeline, cause: str, places: Places) -> tuple[str, ...]:
    """Return the evidence of a cause from the links alone: their drops, or their jitter."""
    return jitter_sentences(network, places) if cause == Cause.JITTER else drop_sentences(network, places)


def full_sentences(network: NetworkTimeline, places: Places) -> list[str]:
    """Return how much links carried while they counted as full, which is less than their rate."""
    sentences = []
    for name in places[:MAX_PLACES]:
        if name not in network.directions or not (full := network.full(name)).any():
            continue
        load = float(np.average(network.load(name)[full], weights=np.diff(network.edges)[full]))
        sentences.append(f"While {name} counted as full, it carried {percent(load, 2)} of its rate.")
    return sentences


def jitter_sentences(network: NetworkTimeline, places: Places) -> tuple[str, ...]:
    """Return the configured delay and jitter of links."""
    links = [network.directions[name] for name in places[:MAX_PLACES] if name in network.directions]
    return tuple(
        f"{link.name} has a delay of {plain(micros(link.delay_ns / 1e3))} with a jitter of "
        f"{plain(micros(link.jitter_ns / 1e3))}."
        for link in links
    )


def drop_sentences(network: NetworkTimeline, places: Places) -> tuple[str, ...]:
    """Return how many packets links dropped, and how many of them by overflow."""
    sentences = []
    for name in places[:MAX_PLACES]:
        if name not in network.directions:
            continue
        dropped = float(network.dropped(name).sum())
        if not dropped:
            continue
        overflowed = float(network.overflowed(name).sum())
        direction = network.directions[name]
        limit = f" ({direction.queue_packets} packets)" if direction.queue_packets else ""
        sentences.append(
            f"{name} dropped {dropped:.0f} packets, {overflowed:.0f} of them because its queue{limit} was full."
        )
    return tuple(sentences)
