"""The guest's side of a hunt: namespaces, and sockets of the kernel. It needs the standard library alone."""

from __future__ import annotations

import ctypes
import os
import re
import socket
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

LIBC = ctypes.CDLL(None, use_errno=True)
_NETWORK, _OWN = 0x4000_0000, "/proc/thread-self/ns/net"
_DESTROY, _DUMP = 21, 20
ESTABLISHED = 1 << 1
COUNTED = ESTABLISHED | 1 << 2 | 1 << 3
"""The states in which a connection counts its first subflow (`__mptcp_has_initial_subflow`)."""
ALIVE = 0xFFF & ~(1 << 10) & ~(1 << 7)
"""The states of TCP sockets that are neither listening nor closed."""
OPEN = ALIVE & ~(1 << 6)
"""These without TIME_WAIT, in which a connection still lists its first subflow."""
_SOL_MPTCP, _INFO, _SUBFLOW_ADDRS = 284, 1, 3
_MOST_SUBFLOWS = 32
_STORAGE = 128
_PROTOCOLS = ("TCP", "MPTCP", "TCPv6", "MPTCPv6")
_READ_AND_CLEAR, _LOG_BYTES = 4, 1 << 18
COMPLAINTS = re.compile(
    r"BUG:|WARNING:|KASAN|UBSAN|INFO: .*(?:lock|task|rcu)|possible .*deadlock|suspicious RCU"
    r"|Kernel panic|ODEBUG|Oops|refcount_t|Object .*corrupt|inconsistent lock state|sleeping function"
)
"""Lines of the kernel's log that report a fault."""
CREATE_SUBFLOW, DESTROY_SUBFLOW = 10, 11
"""Commands of the path manager's generic netlink (linux/mptcp_pm.h)."""
_TCP_INFO, _BYTES_SENT, _MESSAGE = 2, 200, 72
"""The attribute of sock_diag with struct tcp_info, the place of a field in it, and the size of what precedes it."""
_LOCAL, _TOKEN, _REMOTE = 1, 4, 6
_FAMILY, _ID, _ADDRESS, _ADDRESS6, _PORT = 1, 2, 3, 4, 5
Addresses = tuple[bytes, int, bytes, int]
"""Local address and port, remote address and port of a subflow."""


class Information(NamedTuple):
    """What MPTCP_INFO says of a connection."""

    fell_back: bool
    token: int
    write_sequence: int
    acknowledged: int
    """The peer has acknowledged all bytes before this sequence number."""
    expected: int
    """The sequence number of the next byte from the peer."""
    subflows: int


class HuntNamespace:
    """A network namespace, and actions in it. It lives until it is closed and nothing of it is open."""

    def __init__(self, name: str) -> None:
        """Make a namespace without a name of `ip netns`, which would cost a program."""
        self.name = name
        before = home()
        if LIBC.unshare(_NETWORK):
            raise OSError(ctypes.get_errno(), f"making the namespace {name}")
        self._handle = home()
        leave(before)
        os.close(before)

    @property
    def path(self) -> str:
        """The namespace as a file, as long as this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._handle}"

    def close(self) -> None:
        """Let the namespace end."""
        os.close(self._handle)

    def enter(self) -> None:
        """Make it the namespace of this process, for what it opens and starts next."""
        if LIBC.setns(self._handle, _NETWORK):
            raise OSError(ctypes.get_errno(), f"entering {self.name}")

    def batch(self, program: str, lines: list[str]) -> None:
        """Run lines of `ip`, `ip -6` or `tc` in the namespace."""
        self.enter()
        run([*program.split(), "-batch", "-"], "\n".join(lines) + "\n")

    def nft(self, text: str) -> None:
        """Run commands of `nft` in the namespace."""
        self.enter()
        run(["nft", "-f", "-"], text)

    def ip(self, words: str) -> bool:
        """Run one command of `ip`; return whether it succeeded."""
        self.enter()
        answer = subprocess.run(["ip", *words.split()], capture_output=True, check=False)
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
        return sum(int(line.split()[2]) for line in lines if line.split()[0] in _PROTOCOLS)

    def counters(self) -> dict[str, int]:
        """Return the counters of the namespace (see `counters`)."""
        self.enter()
        return counters()


def home() -> int:
    """Return the present namespace, to return there."""
    return os.open(_OWN, os.O_RDONLY)


def leave(home: int) -> None:
    """Return to a namespace of `home`."""
    if LIBC.setns(home, _NETWORK):
        raise OSError(ctypes.get_errno(), "leaving a namespace")


def run(command: list[str], text: str = "") -> None:
    """Run a program of the host; raise CalledProcessError with what it printed."""
    subprocess.run(command, input=text.encode(), check=True, capture_output=True)


def information(connection: socket.socket) -> Information | None:
    """Return MPTCP_INFO of an MPTCP socket, or None if it is none any more."""
    try:
        data = connection.getsockopt(_SOL_MPTCP, _INFO, 96)
    except OSError:
        return None
    flags, token, written, acknowledged, expected = struct.unpack_from("=IIQQQ", data, 8)
    return Information(bool(flags & 1), token, written, acknowledged, expected, data[80])


def path_address(family: int, address: str, port: int = 0, identifier: int = 0) -> bytes:
    """Return an address as a nested attribute of a command of the path manager."""
    packed = socket.inet_pton(family, address)
    fields = [(_FAMILY, struct.pack("=H", family)), (_ADDRESS if len(packed) == 4 else _ADDRESS6, packed)]
    fields += [(_ID, struct.pack("B", identifier))] if identifier else []
    fields += [(_PORT, struct.pack("=H", port))] if port else []
    return b"".join(_attribute(kind, value) for kind, value in fields)


def path_command(command: int, token: int, local: bytes, remote: bytes) -> bool:
    """Send a command of a path manager in user space; return whether the kernel did it."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as generic:
        generic.settimeout(1.0)
        name = _attribute(2, b"mptcp_pm\0")
        generic.send(struct.pack("=IHHII", 20 + len(name), 16, 1, 1, 0) + struct.pack("=BBxx", 3, 1) + name)
        # the answer's first two attributes are the family's name (as long as above) and number
        family = struct.unpack_from("=H", generic.recv(65_536), 20 + len(name) + 4)[0]
        body = struct.pack("=BBxx", command, 1) + _attribute(_TOKEN, struct.pack("=I", token))
        body += _attribute(_LOCAL | 0x8000, local) + _attribute(_REMOTE | 0x8000, remote)
        generic.send(struct.pack("=IHHII", 16 + len(body), family, 5, 2, 0) + body)
        while True:
            data = generic.recv(65_536)
            if struct.unpack_from("=4xHxxI", data) == (2, 2):
                return bool(struct.unpack_from("=i", data, 16)[0] == 0)


