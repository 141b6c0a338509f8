"""Shows whether a client of a TCP Fast Open sees the answer that the server writes before the handshake's last ACK.

The path between two network namespaces has 20 ms in each direction. The client sends a byte with its SYN. The server
reads it, answers with a byte, and waits. The program prints whether the client sees it within 5 s, and after how long.
With `tcp` as its argument it uses TCP.
"""

import ctypes
import os
import socket
import subprocess
import sys
import time

FAST_OPEN_BACKLOG = 23  # TCP_FASTOPEN
NETWORK = """
sysctl -qw net.ipv4.tcp_fastopen=0x607
ip netns add server
ip netns exec server sysctl -qw net.ipv4.tcp_fastopen=0x607
ip link add c type veth peer name s netns server
ip addr add 10.0.0.1/24 dev c
ip link set c up
ip -n server addr add 10.0.0.2/24 dev s
ip -n server link set s up
tc qdisc add dev c root netem delay 20ms
tc -n server qdisc add dev s root netem delay 20ms
"""


def main() -> None:
    """Print what the client saw, and after how long."""
    protocol = socket.IPPROTO_TCP if sys.argv[1:] == ["tcp"] else 262  # IPPROTO_MPTCP
    for command in NETWORK.split("\n")[1:-1]:
        subprocess.run(command.split(), check=True)
    ready, tell = os.pipe()
    if os.fork() == 0:
        ctypes.CDLL(None).setns(os.open("/run/netns/server", os.O_RDONLY), 0)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        listener.bind(("10.0.0.2", 5000))
        listener.setsockopt(socket.IPPROTO_TCP, FAST_OPEN_BACKLOG, 5)
        listener.listen()
        os.write(tell, b"x")
        accepted, _ = listener.accept()
        accepted.send(accepted.recv(1).upper())
        time.sleep(10)  # keep the socket open, in virtual time, until the client has given up
        os._exit(0)
    os.read(ready, 1)
    began = time.monotonic()
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    client.sendto(b"x", socket.MSG_FASTOPEN, ("10.0.0.2", 5000))
    client.settimeout(5)
    try:
        seen = client.recv(1).decode()
    except TimeoutError:
        seen = "nothing"
    print(f"{seen} after {time.monotonic() - began:.3f} s")


if __name__ == "__main__":
    main()
