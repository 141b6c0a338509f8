"""Netlink of links that are devices (`plait_link`), for programs in a guest. It needs the standard library alone."""

from __future__ import annotations

import socket
import struct

ADDRESS, NAME, MTU, NAMESPACE = 1, 3, 4, 28
"""Attributes of any device."""
PEER, OUT, IN = 1, 2, 3
"""Attributes of a link: its other end, and the conditions of both directions."""
NESTED = 0x8000
EXCLUSIVE, CREATE = 0x200, 0x400
CONDITIONS = {
    "rate": (2, "Q"), "delay": (3, "Q"), "jitter": (4, "I"), "overtaking": (6, "B"), "loss": (7, "I"),
    "duplicate": (9, "I"), "reorder": (10, "I"), "corrupt": (11, "I"), "queue_packets": (12, "I"),
    "queue_bytes": (13, "I"), "bucket_rate": (14, "Q"), "bucket_burst": (15, "I"), "seed": (16, "Q"),
}  # fmt: skip
"""Attributes of a direction that are numbers, with their forms."""
TABLE, GILBERT_ELLIOTT, QDISC, QDISC_OPTIONS = 5, 8, 17, 18
LINES, SOJOURNS = 1, 2
"""What the kernel dumps of all links: counters, and times in the queue."""
LINE, SOJOURN_TIMES = 2, 5
"""The attribute of a dumped message that has them."""
COUNTERS = (
    *("packets", "bytes", "lost", "overflow", "refused", "corrupted", "duplicated", "reordered"),
    *("queue_packets", "queue_bytes", "flying", "tokens", "sojourn_ns", "down"),
)
"""The fields of struct plait_line_counters; `packets` and `bytes` have arrived."""

_NEW, _DELETE, _FETCH = 16, 17, 18
_REQUEST, _ACK, _DUMP, _ERROR, _DONE = 1, 4, 0x300, 2, 3
_LINK_INFO, _KIND, _DATA, _STATISTICS = 18, 1, 2, 3
_GENERIC, _CONTROLLER, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 16, 3, 1, 2
_KIND_NAME = b"plait_link\0"
_MOST_BYTES = 1 << 17


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute of netlink."""
    return struct.pack("=HH", len(value) + 4, kind) + value + b"\0" * (-len(value) % 4)


def condition(name: str, value: int) -> bytes:
    """Return the attribute of a condition that is a number."""
    kind, form = CONDITIONS[name]
    return attribute(kind, struct.pack(f"={form}", value))


def value_of(attributes: bytes, wanted: int) -> bytes:
    """Return the value of an attribute in a sequence of them; raise KeyError if it has none."""
    position = 0
    while position + 4 <= len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, position)
        if kind & 0x3FFF == wanted:
            return attributes[position + 4 : position + length]
        position += (length + 3) & ~3
    raise KeyError(wanted)


class NetlinkSocket:
    """A socket of netlink in one namespace that waits for each answer, and raises OSError of the kernel's refusals."""

    def __init__(self, protocol: int = 0) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.bind((0, 0))

    def ask(self, kind: int, flags: int, payload: bytes) -> bytes:
        """Send a request, and return the first answer."""
        self.socket.send(struct.pack("=IHHII", 16 + len(payload), kind, _REQUEST | flags, 1, 0) + payload)
        answer = self.socket.recv(_MOST_BYTES)
        if struct.unpack_from("=H", answer, 4)[0] == _ERROR and struct.unpack_from("=i", answer, 16)[0]:
            raise OSError(-struct.unpack_from("=i", answer, 16)[0], f"netlink {kind}: {answer[36:]!r}")
        return answer

    def link(
        self, name: str, data: bytes, flags: int = 0, extra: bytes = b"", *, enabled: bool = False
    ) -> None:
        """Make or change a link by its end `name`; `extra` has attributes of the device."""
        info = attribute(_KIND, _KIND_NAME) + attribute(_DATA | NESTED, data)
        payload = (
            _named(name, enabled=enabled, changes=enabled) + extra + attribute(_LINK_INFO | NESTED, info)
        )
        self.ask(_NEW, _ACK | flags, payload)

    def device(self, name: str, extra: bytes = b"", *, enabled: bool | None = None) -> None:
        """Change attributes of a device, or whether it is up."""
        self.ask(_NEW, _ACK, _named(name, enabled=bool(enabled), changes=enabled is not None) + extra)

    def remove(self, name: str) -> None:
        """Remove a device; the other end of its link goes, too."""
        self.ask(_DELETE, _ACK, _named(name))

    def line(self, name: str) -> bytes:
        """Return struct plait_line_counters of the direction out of a device."""
        answer = self.ask(_FETCH, 0, _named(name))
        return value_of(value_of(answer[32:], _LINK_INFO), _STATISTICS)


def header(*, enabled: bool = False, changes: bool = False) -> bytes:
    """Return the header of a message about a device that is named by an attribute."""
    return struct.pack("=BxHiII", 0, 0, 0, enabled, changes)


def _named(name: str, *, enabled: bool = False, changes: bool = False) -> bytes:
    return header(enabled=enabled, changes=changes) + attribute(NAME, name.encode() + b"\0")


def counters(line: bytes) -> dict[str, int]:
    """Return struct plait_line_counters as numbers by their names."""
    return dict(zip(COUNTERS, struct.unpack(f"={len(COUNTERS)}Q", line), strict=True))


def dump(command: int) -> list[bytes]:
    """Return the attributes of each message in a dump of all links of this namespace: of `LINES` or `SOJOURNS`."""
    generic = NetlinkSocket(_GENERIC)
    name = attribute(_FAMILY_NAME, _KIND_NAME)
    answer = generic.ask(_CONTROLLER, 0, bytes((_GET_FAMILY, 1, 0, 0)) + name)
    family = struct.unpack("=H", value_of(answer[20:], _FAMILY_ID))[0]
    answer, messages = generic.ask(family, _DUMP, bytes((command, 1, 0, 0))), list[bytes]()
    while True:
        position = 0
        while position < len(answer):
            length, kind = struct.unpack_from("=IH", answer, position)
            if kind == _DONE:
                generic.socket.close()
                return messages
            messages.append(answer[position + 20 : position + length])
            position += (length + 3) & ~3
        answer = generic.socket.recv(_MOST_BYTES)
