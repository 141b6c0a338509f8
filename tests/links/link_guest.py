"""Runs in the guest as root: sends packets over links of the kernel, and tells when they entered and arrived.

    link_guest.py CASES RESULTS

CASES is a JSON file: a list of cases, each with the conditions of a link, a seed, and what to send: [[gap in ns,
size], ..]. A case may have a change: after that many packets, the link gets other conditions. RESULTS gets for each
case the entries [[time, number, size], ..] that the sender's interface saw, the arrivals that the other one saw, in
their order, the counters of the link, its times in the queue, and the tokens before and after the change. In a case
with `down`, one end goes down after the last packet; in one with `sample`, the result has the time and the tokens
before each group of this number of packets.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

ETHERTYPE = 0x88B5  # for local experiments (IEEE 802)
MACS = (bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b"))
NAMES = ("la", "lb")
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
REQUEST, ACK, EXCL, CREATE = 1, 4, 0x200, 0x400
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO = 1, 3, 4, 18
INFO_KIND, INFO_DATA, INFO_XSTATS = 1, 2, 3
PEER, OUT, IN = 1, 2, 3
NESTED = 0x8000
FIELDS = {
    "rate": (2, "Q"),
    "delay": (3, "Q"),
    "jitter": (4, "I"),
    "overtaking": (6, "B"),
    "loss": (7, "I"),
    "duplicate": (9, "I"),
    "reorder": (10, "I"),
    "corrupt": (11, "I"),
    "queue_packets": (12, "I"),
    "queue_bytes": (13, "I"),
    "bucket_rate": (14, "Q"),
    "bucket_burst": (15, "I"),
}
TABLE, GE, SEED, QDISC, QDISC_OPTIONS = 5, 8, 16, 17, 18
NETLINK_GENERIC, CONTROLLER, DUMP, DONE = 16, 16, 0x300, 3
GET_FAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2
COUNT_LINE, COUNT_SOJOURNS = 2, 5
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
COUNTERS = (
    *("packets", "bytes", "lost", "overflow", "refused", "corrupted", "duplicated", "reordered"),
    *("queue_packets", "queue_bytes", "flying", "tokens", "sojourn_ns", "down"),
)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", len(value) + 4, kind) + value + b"\0" * (-len(value) % 4)


def conditions(case: dict) -> bytes:
    """Return the nested attributes of a case's conditions."""
    out = b"".join(
        attribute(kind, struct.pack(f"={form}", case["link"][name]))
        for name, (kind, form) in FIELDS.items()
        if name in case["link"] and (name != "bucket_burst" or case["link"][name])
    )
    out += attribute(TABLE, struct.pack(f"={len(case['link']['table'])}h", *case["link"]["table"]))
    out += attribute(GE, struct.pack("=4I", *case["link"]["ge"]))
    if "seed" in case:
        out += attribute(SEED, struct.pack("=Q", case["seed"]))
    if "qdisc" in case:
        kind, options = case["qdisc"]
        out += attribute(QDISC, kind.encode() + b"\0")
        out += attribute(QDISC_OPTIONS, b"".join(attribute(k, struct.pack("=I", v)) for k, v in options))
    return out


class Netlink:
    """A socket for netlink that waits for each acknowledgement."""

    def __init__(self, protocol: int = 0) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.bind((0, 0))

    def ask(self, kind: int, flags: int, payload: bytes) -> bytes:
        self.socket.send(struct.pack("=IHHII", 16 + len(payload), kind, REQUEST | flags, 1, 0) + payload)
        answer = self.socket.recv(65536)
        if struct.unpack_from("=H", answer, 4)[0] == 2 and struct.unpack_from("=i", answer, 16)[0]:
            raise OSError(-struct.unpack_from("=i", answer, 16)[0], f"netlink {kind}: {answer[36:]!r}")
        return answer

    def link(self, index: int, data: bytes, flags: int, extra: bytes = b"", up: int = 0) -> None:
        info = attribute(INFO_KIND, b"plait_link\0") + attribute(INFO_DATA | NESTED, data)
        header = struct.pack("=BxHiII", 0, 0, index, up, up)
        self.ask(RTM_NEWLINK, ACK | flags, header + extra + attribute(IFLA_LINKINFO | NESTED, info))

    def make(self, case: dict) -> None:
        """Make both ends, up."""
        ends = [
            attribute(IFLA_IFNAME, name.encode() + b"\0")
            + attribute(IFLA_ADDRESS, mac)
            + attribute(IFLA_MTU, struct.pack("=I", case["mtu"]))
            for name, mac in zip(NAMES, MACS, strict=True)
        ]
        peer = struct.pack("=BxHiII", 0, 0, 0, 1, 1) + ends[1]
        data = attribute(PEER, peer) + attribute(OUT | NESTED, conditions(case))
        self.link(0, data, CREATE | EXCL, ends[0], up=1)

    def down(self, name: str) -> None:
        self.ask(RTM_NEWLINK, ACK, struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(name), 0, 1))

    def xstats(self) -> bytes:
        index = socket.if_nametoindex(NAMES[0])
        answer = self.ask(RTM_GETLINK, 0, struct.pack("=BxHiII", 0, 0, index, 0, 0))
        return find(find(answer[32:], IFLA_LINKINFO), INFO_XSTATS)

    def remove(self) -> None:
        index = socket.if_nametoindex(NAMES[0])
        self.ask(RTM_DELLINK, ACK, struct.pack("=BxHiII", 0, 0, index, 0, 0))


