"""Draws the case of a seed: a small network, its traffic, and what happens to it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from plait.testing.hunt.case import HuntCase, HuntConnection, HuntEvent, HuntLink
from plait.testing.hunt.kinds import KINDS

_KINDS = tuple(name for name, kind in KINDS.items() for _ in range(kind.weight))
_BREAKS = tuple(
    name
    for name, kind in KINDS.items()
    for _ in range(3 if kind.middlebox else kind.weight)
    if not kind.calm or name.endswith("_endpoint")
)
_CALM = tuple(name for name, kind in KINDS.items() if kind.calm)
_SIZES = (0, 0, 1, 3000, 100_000, 500_000, 1_000_000)
_WRITE_BYTES = (0, 0, 0, 400, 4000)
_READ_BY = ("recv", "recv", "recv", "peek", "splice")
_READ_EVERY_MS = (0, 0, 0, 20, 50, 200)
_LEAST_BUFFER = 32_768
_LEAST_BUFFER_OF_PIECES = 524_288
"""The least receive buffers, and that of connections with a program that writes small pieces.

With smaller ones a connection of 6.12.117 often stalls for ever (see `_linux_stands_still` in run.py)."""
_BUFFERS = (_LEAST_BUFFER, 131_072, 524_288, 6 << 20)
_MTUS = (1500, 1500, 1500, 1400, 1280, 576, 9000)
_LEAST_MTU_IPV6 = 1280
_ENDPOINTS = (
    "subflow", "subflow", "subflow fullmesh", "subflow backup", "subflow backup", "subflow signal", "none",
)  # fmt: skip
_UNEQUAL_MTUS = (1500, 1400, 1280, 576, 4000, 9000)
_ENDINGS = ("close", "close", "shutdown", "reset")
_PAIRS = (
    ("remove_endpoint", "add_endpoint"), ("remove_endpoint", "add_endpoint"),
    ("withdraw", "announce"), ("announce", "announce"),
    ("flush", "announce"), ("flush", "announce"), ("unplug", "withdraw"),
)  # fmt: skip
"""Events of the same link, but two announcements are of two, if there are."""
_MOST_SUBFLOWS = (8,) * 6 + (0, 0, 1, 2)
_CHURN_MS = 15_000
"""Endpoints and addresses come and go so long: what follows within moments cannot be judged."""
_COPYING = {"redundant"}
"""Schedulers that send the same bytes on several subflows: what arrives twice has its own code in the kernel."""


def draw(seed: int, schedulers: Sequence[str], congestion_controls: Sequence[str]) -> HuntCase:
    """Return the case of `seed` with algorithms of these; the same seed and names give the same case."""
    chance = Random(seed)  # noqa: S311 - it chooses experiments
    profile = chance.random()
    if profile < 0.2:
        return _with_options(chance, _slow_reader(seed, chance, schedulers, congestion_controls))
    if profile < 0.3:
        return _with_options(chance, _churn(seed, chance))
    if profile < 0.55:
        return _with_options(chance, _one_after_the_other(seed, chance))
    if profile < 0.65:
        return _plain_transfer(seed, chance, congestion_controls)
    if profile < 0.8:
        return _with_options(chance, _during_a_transfer(seed, chance, schedulers))
    links = tuple(_link(chance) for _ in range(chance.choice((2, 2, 3, 4))))
    connections = tuple(_connection(chance) for _ in range(chance.choice((1, 2, 4))))
    concerned = len(connections)
    one_open = chance.random() < 0.6
    if one_open:  # everything happens to one open connection, so that orders of closing are tried
        concerned = 1
        links = _often_clean(chance, links)
        connections = (HuntConnection(up_bytes=3000, hold=True), *connections[1:2])
    events = [_event(chance, _KINDS, len(links), concerned) for _ in range(chance.choice((0, 4, 8, 16)))]
    case = HuntCase(
        seed=seed % 2**31,
        scheduler=_scheduler(chance, schedulers, default=0.4),
        congestion_control=chance.choice(sorted(congestion_controls)),
        receive_buffer=_receive_buffer(chance, _BUFFERS, connections),
        send_buffer=chance.choice(_BUFFERS),
        links=links,
        connections=connections,
    )
    if one_open and chance.random() < 0.9:
        events = _order_of_closing(chance, len(links))
    events.sort(key=lambda event: event.at_ms)
    return _with_options(chance, case.model_copy(update={"events": tuple(events)}))


def _with_options(chance: Random, case: HuntCase) -> HuntCase:
    """Return the case with a family of addresses, with or without checksums, and with a path manager."""
    links = case.links
    ipv6 = chance.random() < 0.3
    if ipv6:
        links = tuple(link.model_copy(update={"mtu": max(link.mtu, _LEAST_MTU_IPV6)}) for link in links)
    rewritten = any(event.do == "rewrite" for event in case.events)
    checksums = chance.random() < 0.2 or rewritten
    options = {
        "ipv6": ipv6,
        "links": links,
        "checksums": checksums,
        # a scheduler that leaves bytes unsent while subflows are free makes `__mptcp_clean_una` warn with checksums
        "scheduler": "default" if checksums else case.scheduler,
        "user_paths": chance.random() < 0.1,
        "most_subflows": chance.choice(_MOST_SUBFLOWS),
    }
    return case.model_copy(update=options)


def _churn(seed: int, chance: Random) -> HuntCase:
    """Return a case in which endpoints and addresses come and go while a connection stays open.

    Nothing breaks a subflow, so that afterwards each endpoint must have one.
    """
    links = _often_clean(chance, tuple(_link(chance, signal=0.5) for _ in range(chance.choice((2, 3, 4)))))
    up_bytes, down_bytes = chance.choice(_SIZES[2:]), chance.choice(_SIZES)
    connection = HuntConnection(
        up_bytes=up_bytes,
        down_bytes=down_bytes,
        hold=True,
        fast_open=chance.random() < 0.2,
        read_by=chance.choice(_READ_BY),
    )
    count = chance.choice((0, 2, 4, 8, 16))
    events = [_event(chance, _CALM, len(links), 1, _CHURN_MS) for _ in range(count)]
    return HuntCase(
        seed=seed % 2**31,
        links=links,
        connections=tuple(
            connection.model_copy(update={"start_ms": start_ms})
            for start_ms in chance.choice(((0,), (0, 0), (0, _CHURN_MS // 2), (_CHURN_MS // 2,)))
        ),
        events=tuple(sorted(events, key=lambda event: event.at_ms)),
    )


def _one_after_the_other(seed: int, chance: Random) -> HuntCase:
    """Return a case in which a few things happen to small connections over good links, each once the last has settled.

    So what follows from each of them is known.
    """
    links = tuple(
        _link(chance, signal=0.4).model_copy(
            update={
                "rate_mbit": 10,
                "delay_ms": chance.choice((1, 5, 20, 50)),
                "loss_percent": 0,
                "queue_packets": 100,
                "own_port": chance.random() < 0.4,
            }
        )
        for _ in range(chance.choice((2, 3, 3)))
    )
    size, is_upload = chance.choice((1, 3000, 3000, 3_000_000)), chance.random() < 0.5
    first, second = (size, chance.choice((0, size)))
    connection = HuntConnection(
        start_ms=chance.choice((0, 5000)),
        up_bytes=first if is_upload else second,
        down_bytes=second if is_upload else first,
        hold=True,
    )
    links, events = (
        _pair(chance, links) if chance.random() < 0.5 else (links, _settled_events(chance, len(links)))
    )
    if chance.random() < 0.2:
        at_ms = max((event.at_ms for event in events), default=0) + 4000
        events.append(_event(chance, _ENDINGS, len(links), 1).model_copy(update={"at_ms": at_ms}))
    return HuntCase(seed=seed % 2**31, links=links, connections=(connection,), events=tuple(events))


def _pair(chance: Random, links: tuple[HuntLink, ...]) -> tuple[tuple[HuntLink, ...], list[HuntEvent]]:
    """Return links and two events on one of them, of which the second one shows what the first one left behind."""
    names = chance.choice(_PAIRS)
    link = chance.randrange(1, len(links))
    at_ms = chance.choice((2000, 4000))  # the connection may start between both
    events = [
        _event(chance, (name,), len(links), 1).model_copy(
            update={"at_ms": at, "link": link if KINDS[name].link else 0}
        )
        for name, at in zip(names, (at_ms, at_ms + chance.choice((4000, 6000))), strict=True)
    ]
    if names[0] == names[1]:
        link = 1 + link % (len(links) - 1)
        events[1] = events[1].model_copy(update={"link": link})
    update: dict[str, object] = {"signal": "withdraw" in names}
    if "remove_endpoint" in names:
        update["endpoint"] = chance.choice(("subflow", "subflow signal", "subflow signal"))
    return tuple(
        entry.model_copy(update=update) if i == link else entry for i, entry in enumerate(links)
    ), events


def _settled_events(chance: Random, links: int) -> list[HuntEvent]:
    """Return a few events, each once the last has settled, of few kinds, so that two of them meet often."""
    kinds = chance.sample(_CALM, k=chance.choice((1, 2, len(_CALM))))
    events: list[HuntEvent] = []
    at_ms = 0
    for _ in range(chance.choice((0, 1, 2, 2, 3, 4))):
        at_ms += chance.choice((2000, 4000, 6000))
        event = _event(chance, kinds, links, 1).model_copy(update={"at_ms": at_ms})
        if (
            event.do == "lose_announcements"
        ):  # those of the server arrive over the link of the initial subflow
            events.append(event.model_copy(update={"link": 0, "for_ms": chance.choice((300, 2000))}))
            event = HuntEvent(at_ms=at_ms + 5, do="announce", link=chance.randrange(1, links))
        elif KINDS[event.do].link and not event.link:  # there is less to see
            event = event.model_copy(update={"link": chance.randrange(links)})
        events.append(event)
    return events


def _plain_transfer(seed: int, chance: Random, congestion_controls: Sequence[str]) -> HuntCase:
    """Return a plain transfer over two good links, one of which is a fast backup, or in which a subflow ends.

    Most often the receiver destroys the initial one, so that the sender hears of it by a reset. Or a middlebox removes
    the options from the other one.
    """
    has_backup = chance.random() < 0.4
    is_upload = chance.random() < (0.7 if has_backup else 0.3)
    delays = sorted(chance.sample((1, 5, 20, 50), k=2), reverse=has_backup)
    links = tuple(
        HuntLink(
            rate_mbit=chance.choice((10, 20) if has_backup else (5, 10, 20)),
            delay_ms=delay_ms,
            queue_packets=100 if has_backup else chance.choice((100, 1000)),
            endpoint="subflow backup" if has_backup else "subflow",
        )
        for delay_ms in delays
    )
    size = chance.choice((1_000_000, 3_000_000, 3_000_000))
    receiver, sender = ("server", "client") if is_upload else ("client", "server")
    event = HuntEvent(
        at_ms=chance.randrange(200, 700),
        do="destroy",
        side=chance.choice((receiver, receiver, sender)),
        link=chance.choice((0, 0, 0, 1)),
    )
    if chance.random() < 0.4:
        event = HuntEvent(at_ms=event.at_ms, do="strip", link=1, for_ms=2000)
    return HuntCase(
        seed=seed % 2**31,
        congestion_control=chance.choice(sorted(congestion_controls)),
        ipv6=chance.random() < 0.3,
        links=links,
        connections=(
            HuntConnection(up_bytes=size if is_upload else 0, down_bytes=0 if is_upload else size, hold=True),
        ),
        events=() if has_backup else (event,),
    )


def _during_a_transfer(seed: int, chance: Random, schedulers: Sequence[str]) -> HuntCase:
    """Return a case in which something breaks within the first round trips of a transfer, or later in it."""
    links = tuple(
        _link(chance).model_copy(
            update={"rate_mbit": chance.choice((5, 10, 20)), "delay_ms": chance.choice((1, 5, 20, 50))}
        )
        for _ in range(chance.choice((2, 2, 3)))
    )
    links = _often_clean(chance, links)
    size = chance.choice((30_000, 100_000, 300_000, 1_000_000, 3_000_000))
    round_trip_ms = 2 * links[0].delay_ms + 2
    until_ms = min(3000, 12 * round_trip_ms + size // (125 * links[0].rate_mbit))
    events = [
        _event(chance, _BREAKS, len(links), 1, 0).model_copy(
            update={"at_ms": chance.randrange(round_trip_ms, until_ms + round_trip_ms)}
        )
        for _ in range(chance.choice((1, 1, 2, 3)))
    ]
    connection = HuntConnection(
        up_bytes=chance.choice((size, size, 0)),
        down_bytes=chance.choice((size, 0, 3000)),
        hold=chance.random() < 0.6,
        early_end=chance.random() < 0.2,
        read_every_ms=chance.choice((*_READ_EVERY_MS, 0, 0, 0)),
    )
    return HuntCase(
        seed=seed % 2**31,
        scheduler=_scheduler(chance, schedulers, default=0.7),
        receive_buffer=_receive_buffer(chance, _BUFFERS, (connection,)),
        send_buffer=chance.choice(_BUFFERS),
        links=links,
        connections=chance.choice(((connection,), (connection,), (connection, connection))),
        events=tuple(sorted(events, key=lambda event: event.at_ms)),
    )


def _order_of_closing(chance: Random, links: int) -> list[HuntEvent]:
    """Return events that end the first connection piece by piece, in any order, each at most once.

    The client destroys the first subflow and another one, and removes the endpoint of one or those of all. Each side
    closes or shuts down.
    """
    parts = [
        ("destroy", "client", 0),
        ("destroy", "client", chance.randrange(1, links)),
        ("remove_endpoint", "client", chance.randrange(1, links)),
        ("flush", "client", 0),
        (chance.choice(_ENDINGS), "client", 0),
        (chance.choice(_ENDINGS), "server", 0),
    ]
    order = chance.sample(parts, k=chance.randrange(3, len(parts) + 1))
    moments = sorted(chance.sample(range(500, 5000), k=len(order)))
    return [
        HuntEvent(at_ms=at_ms, do=action, side=side, link=link)
        for at_ms, (action, side, link) in zip(moments, order, strict=True)
    ]


def _slow_reader(
    seed: int, chance: Random, schedulers: Sequence[str], congestion_controls: Sequence[str]
) -> HuntCase:
    """Return a case in which a long transfer over unequal paths meets the receive window again and again.

    With a small buffer, segments wait in a subflow until the program reads. Meanwhile another subflow may bring a part
    of them, as a copy or a retransmission. Paths of unequal MTU cut the stream at other bytes. A single path that loses
    nothing shows whether the sender hears of each small window that opens.
    """
    count = chance.choice((1, 2, 3, 4))
    buffers = (_LEAST_BUFFER, 49_152, 131_072, 6 << 20)[: 4 if count > 1 else 2]
    mtus = chance.sample(_UNEQUAL_MTUS, k=count) if chance.random() < 0.8 else [1500] * count
    links = tuple(
        HuntLink(
            rate_mbit=chance.choice((5, 10, 20, 50)),
            delay_ms=chance.choice((1, 5, 20, 50)),
            loss_percent=chance.choice((0, 1, 3)) if count > 1 else 0,
            mtu=mtu,
        )
        for mtu in mtus
    )
    size, is_upload = chance.choice((1_000_000, 5_000_000)), chance.random() < 0.5
    connection = HuntConnection(
        up_bytes=size if is_upload else 0,
        down_bytes=0 if is_upload else size,
        read_every_ms=chance.choice((20, 100, 200) if count > 1 else (100, 150)),
        write_bytes=chance.choice(_WRITE_BYTES) if count > 1 else 0,
        read_by=chance.choice(_READ_BY),
    )
    return HuntCase(
        seed=seed % 2**31,
        scheduler=_scheduler(chance, schedulers, default=0.2),
        congestion_control=chance.choice(sorted(congestion_controls)),
        receive_buffer=_receive_buffer(chance, buffers, (connection,)),
        links=links,
        connections=(connection,),
    )


def _receive_buffer(chance: Random, buffers: Sequence[int], connections: Sequence[HuntConnection]) -> int:
    in_pieces = any(connection.write_bytes for connection in connections)
    return max(chance.choice(buffers), _LEAST_BUFFER_OF_PIECES if in_pieces else _LEAST_BUFFER)


def _scheduler(chance: Random, schedulers: Sequence[str], default: float) -> str:
    """Return a scheduler: with probability `default` the default one, else one that sends copies as often as others."""
    if chance.random() < default:
        return "default"
    copying = sorted(_COPYING & set(schedulers))
    return chance.choice(copying if copying and chance.random() < 0.5 else sorted(schedulers))


def _often_clean(chance: Random, links: tuple[HuntLink, ...]) -> tuple[HuntLink, ...]:
    """Return the links, half of the time without loss: much is a fault only if no packet was lost."""
    clean = chance.random() < 0.5
    return tuple(link.model_copy(update={"loss_percent": 0}) for link in links) if clean else links


def _link(chance: Random, signal: float = 0.2) -> HuntLink:
    return HuntLink(
        rate_mbit=chance.choice((2, 5, 10, 50, 200)),
        delay_ms=chance.choice((0, 1, 5, 20, 100)),
        loss_percent=chance.choice((0, 0, 1, 3)),
        queue_packets=chance.choice((5, 20, 100, 1000)),
        mtu=chance.choice(_MTUS),
        endpoint=chance.choice(_ENDPOINTS),
        signal=chance.random() < signal,
        own_port=chance.random() < 0.2,
    )


def _connection(chance: Random) -> HuntConnection:
    up_bytes = chance.choice(_SIZES)
    return HuntConnection(
        start_ms=chance.choice((0, 0, 500, 2000)),
        up_bytes=up_bytes,
        down_bytes=chance.choice(_SIZES),
        early_end=chance.random() < 0.2,
        hold=chance.random() < 0.5,
        read_every_ms=chance.choice(_READ_EVERY_MS),
        write_bytes=chance.choice(_WRITE_BYTES),
        write_every_ms=chance.choice((0, 0, 1)),
        fast_open=up_bytes > 0 and chance.random() < 0.2,
        read_by=chance.choice(_READ_BY),
    )


def _event(
    chance: Random, kinds: Sequence[str], links: int, connections: int, until_ms: int = 5000
) -> HuntEvent:
    name = chance.choice(kinds)
    kind, replaced = KINDS[name], name == "replace_endpoint"
    return HuntEvent(
        at_ms=chance.randrange(100, max(101, until_ms)),
        do=name,
        connection=chance.randrange(connections) if kind.connection else 0,
        side=chance.choice(("client", "server") if replaced else ("client", "client", "server")),
        link=chance.randrange(links) if kind.link else 0,
        for_ms=chance.choice((10, 2000, 3000) if replaced else (10, 300, 2000)) if kind.lasts else 0,
    )
