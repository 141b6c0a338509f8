"""Shows whether a byte arrives that a client writes into a full window, if its link dies before the window opens.

Two links between two network namespaces have 5 and 20 ms in each direction. The server reads nothing at first. Over one
connection the client learns how many bytes fit into the window. Over another one it writes just as many, and after a
second one more. The first link then goes down for good, and the server reads all. The program prints how long it takes
until the server has acknowledged all, or that after 100 s it has not. With `up` as its argument the link stays.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time

MPTCP, UNACKNOWLEDGED, UNSENT = 262, 0x5411, 0x894B  # IPPROTO_MPTCP, SIOCOUTQ, SIOCOUTQNSD
NETWORK = """
ip netns add server
ip netns exec server sysctl -qw net.ipv4.tcp_rmem=4096\t49152\t49152
ip link add c0 type veth peer name s0 netns server
ip link add c1 type veth peer name s1 netns server
ip addr add 10.0.0.1/24 dev c0
ip addr add 10.0.1.1/24 dev c1
ip link set c0 up
ip link set c1 up
ip -n server addr add 10.0.0.2/24 dev s0
ip -n server addr add 10.0.1.2/24 dev s1
ip -n server link set s0 up
ip -n server link set s1 up
ip mptcp limits set subflows 8 add_addr_accepted 8
ip -n server mptcp limits set subflows 8
ip -n server mptcp endpoint add 10.0.1.2 signal
tc qdisc add dev c0 root netem delay 5ms
tc qdisc add dev c1 root netem delay 20ms
tc -n server qdisc add dev s0 root netem delay 5ms
tc -n server qdisc add dev s1 root netem delay 20ms
"""
MOST = 1_000_000


def run(command: str) -> None:
    """Run a command, which must succeed."""
    subprocess.run(command.split(" "), check=True)


def queued(client: socket.socket, which: int) -> int:
    """Return how many bytes are unacknowledged, or unsent."""
    return int(struct.unpack("=i", fcntl.ioctl(client, which, bytes(4)))[0])


def filled(size: int) -> tuple[socket.socket, int]:
    """Return a new connection and the bytes that it has sent: `size`, or as many as fit into the window.

    Its pauses pass in the guest's virtual time.
    """
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    client.connect(("10.0.0.2", 5000))
    client.send(b"x")
    time.sleep(1)  # until the second subflow is there
    written = 1
    while written < size and not queued(client, UNSENT):
        written += client.send(bytes(min(1000, size - written)))
        time.sleep(0.3)
    return client, written - queued(client, UNSENT)


def serve(tell: int, go: int) -> None:
    """Accept both connections, and read the second one once the client says so."""
    ctypes.CDLL(None).setns(os.open("/run/netns/server", os.O_RDONLY), 0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.bind(("0.0.0.0", 5000))  # noqa: S104 - a namespace of its own
    listener.listen()
    os.write(tell, b"x")
    _first, accepted = listener.accept(), listener.accept()[0]
    os.read(go, 1)
    while accepted.recv(65_536):
        pass


def main() -> None:
    """Print when the server has acknowledged all."""
    for command in NETWORK.split("\n")[1:-1]:
        run(command)
    (ready, tell), (go, start) = os.pipe(), os.pipe()
    if os.fork() == 0:
        serve(tell, go)
        os._exit(0)
    os.read(ready, 1)
    _first, edge = filled(MOST)
    client, _ = filled(edge)
    time.sleep(1)
    client.send(b"y")
    time.sleep(0.5)
    if sys.argv[1:] != ["up"]:
        run("ip link set c0 down")
    os.write(start, b"x")
    began = time.monotonic()
    while queued(client, UNACKNOWLEDGED) and time.monotonic() - began < 100:
        time.sleep(0.001)
    unacknowledged, passed_s = queued(client, UNACKNOWLEDGED), time.monotonic() - began
    print(f"{unacknowledged} of {edge + 1} bytes unacknowledged after {passed_s:.3f} s")


if __name__ == "__main__":
    main()
