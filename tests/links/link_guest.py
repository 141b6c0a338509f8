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

from link_netlink import (
    ADDRESS,
    CONDITIONS,
    CREATE,
    EXCLUSIVE,
    GILBERT_ELLIOTT,
    LINE,
    LINES,
    MTU,
    NAME,
    NESTED,
    OUT,
    PEER,
    QDISC,
    QDISC_OPTIONS,
    SOJOURN_TIMES,
    SOJOURNS,
    TABLE,
    NetlinkSocket,
    attribute,
    condition,
    counters,
    dump,
    header,
    value_of,
)

ETHERTYPE = 0x88B5  # for local experiments (IEEE 802)
MACS = (bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b"))
NAMES = ("la", "lb")
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35


def conditions(case: dict) -> bytes:
    """Return the nested attributes of a case's conditions."""
    out = b"".join(
        condition(name, case["link"][name])
        for name in CONDITIONS
        if name in case["link"] and (name != "bucket_burst" or case["link"][name])
    )
    out += attribute(TABLE, struct.pack(f"={len(case['link']['table'])}h", *case["link"]["table"]))
    out += attribute(GILBERT_ELLIOTT, struct.pack("=4I", *case["link"]["ge"]))
    if "seed" in case:
        out += condition("seed", case["seed"])
    if "qdisc" in case:
        kind, options = case["qdisc"]
        out += attribute(QDISC, kind.encode() + b"\0")
        out += attribute(QDISC_OPTIONS, b"".join(attribute(k, struct.pack("=I", v)) for k, v in options))
    return out


def make(channel: NetlinkSocket, case: dict) -> None:
    """Make both ends of the link, up."""
    ends = [attribute(ADDRESS, mac) + attribute(MTU, struct.pack("=I", case["mtu"])) for mac in MACS]
    peer = header(enabled=True, changes=True) + attribute(NAME, NAMES[1].encode() + b"\0") + ends[1]
    data = attribute(PEER, peer) + attribute(OUT | NESTED, conditions(case))
    channel.link(NAMES[0], data, CREATE | EXCLUSIVE, ends[0], enabled=True)


def count(channel: NetlinkSocket) -> tuple[dict[str, int], list[int]]:
    """Return the counters of the direction that leaves the first device, and its times in the queue."""
    line, sojourns = value_of(dump(LINES)[0], LINE), value_of(dump(SOJOURNS)[0], SOJOURN_TIMES)
    assert line == channel.line(NAMES[0])
    return counters(line), list(struct.unpack(f"={len(sojourns) // 8}Q", sojourns))


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


def perform(channel: NetlinkSocket, case: dict) -> dict:
    make(channel, case)
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
            held = [count(channel)[0]["tokens"]]
            data = attribute(OUT | NESTED, conditions(case["change"]))
            channel.link(NAMES[0], data)
            held.append(count(channel)[0]["tokens"])
        if case.get("sample") and number % case["sample"] == 0:
            levels.append((time.clock_gettime_ns(time.CLOCK_REALTIME), count(channel)[0]["tokens"]))
        sender.send(head + struct.pack("!II", number, number ^ 0xFFFFFFFF) + filler[: size - 22])
    if "down" in case:
        changed = time.clock_gettime_ns(time.CLOCK_REALTIME)
        channel.device(case["down"], enabled=False)
    time.sleep(case["wait_s"])
    counts, sojourns = count(channel)
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
    channel.remove(NAMES[0])
    return result


def main() -> None:
    cases, results = map(Path, sys.argv[1:])
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    channel = NetlinkSocket()
    performed = []
    for case in json.loads(cases.read_text()):
        try:
            performed.append(perform(channel, case))
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
