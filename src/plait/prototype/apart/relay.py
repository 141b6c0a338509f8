"""The datagrams of one end, which plait's agent relays: a socket to the agent for each path, and the host's clock."""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LARGEST = 2048
_AT_ONCE = 16
"""Datagrams of a path that are taken before the next look at the clock."""


class RelayedPaths:
    """The paths of one end. Times are seconds since the zero of the trial on this host."""

    def __init__(self, descriptors: Sequence[int], zero_ns: int) -> None:
        """Take the descriptors of the paths' sockets, in their order."""
        self._zero_ns = zero_ns
        self._sockets = [
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, descriptor) for descriptor in descriptors
        ]
        for opened in self._sockets:
            opened.setblocking(False)

    def now(self) -> float:
        """Return the time."""
        return (time.monotonic_ns() - self._zero_ns) / 1e9

    def send(self, datagrams: Iterable[tuple[int, bytes]]) -> None:
        """Send (path, datagram). What finds no room is lost, as in a queue of the network."""
        for path, datagram in datagrams:
            try:
                self._sockets[path].send(datagram)
            except OSError:
                continue

    def receive(self, due: float | None, take: Callable[[int, bytes, float], None]) -> float:
        """Wait until a datagram arrives or `due` comes; `take` each one (path, datagram, time). Return the time."""
        patience = None if due is None else max(0.0, due - self.now())
        ready, _, _ = select.select(self._sockets, (), (), patience)
        now = self.now()
        for opened in ready:
            path = self._sockets.index(opened)
            for _ in range(_AT_ONCE):
                try:
                    datagram = opened.recv(LARGEST)
                except OSError:
                    break
                if not datagram:
                    raise SystemExit("the agent has closed the connection")
                take(path, datagram, now)
        return now
