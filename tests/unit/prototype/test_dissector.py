"""Wireshark shows the fields of the prototype's datagrams with the dissector that plait ships."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from plait.prototype import packets
from plait.prototype.packets import Ack, Open, Repair, encode_ack, encode_data, encode_open, encode_repair

DISSECTOR = Path(packets.__file__).with_name("plait-prototype.lua")
SHOWN = (
    "kind",
    "path",
    "connection",
    "number",
    "sequence",
    "length",
    "covers",
    "next",
    "limit",
    "first",
    "last",
)


def capture(datagrams: list[bytes]) -> bytes:
    """Return a file of pcap with a raw IPv4 packet for each datagram."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)
    for number, datagram in enumerate(datagrams):
        udp = struct.pack("!HHHH", 40_000, 50_000, 8 + len(datagram), 0) + datagram
        head = struct.pack("!BBHHHBBH8s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1] * 2))
        out += struct.pack("<IIII", number, 0, len(head + udp), len(head + udp)) + head + udp
    return out


def test_tshark_decodes_each_kind_of_packet_and_leaves_others_alone(tmp_path: Path) -> None:
    assert shutil.which("tshark"), "install tshark: `tools/system-packages test` does"
    file = tmp_path / "capture.pcap"
    datagrams = [
        encode_open(Open(1, 2, 7, 0.5)),
        encode_data(2, 7, 3, 2**33, b"abc"),
        encode_ack(Ack(2, 7, 300, 10, 2**34, [(5, 9), (0, 2)])),
        encode_repair(Repair(1, 7, 4, 2**33, 2000, b"x" * 1428)),
        b"\x03" * 40,
    ]
    file.write_bytes(capture(datagrams))
    fields = [word for name in SHOWN for word in ("-e", f"plait_prototype.{name}")]
    command = [
        "tshark",
        "-X",
        f"lua_script:{DISSECTOR}",
        "-r",
        str(file),
        "-T",
        "fields",
        "-E",
        "separator=;",
    ]
    done = subprocess.run([*command, *fields], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines() == [
        "1;2;7;;;;;;;;",
        f"3;2;7;3;{2**33};3;;;;;",
        f"4;2;7;;;;;10;{2**34};5,0;9,2",
        f"5;1;7;4;{2**33};1428;2000;;;;",
        ";;;;;;;;;;",
    ]
