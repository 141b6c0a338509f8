"""The pair of `two-paths` as a Mininet script, to compare `plait exec` with Mininet and its two clocks.

Two hosts, two switches, four TCLinks of 5 Mbit/s and no delay; 10 s of iperf by TCP, then 10 s by MPTCP (mptcpize where
it is installed; iperf over TCP with the second path idle otherwise, which takes the same time). Switches are Linux
bridges, or with the argument `ovs` Mininet's defaults: Open vSwitch and its controller.
"""

from __future__ import annotations

import shutil
import sys

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge


def network(kind: str) -> Mininet:
    """Return the started network of two hosts and two switches."""
    net = Mininet(link=TCLink) if kind == "ovs" else Mininet(link=TCLink, switch=LinuxBridge, controller=None)
    if kind == "ovs":
        net.addController("c0")
    h1, h2 = net.addHost("h1", ip="10.0.0.1/24"), net.addHost("h2", ip="10.0.0.2/24")
    for name in ("s1", "s2"):
        switch = net.addSwitch(name)
        net.addLink(h1, switch, bw=5)
        net.addLink(switch, h2, bw=5)
    net.start()
    return net


def main() -> int:
    """Run the pair and print the output of iperf."""
    net = network(*sys.argv[1:] or ["bridge"])
    h1, h2 = net["h1"], net["h2"]
    try:
        for number, host in enumerate((h1, h2), start=1):
            host.cmd(f"ip addr add 10.0.1.{number}/24 dev {host.name}-eth1")
            host.cmd("ip mptcp limits set subflow 2 add_addr_accepted 2")
        h1.cmd("ip mptcp endpoint add 10.0.1.1 dev h1-eth1 subflow")
        wrap = "mptcpize run " if shutil.which("mptcpize") else ""
        for prefix in ("", wrap):
            h2.cmd(f"{prefix}iperf -s > /dev/null 2>&1 &")
            h2.cmd("sleep 1")
            sys.stdout.write(h1.cmd(f"{prefix}iperf -c 10.0.0.2 -t 10 -f m"))
            h2.cmd("kill $!; wait")
    finally:
        net.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
