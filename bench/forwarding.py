"""Measure what forwarding a packet costs the kernel of this machine, in processor time per packet and hop.

    sudo python bench/forwarding.py

A chain of routers in namespaces, joined by veth pairs without conditions, carries UDP datagrams. All hops of a datagram
run in the system call that sends it, so the sender's processor time is theirs. It is a lower bound for a hop in the
laboratory kernel, which runs the same code and delays each packet in between (`bench/hop.py`).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import socket
import subprocess
from pathlib import Path

ROUTERS = 20
DATAGRAMS = 20_000
BYTES = 1400
CLONE_NEWNET = 0x40000000
FIRST, LAST = 0, ROUTERS + 1


def name(number: int) -> str:
    """Return the namespace of a node; node 0 sends, the last one receives."""
    return f"forwarding-{os.getpid()}-{number}"


def batch(number: int, *lines: str) -> None:
    """Run commands of `ip` in a node's namespace."""
    subprocess.run(["ip", "-n", name(number), "-batch", "-"], input="\n".join(lines), text=True, check=True)


def build() -> None:
    """Build the chain; the link of node i and i + 1 has the network 10.9.i.0/24."""
    for node in range(FIRST, LAST + 1):
        subprocess.run(["ip", "netns", "add", name(node)], check=True)
        settings = (
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv6.conf.all.disable_ipv6=1",
        )
        subprocess.run(["ip", "netns", "exec", name(node), "sysctl", "-qw", *settings], check=True)
    for node in range(FIRST, LAST):
        batch(node, f"link add right type veth peer name left netns {name(node + 1)}")
        batch(node, f"addr add 10.9.{node}.1/24 dev right", "link set right up", "link set lo up")
        batch(node + 1, f"addr add 10.9.{node}.2/24 dev left", "link set left up")
    for node in range(FIRST, LAST):
        batch(node, f"route add default via 10.9.{node}.2")
    for node in range(FIRST + 2, LAST + 1):
        batch(node, *(f"route add 10.9.{net}.0/24 via 10.9.{node - 1}.1" for net in range(node - 1)))


def send() -> float:
    """Send the datagrams; return the processor time per packet and hop, in nanoseconds."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        payload, target = bytes(BYTES), (f"10.9.{LAST - 1}.2", 9)
        before = resource.getrusage(resource.RUSAGE_SELF)
        for _ in range(DATAGRAMS):
            sender.sendto(payload, target)
        after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1e9 / DATAGRAMS / (LAST - FIRST)


def received() -> int:
    """Return the packets that have arrived at the last node."""
    command = ["ip", "netns", "exec", name(LAST), "cat", "/sys/class/net/left/statistics/rx_packets"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the processor time of each repetition."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    try:
        build()
        with Path(f"/run/netns/{name(FIRST)}").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "entering the sender's namespace")
        send()
        for _ in range(asked.repeats):
            before = received()
            cost = send()
            print(f"{cost:.0f} ns per packet and hop, {received() - before} of {DATAGRAMS} packets arrived")
    finally:
        for node in range(FIRST, LAST + 1):
            subprocess.run(["ip", "netns", "del", name(node)], check=False)


if __name__ == "__main__":
    main()