def counters(netlink: Netlink) -> tuple[dict, list[int]]:
    """Return the counters of the direction that leaves the first device, and its times in the queue."""
    line, sojourns = find(dump(1), COUNT_LINE), find(dump(2), COUNT_SOJOURNS)
    assert line == netlink.xstats()
    return dict(zip(COUNTERS, struct.unpack(f"={len(COUNTERS)}Q", line), strict=True)), list(
        struct.unpack(f"={len(sojourns) // 8}Q", sojourns)
    )


def dump(command: int) -> bytes:
    """Return the attributes of the first message of a dump of all links."""
    generic = Netlink(NETLINK_GENERIC)
    name = attribute(FAMILY_NAME, b"plait_link\0")
    answer = generic.ask(CONTROLLER, 0, bytes((GET_FAMILY, 1, 0, 0)) + name)
    family = struct.unpack("=H", find(answer[20:], FAMILY_ID))[0]
    answer = generic.ask(family, DUMP, bytes((command, 1, 0, 0)))
    message = answer[20 : struct.unpack_from("=I", answer)[0]]
    while struct.unpack_from("=H", answer, 4)[0] != DONE:
        answer = generic.socket.recv(65536)
    generic.socket.close()
    return message


def find(attributes: bytes, wanted: int) -> bytes:
    at = 0
    while at < len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, at)
        if kind & 0x3FFF == wanted:
            return attributes[at + 4 : at + length]
        at += (length + 3) & ~3
    raise KeyError(wanted)


def tap(name: str) -> socket.socket:
    """Return a socket that sees each packet of an interface, with its time."""
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    out.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 29)
    out.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    out.bind((name, 3))
    return out


def seen(from_tap: socket.socket, outgoing: bool) -> list[list[int]]:
    """Read everything that a tap has: (ns, number of the packet, bytes); a corrupted number is -1."""
    out = []
    while True:
        try:
            frame, ancillary, _, address = from_tap.recvmsg(70000, 64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return out
        except OSError as error:
            if error.errno != errno.ENETDOWN:  # what the kernel says once of an interface that went down
                raise
            continue
        if (address[2] == socket.PACKET_OUTGOING) != outgoing:
            continue
        seconds, ns = struct.unpack("=qq", ancillary[0][2])
        first, second = struct.unpack_from("!II", frame, 14)
        number = first if first == second ^ 0xFFFFFFFF else -1
        out.append([seconds * 10**9 + ns, number, len(frame)])


def perform(netlink: Netlink, case: dict) -> dict:
    netlink.make(case)
    taps = [tap(name) for name in NAMES]
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.bind((NAMES[0], ETHERTYPE))
    head = MACS[1] + MACS[0] + struct.pack("!H", ETHERTYPE)
    filler = bytes(70000)
    changed, held, levels = 0, [], []
    for number, (gap, size) in enumerate(case["packets"]):
        if gap:
            time.sleep(gap / 1e9)
        if case.get("change") and case["change"]["after"] == number:
            changed = time.clock_gettime_ns(time.CLOCK_REALTIME)
            held = [counters(netlink)[0]["tokens"]]
            data = attribute(OUT | NESTED, conditions(case["change"]))
            netlink.link(socket.if_nametoindex(NAMES[0]), data, 0)
            held.append(counters(netlink)[0]["tokens"])
        if case.get("sample") and number % case["sample"] == 0:
            levels.append((time.clock_gettime_ns(time.CLOCK_REALTIME), counters(netlink)[0]["tokens"]))
        sender.send(head + struct.pack("!II", number, number ^ 0xFFFFFFFF) + filler[: size - 22])
    if "down" in case:
        changed = time.clock_gettime_ns(time.CLOCK_REALTIME)
        netlink.down(case["down"])
    time.sleep(case["wait_s"])
    counts, sojourns = counters(netlink)
    result = {
        "entries": seen(taps[0], outgoing=True),
        "arrivals": seen(taps[1], outgoing=False),
        "counters": counts,
        "sojourns": sojourns,
        "changed": changed,
        "held": held,
        "levels": levels,
    }
    for each in (*taps, sender):
        each.close()
    netlink.remove()
    return result


def main() -> None:
    cases, results = map(Path, sys.argv[1:])
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    netlink = Netlink()
    performed = []
    for case in json.loads(cases.read_text()):
        try:
            performed.append(perform(netlink, case))
        except OSError as error:
            performed.append({"error": f"{case['name']}: {error}"})
    results.write_text(json.dumps(performed))


if __name__ == "__main__":
    try:
        main()
    finally:
        sys.stdout.flush()
        os.sync()
        ctypes.CDLL(None).reboot(0x4321FEDC)
