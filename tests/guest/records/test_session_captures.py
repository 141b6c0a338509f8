"""`--pcap` captures what crosses each named network namespace of a guest, also of those that are removed again."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from executing import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

SCRIPT = """\
ip netns add a; ip netns add b
ip link add x netns a type veth peer name y netns b
ip -n a addr add 10.0.0.1/24 dev x; ip -n b addr add 10.0.0.2/24 dev y
ip -n a link set x up; ip -n b link set y up
ip netns exec a ping -c 3 -i 0.2 10.0.0.2 > /dev/null || exit 1
ip netns del b; ip netns add b; ip -n b link set lo up
ip netns exec b ping -c 1 127.0.0.1 > /dev/null
"""
ICMP, IPV4 = 1, b"\x08\x00"
ECHO_REQUEST, ECHO_REPLY = 8, 0
ENHANCED_PACKET = 6


def packets(path: Path) -> list[tuple[int, bytes]]:
    """Return the time in ns and the bytes of each packet of a pcapng file."""
    content, offset, result = path.read_bytes(), 0, []
    while offset < len(content):
        kind, length = struct.unpack_from("<II", content, offset)
        if kind == ENHANCED_PACKET:
            _, upper, lower, kept, _ = struct.unpack_from("<5I", content, offset + 8)
            result.append((upper << 32 | lower, content[offset + 28 : offset + 28 + kept]))
        offset += length
    return result


def echoes(path: Path) -> list[int]:
    """Return the types of the ICMP messages of a file, in order."""
    return [data[34] for _, data in packets(path) if data[12:14] == IPV4 and data[23] == ICMP]


def test_each_namespace_has_a_file_with_its_packets(tmp_path: Path) -> None:
    done = run("--pcap", str(tmp_path / "pcap"), "--", "sh", "-c", SCRIPT)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "pcap").iterdir()) == [
        "a.pcapng",
        "b-2.pcapng",
        "b.pcapng",
    ]
    for name in ("a.pcapng", "b.pcapng"):
        assert echoes(tmp_path / "pcap" / name) == [ECHO_REQUEST, ECHO_REPLY] * 3
    # A packet on the loopback is seen as it leaves and as it arrives.
    of_loopback = [ECHO_REQUEST, ECHO_REQUEST, ECHO_REPLY, ECHO_REPLY]
    assert echoes(tmp_path / "pcap" / "b-2.pcapng") == of_loopback


def test_times_count_from_the_boot_and_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("--pcap", str(tmp_path / name), "--", "sh", "-c", f"cat /proc/uptime; {SCRIPT}")
    times = [time_ns for time_ns, _ in packets(tmp_path / "one" / "a.pcapng")]
    assert times == sorted(times)
    assert 1e9 < times[0] < 2e9  # programs start one second after the boot
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_program_without_namespaces_leaves_an_empty_folder(tmp_path: Path) -> None:
    assert run("--pcap", str(tmp_path / "pcap"), "--", "true").returncode == 0
    assert list((tmp_path / "pcap").iterdir()) == []


def test_a_namespace_named_like_the_second_file_of_another_has_a_file_of_its_own(tmp_path: Path) -> None:
    script = "; ".join(
        f"ip netns add {name}; ip -n {name} link set lo up; ip netns exec {name} ping -c {count} 127.0.0.1 > /dev/null"
        f"{removal}"
        for name, count, removal in (("a", 1, "; ip netns del a"), ("a", 2, ""), ("a-2", 3, ""))
    )
    done = run("--pcap", str(tmp_path / "pcap"), "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    counts = {path.name: len(echoes(path)) for path in (tmp_path / "pcap").iterdir()}
    assert counts == {"a.pcapng": 4, "a-2.pcapng": 8, "a-2-2.pcapng": 12}


def test_what_is_no_namespace_stops_no_capture(tmp_path: Path) -> None:
    script = "; ".join(
        (
            "mkfifo /run/netns/fifo",
            "mkdir /run/netns/folder",
            "touch /run/netns/file",
            "ln -s fifo /run/netns/link",
            "ip netns add a",
            "ip -n a link set lo up",
            "ip netns exec a ping -c 1 127.0.0.1 > /dev/null",
        )
    )
    done = run("--pcap", str(tmp_path / "pcap"), "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in (tmp_path / "pcap").iterdir()] == ["a.pcapng"]
    assert len(echoes(tmp_path / "pcap" / "a.pcapng")) == 4


def test_captures_replace_no_files(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    done = run("--pcap", str(tmp_path), "--", "true")
    assert done.returncode == 2
    assert "is no empty folder; name a new one" in done.stderr.replace("\n", " ")


def test_a_capture_is_complete_after_an_interrupt_of_the_program(tmp_path: Path) -> None:
    command = "ip netns add a; ip -n a link set lo up; ip netns exec a ping -c 2 127.0.0.1 > /dev/null; kill -INT $$"
    done = run("--pcap", str(tmp_path / "pcap"), "--", "sh", "-c", command)
    assert done.returncode != 0
    assert len(echoes(tmp_path / "pcap" / "a.pcapng")) == 8


@pytest.mark.skipif(shutil.which("capinfos") is None, reason="tshark is not installed")
def test_wireshark_reads_the_files(tmp_path: Path) -> None:
    run("--pcap", str(tmp_path / "pcap"), "--", "sh", "-c", SCRIPT)
    done = subprocess.run(
        ["capinfos", "-c", str(tmp_path / "pcap" / "a.pcapng")], capture_output=True, text=True, check=True
    )
    count = len(packets(tmp_path / "pcap" / "a.pcapng"))
    assert re.search(rf"^Number of packets:\s+{count}$", done.stdout, re.MULTILINE), done.stdout
