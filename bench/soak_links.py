"""Stress links that are devices: change, cut and remove them while they carry packets.

    .venv/bin/python bench/soak_links.py --kernel ID --minutes 15

Boots a laboratory kernel for one trial after the other until the time is over, each with a seed of its own. A trial
builds networks of two hosts, direct links and a chain of routers, and loads them with connections of Multipath TCP and
TCP and with bursts of UDP. Meanwhile it changes the conditions of links and their qdiscs, cuts them, takes their ends
down, removes links and routers and builds them again, moves an end to another namespace, and reads the counters. In
the end it deletes the namespaces with packets in flight. A trial fails if the kernel printed a warning or the report of
a debug check, or if memory leaked. A kernel of `plait kernel build --debug` checks most.

The file has both sides: the host's side boots the kernel, which runs the guest's side as its first process. Sleeps pass
in the guest's virtual time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from soak import COMPLAINTS

from plait.testing.hunt import netlink

if TYPE_CHECKING:
    from collections.abc import Callable

    Work = Callable[["Network", random.Random], None]

DIRECT = 3
ROUTERS = ("r1", "r2", "r3")
PORT = 5000
MPTCP = 262
ALL = 2**32 - 1
MS = 10**6
QDISCS = ("codel", "fq_codel", "pfifo_fast", "pie", "sfq")
ETHERTYPE = 0x88B5
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
REQUEST, ACK, EXCL, CREATE = 1, 4, 0x200, 0x400
IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 4, 18, 28
INFO_KIND, INFO_DATA, INFO_XSTATS = 1, 2, 3
PEER, OUT, IN = 1, 2, 3
NESTED = 0x8000
FIELDS = {
    "rate": (2, "Q"), "delay": (3, "Q"), "jitter": (4, "I"), "overtaking": (6, "B"), "loss": (7, "I"),
    "duplicate": (9, "I"), "reorder": (10, "I"), "corrupt": (11, "I"), "queue_packets": (12, "I"),
    "queue_bytes": (13, "I"), "bucket_rate": (14, "Q"), "bucket_burst": (15, "I"), "seed": (16, "Q"),
}  # fmt: skip
TABLE, GE, QDISC, QDISC_OPTIONS = 5, 8, 17, 18
NETLINK_GENERIC, CONTROLLER, DUMP, DONE = 16, 16, 0x300, 3
COUNTERS = 14
"""Numbers in struct plait_line_counters; the first is the packets that arrived."""


# --- the host's side ----------------------------------------------------------------------------------------------


def main() -> int:
    """Boot trials until the time is over. Return 0 if no kernel gave a warning."""
    options = _options()
    if options.guest:
        return _guest(options)
    from plait.kernel import ensure, find

    kernel = find(options.kernel) if options.kernel else ensure()
    print(f"kernel {kernel.name}, {options.minutes} minutes from seed {options.seed}", flush=True)
    started, trials, total, alarms = time.monotonic(), 0, Counter[str](), 0
    while not trials or time.monotonic() - started < 60 * options.minutes:
        console = _boot(kernel.binary, options, options.seed + trials)
        trials += 1
        counts = Counter(
            {name: int(n) for n, name in re.findall(r"^SOAK (\d+) (.*)$", console, re.MULTILINE)}
        )
        total += counts
        complaints = [line for line in console.splitlines() if COMPLAINTS.search(line)]
        unfinished = "SOAK finished" not in console
        shown = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(f"trial {trials}, {time.monotonic() - started:.0f} s: {shown}", flush=True)
        if complaints or unfinished or counts["unreferenced objects"]:
            alarms += 1
            print(
                f"seed {options.seed + trials - 1}: {len(complaints)} warnings\n{console[-20_000:]}",
                flush=True,
            )
    print("\n".join(f"{number} {name}" for name, number in sorted(total.items())))
    print(f"{trials} trials, {alarms} with warnings, {time.monotonic() - started:.0f} s")
    return 1 if alarms else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernel", help="a built kernel (`plait kernel list`); default: the default one")
    parser.add_argument("--minutes", type=float, default=15, help="start trials for this time; at least one")
    parser.add_argument("--networks", type=int, default=3, help="how often a trial builds its network")
    parser.add_argument("--changes", type=int, default=400, help="changes of each network")
    parser.add_argument("--seed", type=int, default=1, help="that of the first trial")
    parser.add_argument("--memory", default="768M")
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _boot(binary: Path, options: argparse.Namespace, seed: int) -> str:
    """Run the guest's side in a fresh kernel, and return its console."""
    with tempfile.TemporaryDirectory() as folder:
        init = Path(folder) / "init"
        command = [sys.executable, str(Path(__file__).resolve()), "--guest", f"--seed={seed}"]
        command += [f"--{name}={getattr(options, name)}" for name in ("networks", "changes")]
        init.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        init.chmod(0o755)
        arguments = [
            f"mem={options.memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
            "time-travel=inf-cpu", f"um_rng_seed={seed}", "con=null", "con0=null,fd:1", "uml_dir=.", "panic=-1",
            "loglevel=6",
        ]  # fmt: skip
        done = subprocess.run(
            ["setarch", "-R", str(binary), *arguments],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    return done.stdout.decode(errors="replace").replace("\r", "")


# --- the guest's side: netlink ------------------------------------------------------------------------------------


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute of netlink."""
    return struct.pack("=HH", len(value) + 4, kind) + value + b"\0" * (-len(value) % 4)


def value_of(attributes: bytes, wanted: int) -> bytes:
    """Return the value of an attribute in a sequence of them."""
    at = 0
    while at + 4 <= len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, at)
        if kind & 0x3FFF == wanted:
            return attributes[at + 4 : at + length]
        at += (length + 3) & ~3
    raise KeyError(wanted)


class Channel:
    """A socket of netlink that waits for each answer."""

    def __init__(self, protocol: int = 0) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.bind((0, 0))

    def ask(self, kind: int, flags: int, payload: bytes) -> bytes:
        self.socket.send(struct.pack("=IHHII", 16 + len(payload), kind, REQUEST | flags, 1, 0) + payload)
        answer = self.socket.recv(1 << 17)
        if struct.unpack_from("=H", answer, 4)[0] == 2 and struct.unpack_from("=i", answer, 16)[0]:
            raise OSError(-struct.unpack_from("=i", answer, 16)[0], f"netlink {kind}: {answer[36:]!r}")
        return answer

    def link(self, name: str, data: bytes, flags: int = 0, extra: bytes = b"") -> None:
        info = attribute(INFO_KIND, b"plait_link\0") + attribute(INFO_DATA | NESTED, data)
        header = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attribute(IFLA_IFNAME, name.encode() + b"\0")
        self.ask(RTM_NEWLINK, ACK | flags, header + extra + attribute(IFLA_LINKINFO | NESTED, info))

    def device(self, name: str, extra: bytes = b"", *, up: bool | None = None) -> None:
        header = struct.pack("=BxHiII", 0, 0, 0, bool(up), up is not None)
        self.ask(RTM_NEWLINK, ACK, header + attribute(IFLA_IFNAME, name.encode() + b"\0") + extra)

    def remove(self, name: str) -> None:
        header = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        self.ask(RTM_DELLINK, ACK, header + attribute(IFLA_IFNAME, name.encode() + b"\0"))

    def packets(self, name: str) -> int:
        """Return the packets that the direction out of a device has delivered."""
        header = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        answer = self.ask(RTM_GETLINK, 0, header + attribute(IFLA_IFNAME, name.encode() + b"\0"))
        line = value_of(value_of(answer[32:], IFLA_LINKINFO), INFO_XSTATS)
        return int(struct.unpack(f"={COUNTERS}Q", line)[0])


def dump(command: int) -> int:
    """Dump counters of all links, and return the number of messages."""
    generic = Channel(NETLINK_GENERIC)
    answer = generic.ask(CONTROLLER, 0, bytes((3, 1, 0, 0)) + attribute(2, b"plait_link\0"))
    family = struct.unpack("=H", value_of(answer[20:], 1))[0]
    answer, messages = generic.ask(family, DUMP, bytes((command, 1, 0, 0))), 0
    while True:
        at = 0
        while at < len(answer):
            length, kind = struct.unpack_from("=IH", answer, at)
            if kind == DONE:
                generic.socket.close()
                return messages
            messages += 1
            at += (length + 3) & ~3
        answer = generic.socket.recv(1 << 17)


def gentle(chance: random.Random) -> bytes:
    """Return conditions that let a flow run at its rate."""
    rate, delay = chance.choice((0, 50_000_000, 77_777_777)), chance.choice((0, MS, 5 * MS))
    queue = struct.pack("=I", chance.choice((0, 200)))
    out = attribute(FIELDS["rate"][0], struct.pack("=Q", rate))
    return (
        out
        + attribute(FIELDS["delay"][0], struct.pack("=Q", delay))
        + attribute(FIELDS["queue_packets"][0], queue)
    )


def conditions(chance: random.Random) -> bytes:
    """Return random conditions of a direction: mostly few, sometimes all."""
    few: dict[str, int] = {
        "rate": chance.choice((0, 2_000_000, 10_000_000, 77_777_777, 1_000_000_000)),
        "delay": chance.choice((0, 0, 1, MS, 5 * MS, 40 * MS)),
        "jitter": chance.choice((0, 0, MS, 10 * MS)),
        "overtaking": chance.randrange(2),
        "loss": chance.choice((0, 0, 0, ALL // 100)),
        "duplicate": chance.choice((0, 0, ALL // 50)),
        "reorder": chance.choice((0, 0, ALL // 50)),
        "corrupt": chance.choice((0, 0, ALL // 200)),
        "queue_packets": chance.choice((0, 5, 100)),
        "queue_bytes": chance.choice((0, 0, 30_000)),
        "bucket_rate": chance.choice((0, 0, 5_000_000)),
        "bucket_burst": chance.choice((3000, 100_000)),
        "seed": chance.getrandbits(60),
    }
    chosen = {name: value for name, value in few.items() if chance.random() < 0.7}
    out = b"".join(attribute(FIELDS[n][0], struct.pack(f"={FIELDS[n][1]}", v)) for n, v in chosen.items())
    if chance.random() < 0.3:
        size = chance.choice((0, 1, 100, 4096))
        out += attribute(TABLE, b"".join(struct.pack("=h", chance.randint(-9000, 9000)) for _ in range(size)))
    if chance.random() < 0.3:
        ge = chance.choice(((0, 0, 0, 0), (ALL // 50, ALL // 4, ALL // 2, 0)))
        out += attribute(GE, struct.pack("=4I", *ge))
    return out


# --- the guest's side: a network ----------------------------------------------------------------------------------


class Node(netlink.HuntNamespace):
    """A namespace that ends when its name is deleted."""

    @property
    def handle(self) -> int:
        return self._handle

    def delete(self) -> None:
        os.close(self._handle)
        netlink.run(["ip", "netns", "delete", self.name])


@dataclass
class Link:
    """A pair of devices."""

    number: int
    ends: tuple[str, str]
    """The nodes."""

    @property
    def names(self) -> tuple[str, str]:
        return f"l{self.number}a", f"l{self.number}b"

    def address(self, end: int) -> str:
        return f"10.0.{self.number}.{end + 1}"


@dataclass
class Network:
    """Two hosts, links between them, and a chain of routers."""

    chance: random.Random
    counts: Counter[str]
    calm: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    channels: dict[str, Channel] = field(default_factory=dict)

    def build(self) -> None:
        """Make all nodes and links, and start the load."""
        chain = ("a", *ROUTERS, "b")
        for name in chain:
            self._make_node(name)
        ends = [("a", "b")] * DIRECT + list(pairwise(chain))
        self.links = [Link(number, pair) for number, pair in enumerate(ends)]
        for link in self.links:
            self.make(link)
        self.routes()
        netlink.run(["ip", "-n", "a", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"])
        netlink.run(["ip", "-n", "b", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"])
        for link in (self.links[1], self.links[-1]):
            address = link.address(1)
            netlink.run(["ip", "-n", "b", "mptcp", "endpoint", "add", address, "signal"])
        self.workers = [self._fork(work) for work in (CALM if self.calm else MIXED)]

    def conditions(self) -> bytes:
        """Return random conditions of a direction."""
        return gentle(self.chance) if self.calm else conditions(self.chance)

    def _make_node(self, name: str) -> None:
        node = self.nodes[name] = Node(name)
        node.ip("link set lo up")
        for setting, value in (("ipv4/ip_forward", 1), ("ipv4/tcp_retries2", 4), ("ipv4/tcp_syn_retries", 2)):
            node.setting(setting, value)
        self.channels[name] = Channel()

    def _fork(self, work: Work) -> int:
        seed = self.chance.getrandbits(30)
        child = os.fork()
        if child:
            return child
        keep = {0, 1, 2, self.nodes["a"].handle, self.nodes["b"].handle}  # no worker keeps a router alive
        for descriptor in range(3, 256):
            if descriptor not in keep:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        try:
            work(self, random.Random(seed))
        finally:
            os._exit(0)

    def make(self, link: Link) -> None:
        """Make a link between its nodes, with random conditions, up."""
        chance, (a, b) = self.chance, link.names
        handles = [os.open(f"/run/netns/{name}", os.O_RDONLY) for name in link.ends]
        inside = [attribute(IFLA_NET_NS_FD, struct.pack("=I", handle)) for handle in handles]
        peer = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attribute(IFLA_IFNAME, b.encode() + b"\0") + inside[1]
        out, back = self.conditions(), self.conditions()
        if chance.random() < 0.4:
            out += attribute(QDISC, chance.choice(QDISCS).encode() + b"\0")
        data = attribute(PEER, peer) + attribute(OUT | NESTED, out)
        try:
            HOME[0][1].link(a, data, CREATE | EXCL, inside[0])
        finally:
            for handle in handles:
                os.close(handle)
        self.channels[link.ends[0]].link(a, attribute(IN | NESTED, back))
        for end, name in enumerate(link.names):
            self.nodes[link.ends[end]].ip(f"address add {link.address(end)}/24 dev {name}")
            self.channels[link.ends[end]].device(name, up=True)

    def routes(self) -> None:
        """Give each node of the chain its way to both ends of it."""
        hops = self.links[DIRECT:]
        for number, link in enumerate(hops):
            for other, far in enumerate(hops):
                if other > number:
                    self._route(link.ends[0], far, link.address(1))
                elif other < number:
                    self._route(link.ends[1], far, link.address(0))

    def _route(self, node: str, far: Link, via: str) -> None:
        self.nodes[node].ip(f"route replace 10.0.{far.number}.0/24 via {via}")

    def change(self) -> None:
        """Do one random thing to a random link."""
        chance, link = self.chance, self.chance.choice(self.links)
        common = [self.set_conditions] * 12 + [self.cut] * 4 + [self.flap] * 4 + [self.read] * 4
        rare = [self.replace] * 2 + [self.resize, self.set_qdisc, self.set_qdisc, self.move]
        action = chance.choice([*common, *rare])
        with contextlib.suppress(OSError):
            action(link)
            self.counts[action.__name__.replace("_", " ")] += 1
        if chance.random() < 0.01:
            self.rebuild_router()

    def _side(self, link: Link) -> tuple[Channel, str, int]:
        end = self.chance.randrange(2)
        return self.channels[link.ends[end]], link.names[end], end

    def set_conditions(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.link(name, attribute(self.chance.choice((OUT, IN)) | NESTED, self.conditions()))

    def cut(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        for loss in (ALL, 0):
            data = attribute(FIELDS["loss"][0], struct.pack("=I", loss))
            channel.link(name, attribute(OUT | NESTED, data) + attribute(IN | NESTED, data))
            if loss:
                time.sleep(self.chance.choice((0, 0.001, 0.3)))

    def flap(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.device(name, up=False)
        time.sleep(self.chance.choice((0, 0.001, 0.1, 1.0)))
        channel.device(name, up=True)
        if link.number >= DIRECT:
            self.routes()
        self.counts["ends down"] += 1

    def read(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.packets(name)
        go_home()
        self.counts["counters read"] += dump(1) + dump(2)

    def resize(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.device(name, attribute(IFLA_MTU, struct.pack("=I", self.chance.choice((576, 1500, 9000)))))

    def set_qdisc(self, link: Link) -> None:
        """Change a parameter of the qdisc, or try to give the line one while it carries packets."""
        channel, name, _ = self._side(link)
        options = attribute(1, struct.pack("=I", 5000)) + attribute(
            2, struct.pack("=I", self.chance.randint(1, 50))
        )
        data = attribute(QDISC_OPTIONS, options)
        if self.chance.random() < 0.2:
            data += attribute(QDISC, self.chance.choice(QDISCS).encode() + b"\0")
        channel.link(name, attribute(OUT | NESTED, data))

    def replace(self, link: Link) -> None:
        """Remove the link beneath its packets, and make it again."""
        channel, name, _ = self._side(link)
        self.tally(link)
        channel.remove(name)
        time.sleep(self.chance.choice((0, 0.001, 0.1)))
        self.make(link)
        self.routes()

    def move(self, link: Link) -> None:
        """Move an end to the initial namespace beneath its packets, and remove it there."""
        channel, name, _ = self._side(link)
        self.tally(link)
        channel.device(name, attribute(IFLA_NET_NS_FD, struct.pack("=I", HOME[0][0])))
        time.sleep(self.chance.choice((0, 0.001, 0.1)))
        HOME[0][1].remove(name)
        self.make(link)
        self.routes()

    def tally(self, link: Link) -> None:
        """Add up what a link has delivered, before it goes."""
        for end, name in enumerate(link.names):
            with contextlib.suppress(OSError):
                self.counts["packets delivered"] += self.channels[link.ends[end]].packets(name)

    def rebuild_router(self) -> None:
        """Delete a router with the ends of its links, and build it again."""
        name = self.chance.choice(ROUTERS)
        for link in self.links:
            if name in link.ends:
                self.tally(link)
        self.delete_node(name)
        for link in self.links:  # the other ends go asynchronously
            if name in link.ends:
                other = link.ends[0] if link.ends[1] == name else link.ends[1]
                for device in link.names:
                    with contextlib.suppress(OSError):
                        self.channels[other].remove(device)
        self._make_node(name)
        for link in self.links:
            if name in link.ends:
                with contextlib.suppress(OSError):
                    self.make(link)
        self.routes()
        self.counts["routers rebuilt"] += 1

    def delete_node(self, name: str) -> None:
        self.channels.pop(name).socket.close()
        go_home()
        self.nodes.pop(name).delete()

    def tear_down(self) -> None:
        """Delete the nodes in a random order, some of them while the load goes on."""
        for link in self.links:
            self.tally(link)
        names = list(self.nodes)
        self.chance.shuffle(names)
        early = self.chance.randrange(len(names))
        for name in names[:early]:
            self.delete_node(name)
        time.sleep(self.chance.choice((0, 0.05)))
        for worker in self.workers:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        for name in names[early:]:
            self.delete_node(name)


# --- the guest's side: the load, each in a process of its own -----------------------------------------------------


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
    targets = [network.links[number].address(1) for number in (*range(DIRECT), len(network.links) - 1)]
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
            sender.bind((f"l{chance.randrange(DIRECT + 1)}a", ETHERTYPE))
            frame = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", ETHERTYPE)
            for _ in range(chance.choice((10, 100))):
                sender.send(frame + bytes(chance.choice((46, 1000))))
        sender.close()
        time.sleep(chance.choice((0.002, 0.05)))


MIXED: tuple[Work, ...] = (serve, drain, connect, connect, spray, flood)
CALM: tuple[Work, ...] = (serve, transfer)
"""One flow, between whose packets the kernel has nothing else to do: the timer of the links skips the idle loop."""


# --- the guest's side: one trial ----------------------------------------------------------------------------------

HOME: list[tuple[int, Channel]] = []
"""The initial namespace, and netlink in it."""


def go_home() -> None:
    """Return to the initial namespace."""
    if netlink.LIBC.setns(HOME[0][0], 0x4000_0000):
        raise OSError("entering the initial namespace")


def softirqs(kind: str) -> int:
    """Return how often the kernel ran a kind of softirq."""
    lines = Path("/proc/softirqs").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith(f"{kind}:"))


def _guest(options: argparse.Namespace) -> int:
    """Run as the first process of the guest; never return."""
    try:
        os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
        for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):  # noqa: S108 - the guest's own
            netlink.run(["mount", "-t", kind, kind, place])
        HOME.append((os.open("/proc/self/ns/net", os.O_RDONLY), Channel()))
        chance, counts = random.Random(options.seed), Counter[str]()
        for _ in range(options.networks):
            _play(chance, counts, options.changes)
        _look_for_leaks(counts)
        for name, number in counts.items():
            print(f"SOAK {number} {name}", flush=True)
        print("SOAK finished", flush=True)
    except BaseException as error:
        print(f"SOAK failed: {type(error).__name__}: {error}", flush=True)
        raise
    finally:
        sys.stdout.flush()
        netlink.LIBC.reboot(0x4321FEDC)
    return 0


def _play(chance: random.Random, counts: Counter[str], changes: int) -> None:
    """Build a network, change it under load, and delete it."""
    calm = chance.random() < 0.4
    pauses = (0.1, 0.5) if calm else (0.0001, 0.001, 0.005, 0.02, 0.1)
    before, own = softirqs("HI"), Counter[str]()
    network = Network(chance, own, calm)
    network.build()
    for _ in range(changes // 4 if calm else changes):
        time.sleep(chance.choice(pauses))
        network.change()
    network.tear_down()
    own["runs of the links' timer"] = softirqs("HI") - before
    own["networks"] = 1
    for name in ("packets delivered", "runs of the links' timer", "networks"):
        if calm:
            counts[f"{name}, one flow"] += own.pop(name)
    counts.update(own)


def _look_for_leaks(counts: Counter[str]) -> None:
    leaks = Path("/sys/kernel/debug/kmemleak")
    if not leaks.parent.exists():
        return
    netlink.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"])
    for _ in range(3):
        time.sleep(15)
        leaks.write_text("scan")
    report = leaks.read_text()
    print(report, flush=True)
    counts["unreferenced objects"] += report.count("unreferenced object")


if __name__ == "__main__":
    raise SystemExit(main())
