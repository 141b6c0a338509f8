"""The guest's side of a hunt: links of both hosts, middleboxes on them, and endpoints of either path manager.

It needs the standard library and its neighbours alone.
"""

from __future__ import annotations

import json
import socket
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
_ANNOUNCED_LONG_S = 3.0


@dataclass
class Paths:
    """Two hosts and what connects them."""

    case: dict[str, Any]
    client: HuntNamespace = field(default_factory=lambda: HuntNamespace("client"))
    server: HuntNamespace = field(default_factory=lambda: HuntNamespace("server"))
    endpoints: set[int] = field(default_factory=set)
    """Links for which the client's path manager has an endpoint."""
    removed: set[int] = field(default_factory=set)
    """Links for which it had one."""
    announced: dict[int, float] = field(default_factory=dict)
    """Links of which the server announces its address, and since when."""
    let_go: set[int] = field(default_factory=set)
    """Links of which the client removed its endpoint, and so the subflow to what the server announces there."""
    withdrawn: set[int] = field(default_factory=set)
    """Links of which the server withdrew its address after the client knew it well."""

    def __post_init__(self) -> None:
        """Make links, and set what the case says."""
        self.sides = {"client": self.client, "server": self.server}
        self.family = socket.AF_INET6 if self.case["ipv6"] else socket.AF_INET
        self._ip = "ip -6" if self.case["ipv6"] else "ip -4"
        for side in self.sides.values():
            self._set(side)
        for i, link in enumerate(self.case["links"]):
            self._make_link(i, link)

    def address(self, link: int, host: int) -> str:
        """Return the address of the client (1) or the server (2) on a link."""
        return f"fd00:0:0:{link}::{host}" if self.case["ipv6"] else f"10.0.{link}.{host}"

    @staticmethod
    def link_of(address: bytes) -> int:
        """Return the link of a packed address."""
        return address[2] if len(address) == 4 else address[7]

    def _make_link(self, i: int, link: dict[str, Any]) -> None:
        self.client.enter()
        mtu, ipv6 = link["mtu"], self.case["ipv6"]
        self.client.batch("ip", [f"link add c{i} mtu {mtu} type veth peer name s{i} mtu {mtu} netns server"])
        for side, host in ((self.client, 1), (self.server, 2)):
            device = f"{side.name[0]}{i}"
            prefix = "/64" if ipv6 else "/24"
            lines = [
                f"address add {self.address(i, host)}{prefix} dev {device}{' nodad' * ipv6}",
                f"link set {device} up",
            ]
            if side is self.client:
                lines += [f"rule add from {self.address(i, 1)} table {100 + i}", self._route(i)]
            side.batch(self._ip, lines)
            loss = f" loss {link['loss_percent']}%" if link["loss_percent"] else ""
            delay = (
                f"qdisc add dev {device} root handle 1: netem delay {link['delay_ms']}ms{loss} limit 10000"
            )
            size = link["queue_packets"] * mtu
            rate = f"tbf rate {link['rate_mbit']}mbit burst 20000 limit {size}"
            side.batch("tc", [delay, f"qdisc add dev {device} parent 1: handle 2: {rate}"])

    def _route(self, i: int) -> str:
        """Return the route of subflows from the client's address on link `i`: over that link to every address."""
        # with IPv6 a host answers for the addresses of one device there alone, so its address is the gateway
        target = f"fd00::/48 via {self.address(i, 2)}" if self.case["ipv6"] else "10.0.0.0/16"
        return f"route replace {target} dev c{i} table {100 + i}"

    def _set(self, side: HuntNamespace) -> None:
        side.batch("ip", ["link set lo up", "mptcp limits set subflows 8 add_addr_accepted 8"])
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
        self.client.ip(f"link set c{i} up")
        self.client.ip(f"{self._ip.removeprefix('ip ')} {self._route(i)}")

    def middlebox(self, i: int, kind: str, *, present: bool) -> None:
        """Add or remove the middlebox of a kind of events at both ends of a link."""
        for side in self.sides.values():
            table = f"table netdev {kind}{i}"
            chain = f"type filter hook ingress device {side.name[0]}{i} priority 0"
            rules = "\n".join((chain, *KINDS[kind].middlebox))
            side.nft(f"{table} {{\nchain c {{\n{rules}\n}}\n}}\n" if present else f"delete {table}\n")

    def add(self, i: int, clients: list[socket.socket], identifier: int = 0) -> None:
        """Add the client's endpoint of a link; in user space, open a subflow of each of these connections there."""
        kind = self.case["links"][i]["endpoint"]
        if self.case["user_paths"]:
            added = [self._open_subflow(connection, i) for connection in clients]
            done = bool(added) and all(added)
        else:
            words = (
                f"mptcp endpoint add {self.address(i, 1)} dev c{i} {'subflow' if kind == 'none' else kind}"
            )
            done = self.client.ip(f"{words} id {identifier}" if identifier else words)
        if done:
            self.endpoints.add(i)
            self.removed.discard(i)

    def remove(self, i: int, clients: list[socket.socket]) -> list[int]:
        """Remove the client's endpoint of a link, and return its identifiers."""
        if self.case["user_paths"]:
            for connection in clients:
                self._close_subflows(connection, i)
        identifiers = self._delete(self.client, self.address(i, 1))
        self.let_go.add(i)
        if i in self.endpoints:
            self.endpoints.discard(i)
            self.removed.add(i)
        return identifiers

    def announce(self, i: int, now_s: float) -> None:
        """Let the server announce its address on a link."""
        if self.server.ip(f"mptcp endpoint add {self.address(i, 2)} dev s{i} signal"):
            self.announced[i] = now_s
            self.let_go.discard(i)
            self.withdrawn.discard(i)

    def withdraw(self, i: int, now_s: float) -> None:
        """Let the server withdraw its address on a link."""
        self._delete(self.server, self.address(i, 2))
        if self.announced.pop(i, now_s) < now_s - _ANNOUNCED_LONG_S:
            self.withdrawn.add(i)

    def flush(self, side: str) -> None:
        """Remove all endpoints of a host."""
        if not self.sides[side].ip("mptcp endpoint flush"):
            return
        if side == "server":
            self.announced.clear()
        elif not self.case["user_paths"]:
            self.let_go |= self.endpoints
            self.removed |= self.endpoints - {0}  # Linux keeps the initial subflow
            self.endpoints.clear()

    def set_backup(self, i: int, *, backup: bool) -> None:
        """Change the priority of the subflows from the client's address on a link (MP_PRIO)."""
        for identifier in self._identifiers(self.client, self.address(i, 1)):
            self.client.ip(f"mptcp endpoint change id {identifier} {'backup' if backup else 'nobackup'}")

    def wrong(self, subflows: list[netlink.Addresses]) -> str:
        """Return what is wrong with the subflows of a client that had time to open and close them."""
        local = {self.link_of(entry[0]) for entry in subflows}
        remote = {self.link_of(entry[2]) for entry in subflows}
        missing = [self.address(i, 1) for i in sorted(self.endpoints - local)]
        superfluous = sorted(self.withdrawn & remote - {0})
        if not self.case["user_paths"]:
            missing += [self.address(i, 2) for i in sorted(self.announced.keys() - self.let_go - remote)]
        if not self.announced and not self.withdrawn:  # otherwise the kernel opens some from any address
            superfluous += sorted(self.removed & local - {0})
        texts = [f"no subflow of {address}" for address in missing]
        return ", ".join(texts + [f"a subflow of link {i}, whose endpoint was removed" for i in superfluous])

    def fits(self) -> bool:
        """Return whether the path manager may open all subflows that endpoints ask for."""
        full = any(link["endpoint"] == "subflow fullmesh" for link in self.case["links"])
        subflows = len(self.endpoints) * (1 + full * len(self.announced)) + len(self.announced)
        return subflows <= 8

    def _identifiers(self, side: HuntNamespace, address: str) -> list[int]:
        side.enter()
        text = netlink.output(["ip", "-n", side.name, "-json", "mptcp", "endpoint", "show"])
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
