"""Tries the BPF congestion controls of this machine's kernel with many connections, and takes one away under traffic.

Run as root, after `make bpf`: `python bench/bpf_safety.py [--connections N]`. Everything happens in a network
namespace of its own, over loopback with two MPTCP endpoints.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plait.bpf import programs

IPPROTO_MPTCP = 262
CONGESTION = 13
BATCH = 500
PART_BYTES = 64_000
Pair = tuple[socket.socket, socket.socket]
_LIMIT_S, _SETTLE_S = 300, 15
BPFTOOL = str(programs.find_loader())
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


def tool(*arguments: str) -> str:
    """Return what a program prints."""
    return subprocess.run(arguments, capture_output=True, text=True, timeout=_LIMIT_S, check=True).stdout


def program_of(name: str) -> dict[str, Any]:
    """Return what the kernel says of the program that handles ACKs, the one loaded last."""
    shown = json.loads(tool(BPFTOOL, "-j", "prog", "show", "name", f"{name}_on_ack"))
    return (shown if isinstance(shown, list) else [shown])[-1]


def map_of(name: str) -> str:
    """Return the number of the map with the subflows of an algorithm."""
    for number in program_of(name)["map_ids"]:
        if json.loads(tool(BPFTOOL, "-j", "map", "show", "id", str(number)))["name"] == "plait_slots":
            return str(number)
    raise SystemExit(f"the program of {name} has no map plait_slots")


def slots(name: str) -> int:
    """Return the number of subflows in the map of an algorithm."""
    return len(json.loads(tool(BPFTOOL, "-j", "map", "dump", "id", map_of(name))))


def spoil(name: str) -> int:
    """Overwrite each entry of the map with ones, and return how many there are."""
    entries = json.loads(tool(BPFTOOL, "-j", "map", "dump", "id", map_of(name)))
    for entry in entries:
        value = ["0xff"] * len(entry["value"])
        tool(BPFTOOL, "map", "update", "id", map_of(name), "key", *entry["key"], "value", *value, "exist")
    return len(entries)


def crowd(name: str) -> None:
    """Fill the map with entries of connections that do not exist, as subflows leave them that end without release()."""
    number = map_of(name)
    entry = json.loads(tool(BPFTOOL, "-j", "map", "dump", "id", number))[0]
    size = json.loads(tool(BPFTOOL, "-j", "map", "show", "id", number))["max_entries"]
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as batch:
        for dead in range(1, size + 1):
            key = " ".join(str(byte) for byte in dead.to_bytes(len(entry["key"]), "little"))
            batch.write(f"map update id {number} key {key} value {' '.join(entry['value'])}\n")
        batch.flush()
        tool(BPFTOOL, "batch", "file", batch.name)


def living(name: str) -> tuple[int, int]:
    """Return how many entries the map has, and how many whose connection is an address (0xffff88..)."""
    dump = tool(BPFTOOL, "map", "dump", "id", map_of(name))
    return dump.count('"connection": '), dump.count('"connection": 184466')


def nanoseconds(name: str) -> float:
    """Return what the program takes for an ACK, on average."""
    program = program_of(name)
    return program["run_time_ns"] / max(program["run_cnt"], 1)


def namespace() -> None:
    """Prepare the network namespace in which the script runs: loopback and a second MPTCP endpoint."""
    for command in (
        "ip link set lo up",
        "ip address add 10.9.0.1/32 dev lo",
        # The programs' rules run in congestion avoidance only, so connections start there.
        "ip link set lo mtu 1500",
        "ip route replace local 127.0.0.1 dev lo table local ssthresh lock 4",
        "ip route replace local 10.9.0.1 dev lo table local ssthresh lock 4",
        "sysctl -q net.ipv4.tcp_no_ssthresh_metrics_save=0",
        "ip mptcp limits set subflow 2 add_addr_accepted 2",
        "ip mptcp endpoint add 10.9.0.1 dev lo subflow",
    ):
        tool(*command.split())


def connect(server: socket.socket, name: str, count: int) -> list[Pair]:
    """Open MPTCP connections whose clients use the algorithm `name`."""
    pairs = []
    for _ in range(count):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        client.setsockopt(socket.IPPROTO_TCP, CONGESTION, name.encode())
        client.connect(server.getsockname())
        pairs.append((client, server.accept()[0]))
    return pairs


def exchange(pairs: list[Pair], size: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Send `size` bytes over each connection and check that they arrive; `meanwhile`: after the first part is sent."""
    for start in range(0, size, PART_BYTES):
        part = bytes(min(PART_BYTES, size - start))
        for client, _ in pairs:
            client.settimeout(30)
            client.sendall(part)
        if start == 0:
            meanwhile()
        for _, peer in pairs:
            peer.settimeout(30)
            left = len(part)
            while left:
                received = len(peer.recv(left))
                if not received:
                    raise SystemExit("a connection ended before its data arrived")
                left -= received


def close(pairs: list[Pair]) -> None:
    """Close both ends of each connection."""
    for pair in pairs:
        for end in pair:
            end.close()


def settle(name: str, least: int) -> int:
    """Wait until at most `least` slots are left (TIME_WAIT has none, but orphans have one); return how many are."""
    for _ in range(_SETTLE_S):
        if slots(name) <= least:
            break
        time.sleep(1)
    return slots(name)


def sockets(name: str) -> int:
    """Return the number of sockets that still have the algorithm, those without an owner included."""
    return tool("ss", "-tani").count(f" {name} ")


def main() -> None:
    """Try each algorithm, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20, help="of churn: BATCH connections open and close")
    parser.add_argument("names", nargs="*", help="algorithms [default: all]")
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(arguments.connections, (hard - 200) // 2)
    if os.environ.get("BPF_SAFETY") is None:  # Python 3.11 has no unshare
        own = ["unshare", "--net", sys.executable, *sys.argv]
        os.execvpe("unshare", own, os.environ | {"BPF_SAFETY": "1"})  # noqa: S606 - an argument list
    namespace()
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    server.bind(("127.0.0.1", 0))
    server.listen(1024)
    for name in arguments.names or programs.ALGORITHMS:
        programs.load(name)
        started = time.monotonic()
        pairs = connect(server, name, count)
        exchange(pairs, 20_000)
        most = slots(name)
        close(pairs)
        after = settle(name, 0)
        for _ in range(arguments.rounds):
            batch = connect(server, name, BATCH)
            exchange(batch, 5_000)
            close(batch)
        churned, remain = settle(name, 0), sockets(name)
        pairs = connect(server, name, 8)
        former = STATISTICS.read_text()
        STATISTICS.write_text("1")
        try:
            exchange(pairs, 20_000_000)
            cost = nanoseconds(name)
        finally:
            STATISTICS.write_text(former)
        spoilt = slots(name)
        exchange(pairs, 1_000_000, lambda name=name: spoil(name))
        crowd(name)
        fresh = connect(server, name, BATCH)
        exchange(fresh, 5_000)
        whole, alive = living(name)
        close(fresh)
        exchange(pairs, 1_000_000, lambda name=name: programs.unload(name))
        close(pairs)
        sys.stdout.write(
            f"{name}: {count} connections had {most} slots, {after} after they closed; "
            f"{arguments.rounds * BATCH} more in rounds left {churned} ({remain} sockets close); data arrived with "
            f"{spoilt} spoilt entries, and after an unload under traffic; a map full of dead entries held {whole}, "
            f"{alive} of {spoilt + 2 * BATCH} living subflows among them; {cost:.0f} ns an ACK; "
            f"{time.monotonic() - started:.0f} s\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
