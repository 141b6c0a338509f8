"""Build a fat tree with k ports per switch in Mininet on the host's kernel, for comparison with plait. Needs root.

Hosts are Mininet's hosts, routers are nodes that forward, and links are TCLinks of 100 Mbit/s. The script leaves out
addresses and routes, which favours Mininet. It prints the seconds until the network is complete.
"""

from __future__ import annotations

import sys
import time

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Node


class Router(Node):
    """A node that forwards."""

    def config(self, **params: object) -> dict[str, object]:
        """Enable forwarding."""
        done: dict[str, object] = super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")
        return done


def main() -> int:
    """Build the network, print the seconds, and remove it."""
    k = int(sys.argv[1])
    half = k // 2
    started = time.monotonic()
    net = Mininet(link=TCLink, controller=None, build=False)
    core = [[net.addHost(f"c{a}x{j}", cls=Router, ip=None) for j in range(half)] for a in range(half)]
    for pod in range(k):
        edges = [net.addHost(f"e{pod}x{i}", cls=Router, ip=None) for i in range(half)]
        tops = [net.addHost(f"a{pod}x{i}", cls=Router, ip=None) for i in range(half)]
        for number, edge in enumerate(edges):
            for i in range(half):
                net.addLink(net.addHost(f"h{pod}x{number}x{i}", ip=None), edge, bw=100)
            for top in tops:
                net.addLink(edge, top, bw=100)
        for a, top in enumerate(tops):
            for router in core[a]:
                net.addLink(top, router, bw=100)
    net.build()
    sys.stdout.write(f"{time.monotonic() - started:.2f}\n")
    sys.stdout.flush()
    net.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
