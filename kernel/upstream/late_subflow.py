"""Shows whether data arrive that a server writes while its connection has no subflow.

Two links between two network namespaces have 5 ms in each direction. The client has an endpoint for each of its
addresses. It sends a byte and flushes its endpoints, which closes all subflows. After 2 s the server answers with a
byte, and waits. A second later the client adds an endpoint again, and the kernel opens a subflow. The program prints
whether the client sees the byte within 10 s, and how long after the endpoint was added. With `before` as its argument
the endpoint is there before the byte.
"""

import ctypes
import os
import socket
import subprocess
import sys
import time

MPTCP = 262  # IPPROTO_MPTCP
NETWORK = """
ip netns add server
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
ip mptcp endpoint add 10.0.0.1 subflow
ip mptcp endpoint add 10.0.1.1 subflow
tc qdisc add dev c0 root netem delay 5ms
tc qdisc add dev c1 root netem delay 5ms
tc -n server qdisc add dev s0 root netem delay 5ms
tc -n server qdisc add dev s1 root netem delay 5ms
"""
ADD = "ip mptcp endpoint add 10.0.1.1 subflow"


def run(command: str) -> None:
    """Run a command, which must succeed."""
    subprocess.run(command.split(), check=True)


def main() -> None:
    """Print what the client saw, and how long after its endpoint was added."""
    for command in NETWORK.split("\n")[1:-1]:
        run(command)
    ready, tell = os.pipe()
    if os.fork() == 0:
        ctypes.CDLL(None).setns(os.open("/run/netns/server", os.O_RDONLY), 0)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        listener.bind(("10.0.0.2", 5000))
        listener.listen()
        os.write(tell, b"x")
        accepted, _ = listener.accept()
        letter = accepted.recv(1)
        time.sleep(3)
        accepted.send(letter.upper())
        time.sleep(20)  # keep the socket open, in virtual time, until the client has given up
        os._exit(0)
    os.read(ready, 1)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    client.connect(("10.0.0.2", 5000))
    client.send(b"x")
    time.sleep(1)  # until all subflows are there
    run("ip mptcp endpoint flush")
    time.sleep(1 if sys.argv[1:] == ["before"] else 3)
    added = time.monotonic()
    run(ADD)
    client.settimeout(10)
    try:
        seen = client.recv(1).decode()
    except TimeoutError:
        seen = "nothing"
    print(f"{seen} after {time.monotonic() - added:.3f} s")


if __name__ == "__main__":
    main()
