"""The guest's side of a hunt: namespaces, and sockets of the kernel. It needs the standard library alone."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
_NETWORK = 0x4000_0000
_DESTROY, _DUMP = 21, 20
_ESTABLISHED = 1 << 1
_ALIVE = 0xFFF & ~(1 << 10) & ~(1 << 7)
"""The states of TCP sockets that are neither listening nor closed."""
_SOL_MPTCP, _SUBFLOW_ADDRS = 284, 3
_MOST_SUBFLOWS = 32
_STORAGE = 128
_READ_ALL, _LOG_BYTES = 3, 1 << 18


class HuntNamespace:
    """A network namespace, and actions in it."""

    def __init__(self, name: str) -> None:
        """Make the namespace `name`."""
        self.name = name
        run(["ip", "netns", "add", name])
        self._handle = os.open(f"/run/netns/{name}", os.O_RDONLY)

    def enter(self) -> None:
        """Make it the namespace of this process, for what it opens next."""
        if LIBC.setns(self._handle, _NETWORK):
            raise OSError(ctypes.get_errno(), f"entering {self.name}")

    def batch(self, program: str, lines: list[str]) -> None:
        """Run lines of `ip` or `tc` in the namespace."""
        run([program, "-n", self.name, "-batch", "-"], "\n".join(lines) + "\n")

    def ip(self, words: str) -> bool:
        """Run one command of `ip`; return whether it succeeded."""
        answer = subprocess.run(["ip", "-n", self.name, *words.split()], capture_output=True, check=False)
        return answer.returncode == 0

    def setting(self, name: str, value: object) -> None:
        """Set a sysctl below net/."""
        self.enter()
        Path("/proc/sys/net", name).write_text(str(value), encoding="ascii")

    def socket(self, kind: int, protocol: int, family: int = socket.AF_INET) -> socket.socket:
        """Return a new socket in the namespace."""
        self.enter()
        return socket.socket(family, kind, protocol)

    def sockets_left(self) -> int:
        """Return the number of TCP and MPTCP sockets of the namespace."""
        self.enter()
        lines = Path("/proc/thread-self/net/protocols").read_text(encoding="ascii").splitlines()[1:]
        return sum(int(line.split()[2]) for line in lines if line.split()[0] in ("TCP", "MPTCP"))

    def counters(self) -> dict[str, int]:
        """Return the counters of the namespace (see `counters`)."""
        self.enter()
        return counters()


def run(command: list[str], text: str = "") -> None:
    """Run a program of the host; raise CalledProcessError with what it printed."""
    subprocess.run(command, input=text.encode(), check=True, capture_output=True)


def subflows(connection: socket.socket) -> list[tuple[bytes, int, bytes, int]]:
    """Return (local address, local port, remote address, remote port) of each subflow of an MPTCP socket."""
    size = 16 + 2 * _STORAGE * _MOST_SUBFLOWS
    request = struct.pack("=IIII", 16, 0, 0, 2 * _STORAGE).ljust(size, b"\0")
    # getsockopt() of Python passes no input, so this is the call of the C library
    buffer, length = ctypes.create_string_buffer(request, size), ctypes.c_uint32(size)
    if LIBC.getsockopt(connection.fileno(), _SOL_MPTCP, _SUBFLOW_ADDRS, buffer, ctypes.byref(length)):
        return []
    count = min(struct.unpack_from("=I", buffer.raw, 4)[0], _MOST_SUBFLOWS)
    entries = []
    for number in range(count):
        position = 16 + 2 * _STORAGE * number
        local_port, local = struct.unpack_from(">2xH4s", buffer.raw, position)
        remote_port, remote = struct.unpack_from(">2xH4s", buffer.raw, position + _STORAGE)
        entries.append((local, local_port, remote, remote_port))
    return entries


def counters() -> dict[str, int]:
    """Return the counters of MPTCP and those of TCP's connections in the present namespace."""
    values: dict[str, int] = {}
    for file, group in (("netstat", "MPTcpExt"), ("snmp", "Tcp")):
        lines = Path("/proc/thread-self/net", file).read_text(encoding="ascii").splitlines()
        names, numbers = (line.split()[1:] for line in lines if line.startswith(f"{group}:"))
        values |= {group + name: int(number) for name, number in zip(names, numbers, strict=True)}
    return values


def destroy(diag: socket.socket, local: bytes, local_port: int, remote_port: int) -> bool:
    """Destroy the TCP socket with these addresses, as `ss -K` does; return whether there was one."""
    for identity in sockets(diag):
        ports = struct.unpack_from(">HH", identity)
        if ports == (local_port, remote_port) and identity[4:8] == local:
            destroy_identity(diag, identity)
            return True
    return False


def destroy_identity(diag: socket.socket, identity: bytes) -> None:
    """Destroy the TCP socket with this sock_diag identity; OSError if no answer comes."""
    diag.send(struct.pack("=IHHII", 72, _DESTROY, 5, 1, 0) + struct.pack("=BBxxI", 2, 6, 0xFFF) + identity)
    diag.recv(65_536)


def established(diag: socket.socket) -> set[tuple[int, int]]:
    """Return (local port, remote port) of each established TCP socket of a namespace."""
    ports = (struct.unpack_from(">HH", identity) for identity in sockets(diag, _ESTABLISHED))
    return {(local, remote) for local, remote in ports}


def sockets(diag: socket.socket, states: int = _ALIVE) -> list[bytes]:
    """Return the 48-byte sock_diag identity of each TCP socket of a namespace in one of these states.

    By default these are all but listening and closed.
    """
    request = struct.pack("=BBxxI48x", 2, 6, states)
    diag.send(struct.pack("=IHHII", 16 + len(request), _DUMP, 0x301, 1, 0) + request)
    identities: list[bytes] = []
    while True:
        data, position = diag.recv(1 << 18), 0
        while position < len(data):
            length, kind = struct.unpack_from("=IH", data, position)
            if kind in (2, 3):
                return identities
            identities.append(data[position + 16 + 4 : position + 16 + 4 + 48])
            position += (length + 3) & ~3


def kernel_log() -> str:
    """Return the last lines of the kernel's log."""
    buffer = ctypes.create_string_buffer(_LOG_BYTES)
    length = LIBC.klogctl(_READ_ALL, buffer, _LOG_BYTES)
    return buffer.raw[: max(length, 0)].decode(errors="replace")


def output(command: list[str]) -> str:
    """Return what a program prints."""
    answer = subprocess.run(command, check=False, capture_output=True)
    return answer.stdout.decode(errors="replace")
