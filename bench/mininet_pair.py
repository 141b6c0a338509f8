"""The pair of `two-paths` with Mininet on the host's kernel: what plait's time is compared with. Needs root.

Two hosts, two Linux bridges, four TCLinks of 5 Mbit/s; 10 s of iperf by TCP, then 10 s by MPTCP (mptcpize where it is
installed; iperf over TCP with the second path idle otherwise, which takes the same time).
"""

from __future__ import annotations

import shutil
import sys

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge


def main() -> int:
    """Runs the pair and prints what iperf says."""
    net = Mininet(switch=LinuxBridge, link=TCLink, controller=None)
    h1, h2 = net.addHost("h1", ip="10.0.0.1/24"), net.addHost("h2", ip="10.0.0.2/24")
    for name in ("s1", "s2"):
        switch = net.addSwitch(name)
        net.addLink(h1, switch, bw=5)
        net.addLink(switch, h2, bw=5)
    net.start()
    try:
        h1.cmd("ip addr add 10.0.1.1/24 dev h1-eth1")
        h2.cmd("ip addr add 10.0.1.2/24 dev h2-eth1")
        h1.cmd("ip mptcp limits set subflow 2 add_addr_accepted 2; ip mptcp endpoint add 10.0.1.1 subflow")
        h2.cmd("ip mptcp limits set subflow 2 add_addr_accepted 2; ip mptcp endpoint add 10.0.1.2 signal")
        wrap = "mptcpize run " if shutil.which("mptcpize") else ""
        for prefix in ("", wrap):
            server = h2.popen(f"{prefix}iperf -s".split())
            h2.cmd("for i in $(seq 100); do ss -Htln sport = :5001 | grep -q . && break; sleep 0.05; done")
            sys.stdout.write(h1.cmd(f"{prefix}iperf -c 10.0.0.2 -t 10 -f m"))
            server.terminate()
            server.wait()
    finally:
        net.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
