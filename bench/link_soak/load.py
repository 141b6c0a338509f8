"""The load of a network: works, each in a process of its own that never ends."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import time

from link_soak.network import Network, Work

PORT = 5000
MPTCP = 262
ETHERTYPE = 0x88B5


def serve(network: Network, chance: random.Random) -> None:
    """Accept connections at host b, read all of them, and answer some."""
    listeners = []
    for protocol in (MPTCP, socket.IPPROTO_TCP):
        listener = network.nodes["b"].socket(socket.SOCK_STREAM, protocol)
        listener.bind(("0.0.0.0", PORT + protocol))  # noqa: S104 - in the guest
        listener.listen(64)
        listeners.append(listener)
    ends = list(listeners)
    while True:
        for ready in select.select(ends, [], [], 1)[0]:
            with contextlib.suppress(OSError):
                if ready in listeners:
                    ends.append(ready.accept()[0])
                    ends[-1].setblocking(False)
                    continue
                if not ready.recv(1 << 16):
                    raise OSError
                ready.send(bytes(chance.randrange(1, 3000)))
                continue
            if ready not in listeners:
                ends.remove(ready)
                ready.close()


def drain(network: Network, _chance: random.Random) -> None:
    """Receive the UDP of `spray`, and answer it."""
    receiver = network.nodes["b"].socket(socket.SOCK_DGRAM, 0)
    receiver.bind(("0.0.0.0", PORT))  # noqa: S104 - in the guest
    while True:
        data, peer = receiver.recvfrom(1 << 16)
        with contextlib.suppress(OSError):
            receiver.sendto(data[:100], peer)


def connect(network: Network, chance: random.Random) -> None:
    """Open connections from host a, send for a while, and close or reset them."""
    while True:
        protocol = chance.choice((MPTCP, MPTCP, socket.IPPROTO_TCP))
        client = network.nodes["a"].socket(socket.SOCK_STREAM, protocol)
        client.settimeout(2)
        with contextlib.suppress(OSError):
            far = network.links[chance.choice((0, 1, 2, len(network.links) - 1))]
            client.connect((far.address(1), PORT + protocol))
            for _ in range(chance.choice((1, 10, 100))):
                client.send(bytes(chance.choice((100, 10_000, 60_000))))
            if chance.random() < 0.3:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        time.sleep(chance.choice((0.001, 0.05)))


def transfer(network: Network, _chance: random.Random) -> None:
    """Send as much as the chain of routers carries, in one connection after the other."""
    while True:
        client = network.nodes["a"].socket(socket.SOCK_STREAM, socket.IPPROTO_TCP)
        client.settimeout(2)
        with contextlib.suppress(OSError):
            client.connect((network.links[-1].address(1), PORT + socket.IPPROTO_TCP))
            while True:
                client.send(bytes(60_000))
        client.close()
        time.sleep(0.01)


def spray(network: Network, chance: random.Random) -> None:
    """Send bursts of UDP to all addresses of host b."""
    sender = network.nodes["a"].socket(socket.SOCK_DGRAM, 0)
    sender.setblocking(False)
    targets = [
        network.links[number].address(1) for number in (*range(network.direct), len(network.links) - 1)
    ]
    while True:
        target, size = chance.choice(targets), chance.choice((1, 1000, 1472, 9000))
        for _ in range(chance.choice((1, 20, 100))):
            with contextlib.suppress(OSError):
                sender.sendto(bytes(size), (target, PORT))
        time.sleep(chance.choice((0.0001, 0.002, 0.02)))


def flood(network: Network, chance: random.Random) -> None:
    """Send bursts of raw frames out of the devices of host a, whichever has them at the time."""
    while True:
        sender = network.nodes["a"].socket(socket.SOCK_RAW, 0, socket.AF_PACKET)
        with contextlib.suppress(OSError):
            sender.bind((f"l{chance.randrange(network.direct + 1)}a", ETHERTYPE))
            frame = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", ETHERTYPE)
            for _ in range(chance.choice((10, 100))):
                sender.send(frame + bytes(chance.choice((46, 1000))))
        sender.close()
        time.sleep(chance.choice((0.002, 0.05)))


MIXED: tuple[Work, ...] = (serve, drain, connect, connect, spray, flood)
CALM: tuple[Work, ...] = (serve, transfer)
"""One flow, between whose packets the kernel has nothing else to do: the timer of the links skips the idle loop."""
