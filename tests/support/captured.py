"""Functions read captures at a sender without plait: the state of each TCP connection over time, from its headers."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENHANCED_PACKET, INTERFACE = 6, 1
SYN, ACK = 0x02, 0x10


@dataclass
class Connection:
    """One TCP connection, from the side that sends data: (time in us, value) whenever a value changes."""

    syn_us: float | None = None
    established_us: float | None = None
    shift: int = 0
    sent: int = 0
    acked: int = 0
    window: int = 0
    first: int | None = None
    retransmitted: int = 0
    in_flight: list[tuple[float, int]] = field(default_factory=list)
    new: list[tuple[float, int]] = field(default_factory=list)
    """When data were sent for the first time, and the last byte of them."""
    room: list[tuple[float, int]] = field(default_factory=list)
    """The window that is left."""

    def moved(self, by_us: float) -> None:
        """Count times from another zero."""
        self.syn_us = None if self.syn_us is None else self.syn_us - by_us
        self.established_us = None if self.established_us is None else self.established_us - by_us
        self.in_flight = [(t - by_us, value) for t, value in self.in_flight]
        self.new = [(t - by_us, value) for t, value in self.new]
        self.room = [(t - by_us, value) for t, value in self.room]

    def note(self, t_us: float) -> None:
        self.in_flight.append((t_us, self.sent - self.acked))
        self.room.append((t_us, self.acked + self.window - self.sent))


def connections(folder: Path, addresses: set[str]) -> dict[tuple[str, int, str, int], Connection]:
    """Return the connections of the host with these addresses, by their four ends as it sees them."""
    by_ends: dict[tuple[str, int, str, int], Connection] = {}
    for file in sorted(folder.glob("*.pcapng")):
        for t_us, frame in packets(file):
            _take(by_ends, t_us, frame, addresses)
    return by_ends


def packets(file: Path) -> Iterator[tuple[float, bytes]]:
    """Yield time in us and bytes of each packet."""
    data, at, unit = file.read_bytes(), 0, 1e-6
    while at + 8 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        if kind == INTERFACE:
            unit = _resolution(body[8:])
        elif kind == ENHANCED_PACKET:
            high, low, kept = struct.unpack_from("<III", body, 4)
            yield ((high << 32) | low) * unit * 1e6, body[20 : 20 + kept]
        at += length


def _resolution(options: bytes) -> float:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 9:
            return float(10.0 ** -options[at + 4])
        at += 4 + -(-length // 4) * 4
    return 1e-6


def _take(
    by_ends: dict[tuple[str, int, str, int], Connection], t_us: float, frame: bytes, addresses: set[str]
) -> None:
    if frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return
    header = (frame[14] & 15) * 4
    total = int.from_bytes(frame[16:18], "big")
    source, target = (".".join(map(str, frame[at : at + 4])) for at in (26, 30))
    tcp = frame[14 + header :]
    ports = struct.unpack_from(">HH", tcp)
    seq, ack = struct.unpack_from(">II", tcp, 4)
    offset, flags, window = (tcp[12] >> 4) * 4, tcp[13], int.from_bytes(tcp[14:16], "big")
    payload = total - header - offset
    outgoing = source in addresses
    key = (source, ports[0], target, ports[1]) if outgoing else (target, ports[1], source, ports[0])
    connection = by_ends.setdefault(key, Connection())
    if outgoing and flags & SYN:
        connection.syn_us, connection.first = (
            t_us if connection.syn_us is None else connection.syn_us,
            seq + 1,
        )
        return
    if connection.first is None:
        return
    if outgoing:
        end = (seq + payload - connection.first) & 0xFFFFFFFF
        if payload and end <= connection.sent:
            connection.retransmitted += 1
        if payload and end > connection.sent:
            connection.sent = end
            connection.new.append((t_us, end))
    elif flags & SYN:
        connection.shift, connection.established_us = _shift(tcp[20:offset]), t_us
        connection.window = window
    elif flags & ACK:
        connection.acked, connection.window = (
            max(connection.acked, (ack - connection.first) & 0xFFFFFFFF),
            window << connection.shift,
        )
    connection.note(t_us)


def _shift(options: bytes) -> int:
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if options[at] == 3:
            return options[at + 2]
        at += options[at + 1]
    return 0


def share_of_gaps(new: list[tuple[float, int]], begin: float, end: float, least_us: float) -> float:
    """Return the share of the time in pauses of at least `least_us` between data that are sent for the first time."""
    times = [begin, *(t for t, _ in new if begin <= t <= end), end]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    return sum(gap for gap in gaps if gap >= least_us) / (end - begin)


def share_of_time(series: list[tuple[float, int]], begin: float, end: float, least: int, most: int) -> float:
    """Return the share of the time from `begin` to `end` in which a value was from `least` to `most`."""
    spent = 0.0
    for (t, value), (until, _) in zip(series, [*series[1:], (end, 0)], strict=True):
        if least <= value <= most:
            spent += max(0.0, min(until, end) - max(t, begin))
    return spent / (end - begin)
