"""Stress a kernel with thousands of connections under every scheduler and congestion control.

    .venv/bin/python bench/soak.py --kernel ID --connections 3000

Boots a laboratory kernel with the host's files beneath it, opens connections of several subflows between two
namespaces, and at random, from one seed: writes, reads, half-closes, closes, resets, changes the scheduler of new
connections and the congestion control of an open connection, destroys subflows from outside (as `ss -K` does), removes
endpoints, takes links down, and in the end deletes a namespace with open connections. Then looks for warnings of the
kernel, for sockets that remain, and for memory leaks. A kernel of `plait kernel build --debug` checks most: KASAN,
lockdep, RCU, objects, leaks.

The file has both sides: the host's side boots the kernel, which runs the guest's side as its first process.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass, field

from stressed import HOME, Node, arguments, boot, run_first_process, unreferenced_objects

from plait.testing.hunt import netlink
from plait.testing.hunt.netlink import COMPLAINTS

COUPLED = ("lia", "olia", "balia", "wvegas")
ALGORITHMS = (*COUPLED, "reno", "cubic")
SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "blest", "ecf", "balanced", "capped")
LINKS = 4
ORPHANS = 5
EMPTY_S = 600
"""How long closed sockets may take to go."""
PORT = 5000


# --- the host's side ----------------------------------------------------------------------------------------------


def main() -> int:
    """Boot the kernel, and check its console. Return 0 if the kernel gave no warning."""
    options = _options()
    if options.guest:
        return run_first_process(lambda: _guest(options))
    from plait.kernel import ensure, find

    kernel = find(options.kernel) if options.kernel else ensure()
    print(f"kernel {kernel.name}: {options.connections} connections, seed {options.seed}", flush=True)
    started = time.monotonic()
    console = boot(kernel.binary, __file__, options, options.seed, ("connections", "rounds"))
    complaints = [line for line in console.splitlines() if COMPLAINTS.search(line)]
    complaints += re.findall(r"[1-9]\d* (?:sockets that never went|unreferenced objects)", console)
    results = [line.removeprefix("SOAK ") for line in console.splitlines() if line.startswith("SOAK ")]
    print("\n".join(results))
    if not results or not results[-1].startswith("finished"):
        print(console[-6000:])
        print("the guest did not finish")
        return 1
    print(f"{len(complaints)} warnings of the kernel, {time.monotonic() - started:.0f} s")
    if complaints:
        print(console[-20_000:])
    return 1 if complaints else 0


def _options() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--connections", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3, help="how often the network is made and torn down")
    return parser.parse_args()


# --- the guest's side ---------------------------------------------------------------------------------------------

MPTCP = 262
TCP_CONGESTION = 13


def _guest(options: argparse.Namespace) -> None:
    chance = random.Random(options.seed)
    for number in range(options.rounds):
        soak = Soak(chance, options.connections // options.rounds)
        soak.play()
        soak.tear_down(abruptly=number % 2 == 1)
        _report(f"round {number + 1}: " + ", ".join(f"{value} {name}" for name, value in soak.counts.items()))
    _report(f"kmemleak: {unreferenced_objects()} unreferenced objects")


def _report(text: str) -> None:
    print(f"SOAK {text}", flush=True)


@dataclass
class Pair:
    """Both ends of a connection that are open."""

    client: socket.socket
    server: socket.socket | None = None
    left: int = 0
    """Bytes that the client still has to write."""

    def ends(self) -> list[socket.socket]:
        return [end for end in (self.client, self.server) if end is not None and end.fileno() >= 0]


@dataclass
class Soak:
    """One network and the connections over it."""

    chance: random.Random
    connections: int
    counts: Counter[str] = field(default_factory=Counter)
    pairs: list[Pair] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client, self.server = Node("c"), Node("s")
        for i in range(LINKS):
            netlink.leave(HOME[0])
            netlink.run(f"ip link add c{i} netns c type veth peer name s{i} netns s".split())
            for node, end in ((self.client, 1), (self.server, 2)):
                device = f"{node.name}{i}"
                node.run(f"ip address add 10.0.{i}.{end}/24 dev {device}")
                node.run(f"ip link set {device} up")
                node.run(
                    f"tc qdisc add dev {device} root netem delay {1 + 3 * i}ms rate 50mbit limit 40 loss 1%"
                )
        for node in (self.client, self.server):
            node.run("ip mptcp limits set subflows 8 add_addr_accepted 8")
            for name, value in (("tcp_orphan_retries", 2), ("tcp_fin_timeout", 2), ("tcp_retries2", 4)):
                node.setting(f"ipv4/{name}", value)
            node.setting("mptcp/close_timeout", 2)
        self.add_endpoints()
        self.listeners = {
            protocol: self._listen(protocol, PORT + protocol) for protocol in (MPTCP, socket.IPPROTO_TCP)
        }
        self.diag = {
            node.name: node.socket(socket.SOCK_RAW, 4, socket.AF_NETLINK)
            for node in (self.client, self.server)
        }
        for diag in self.diag.values():
            diag.settimeout(0.5)

    def _listen(self, protocol: int, port: int) -> socket.socket:
        listener = self.server.socket(socket.SOCK_STREAM, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.chance.choice(ALGORITHMS).encode())
        listener.bind(("10.0.0.2", port))
        listener.listen(128)
        listener.setblocking(False)
        return listener

    def play(self) -> None:
        """Take random steps until all connections have been opened."""
        steps = [self.open] * 6 + [self.move] * 60 + [self.change] * 4 + [self.end] * 6 + [self.kill] * 2
        rare = [self.flap_link, self.add_endpoints, self.remove_endpoints]
        while self.counts["connections"] < self.connections:
            if self.chance.random() < 0.02:
                self.schedule()
            self.chance.choice(rare if self.chance.random() < 0.003 else steps)()
            self.accept()
            if self.chance.random() < 0.2:
                time.sleep(self.chance.choice((0.0005, 0.005, 0.05)))
        self.orphan()

    def orphan(self) -> None:
        """Close connections without their initial subflow, and then remove their other subflows' endpoints."""
        self.remove_endpoints()
        for i in range(1, LINKS):
            self.client.run(f"ip mptcp endpoint add 10.0.{i}.1 dev c{i} subflow")
        time.sleep(2)
        self.accept()
        ports = set()
        for _ in range(ORPHANS):
            pair = Pair(self.client.socket(socket.SOCK_STREAM, MPTCP))
            pair.client.connect(("10.0.0.2", PORT + MPTCP))
            pair.client.send(b"established")
            ports.add(pair.client.getsockname()[1])
            self.pairs.append(pair)
        time.sleep(1)
        for _ in range(ORPHANS):
            self.accept()
        for identity in netlink.sockets(self.diag["c"]):
            if struct.unpack_from(">H", identity)[0] in ports:
                self.destroy(self.diag["c"], identity)
        for pair in self.pairs[-ORPHANS:]:
            pair.client.close()
        self.remove_endpoints()
        self.counts["orphans"] += ORPHANS

    def schedule(self) -> None:
        """Change the scheduler for the next connections that a node opens or accepts."""
        node = self.chance.choice((self.client, self.server))
        node.setting("mptcp/scheduler", self.chance.choice(SCHEDULERS))
        node.setting("mptcp_capped/e_permille", self.chance.choice((0, 50, 200)))
        node.setting("mptcp_capped/hold_alone", self.chance.choice((0, 0, 1)))
        self.counts["changes of scheduler"] += 1

    def open(self) -> None:
        if len(self.pairs) >= 60:
            self.end()
        protocol = self.chance.choice((MPTCP, MPTCP, MPTCP, socket.IPPROTO_TCP))
        client = self.client.socket(socket.SOCK_STREAM, protocol)
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.chance.choice(ALGORITHMS).encode())
        client.connect_ex(("10.0.0.2", PORT + protocol))
        self.pairs.append(Pair(client, left=self.chance.choice((0, 1, 3000, 100_000, 1_000_000))))
        self.counts["connections"] += 1

    def accept(self) -> None:
        for listener in self.listeners.values():
            with contextlib.suppress(OSError):
                server, peer = listener.accept()
                server.setblocking(False)
                for pair in self.pairs:
                    if pair.client.fileno() >= 0 and pair.client.getsockname()[1] == peer[1]:
                        pair.server = server
                        break
                else:
                    server.close()

    def move(self) -> None:
        """Send some bytes in both directions."""
        if not self.pairs:
            return
        pair = self.chance.choice(self.pairs)
        with contextlib.suppress(OSError):
            if pair.left > 0:
                pair.left -= pair.client.send(bytes(min(pair.left, 65_536)))
        for end in pair.ends():
            with contextlib.suppress(OSError):
                end.recv(1 << 17)
        if pair.server and self.chance.random() < 0.2:
            with contextlib.suppress(OSError):
                pair.server.send(bytes(self.chance.randrange(20_000)))

    def change(self) -> None:
        """Change the congestion control of an open connection."""
        ends = [end for pair in self.pairs for end in pair.ends()]
        if ends:
            with contextlib.suppress(OSError):
                name = self.chance.choice(ALGORITHMS)
                self.chance.choice(ends).setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
                self.counts["changes of algorithm"] += 1

    def end(self) -> None:
        """Shut down, close or reset one end of a random connection."""
        pair = self.chance.choice(self.pairs) if self.pairs else None
        if pair is None or not pair.ends():
            self.pairs = [pair for pair in self.pairs if pair.ends()]
            return
        end = self.chance.choice(pair.ends())
        how = self.chance.choice(("shutdown", "close", "close", "reset"))
        with contextlib.suppress(OSError):
            if how == "shutdown":
                end.shutdown(socket.SHUT_WR)
                return
            if how == "reset":
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()
        if not pair.ends():
            self.pairs.remove(pair)

    def kill(self) -> None:
        """Destroy a random TCP socket of a random node: mostly a subflow."""
        diag = self.diag[self.chance.choice("cs")]
        sockets = netlink.sockets(diag)
        if sockets:
            identity = self.chance.choice(sockets)
            self.destroy(diag, identity)

    def destroy(self, diag: socket.socket, identity: bytes) -> None:
        with contextlib.suppress(OSError):
            netlink.destroy_identity(diag, identity)
        self.counts["subflows destroyed"] += 1

    def flap_link(self) -> None:
        node, i = self.chance.choice((self.client, self.server)), self.chance.randrange(LINKS)
        node.run(f"ip link set {node.name}{i} down")
        time.sleep(self.chance.choice((0.001, 0.3, 2.0)))
        node.run(f"ip link set {node.name}{i} up")
        self.counts["link outages"] += 1

    def add_endpoints(self) -> None:
        self.remove_endpoints()
        for i in range(1, LINKS):
            kind = self.chance.choice(("subflow", "subflow fullmesh", "subflow backup"))
            self.client.run(f"ip mptcp endpoint add 10.0.{i}.1 dev c{i} {kind}")
        self.server.run("ip mptcp endpoint add 10.0.1.2 dev s1 signal")

    def remove_endpoints(self) -> None:
        for node in (self.client, self.server):
            node.run("ip mptcp endpoint flush")
        self.counts["endpoints removed"] += LINKS

    def tear_down(self, *, abruptly: bool) -> None:
        """Close all connections in a random order; with `abruptly`, delete the client's namespace first."""
        self.server.enter()
        counters = netlink.counters()
        for name in ("MPJoinAckRx", "MPFastcloseRx", "MPRstRx"):
            self.counts[name] += counters.get(f"MPTcpExt{name}", 0)
        nodes = [self.client, self.server]
        if abruptly:
            self.counts["connections alive when their namespace went"] += len(self.pairs)
            nodes.remove(self.client)
            self.client.delete()
        ends = [end for pair in self.pairs for end in pair.ends()]
        self.chance.shuffle(ends)
        for end in [*ends, *self.listeners.values(), *self.diag.values()]:
            end.close()
        until = time.monotonic() + EMPTY_S
        while (left := sum(node.sockets_left() for node in nodes)) and time.monotonic() < until:
            time.sleep(10)  # of virtual time
        self.counts["sockets that never went"] += left
        for node in nodes:
            node.delete()


if __name__ == "__main__":
    raise SystemExit(main())
