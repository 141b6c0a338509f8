"""The guest's side of a hunt: both ends of a connection, which check each byte. It needs the standard library alone."""

from __future__ import annotations

import os
import select
import socket
import struct
from dataclasses import dataclass

_SO_MEMINFO = 55
BLOCK = 65_521
"""The length of the block of random bytes that a stream repeats; a prime, so that no segment has this period."""


@dataclass
class End:
    """One end of a connection."""

    side: str
    number: int
    out: bytes
    """The block that repeats in what it sends, twice."""
    into: bytes
    """The block that repeats in what it receives, twice."""
    to_send: int
    expected: int
    """Bytes that it receives before it ends its stream."""
    hold: bool
    read_every_s: float = 0.0
    """The time between two reads of a block; 0: it reads all that there is at once."""
    write_bytes: int = 0
    """The bytes of a write, which TCP sends at once; 0: it writes all that the socket takes."""
    write_every_s: float = 0.0
    """The time between two writes; 0: it writes as soon as the socket takes bytes."""
    read_by: str = "recv"
    """How it reads (see `HuntConnection.read_by`)."""
    fast_open: bool = False
    """Its first write connects it."""
    answered: bool = False
    """An edge came after that write: the handshake has ended. Linux disconnects who ends a stream before."""
    pipe: tuple[int, int] | None = None
    """What it splices into."""
    reads_at_s: float = 0.0
    """When it reads next."""
    writes_at_s: float = 0.0
    """When it writes next."""
    socket: socket.socket | None = None
    readable: bool = False
    """An edge said that there is something to read, and no read has found nothing since."""
    writable: bool = False
    """An edge said that the socket takes bytes, and it has taken all since."""
    file: int = -1
    """The descriptor of the socket in epoll(7)."""
    connected: bool = False
    sent: int = 0
    received: int = 0
    ended: bool = False
    """It has ended its stream."""
    closed: bool = False
    reset: bool = False
    """It was closed so that its peer sees a reset."""
    saw_end: bool = False
    error: str | None = None

    def prepare(self) -> None:
        """Set the options of a new socket."""
        assert self.socket is not None
        if self.write_bytes:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connect(self) -> None:
        """Note that the connection is established; raise OSError if it failed."""
        assert self.socket is not None
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self.connected = True

    def write(self, now_s: float) -> bool:
        """Send what the socket takes, or one piece if it writes slowly; return whether it took any."""
        assert self.socket is not None
        moved = False
        while self.sent < self.to_send and now_s >= self.writes_at_s:
            position = self.sent % BLOCK
            piece = self.out[position : position + min(self.write_bytes or BLOCK, self.to_send - self.sent)]
            try:
                count = self.socket.send(piece)
            except BlockingIOError:
                self.writable = False
                return moved
            self.sent += count
            moved = True
            if self.write_every_s:
                self.writes_at_s = now_s + self.write_every_s
        if self.ends_now():
            self.ended = True
            self.socket.shutdown(socket.SHUT_WR)
        return moved

    def read(self, now_s: float) -> str | None:
        """Read what there is, or a block if it reads slowly; return what is wrong with it."""
        assert self.socket is not None
        if now_s < self.reads_at_s or (self.fast_open and not self.sent):
            return None
        self.reads_at_s = now_s + self.read_every_s
        for _ in range(1 if self.read_every_s else 64):
            position = self.received % BLOCK
            try:
                if self.read_by in {"peek", "peek_all"}:
                    data = self._peek()
                    if data != self.into[position : position + len(data)]:
                        return (
                            f"MSG_PEEK shows wrong content within {len(data)} bytes from byte {self.received}"
                        )
                data = self._splice() if self.read_by == "splice" else self.socket.recv(BLOCK)
            except BlockingIOError:
                self.readable = False
                return None
            if not data:
                self.saw_end = True
                return None
            if data != self.into[position : position + len(data)]:
                return f"wrong content within {len(data)} bytes from byte {self.received}"
            self.received += len(data)
        return None

    def _peek(self) -> bytes:
        """Return what there is or comes within 10 ms, without receiving it."""
        assert self.socket is not None
        if self.read_by == "peek":
            return self.socket.recv(BLOCK, socket.MSG_PEEK)
        self.socket.setblocking(True)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 10_000))
        try:
            return self.socket.recv(BLOCK, socket.MSG_PEEK | socket.MSG_WAITALL)
        finally:
            self.socket.setblocking(False)

    def _splice(self) -> bytes:
        assert self.socket is not None
        self.pipe = self.pipe or os.pipe()
        count = os.splice(self.socket.fileno(), self.pipe[1], BLOCK, flags=os.SPLICE_F_NONBLOCK)
        return os.read(self.pipe[0], count) if count else b""

    def is_open(self) -> bool:
        """Return whether it is connected, and neither closed nor failed."""
        return self.socket is not None and self.connected and not self.closed and not self.error

    def is_served(self) -> bool:
        """Return whether it still reads or writes."""
        return self.socket is not None and not self.closed and not self.error

    def memory_is_full(self) -> bool:
        """Return whether the memory of what it has not read exceeds its receive buffer."""
        assert self.socket is not None
        used, limit = struct.unpack_from("=II", self.socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36))
        return bool(used > limit)

    def ends_now(self) -> bool:
        """Return whether it has nothing more to send, and has received what it waits for."""
        completed = self.sent == self.to_send and (self.received >= self.expected or self.saw_end)
        return completed and not self.ended and not self.hold and (self.answered or not self.fast_open)

    def notice(self, events: int) -> None:
        """Take an edge of epoll(7)."""
        self.answered |= self.sent > 0
        self.readable |= bool(events & ~select.EPOLLOUT)
        self.writable |= bool(events & ~select.EPOLLIN)

    def moves(self, now_s: float) -> bool:
        """Return whether it has something to do that the socket lets it do."""
        if not self.connected:
            return self.writable
        reads = self.readable and not self.saw_end and now_s >= self.reads_at_s
        writes = self.writable and self.sent < self.to_send and now_s >= self.writes_at_s
        return reads or writes or self.ends_now()


@dataclass
class Played:
    """A connection of the case, both ends."""

    client: End
    server: End
    start_s: float
    moved_s: float = 0.0
    disturbed: bool = False
    """An event closed, reset or destroyed something of it."""

    def ends(self) -> tuple[End, End]:
        """Return both ends."""
        return self.client, self.server

    def memory_is_full(self) -> bool:
        """Return whether the memory of a side is full that has not received all that the other sent."""
        sides = ((self.client, self.server), (self.server, self.client))
        return any(end.received < peer.sent and end.memory_is_full() for end, peer in sides if not end.closed)

    def unfinished(self) -> bool:
        """Return whether bytes or the end of a stream are on their way or still to be sent."""
        for sender, receiver in ((self.client, self.server), (self.server, self.client)):
            if receiver.closed or receiver.error or receiver.saw_end or sender.error:
                continue
            if not sender.closed and sender.sent < sender.to_send:
                return True
            if receiver.received < sender.sent or sender.ended or not (sender.closed or sender.hold):
                return True
        return False
