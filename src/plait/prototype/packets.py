"""The wire format: the datagrams of a connection as bytes, and back. All numbers are big-endian.

    OPEN, OPENED   kind 1, path 1, port 0 (2), connection 4, time 8
    DATA           kind 1, path 1, length 2, connection 4, number 4, sequence 8, then the data
    ACK            kind 1, path 1, ranges 2, connection 4, delay 4, next 8, limit 8, then (first 4, last 4) by range
    REPAIR         kind 1, path 1, length 2, connection 4, number 4, sequence 8, covers 4, then the parity

`number` counts the packets of one path from 0; `sequence` is an offset in the stream. A parity is the XOR of the
segments in `covers` bytes of the stream, all but the last of full size. `delay` (us) is the time between
the arrival of the packet with the largest number and the ACK; `next` is the first byte that the receiver lacks, and
`limit` the end of its window. An empty DATA is a probe. `plait-prototype.lua` dissects this format in Wireshark.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

OPEN, OPENED, DATA, ACK, REPAIR = 1, 2, 3, 4, 5
SEGMENT_BYTES = 1428
"""Data in a full packet: as much as a segment of MPTCP over IPv4 with time stamps and a DSS option."""
MAX_RANGES = 32
MOST_BLOCK = 64
"""Segments that one parity covers."""

_OPEN = Struct("!BBHId")
_DATA = Struct("!BBHIIQ")
_ACK = Struct("!BBHIIQQ")
_RANGE = Struct("!II")
_REPAIR = Struct("!BBHIIQI")


class Open(NamedTuple):
    """A request to use a path or to end the connection, or the answer to one, with the time of the request."""

    kind: int
    path: int
    connection: int
    time: float


class Data(NamedTuple):
    """A packet of data."""

    path: int
    connection: int
    number: int
    sequence: int
    data: memoryview


class Repair(NamedTuple):
    """A parity of consecutive segments."""

    path: int
    connection: int
    number: int
    sequence: int
    covers: int
    data: bytes | memoryview


class Ack(NamedTuple):
    """Which packets of a path have arrived: `ranges` of numbers (first, last), the largest first."""

    path: int
    connection: int
    delay_us: int
    next: int
    limit: int
    ranges: list[tuple[int, int]]


def encode_open(packet: Open) -> bytes:
    """Return the datagram of an OPEN or OPENED."""
    return _OPEN.pack(packet.kind, packet.path, 0, packet.connection, packet.time)


def encode_data(path: int, connection: int, number: int, sequence: int, data: bytes | memoryview) -> bytes:
    """Return the datagram of a DATA packet."""
    return _DATA.pack(DATA, path, len(data), connection, number, sequence) + data


def encode_repair(packet: Repair) -> bytes:
    """Return the datagram of a REPAIR packet."""
    path, connection, number, sequence, covers, data = packet
    return _REPAIR.pack(REPAIR, path, len(data), connection, number, sequence, covers) + data


def encode_ack(ack: Ack) -> bytes:
    """Return the datagram of an ACK. Raise ValueError if it has more than `MAX_RANGES` ranges."""
    if len(ack.ranges) > MAX_RANGES:
        raise ValueError(f"an ACK has at most {MAX_RANGES} ranges, and this one {len(ack.ranges)}")
    head = _ACK.pack(ACK, ack.path, len(ack.ranges), ack.connection, ack.delay_us, ack.next, ack.limit)
    return head + b"".join(_RANGE.pack(*ack_range) for ack_range in ack.ranges)


def decode(datagram: bytes) -> Open | Data | Repair | Ack | None:
    """Return the packet in a datagram; None if it is not one of this format."""
    kind = datagram[0] if datagram else 0
    size = len(datagram)
    if kind == DATA and size >= _DATA.size:
        _, path, length, connection, number, sequence = _DATA.unpack_from(datagram)
        if length == size - _DATA.size:
            return Data(path, connection, number, sequence, memoryview(datagram)[_DATA.size :])
    elif kind == ACK and size >= _ACK.size:
        _, path, count, connection, delay, expected, limit = _ACK.unpack_from(datagram)
        if 1 <= count <= MAX_RANGES and size == _ACK.size + count * _RANGE.size:
            ranges = list(_RANGE.iter_unpack(memoryview(datagram)[_ACK.size :]))
            if _descending(ranges):
                return Ack(path, connection, delay, expected, limit, ranges)
    elif kind == REPAIR and size >= _REPAIR.size:
        return _repair(datagram)
    elif kind in {OPEN, OPENED} and size == _OPEN.size:
        _, path, _, connection, time = _OPEN.unpack(datagram)
        return Open(kind, path, connection, time)
    return None


def _repair(datagram: bytes) -> Repair | None:
    _, path, length, connection, number, sequence, covers = _REPAIR.unpack_from(datagram)
    if not 0 < covers <= MOST_BLOCK * SEGMENT_BYTES or length != min(covers, SEGMENT_BYTES):
        return None
    if length != len(datagram) - _REPAIR.size:
        return None
    return Repair(path, connection, number, sequence, covers, memoryview(datagram)[_REPAIR.size :])


def _descending(ranges: list[tuple[int, int]]) -> bool:
    """Return whether each range is in order and lies below the range before it."""
    lowest = 2**32
    for first, last in ranges:
        if not first <= last < lowest:
            return False
        lowest = first
    return True
