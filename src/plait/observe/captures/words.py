"""What captures show and what they cannot show, in sentences for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait.analysis.cautions.mptcp import FALLBACK_REASONS
from plait.analysis.wording import micros
from plait.observe.captures.ends import FileSurvey
from plait.observe.captures.rows import Joined, Samples, connection_names, received_bytes, sent_bytes
from plait.observe.captures.tracking import SeenConnection

_MOST = 5
"""Connections of which the sentences speak."""


def facts(samples: Sequence[Samples], joined: Joined, surveys: Sequence[FileSurvey]) -> Iterator[str]:
    """Yield the sentences about an observation from captures."""
    trackers = [part.tracker for part in samples]
    connections = trackers[0].connections
    is_cut = any(part.tracker.cut_packets for part in samples)
    if not is_cut and not any(connection.mptcp for connection in connections):
        yield (
            "These captures hold no MPTCP option: the connections are plain TCP, or a middlebox removed the options "
            "before the capture."
        )
    yield from _limits(samples, joined, surveys)
    others = {first.number: second for first, second in joined.pairs}
    named = list(zip(connections, connection_names(connections), strict=True))
    speaking = [
        (c, name)
        for c, name in named
        if c.mptcp and (c.fallback is not None or sent_bytes(c) or received_bytes(c))
    ]
    for connection, name in speaking[:_MOST]:
        yield from _connection_facts(connection, others.get(connection.number), name)
    if len(speaking) > _MOST:
        yield f"{len(speaking) - _MOST} further MPTCP connections are in the tables."


def _limits(samples: Sequence[Samples], joined: Joined, surveys: Sequence[FileSurvey]) -> Iterator[str]:
    for survey in surveys:
        if survey.file.cut_short is not None:
            yield f"{survey.file.path.name}: {survey.file.cut_short}."
        if not survey.is_certain:
            yield (
                f"{survey.file.path.name}: the times do not show which end captured it; plait takes "
                f"{', '.join(sorted(survey.local)[:3])} as this end."
            )
    trackers = [part.tracker for part in samples]
    cut, packets = sum(t.cut_packets for t in trackers), sum(t.packets for t in trackers)
    if cut:
        yield (
            f"{cut} of {packets} packets were cut within their TCP header (snaplen): their options are missing, so "
            "subflows, mappings and fallbacks may be missing too. Capture at least 128 bytes of each packet."
        )
    late = sum(not c.with_handshake for c in trackers[0].connections)
    if late:
        yield (
            f"The captures begin after the handshake of {late} connection{'s' if late > 1 else ''}: windows are "
            "unknown there (null), the side with the higher port counts as the client, and data sequence numbers show "
            "which subflows belong together."
        )
    missing = sum(half.missing_bytes for t in trackers for s in t.subflows for half in (s.out, s.into))
    if missing:
        yield f"{missing} bytes were acknowledged that the captures lack: the capturing program dropped packets."
    if joined.clock_offset_us is not None:
        yield (
            f"The clocks of both ends differ by {micros(abs(joined.clock_offset_us))}, known to "
            f"{micros(joined.clock_error_us or 0)}; plait shifted the times of the second end."
        )


def _connection_facts(connection: SeenConnection, other: SeenConnection | None, name: str) -> Iterator[str]:
    reason = connection.fallback or (None if other is None else other.fallback)
    if reason is not None:
        yield f"{name} fell back to TCP: {_stripped(connection, other) or FALLBACK_REASONS[reason]}."
        return
    again = connection.out.again_bytes
    if other is not None:
        again += other.out.again_bytes
    elif connection.into.again_bytes:
        yield f"{name}: at least {connection.into.again_bytes} bytes arrived twice, on two subflows (reinjected)."
    if again:
        yield f"{name}: {again} bytes were reinjected on another subflow."
    late = connection.into.out_of_order_bytes
    if late:
        yield (
            f"{name}: {late / max(1, connection.into.new_bytes):.0%} of the bytes from there arrived before earlier "
            "ones (out of order at the data level)."
        )
    elsewhere = connection.into.elsewhere_bytes + connection.out.elsewhere_bytes
    if elsewhere:
        yield f"{name}: {elsewhere} bytes crossed interfaces of which there is no capture; their subflows are missing."
        return
    unjoined = list(connection.unjoined())
    for there, whose in ((True, "the other end"), (False, "this end")):
        addresses = [address for address, by_other in unjoined if by_other == there]
        if addresses:
            yield f"{name}: {whose} announced {', '.join(addresses)}, and no subflow to it is in the captures."


def _stripped(connection: SeenConnection, other: SeenConnection | None) -> str | None:
    """Return where MP_CAPABLE was lost, if both ends captured the handshake."""
    if other is None:
        return None
    client, server = (connection, other) if connection.opened_here else (other, connection)
    for word, sender, receiver in (
        ("SYN", client, server),
        ("SYN/ACK", server, client),
        ("ACK", client, server),
    ):
        if sender.capable.get(word) and receiver.capable.get(word) is False:
            end = "client" if sender is client else "server"
            return f"the {word} left the {end} with MP_CAPABLE and arrived without; a middlebox removes the option"
    return None
