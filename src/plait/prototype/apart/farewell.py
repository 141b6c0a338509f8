"""The end of a connection between two hosts: the sender says CLOSE until the receiver answers. No sockets, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.packets import CLOSE, CLOSED, Open, decode, encode_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.prototype.path import SendingPath

MOST_CLOSES = 6
LEAST_PATIENCE = 0.05
"""The shortest wait for an answer, in seconds; it doubles each time."""
MOST_PATIENCE = 2.0


class Farewell:
    """Repeats CLOSE on all established paths. Without an answer it ends after `MOST_CLOSES`."""

    def __init__(self, paths: Sequence[SendingPath], connection: int, now: float) -> None:
        self._paths = [path for path in paths if path.established]
        self._connection = connection
        self._tries = 0
        self._due = now
        self._patience = max([LEAST_PATIENCE, *(2 * path.srtt for path in self._paths)])
        self.done = not self._paths

    def receive(self, path: int, datagram: bytes) -> None:
        """Take a datagram that arrived on `path`."""
        if is_request(CLOSED, path, datagram, self._connection):
            self.done = True

    def datagrams_to_send(self, now: float) -> list[tuple[int, bytes]]:
        """Return (path, datagram) of all that is due."""
        if self.done or now < self._due:
            return []
        if self._tries == MOST_CLOSES:
            self.done = True
            return []
        self._due = now + min(self._patience * 2**self._tries, MOST_PATIENCE)
        self._tries += 1
        return [
            (path.index, encode_open(Open(CLOSE, path.index, self._connection, now))) for path in self._paths
        ]

    def next_timeout(self) -> float:
        """Return when `datagrams_to_send` is due."""
        return self._due


def is_request(kind: int, path: int, datagram: bytes, connection: int) -> bool:
    """Return whether a datagram is of this kind (CLOSE, CLOSED, ..) and belongs to this path and connection."""
    packet = decode(datagram)
    return (
        isinstance(packet, Open)
        and packet.kind == kind
        and packet.path == path
        and packet.connection == connection
    )
