"""Serves a running network to any number of prompts over a Unix socket, with one thread between them and the guest.

A client sends one JSON record per line: first the program to run, then orders for it (input, size, signal). It receives
the frames of its program (`plait.engine.virtual.session`), and the connection ends with the program. If a client
disconnects, its program gets SIGHUP.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from plait.engine.interactive import END, ProgramEnd, ProgramStart, PromptedGuest, TerminalSize
from plait.errors import TrialError

_HEADER = struct.Struct("<III")
_LINE_BYTES = 1 << 16
_PATIENCE_S = 10.0


@contextlib.contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Yield an address of the Unix socket `path`: Linux takes at most 107 bytes, and a cache may be further down.

    Raises OSError if its folder cannot be opened.
    """
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


@dataclass
class _Client:
    connection: socket.socket
    run: int | None = None
    behind: bool = False
    """The program runs in the background: no prompt waits for its end."""
    rest: bytes = b""


@dataclass
class PromptServer:
    """Serves `session` at the Unix socket `path` until the `with` block ends."""

    session: PromptedGuest
    path: Path
    _clients: dict[int, _Client] = field(default_factory=dict)
    failure: TrialError | None = None
    """Why plait ended the guest, if it did."""
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        """Start the server."""
        self._server = socket.socket(socket.AF_UNIX)
        with short_address(self.path) as address:
            self._server.bind(address)
        self._server.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_PATIENCE_S)
        self.path.unlink(missing_ok=True)
        self._server.close()

    def _serve(self) -> None:
        try:
            self._until_over()
        except (
            TrialError
        ) as error:  # the guest wrote something that no intact guest writes, or exceeded its disk limit
            self.failure = error
            self.session.end()
        for client in list(self._clients.values()):
            self._drop(client)

    def _until_over(self) -> None:
        while not self._over.is_set():
            self.session.check_disk()
            needed = any(client.run and not client.behind for client in self._clients.values())
            timeout_s = self.session.run_clock(needed=needed)
            readable = self.session.wait([self._server.fileno(), *self._clients], timeout_s)
            for descriptor in readable:
                if descriptor == self._server.fileno():
                    connection, _ = self._server.accept()
                    connection.settimeout(_PATIENCE_S)
                    self._clients[connection.fileno()] = _Client(connection)
                else:
                    self._read(self._clients[descriptor])
            for frame in self.session.frames():
                self._pass_on(frame.run, frame.kind, frame.content)
            if self.session.has_ended():
                break

    def _read(self, client: _Client) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = client.connection.recv(_LINE_BYTES)
        if not data:
            if client.run is not None:
                self.session.send_order({"do": "signal", "run": client.run, "number": int(signal.SIGHUP)})
                self.session.run_clock_briefly()
            self._drop(client)
            return
        *lines, client.rest = (client.rest + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if client.run is None:
                client.run, client.behind = next(self.session.numbers), order.pop("behind")
                order = {"do": "start", **order}
            if order["do"] == "input":
                self.session.feed(client.run, (order["data"] or "").encode("latin-1"))
            else:
                self.session.send_order({**order, "run": client.run})
            if client.behind:
                self.session.run_clock_briefly()

    def _pass_on(self, run: int, kind: int, content: bytes) -> None:
        for client in list(self._clients.values()):
            if client.run == run:
                with contextlib.suppress(OSError):  # the client has disconnected; the next read detects it
                    client.connection.sendall(_HEADER.pack(run, kind, len(content)) + content)
                if kind == END:
                    self._drop(client)

    def _drop(self, client: _Client) -> None:
        del self._clients[client.connection.fileno()]
        client.connection.close()


class Run:
    """One program in a node of a running network, as its client sees it."""

    def __init__(self, path: Path, start: ProgramStart, *, behind: bool = False) -> None:
        """Start the program (TrialError if the network has ended). `behind`: run it in the background."""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            with short_address(path) as address:
                self._socket.connect(address)
        except OSError as error:
            raise TrialError(
                f"joining the network at {path}: {error.strerror}; start it again with `plait shell`"
            ) from error
        self._rest = b""
        record = {**start.record(), "behind": behind}
        del record["run"]
        self._send(record)

    def fileno(self) -> int:
        """Return the descriptor that is readable when new frames arrive."""
        return self._socket.fileno()

    def close(self) -> None:
        """Disconnect from the program; it gets SIGHUP."""
        self._socket.close()

    def _send(self, record: dict[str, object]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the program has ended; reading reports how
            self._socket.sendall(json.dumps(record).encode() + b"\n")

    def feed(self, data: bytes) -> None:
        """Pass input to the program; empty `data` ends it."""
        self._send({"do": "input", "data": data.decode("latin-1") if data else None})

    def resize(self, size: TerminalSize) -> None:
        """Report the new size of the terminal to the program."""
        self._send({"do": "size", "size": size._asdict()})

    def signal(self, number: int) -> None:
        """Send a signal to the program."""
        self._send({"do": "signal", "number": number})

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield the new frames: pieces of output, and last the end (TrialError if the network has ended)."""
        data = self._socket.recv(1 << 20)
        if not data:
            raise TrialError(
                "the guest has ended, and the network with it; start it again with `plait shell`"
            )
        data = self._rest + data
        at = 0
        while len(data) - at >= _HEADER.size:
            _, kind, length = _HEADER.unpack_from(data, at)
            if len(data) - at < _HEADER.size + length:
                break
            at += _HEADER.size + length
            yield kind, data[at - length : at]
        self._rest = data[at:]

    def finish(self, output: int | None = None) -> ProgramEnd:
        """Wait for the end of the program and return its record; copy its output to the descriptor `output`."""
        while True:
            select.select([self], [], [])
            for kind, content in self.frames():
                if kind == END:
                    self.close()
                    return ProgramEnd.read(content)
                if output is not None:
                    os.write(output, content)