def _attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)


def subflows(connection: socket.socket) -> list[Addresses]:
    """Return the addresses of each subflow of an MPTCP socket."""
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
        ends = (_address(buffer.raw, position), _address(buffer.raw, position + _STORAGE))
        entries.append((*ends[0], *ends[1]))
    return entries


def _address(data: bytes, position: int) -> tuple[bytes, int]:
    """Return address and port of a sockaddr_in or sockaddr_in6."""
    family, port = struct.unpack_from("=H", data, position)[0], struct.unpack_from(">2xH", data, position)[0]
    start, size = (8, 16) if family == socket.AF_INET6 else (4, 4)
    return data[position + start : position + start + size], port


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
    family = socket.AF_INET if len(local) == 4 else socket.AF_INET6
    for identity in sockets(diag, family=family):
        ports = struct.unpack_from(">HH", identity)
        if ports == (local_port, remote_port) and identity[4 : 4 + len(local)] == local:
            destroy_identity(diag, identity, family)
            return True
    return False


def destroy_identity(diag: socket.socket, identity: bytes, family: int = socket.AF_INET) -> None:
    """Destroy the TCP socket with this sock_diag identity; OSError if no answer comes."""
    request = struct.pack("=BBxxI", family, 6, 0xFFF) + identity
    diag.send(struct.pack("=IHHII", 72, _DESTROY, 5, 1, 0) + request)
    diag.recv(65_536)


def ports(diag: socket.socket, states: int, family: int) -> set[tuple[int, int]]:
    """Return (local port, remote port) of each TCP socket of a namespace in one of these states."""
    pairs = (struct.unpack_from(">HH", identity) for identity in sockets(diag, states, family))
    return {(local, remote) for local, remote in pairs}


def bytes_sent(diag: socket.socket, family: int) -> dict[tuple[int, int], int]:
    """Return the payload that each TCP socket of a namespace has sent, by (local port, remote port)."""
    sent = {}
    for message in _dump(diag, OPEN, family, extensions=1 << (_TCP_INFO - 1)):
        position = _MESSAGE
        while position < len(message):
            size, kind = struct.unpack_from("=HH", message, position)
            if kind == _TCP_INFO:
                ports_of = struct.unpack_from(">HH", message, 4)
                sent[ports_of] = struct.unpack_from("=Q", message, position + 4 + _BYTES_SENT)[0]
            position += (size + 3) & ~3
    return sent


def sockets(diag: socket.socket, states: int = ALIVE, family: int = socket.AF_INET) -> list[bytes]:
    """Return the 48-byte sock_diag identity of each TCP socket of a namespace in one of these states.

    By default these are all but listening and closed.
    """
    return [message[4:52] for message in _dump(diag, states, family)]


def _dump(diag: socket.socket, states: int, family: int, extensions: int = 0) -> list[bytes]:
    """Return the answer of sock_diag for each TCP socket in one of these states: a struct inet_diag_msg, attributes."""
    request = struct.pack("=BBBxI48x", family, 6, extensions, states)
    diag.send(struct.pack("=IHHII", 16 + len(request), _DUMP, 0x301, 1, 0) + request)
    answers: list[bytes] = []
    while True:
        data, position = diag.recv(1 << 18), 0
        while position < len(data):
            length, kind = struct.unpack_from("=IH", data, position)
            if kind in (2, 3):
                return answers
            answers.append(data[position + 16 : position + length])
            position += (length + 3) & ~3


def kernel_log() -> str:
    """Return the lines of the kernel's log since the last call."""
    buffer = ctypes.create_string_buffer(_LOG_BYTES)
    length = LIBC.klogctl(_READ_AND_CLEAR, buffer, _LOG_BYTES)
    return buffer.raw[: max(length, 0)].decode(errors="replace")


def output(command: list[str]) -> str:
    """Return what a program prints."""
    answer = subprocess.run(command, check=False, capture_output=True)
    return answer.stdout.decode(errors="replace")
