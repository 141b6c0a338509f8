"""Shows two faults of transfers over two links of 10 Mbit/s, whose round trips take 10 and 40 ms.

With `strip`, a middlebox removes the options of MPTCP from the second link for 300 ms. The program prints how many of
40 transfers of 3 MB delivered wrong bytes. With `open`, the client connects with a TCP Fast Open. The program prints
how many segments of a transfer of 1 MB the client dropped beyond the window that it had offered, and the time. With
`open late`, the client begins to read 3 s after the server writes, so that its window closes. Without `open`, it
connects without a TCP Fast Open.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

MPTCP, FAST_OPEN_BACKLOG, HOST = 262, 23, "10.0.0.2"
NETWORK = """
sysctl -qw net.ipv4.tcp_fastopen=0x607
ip netns add server
ip netns exec server sysctl -qw net.ipv4.tcp_fastopen=0x607
"""
LINK = """
ip link add c{i} type veth peer name s{i} netns server
ip addr add 10.0.{i}.1/24 dev c{i}
ip link set c{i} up
ip -n server addr add 10.0.{i}.2/24 dev s{i}
ip -n server link set s{i} up
tc qdisc add dev c{i} root handle 1: netem delay {delay} limit 10000
tc qdisc add dev c{i} parent 1: tbf rate 10mbit burst 3000 limit 30000
tc -n server qdisc add dev s{i} root handle 1: netem delay {delay} limit 10000
tc -n server qdisc add dev s{i} parent 1: tbf rate 10mbit burst 3000 limit 30000
"""
ENDPOINTS = """
ip mptcp limits set subflows 2 add_addr_accepted 2
ip -n server mptcp limits set subflows 2 add_addr_accepted 2
ip mptcp endpoint add 10.0.1.1 dev c1 subflow
ip route add 10.0.0.2 via 10.0.1.2 dev c1 src 10.0.1.1 table 1
ip rule add from 10.0.1.1 table 1
ip -n server route add 10.0.1.1 via 10.0.1.1 dev s1
"""
STRIP = (
    "table netdev m { chain c { type filter hook ingress device c1 priority 0; reset tcp option mptcp; }; }"
)


def numbered(size: int) -> bytes:
    """Return `size` bytes. Each group of four occurs once."""
    return b"".join(word.to_bytes(4, "big") for word in range(size // 4))


def run(text: str) -> None:
    """Run the commands of a text."""
    for command in filter(None, text.split("\n")):
        subprocess.run(command.split(), check=True)


def serve(content: bytes) -> int:
    """Start a server that answers each byte with the content; return its process."""
    ready, tell = os.pipe()
    if process := os.fork():
        os.read(ready, 1)
        return process
    ctypes.CDLL(None).setns(os.open("/run/netns/server", os.O_RDONLY), 0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.setsockopt(socket.IPPROTO_TCP, FAST_OPEN_BACKLOG, 5)
    listener.bind(("0.0.0.0", 5000))  # noqa: S104 - a namespace of its own
    listener.listen()
    os.write(tell, b"x")
    while True:
        accepted, _ = listener.accept()
        accepted.recv(1)
        time.sleep(1)  # the handshake ends first (see fast_open_answer.py)
        accepted.sendall(content)
        accepted.close()


def transfer(
    content: bytes, *, opens_fast: bool = False, strip_after_s: float = 0.0, reads_after_s: float = 0.0
) -> bool:
    """Return whether a client receives the content."""
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    if opens_fast:
        client.sendto(b"x", socket.MSG_FASTOPEN, (HOST, 5000))
    else:
        client.connect((HOST, 5000))
        client.send(b"x")
    if strip_after_s and os.fork() == 0:
        time.sleep(1 + strip_after_s)  # the server begins after 1 s
        subprocess.run(["nft", STRIP], check=True)
        time.sleep(0.3)  # how long the middlebox is there
        run("nft delete table netdev m")
        os._exit(0)
    time.sleep(reads_after_s)
    received = bytearray()
    while data := client.recv(1 << 20):
        received += data
    return received == content


def main() -> None:
    """Print what the faults do."""
    strips = sys.argv[1:] == ["strip"]
    second = LINK.format(i=1, delay="20ms loss 3%" if strips else "20ms")
    run(NETWORK + LINK.format(i=0, delay="5ms") + second + ENDPOINTS)
    if strips:
        content = numbered(3_000_000)
        server = serve(content)
        wrong = sum(not transfer(content, strip_after_s=0.3 + i / 100) for i in range(40))
        print(f"{wrong} of 40 transfers delivered wrong bytes")
    else:
        content = numbered(1_000_000)
        server = serve(content)
        began = time.monotonic()
        reads_after_s = 4.0 if "late" in sys.argv else 0.0
        transfer(content, opens_fast="open" in sys.argv, reads_after_s=reads_after_s)
        seconds = time.monotonic() - began - 1
        print(f"1 MB after {seconds:.3f} s; the client dropped beyond its window:", flush=True)
        run("nstat -asz MPTcpExtNoDSSInWindow")
    os.kill(server, signal.SIGKILL)


if __name__ == "__main__":
    main()
