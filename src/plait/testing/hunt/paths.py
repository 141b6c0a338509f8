"""The guest's side of a hunt: links of both hosts, middleboxes on them, and endpoints of either path manager.

It needs the standard library and its neighbours alone.
"""

from __future__ import annotations

import json
import math
import socket
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.testing.hunt import netlink
    from plait.testing.hunt.kinds import KINDS
    from plait.testing.hunt.netlink import HuntNamespace
else:
    import netlink
    from kinds import KINDS
    from netlink import HuntNamespace

PORT = 5000
_FAST_OPEN = 0x607
"""Both hosts use TCP Fast Open, without cookies (Documentation/networking/ip-sysctl.rst)."""
_PROBES = 60
"""Times that a host asks for its neighbour, a second apart."""
_ANNOUNCED_LONG_S = 3.0
_PROMPT = 18_750
"""Bytes in a queue, for each Mbit/s of its link: 0.15 s."""


@dataclass
class Paths:
    """Two hosts and what connects them."""

    case: dict[str, Any]
    client: HuntNamespace = field(init=False)
    server: HuntNamespace = field(init=False)
    endpoints: set[int] = field(default_factory=set)
    """Links for which the client's path manager has an endpoint."""
    removed: set[int] = field(default_factory=set)
    """Links for which it had one."""
    announced: dict[int, float] = field(default_factory=dict)
    """Links of which the server announces its address, and since when."""
    let_go: set[int] = field(default_factory=set)
    """Links with an announced address to which the client closed its subflow, by removing that subflow's endpoint."""
    withdrawn: set[int] = field(default_factory=set)
    """Links of which the server withdrew its address after the client knew it well."""

    unplugged: set[int] = field(default_factory=set)
    """Links that are down for good."""
    unsure: set[tuple[str, int]] = field(default_factory=set)
    """Sides and links of what was added again so soon that its subflow may be gone."""

    def __post_init__(self) -> None:
        """Make hosts, links and endpoints, and set what the case says, with few programs: they cost most of a case."""
        self.family = socket.AF_INET6 if self.case["ipv6"] else socket.AF_INET
        self._middleboxes: Counter[tuple[int, str]] = Counter()
        self._gone: dict[tuple[str, int], float] = {}
        sizes = sum(entry["up_bytes"] + entry["down_bytes"] for entry in self.case["connections"])
        self._longest_s = 1.0 + 8e-6 * sizes / min(link["rate_mbit"] for link in self.case["links"])
        self._ip = "ip -6" if self.case["ipv6"] else "ip -4"
        self.client, self.server = HuntNamespace("client"), HuntNamespace("server")
        self.sides = {"client": self.client, "server": self.server}
        for side, host in ((self.client, 1), (self.server, 2)):
            self._set(side)
            links = range(len(self.case["links"]))
            side.batch(self._ip, [
                *(self._pair(i) for i in links if side is self.client),
                "link set lo up",
                f"mptcp limits set subflows {self.case['most_subflows']} add_addr_accepted 8",
                *(line for i in links for line in self._addresses(side, i, host)),
                *(line for i in links for line in self._first_endpoints(side, i)),
            ])  # fmt: skip
            side.batch("tc", [line for i in links for line in self._queues(side, i)])
            for i in links:  # three lost probes would end a connection
                protocol = "ipv6" if self.case["ipv6"] else "ipv4"
                side.setting(f"{protocol}/neigh/{side.name[0]}{i}/mcast_solicit", _PROBES)
        self._always_fit = self._fit()

    def close(self) -> None:
        """Let both hosts end."""
        for side in self.sides.values():
            side.close()

    def _pair(self, i: int) -> str:
        mtu = self.case["links"][i]["mtu"]
        return f"link add c{i} mtu {mtu} type veth peer name s{i} mtu {mtu} netns {self.server.path}"

    def address(self, link: int, host: int) -> str:
        """Return the address of the client (1) or the server (2) on a link."""
        return f"fd00:0:0:{link}::{host}" if self.case["ipv6"] else f"10.0.{link}.{host}"

    @staticmethod
    def link_of(address: bytes) -> int:
        """Return the link of a packed address."""
        return address[2] if len(address) == 4 else address[7]

    def _addresses(self, side: HuntNamespace, i: int, host: int) -> list[str]:
        device, ipv6 = f"{side.name[0]}{i}", self.case["ipv6"]
        lines = [
            f"address add {self.address(i, host)}{'/64' if ipv6 else '/24'} dev {device}{' nodad' * ipv6}",
            f"link set {device} up",
        ]
        if side is self.client:
            lines += [f"rule add from {self.address(i, 1)} table {100 + i}", self._route(i)]
        return lines

    def _first_endpoints(self, side: HuntNamespace, i: int) -> list[str]:
        """Return the command for the endpoint that a host has on a link from the beginning, if any, and note it."""
        link = self.case["links"][i]
        if not i or not (link["signal"] if side is self.server else link["endpoint"] != "none"):
            return []
        if side is self.server:
            self.announced[i] = 0.0
            return [self._signal(i)]
        if self.case["user_paths"]:
            return []
        self.endpoints.add(i)
        return [self._endpoint(i)]

    def _queues(self, side: HuntNamespace, i: int) -> list[str]:
        device, link = f"{side.name[0]}{i}", self.case["links"][i]
        loss = f" loss {link['loss_percent']}%" if link["loss_percent"] else ""
        size = link["queue_packets"] * link["mtu"]
        return [
            f"qdisc add dev {device} root handle 1: netem delay {link['delay_ms']}ms{loss} limit 10000",
            f"qdisc add dev {device} parent 1: handle 2: tbf rate {link['rate_mbit']}mbit burst 20000 limit {size}",
        ]

    def _endpoint(self, i: int) -> str:
        kind = self.case["links"][i]["endpoint"]
        return f"mptcp endpoint add {self.address(i, 1)} dev c{i} {'subflow' if kind == 'none' else kind}"

    def _signal(self, i: int) -> str:
        port = f" port {PORT + 1 + i}" if self.case["links"][i]["own_port"] else ""
        return f"mptcp endpoint add {self.address(i, 2)} dev s{i} signal{port}"

    def _route(self, i: int) -> str:
        """Return the route of subflows from the client's address on link `i`: over that link to every address."""
        # with IPv6 a host answers for the addresses of one device there alone, so its address is the gateway
        target = f"fd00::/48 via {self.address(i, 2)}" if self.case["ipv6"] else "10.0.0.0/16"
        return f"route replace {target} dev c{i} table {100 + i}"

    def _set(self, side: HuntNamespace) -> None:
        buffer_bytes = self.case["receive_buffer"]
        settings: dict[str, object] = {
            "mptcp/scheduler": self.case["scheduler"],
            "mptcp/checksum_enabled": int(self.case["checksums"]),
            "mptcp/add_addr_timeout": 2,  # so that a lost ADD_ADDR is repeated within the case
            "mptcp/pm_type": int(self.case["user_paths"] and side is self.client),
            "ipv4/tcp_rmem": f"4096 {min(131_072, buffer_bytes)} {buffer_bytes}",
            "ipv4/tcp_wmem": f"4096 16384 {self.case['send_buffer']}",
            "ipv6/conf/all/keep_addr_on_down": 1,
        }
        if any(entry["fast_open"] for entry in self.case["connections"]):
            settings["ipv4/tcp_fastopen"] = _FAST_OPEN
        for name, value in settings.items():
            side.setting(name, value)

    def link_up(self, i: int) -> None:
        """Take a link up again, with the route that it lost."""
        self.unplugged.discard(i)
        self.client.ip(f"link set c{i} up")
        self.client.ip(f"{self._ip.removeprefix('ip ')} {self._route(i)}")

    def middlebox(self, i: int, kind: str, *, present: bool) -> None:
        """Add or remove the middlebox of a kind of events at both ends of a link; those of several events are one."""
        others = self._middleboxes[i, kind] - (not present)
        self._middleboxes[i, kind] = others + present
        if others:
            return
        for side in self.sides.values():
            table = f"table netdev {kind}{i}"
            chain = f"type filter hook ingress device {side.name[0]}{i} priority 0"
            rules = "\n".join((chain, *KINDS[kind].middlebox))
            side.nft(f"{table} {{\nchain c {{\n{rules}\n}}\n}}\n" if present else f"delete {table}\n")

    def add(self, i: int, clients: list[socket.socket], now_s: float, identifier: int = 0) -> None:
        """Add the client's endpoint of a link; in user space, open a subflow of each of these connections there."""
        if self.case["user_paths"]:
            opened = [self._open_subflow(connection, i) for connection in clients]
            if any(opened):
                self.removed.discard(i)
            # a connection that opens later has no subflow there
            done = len(opened) == len(self.case["connections"]) and all(opened)
        else:
            words = self._endpoint(i)
            done = self.client.ip(f"{words} id {identifier}" if identifier else words)
        if done:
            self.endpoints.add(i)
            self.removed.discard(i)
            self._know("client", i, now_s)
            self._always_fit &= self._fit()

    def remove(self, i: int, clients: list[socket.socket], now_s: float) -> list[int]:
        """Remove the client's endpoint of a link, and return its identifiers."""
        self._gone["client", i] = now_s
        if self.case["user_paths"]:
            for connection in clients:
                self._close_subflows(connection, i)
        identifiers = self._delete(self.client, self.address(i, 1))
        self._let_go({i})
        if i in self.endpoints:
            self.endpoints.discard(i)
            self.removed.add(i)
        return identifiers

    def _let_go(self, links: set[int]) -> None:
        """Note that endpoints go: those of full meshes have the subflows to all announced addresses."""
        meshed = any(self.case["links"][link]["endpoint"] == "subflow fullmesh" for link in links)
        self.let_go |= links | (self.announced.keys() if meshed else set())

    def announce(self, i: int, now_s: float, identifier: int = 0) -> None:
        """Let the server announce its address on a link."""
        words = self._signal(i)
        if self.server.ip(f"{words} id {identifier}" if identifier else words):
            self._know("server", i, now_s)
            self.announced[i] = now_s
            self.let_go.discard(i)
            self.withdrawn.discard(i)
            self._always_fit &= self._fit()

    def withdraw(self, i: int, now_s: float) -> list[int]:
        """Let the server withdraw its address on a link, and return its identifiers."""
        self._gone["server", i] = now_s
        self._give_up(i)
        if self.announced.pop(i, now_s) < now_s - _ANNOUNCED_LONG_S:
            self.withdrawn.add(i)
        return self._delete(self.server, self.address(i, 2))

    def _give_up(self, i: int) -> None:
        """Note that with the address of the initial subflow, if it was announced, all subflows to it go."""
        if i == 0 and i in self.announced:
            self.unsure |= {("client", endpoint) for endpoint in self.endpoints}

    def _know(self, side: str, i: int, now_s: float) -> None:
        """Note whether a REMOVE_ADDR of what was there before may still arrive, and take the new subflow with it."""
        wanted = (
            self.unsure.discard
            if now_s - self._gone.get((side, i), -math.inf) > self._longest_s
            else self.unsure.add
        )
        wanted((side, i))

    def flush(self, side: str, now_s: float) -> None:
        """Remove all endpoints of a host."""
        if not self.sides[side].ip("mptcp endpoint flush"):
            return
        self._gone |= {(side, i): now_s for i in range(len(self.case["links"]))}
        if side == "server":
            self._give_up(0)
            self.announced.clear()
        elif not self.case["user_paths"]:
            # also those to announced addresses, for which Linux made endpoints of its own
            self.let_go |= self.endpoints | self.announced.keys()
            self.removed |= self.endpoints - {0}  # Linux keeps the initial subflow
            self.endpoints.clear()

    def set_backup(self, i: int, *, backup: bool) -> None:
        """Change the priority of the subflows from the client's address on a link (MP_PRIO)."""
        flags = "backup" if backup else "nobackup"
        if self.case["links"][i]["endpoint"] == "subflow fullmesh":
            flags += " fullmesh"  # a change without it takes it away, and closes its subflows
        for identifier in self._identifiers(self.client, self.address(i, 1)):
            self.client.ip(f"mptcp endpoint change id {identifier} {flags}")

    def wrong(self, subflows: list[netlink.Addresses], heard_from_s: float) -> str:
        """Return what is wrong with the subflows of a client that had time to open and close them.

        It may have forgotten addresses that were announced before `heard_from_s`.
        """
        local, remote = self._links(subflows)
        unsure = {side: {i for at, i in self.unsure if at == side} for side in ("client", "server")}
        missing = [self.address(i, 1) for i in sorted(self.endpoints - local - unsure["client"])]
        if not self.case["user_paths"]:
            unsent = {
                i for i, link in enumerate(self.case["links"]) if link["own_port"] and self.case["ipv6"]
            }
            heard = {i for i, since in self.announced.items() if since >= heard_from_s}
            expected = heard - self.let_go - unsure["server"] - unsent
            missing += [self.address(i, 2) for i in sorted(expected - remote)]
        return ", ".join([f"no subflow of {address}" for address in missing] + self.superfluous(subflows))

    def superfluous(self, subflows: list[netlink.Addresses]) -> list[str]:
        """Return which subflows a client has whose endpoint was removed or whose address was withdrawn."""
        local, remote = self._links(subflows)
        superfluous = sorted(self.withdrawn & remote - {0})
        if not self.announced and not self.withdrawn:  # otherwise the kernel opens some from any address
            superfluous += sorted(self.removed & local - {0})
        return [f"a subflow of link {i}, whose endpoint was removed" for i in superfluous]

    def _links(self, subflows: list[netlink.Addresses]) -> tuple[set[int], set[int]]:
        """Return the links of local and of remote addresses."""
        return {self.link_of(entry[0]) for entry in subflows}, {self.link_of(entry[2]) for entry in subflows}

    def fits(self) -> bool:
        """Return whether the path managers may open all subflows that endpoints ask for, and always might.

        Both hosts open one for an endpoint that is also announced, and at the limit each refuses the other's. A client
        of Linux at its limit refuses all addresses until a REMOVE_ADDR ends a subflow: not if that has ended before.
        """
        return self._always_fit

    def _fit(self) -> bool:
        kinds = [self.case["links"][i]["endpoint"] for i in self.endpoints]
        full = any(link["endpoint"] == "subflow fullmesh" for link in self.case["links"])
        subflows = len(kinds) * (1 + full * len(self.announced)) + len(self.announced)
        needed = subflows + kinds.count("subflow signal") + bool(self.announced)
        return needed <= int(self.case["most_subflows"])

    def keeps_backups(self) -> bool:
        """Return whether a backup subflow has nothing to do: no loss and no event makes the initial one useless."""
        links = self.case["links"]
        first = links[0]
        # Linux turns to backups if nothing arrives for a few hundred milliseconds, which a full queue may take
        prompt = (
            first["queue_packets"] >= 100
            and first["queue_packets"] * first["mtu"] <= _PROMPT * first["rate_mbit"]
        )
        return (
            prompt
            and self.case["scheduler"] == "default"
            and not self.case["user_paths"]  # a subflow from user space is no backup
            and not any(link["loss_percent"] for link in links)
            and not any(
                links[event["link"]]["endpoint"] == "subflow backup"
                if event["do"] == "backup"
                # without its endpoint, a subflow to an announced address is no backup
                else event["do"] == "flush" or event["do"].endswith("_endpoint")
                for event in self.case["events"]
            )
        )

    def _identifiers(self, side: HuntNamespace, address: str) -> list[int]:
        side.enter()
        text = netlink.output(["ip", "-json", "mptcp", "endpoint", "show"])
        return [entry["id"] for entry in json.loads(text or "[]") if entry.get("address") == address]

    def _delete(self, side: HuntNamespace, address: str) -> list[int]:
        identifiers = self._identifiers(side, address)
        for identifier in identifiers:
            side.ip(f"mptcp endpoint delete id {identifier}")
        return identifiers

    def _open_subflow(self, connection: socket.socket, i: int) -> bool:
        local = netlink.path_address(self.family, self.address(i, 1), identifier=i + 1)
        remote = netlink.path_address(self.family, self.address(0, 2), port=PORT)
        return self._command(netlink.CREATE_SUBFLOW, connection, local, remote)

    def _close_subflows(self, connection: socket.socket, i: int) -> None:
        for local, local_port, remote, remote_port in netlink.subflows(connection):
            if self.link_of(local) == i:
                ends = ((local, local_port), (remote, remote_port))
                here, there = (
                    netlink.path_address(self.family, socket.inet_ntop(self.family, address), port=port)
                    for address, port in ends
                )
                self._command(netlink.DESTROY_SUBFLOW, connection, here, there)

    def _command(self, command: int, connection: socket.socket, local: bytes, remote: bytes) -> bool:
        information = netlink.information(connection)
        self.client.enter()
        return information is not None and netlink.path_command(command, information.token, local, remote)
