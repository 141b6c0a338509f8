"""Shows whether the end of a stream overtakes its bytes when a connection falls back to TCP.

A client opens a connection with a TCP Fast Open, sends 100 kB over a link of 10 Mbit/s, and ends its stream. A round
trip takes 1.2 s, so the client sends its SYN twice, and both sides fall back to TCP while bytes wait to be sent. The
program prints how many bytes the server receives before the end.
"""

import ctypes
import os
import socket
import subprocess

MPTCP, FAST_OPEN_BACKLOG, SIZE = 262, 23, 100_000
NETWORK = """
sysctl -qw net.ipv4.tcp_fastopen=0x607
ip netns add server
ip netns exec server sysctl -qw net.ipv4.tcp_fastopen=0x607
ip link add c type veth peer name s netns server
ip addr add 10.0.0.1/24 dev c
ip link set c up
ip -n server addr add 10.0.0.2/24 dev s
ip -n server link set s up
tc qdisc add dev c root handle 1: netem delay 600ms limit 10000
tc qdisc add dev c parent 1: tbf rate 10mbit burst 20000 limit 900000
tc -n server qdisc add dev s root handle 1: netem delay 600ms limit 10000
tc -n server qdisc add dev s parent 1: tbf rate 10mbit burst 20000 limit 900000
"""


def send(ready: int) -> None:
    """Send all bytes and the end of the stream once the server is ready."""
    os.read(ready, 1)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    sent = client.sendto(bytes(SIZE), socket.MSG_FASTOPEN, ("10.0.0.2", 5000))
    client.sendall(bytes(SIZE - sent))
    client.shutdown(socket.SHUT_WR)
    client.recv(1)


def main() -> None:
    """Print what the server receives."""
    for command in filter(None, NETWORK.split("\n")):
        subprocess.run(command.split(), check=True)
    ready, tell = os.pipe()
    if os.fork() == 0:
        send(ready)
        os._exit(0)
    ctypes.CDLL(None).setns(os.open("/run/netns/server", os.O_RDONLY), 0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.setsockopt(socket.IPPROTO_TCP, FAST_OPEN_BACKLOG, 5)
    listener.bind(("10.0.0.2", 5000))
    listener.listen()
    os.write(tell, b"x")
    accepted, _ = listener.accept()
    received = 0
    while data := accepted.recv(1 << 16):
        received += len(data)
    print(f"{received} of {SIZE} bytes")


if __name__ == "__main__":
    main()
