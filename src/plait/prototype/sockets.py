"""Runs a connection over UDP sockets: the sender in the network namespace in which it starts, the receiver in another.

Both ends share one process and one clock, so delays need no synchronisation.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from plait.prototype.application import Application
from plait.prototype.receiver import Receiver
from plait.prototype.reports import Reporter
from plait.prototype.sender import Sender

_LARGEST = 2048
_BUFFER = 16 << 20
_CLONE_NEWNET = 0x40000000
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
"""Options that ignore the limits of the machine."""


def enter(namespace: str) -> None:
    """Enter a network namespace by the path of its file. Raise OSError."""
    with Path(namespace).open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, f"entering {namespace}: {os.strerror(number)}")


def bound(address: str, port: int) -> socket.socket:
    """Return a UDP socket that is bound to an address. Raise OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setblocking(False)
    for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
        opened.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    opened.bind((address, port))
    return opened


class Sockets:
    """The sockets of both ends, and the loop that drives a connection over them."""

    def __init__(self, paths: Sequence[tuple[str, str]], port: int, server: str, zero_ns: int) -> None:
        """Open the sockets of paths (client address, server address); `server` is the namespace's file."""
        self._zero_ns = zero_ns
        self._clients = [bound(client, 0) for client, _ in paths]
        for opened, (_, address) in zip(self._clients, paths, strict=True):
            opened.connect((address, port))
        enter(server)
        servers = {address: bound(address, port) for address in dict.fromkeys(end for _, end in paths)}
        self._servers = [servers[address] for _, address in paths]
        self._peers: list[tuple[str, int] | None] = [None] * len(paths)
        self._all = [*self._clients, *servers.values()]
        self._path_of = {opened: index for index, opened in enumerate(self._clients)}

    @property
    def ports(self) -> list[int]:
        """The client's port on each path."""
        return [int(opened.getsockname()[1]) for opened in self._clients]

    def now(self) -> float:
        """Return the time since the zero of the trial, in seconds."""
        return (time.monotonic_ns() - self._zero_ns) / 1e9

    def run(
        self,
        sender: Sender,
        receiver: Receiver,
        application: Application,
        reporter: Reporter,
        interval: float,
    ) -> None:
        """Run the connection to its end, and sample it every `interval` seconds of the trial."""
        now = self.now()
        reporter.event("started", now)
        sender.open(now)
        application.begin(now)
        sample = (now // interval + 1) * interval
        while not application.ended(now):
            if sender.connected_at is not None:
                sender.written = application.written(now, sender.acked)
            self._send(sender, receiver, now)
            times = [sender.next_timeout(), receiver.next_timeout(), application.next_time()]
            times += [sample, application.end_time()]
            due = min(time for time in times if time is not None)
            now = self._receive(sender, receiver, now, due)
            reporter.joins(sender, now)
            if now >= sample:
                reporter.sample(sender, receiver, sample)
                reporter.flush()
                sample = (now // interval + 1) * interval

    def _send(self, sender: Sender, receiver: Receiver, now: float) -> None:
        for index, datagram in sender.datagrams_to_send(now):
            try:
                self._clients[index].send(datagram)
            except OSError:
                continue  # the network or its queue lost it
        for index, datagram in receiver.datagrams_to_send(now):
            peer = self._peers[index]
            if peer is not None:
                try:
                    self._servers[index].sendto(datagram, peer)
                except OSError:
                    continue

    def _receive(self, sender: Sender, receiver: Receiver, now: float, due: float) -> float:
        """Wait until a datagram arrives or `due` comes, take one datagram of each socket, and return the time."""
        ready, _, _ = select.select(self._all, (), (), max(0.0, due - now))
        now = self.now()
        for opened in ready:
            try:
                datagram, peer = opened.recvfrom(_LARGEST)
            except OSError:
                continue  # an error of a datagram that was sent here
            index = self._path_of.get(opened)
            if index is not None:
                sender.receive(index, datagram, now)
            elif len(datagram) > 1 and datagram[1] < len(self._peers):
                self._peers[datagram[1]] = peer
                receiver.receive(datagram[1], datagram, now)
        return now
