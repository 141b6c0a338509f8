"""A network whose links change, lose their ends and disappear beneath their packets."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from link_netlink import (
    CREATE,
    EXCLUSIVE,
    GILBERT_ELLIOTT,
    IN,
    LINES,
    MTU,
    NAME,
    NAMESPACE,
    NESTED,
    OUT,
    PEER,
    QDISC,
    QDISC_OPTIONS,
    SOJOURNS,
    TABLE,
    NetlinkSocket,
    attribute,
    condition,
    counters,
    dump,
    header,
)
from stressed import HOME, Node

from plait.testing.hunt import netlink

Work = Callable[["Network", random.Random], None]

ROUTERS = ("r1", "r2", "r3")
ALL = 2**32 - 1
MS = 10**6
QDISCS = ("codel", "fq_codel", "pfifo_fast", "pie", "sfq")

AT_HOME: list[NetlinkSocket] = []
"""Netlink in the initial namespace."""


def gentle(chance: random.Random) -> bytes:
    """Return conditions that let a flow run at its rate."""
    rate, delay = chance.choice((0, 50_000_000, 77_777_777)), chance.choice((0, MS, 5 * MS))
    queue = chance.choice((0, 200))
    return condition("rate", rate) + condition("delay", delay) + condition("queue_packets", queue)


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
    out = b"".join(condition(name, value) for name, value in chosen.items())
    if chance.random() < 0.3:
        size = chance.choice((0, 1, 100, 4096))
        out += attribute(TABLE, b"".join(struct.pack("=h", chance.randint(-9000, 9000)) for _ in range(size)))
    if chance.random() < 0.3:
        ge = chance.choice(((0, 0, 0, 0), (ALL // 50, ALL // 4, ALL // 2, 0)))
        out += attribute(GILBERT_ELLIOTT, struct.pack("=4I", *ge))
    return out


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
    direct: int
    """Links between the hosts themselves."""
    calm: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    channels: dict[str, NetlinkSocket] = field(default_factory=dict)

    def build(self, works: tuple[Work, ...]) -> None:
        """Make all nodes and links, and start the works, each in a process of its own."""
        chain = ("a", *ROUTERS, "b")
        for name in chain:
            self._make_node(name)
        ends = [("a", "b")] * self.direct + list(pairwise(chain))
        self.links = [Link(number, pair) for number, pair in enumerate(ends)]
        for link in self.links:
            self.make(link)
        self.routes()
        netlink.run(["ip", "-n", "a", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"])
        netlink.run(["ip", "-n", "b", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"])
        for link in (self.links[1], self.links[-1]):
            address = link.address(1)
            netlink.run(["ip", "-n", "b", "mptcp", "endpoint", "add", address, "signal"])
        self.workers = [self._fork(work) for work in works]

    def conditions(self) -> bytes:
        """Return random conditions of a direction."""
        return gentle(self.chance) if self.calm else conditions(self.chance)

    def _make_node(self, name: str) -> None:
        node = self.nodes[name] = Node(name)
        for setting, value in (("ipv4/ip_forward", 1), ("ipv4/tcp_retries2", 4), ("ipv4/tcp_syn_retries", 2)):
            node.setting(setting, value)
        if name in ROUTERS:  # as plait sets it; otherwise packets take the whole stack
            node.setting("ipv4/ip_early_demux", 0)
        self.channels[name] = NetlinkSocket()

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
        inside = [attribute(NAMESPACE, struct.pack("=I", handle)) for handle in handles]
        peer = header() + attribute(NAME, b.encode() + b"\0") + inside[1]
        out, back = self.conditions(), self.conditions()
        if chance.random() < 0.4:
            out += attribute(QDISC, chance.choice(QDISCS).encode() + b"\0")
        data = attribute(PEER, peer) + attribute(OUT | NESTED, out)
        try:
            AT_HOME[0].link(a, data, CREATE | EXCLUSIVE, inside[0])
        finally:
            for handle in handles:
                os.close(handle)
        self.channels[link.ends[0]].link(a, attribute(IN | NESTED, back))
        for end, name in enumerate(link.names):
            self.nodes[link.ends[end]].ip(f"address add {link.address(end)}/24 dev {name}")
            self.channels[link.ends[end]].device(name, enabled=True)

    def routes(self) -> None:
        """Give each node of the chain its way to both ends of it."""
        hops = self.links[self.direct :]
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
        action = chance.choice([*common, *rare, *[self.reroute] * 8])
        with contextlib.suppress(OSError):
            action(link)
            self.counts[action.__name__.replace("_", " ")] += 1
        if chance.random() < 0.01:
            self.rebuild_router()

    def _side(self, link: Link) -> tuple[NetlinkSocket, str, int]:
        end = self.chance.randrange(2)
        return self.channels[link.ends[end]], link.names[end], end

    def set_conditions(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.link(name, attribute(self.chance.choice((OUT, IN)) | NESTED, self.conditions()))

    def cut(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        for loss in (ALL, 0):
            data = condition("loss", loss)
            channel.link(name, attribute(OUT | NESTED, data) + attribute(IN | NESTED, data))
            if loss:
                time.sleep(self.chance.choice((0, 0.001, 0.3)))

    def flap(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.device(name, enabled=False)
        time.sleep(self.chance.choice((0, 0.001, 0.1, 1.0)))
        channel.device(name, enabled=True)
        if link.number >= self.direct:
            self.routes()
        self.counts["ends down"] += 1

    def reroute(self, _link: Link) -> None:
        """Change what a node of the chain decides by, and change it back: what a cut-through remembers."""
        link, far = (self.chance.choice(self.links[self.direct :]) for _ in range(2))
        _, name, end = self._side(link)
        node, own, peer = self.nodes[link.ends[end]], link.address(end), link.address(1 - end)
        net, mac = f"10.0.{far.number}.0/24", f"02:00:00:00:00:{self.chance.randrange(16, 99)}"
        change, back = self.chance.choice(
            (
                (f"route replace blackhole {net}", "route flush cache"),
                (f"route replace {net} via {peer} mtu 600", "route flush cache"),
                (f"route add {net} via {peer} metric 50", f"route del {net} metric 50"),
                (f"neighbour flush dev {name}", f"neighbour flush dev {name}"),
                (f"neighbour replace {peer} lladdr {mac} dev {name}", f"neighbour del {peer} dev {name}"),
                (f"address del {own}/24 dev {name}", f"address add {own}/24 dev {name}"),
                (f"rule add pref 100 to {net} blackhole", "rule del pref 100"),
                (f"link set {name} address {mac}", f"neighbour flush dev {name}"),
            )
        )
        changed = node.ip(change)
        node.setting("ipv4/ip_forward", self.chance.choice((0, 1, 1, 1)))
        time.sleep(self.chance.choice((0, 0.001, 0.05)))
        node.setting("ipv4/ip_forward", 1)
        self.counts[f"{change.split()[0]} changed"] += changed and node.ip(back)
        self.routes()

    def read(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.line(name)
        netlink.leave(HOME[0])
        self.counts["counters read"] += len(dump(LINES)) + len(dump(SOJOURNS))

    def resize(self, link: Link) -> None:
        channel, name, _ = self._side(link)
        channel.device(name, attribute(MTU, struct.pack("=I", self.chance.choice((576, 1500, 9000)))))

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
        channel.device(name, attribute(NAMESPACE, struct.pack("=I", HOME[0])))
        time.sleep(self.chance.choice((0, 0.001, 0.1)))
        AT_HOME[0].remove(name)
        self.make(link)
        self.routes()

    def tally(self, link: Link) -> None:
        """Add up what a link has delivered, before it goes."""
        for end, name in enumerate(link.names):
            with contextlib.suppress(OSError):
                self.counts["packets delivered"] += counters(self.channels[link.ends[end]].line(name))[
                    "packets"
                ]

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
