"""Shows whether recv() with MSG_PEEK and MSG_WAITALL on an MPTCP socket sees what comes later.

Ten segments come, 10 ms apart, and the reader begins to wait after the first. The program prints the bytes that it
sees, and after how long. With `tcp` as its argument it uses TCP.
"""

import os
import socket
import sys
import time

SEGMENT = 100


def main() -> None:
    """Print what the waiting peek saw, and after how long."""
    protocol = socket.IPPROTO_TCP if sys.argv[1:] == ["tcp"] else 262  # IPPROTO_MPTCP

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    listener.bind(("127.0.0.1", 5000))
    listener.listen()
    sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sender.connect(("127.0.0.1", 5000))
    reader, _ = listener.accept()
    if os.fork() == 0:
        for number in range(10):
            sender.send(bytes([ord("A") + number]) * SEGMENT)
            time.sleep(0.01)  # a segment each 10 ms: the reader has to wait for the later ones
        time.sleep(5)  # keep the socket open, in virtual time, until the reader has ended
        os._exit(0)
    time.sleep(0.015)  # two segments are there when the peek begins
    began = time.monotonic()
    seen = reader.recv(10 * SEGMENT, socket.MSG_PEEK | socket.MSG_WAITALL)
    print(f"{len(seen)} bytes after {time.monotonic() - began:.3f} s: {seen[::SEGMENT].decode()}")


if __name__ == "__main__":
    main()
