"""Draws the case of a seed: a small network, its traffic, and what happens to it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from plait.testing.hunt.case import OF_CONNECTIONS, OF_LINKS, HuntCase, HuntConnection, HuntEvent, HuntLink

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS = (
    *("close", "close", "reset", "shutdown", "destroy", "destroy", "destroy"),
    *("link_down", "link_down", "remove_endpoint", "add_endpoint", "flush"),
)
_SIZES = (0, 0, 1, 3000, 100_000, 500_000, 1_000_000)
_BUFFERS = (32_768, 131_072, 524_288, 6 << 20)
_MTUS = (1500, 1500, 1500, 1400, 1280, 576, 9000)


def draw(seed: int, schedulers: Sequence[str], congestion_controls: Sequence[str]) -> HuntCase:
    """Return the case of `seed` with algorithms of these; the same seed and names give the same case."""
    chance = Random(seed)  # noqa: S311 - it chooses experiments
    links = tuple(_link(chance) for _ in range(chance.choice((2, 2, 3, 4))))
    connections = tuple(_connection(chance) for _ in range(chance.choice((1, 2, 4))))
    concerned = len(connections)
    if (
        chance.random() < 0.5
    ):  # everything happens to one open connection, so that orders of closing are tried
        concerned = 1
        connections = (HuntConnection(up_bytes=3000, hold=True), *connections[1:2])
    events = [_event(chance, len(links), concerned) for _ in range(chance.choice((0, 4, 8, 16)))]
    return HuntCase(
        seed=seed % 2**31,
        scheduler="default" if chance.random() < 0.4 else chance.choice(sorted(schedulers)),
        congestion_control=chance.choice(sorted(congestion_controls)),
        receive_buffer=chance.choice(_BUFFERS),
        send_buffer=chance.choice(_BUFFERS),
        links=links,
        connections=connections,
        events=tuple(sorted(events, key=lambda event: event.at_ms)),
    )


def _link(chance: Random) -> HuntLink:
    return HuntLink(
        rate_mbit=chance.choice((2, 5, 10, 50, 200)),
        delay_ms=chance.choice((0, 1, 5, 20, 100)),
        loss_percent=chance.choice((0, 0, 1, 3)),
        queue_packets=chance.choice((5, 20, 100, 1000)),
        mtu=chance.choice(_MTUS),
        endpoint=chance.choice(("subflow", "subflow", "subflow fullmesh", "subflow backup", "none")),
        signal=chance.random() < 0.2,
    )


def _connection(chance: Random) -> HuntConnection:
    return HuntConnection(
        start_ms=chance.choice((0, 0, 500, 2000)),
        up_bytes=chance.choice(_SIZES),
        down_bytes=chance.choice(_SIZES),
        early_end=chance.random() < 0.2,
        hold=chance.random() < 0.5,
    )


def _event(chance: Random, links: int, connections: int) -> HuntEvent:
    kind = chance.choice(_KINDS)
    return HuntEvent(
        at_ms=chance.randrange(100, 5000),
        do=kind,
        connection=chance.randrange(connections) if kind in OF_CONNECTIONS else 0,
        side=chance.choice(("client", "client", "server")),
        link=chance.randrange(links) if kind in OF_LINKS else 0,
        for_ms=chance.choice((10, 300, 2000)) if kind == "link_down" else 0,
    )
