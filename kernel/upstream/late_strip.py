"""Shows whether a transfer goes on once a middlebox removes the options of MPTCP from its only subflow.

A client sends 1 MB over a link of 10 Mbit/s to a server that has ended its own stream. So Linux refuses the subflow of
the client's second address. When the client closes that one, it sends once more what is on its way. After 0.5 s a
middlebox removes the options for good. The program prints how many bytes the server receives, and why it stops: it has
all, it waits for 100 s, or the connection fails. With `alone` as its argument, the client has one address, and sends no
byte twice before the middlebox is there.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

# mypy does not search the program's own folder
from two_links import ENDPOINTS, HOST, LINK, MPTCP, NETWORK, STRIP, run  # type: ignore[import-not-found]

SIZE = 1_000_000


def send(ready: int) -> int:
    """Start a client that sends its bytes once the server is ready; return its process."""
    if process := os.fork():
        return process
    os.read(ready, 1)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    client.connect((HOST, 5000))
    client.sendall(bytes(SIZE))
    time.sleep(1000)  # keep the socket open
    os._exit(0)


def receive(accepted: socket.socket) -> tuple[int, str]:
    """Return how many bytes arrive, and why no more do; let the middlebox appear after 0.5 s."""
    began, received = time.monotonic(), 0
    middlebox: list[str] = ["nft", STRIP.replace("c1", "s0")]
    while received < SIZE:
        if middlebox and time.monotonic() > began + 0.5:
            subprocess.run(middlebox, check=True)
            middlebox = []
        try:
            data = accepted.recv(10_000)
        except TimeoutError:
            return received, "nothing for 100 s"
        except OSError as error:
            return received, f"{error.strerror} after {time.monotonic() - began:.1f} s"
        if not data:
            return received, "the stream's end"
        received += len(data)
    return received, "all"


def main() -> None:
    """Print what the server receives."""
    alone = sys.argv[1:] == ["alone"]
    links = "".join(LINK.format(i=i, delay="5ms") for i in range(2))
    run(NETWORK + links + ("" if alone else ENDPOINTS))
    ready, tell = os.pipe()
    client = send(ready)
    ctypes.CDLL(None).setns(os.open("/run/netns/server", os.O_RDONLY), 0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.bind(("0.0.0.0", 5000))  # noqa: S104 - a namespace of its own
    listener.listen()
    os.write(tell, b"x")
    accepted, _ = listener.accept()
    accepted.shutdown(socket.SHUT_WR)
    accepted.settimeout(100)
    received, end = receive(accepted)
    print(f"{min(received, SIZE)} of {SIZE} bytes: {end}")
    os.kill(client, signal.SIGKILL)


if __name__ == "__main__":
    main()
