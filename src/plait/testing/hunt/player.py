"""The guest's side of a hunt: plays the case on standard input, and prints what it saw as JSON.

plait starts this file with Python in a guest; it imports its neighbour and the standard library alone.
"""

from __future__ import annotations

import json
import random
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.testing.hunt import netlink
    from plait.testing.hunt.ends import BLOCK, End, Played
    from plait.testing.hunt.netlink import HuntNamespace
else:
    import netlink  # the folder of this file is the first in Python's path; the guest imports nothing else of plait
    from ends import BLOCK, End, Played
    from netlink import HuntNamespace

MPTCP = 262
TCP_CONGESTION = 13
PORT = 5000
STANDSTILL_S = 30.0
"""The longest time without a byte on a connection that has a usable subflow, after the last event."""
LONGEST_S = 900.0
"""A case ends after this time in any case."""
EMPTY_S = 1800.0
"""How long closed sockets may take to go."""


@dataclass
class _Player:
    """Plays one case."""

    case: dict[str, Any]
    violations: list[dict[str, str | bool]] = field(default_factory=list)
    quiet_from_s: float = 0.0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.case["seed"])  # noqa: S311 - it chooses an order
        self.client, self.server = HuntNamespace("client"), HuntNamespace("server")
        self.sides = {"client": self.client, "server": self.server}
        self._make_links()
        self._make_settings()
        self._make_endpoints()
        self.listener = self.server.socket(socket.SOCK_STREAM, MPTCP)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._choose(self.listener)
        self.listener.bind(("0.0.0.0", PORT))  # noqa: S104 - a namespace of its own
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.diag = {
            name: side.socket(socket.SOCK_RAW, 4, socket.AF_NETLINK) for name, side in self.sides.items()
        }
        for diag in self.diag.values():
            diag.settimeout(1.0)
        self.connections = [self._connection(i, entry) for i, entry in enumerate(self.case["connections"])]
        self.began = time.monotonic()

    def _make_links(self) -> None:
        for i, link in enumerate(self.case["links"]):
            self.client.enter()
            pair = f"link add c{i} mtu {link['mtu']} type veth peer name s{i} mtu {link['mtu']} netns server"
            self.client.batch("ip", [pair])
            for side, end in ((self.client, 1), (self.server, 2)):
                device = f"{side.name[0]}{i}"
                lines = [f"address add 10.0.{i}.{end}/24 dev {device}", f"link set {device} up"]
                if side is self.client:
                    lines += [f"rule add from 10.0.{i}.1 table {100 + i}", self._route(i)]
                side.batch("ip", lines)
                loss = f" loss {link['loss_percent']}%" if link["loss_percent"] else ""
                delay = f"qdisc add dev {device} root handle 1: netem delay {link['delay_ms']}ms{loss} limit 10000"
                size = link["queue_packets"] * link["mtu"]
                rate = f"tbf rate {link['rate_mbit']}mbit burst 20000 limit {size}"
                side.batch("tc", [delay, f"qdisc add dev {device} parent 1: handle 2: {rate}"])

    @staticmethod
    def _route(i: int) -> str:
        """Return the route of subflows from the client's address on link `i`: over that link to every address."""
        return f"route replace 10.0.0.0/16 dev c{i} table {100 + i}"

    def _make_settings(self) -> None:
        for side in self.sides.values():
            side.batch("ip", ["link set lo up", "mptcp limits set subflows 8 add_addr_accepted 8"])
            side.setting("mptcp/scheduler", self.case["scheduler"])
            buffer_bytes = self.case["receive_buffer"]
            side.setting("ipv4/tcp_rmem", f"4096 {min(131_072, buffer_bytes)} {buffer_bytes}")
            side.setting("ipv4/tcp_wmem", f"4096 16384 {self.case['send_buffer']}")

    def _make_endpoints(self) -> None:
        for i, link in enumerate(self.case["links"]):
            if i and link["endpoint"] != "none":
                self._add_endpoint(i)
            if i and link["signal"]:
                self.server.ip(f"mptcp endpoint add 10.0.{i}.2 dev s{i} signal")

    def _add_endpoint(self, i: int) -> None:
        kind = self.case["links"][i]["endpoint"]
        self.client.ip(f"mptcp endpoint add 10.0.{i}.1 dev c{i} {'subflow' if kind == 'none' else kind}")

    def _choose(self, end: socket.socket) -> None:
        end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.case["congestion_control"].encode())

    def _connection(self, number: int, entry: dict[str, Any]) -> Played:
        source = random.Random(number)  # noqa: S311 - content, no secret
        upload, download = (source.randbytes(BLOCK) * 2 for _ in range(2))
        up_bytes, down_bytes, hold = entry["up_bytes"], entry["down_bytes"], entry["hold"]
        client_waits, server_waits = (0, 0) if entry["early_end"] else (down_bytes, up_bytes)
        pace = (hold, entry["read_every_ms"] / 1000, entry["write_bytes"], entry["write_every_ms"] / 1000)
        return Played(
            End("client", number, upload, download, up_bytes, client_waits, *pace),
            End("server", number, download, upload, down_bytes, server_waits, *pace),
            entry["start_ms"] / 1000,
        )

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self.began

    def violation(self, kind: str, text: str, *, memory_full: bool = False) -> None:
        """Note that an invariant does not hold; a few are enough."""
        if len(self.violations) < 8:
            self.violations.append({"kind": kind, "text": text, "memory_full": memory_full})

    def play(self) -> None:
        """Play until all events have happened and no connection has anything to do."""
        agenda = [(event["at_ms"] / 1000, event) for event in self.case["events"]]
        agenda += [(event["at_ms"] / 1000 + event["for_ms"] / 1000, {**event, "do": "link_up"})
                   for event in self.case["events"] if event["do"] == "link_down"]  # fmt: skip
        agenda += [
            (played.start_s, {"do": "open", "connection": i}) for i, played in enumerate(self.connections)
        ]
        agenda.sort(key=lambda item: item[0])
        while self.now() < LONGEST_S:
            while agenda and agenda[0][0] <= self.now():
                self._apply(agenda.pop(0)[1])
            if not agenda and not any(played.unfinished() for played in self.connections):
                return
            wait = min(1.0, agenda[0][0] - self.now()) if agenda else 1.0
            self._serve(max(0.001, wait))
            self._look_for_standstill()
            if self.violations:
                return

    def _serve(self, wait_s: float) -> None:
        poll, now = select.poll(), self.now()
        poll.register(self.listener, select.POLLIN)
        by_file = {}
        for played in self.connections:
            for end in played.ends():
                if end.socket is None or end.closed or end.error:
                    continue
                wait_s = min([wait_s, *(due - now for due in (end.reads_at_s, end.writes_at_s) if due > now)])
                if events := end.wants(now):
                    poll.register(end.socket, events)
                    by_file[end.socket.fileno()] = (played, end)
        for file, _ in poll.poll(wait_s * 1000):
            if file in by_file:
                self._move(*by_file[file])
            else:
                self._accept()

    def _accept(self) -> None:
        accepted, peer = self.listener.accept()
        for played in self.connections:
            client = played.client.socket
            if client is not None and not played.client.closed and client.getsockname()[1] == peer[1]:
                accepted.setblocking(False)
                played.server.socket, played.server.connected = accepted, True
                played.server.prepare()
                played.moved_s = self.now()
                return
        accepted.close()

    def _move(self, played: Played, end: End) -> None:
        received_before = end.received
        try:
            if not end.connected:
                end.connect()
            wrong = end.read(self.now())
            if wrong:
                self.violation("bytes", f"connection {end.number}, {end.side}: {wrong}")
                end.error = wrong
            end.write(self.now())
        except OSError as error:
            end.error = error.strerror or str(error)
            if not played.disturbed and not self.case["events"]:
                self.violation(
                    "error", f"connection {end.number}, {end.side}: {end.error}, without any event"
                )
        if end.saw_end and not played.disturbed:
            peer = played.server if end is played.client else played.client
            if end.received != peer.sent or not peer.ended:
                self.violation(
                    "bytes", f"connection {end.number}, {end.side}: the stream ended after {end.received} of "
                    f"{peer.sent} bytes"
                )  # fmt: skip
        if end.received != received_before or end.saw_end:
            played.moved_s = self.now()

    def _look_for_standstill(self) -> None:
        for played in self.connections:
            client = played.client.socket
            if client is None or played.client.closed or not played.unfinished():
                continue
            quiet = self.now() - max(played.moved_s, self.quiet_from_s)
            if quiet > STANDSTILL_S and played.client.connected and played.server.connected:
                usable = self._usable(client)
                if usable and not played.server.closed:
                    self.violation(
                        "progress",
                        f"connection {played.client.number}: nothing for {quiet:.0f} s, with {usable} subflows; "
                        f"received {played.server.received} of {played.client.sent} and "
                        f"{played.client.received} of {played.server.sent} bytes",
                        memory_full=played.memory_is_full(),
                    )
                played.moved_s = self.now()
                played.client.error = played.client.error or "it stands still"

    def _usable(self, client: socket.socket) -> int:
        """Return the number of subflows that are established at both ends."""
        at_client, at_server = (
            netlink.established(self.diag["client"]),
            netlink.established(self.diag["server"]),
        )
        ports = [(local, remote) for _, local, _, remote in netlink.subflows(client)]
        return sum((local, remote) in at_client and (remote, local) in at_server for local, remote in ports)

    def _apply(self, event: dict[str, Any]) -> None:
        self.quiet_from_s = self.now()
        getattr(self, f"_do_{event['do']}")(event)

    def _do_open(self, event: dict[str, Any]) -> None:
        end = self.connections[event["connection"]].client
        end.socket = self.client.socket(socket.SOCK_STREAM, MPTCP)
        end.socket.setblocking(False)
        self._choose(end.socket)
        end.prepare()
        self.connections[event["connection"]].moved_s = self.now()
        try:
            end.socket.connect(("10.0.0.2", PORT))
        except BlockingIOError:
            pass
        except OSError as error:
            end.error = error.strerror

    def _end_of(self, event: dict[str, Any]) -> tuple[Played, End]:
        played = self.connections[event["connection"]]
        return played, played.client if event["side"] == "client" else played.server

    def _do_close(self, event: dict[str, Any]) -> None:
        played, end = self._end_of(event)
        played.disturbed = True
        if end.socket is not None and not end.closed:
            end.closed = True
            end.socket.close()

    def _do_reset(self, event: dict[str, Any]) -> None:
        end = self._end_of(event)[1]
        if end.socket is not None and not end.closed:
            end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._do_close(event)

    def _do_shutdown(self, event: dict[str, Any]) -> None:
        played, end = self._end_of(event)
        if end.socket is not None and not end.closed and not end.ended and end.connected and not end.error:
            played.disturbed = True
            end.ended, end.to_send = True, end.sent
            try:
                end.socket.shutdown(socket.SHUT_WR)
            except OSError as error:
                end.error = error.strerror

    def _do_destroy(self, event: dict[str, Any]) -> None:
        played, end = self._end_of(event)
        if end.socket is None or end.closed:
            return
        for local, local_port, _, remote_port in netlink.subflows(end.socket):
            if local[2] == event["link"]:
                played.disturbed = True
                self.sides[event["side"]].enter()
                netlink.destroy(self.diag[event["side"]], local, local_port, remote_port)

    def _do_link_down(self, event: dict[str, Any]) -> None:
        self.client.ip(f"link set c{event['link']} down")

    def _do_link_up(self, event: dict[str, Any]) -> None:
        self.client.ip(f"link set c{event['link']} up")
        self.client.ip(self._route(event["link"]))  # the link lost it

    def _do_remove_endpoint(self, event: dict[str, Any]) -> None:
        for entry in self._endpoints():
            if entry.get("address") == f"10.0.{event['link']}.1":
                self.client.ip(f"mptcp endpoint delete id {entry['id']}")

    def _endpoints(self) -> list[dict[str, Any]]:
        self.client.enter()
        entries = json.loads(
            netlink.output(["ip", "-n", "client", "-json", "mptcp", "endpoint", "show"]) or "[]"
        )
        return entries if isinstance(entries, list) else []

    def _do_add_endpoint(self, event: dict[str, Any]) -> None:
        self._add_endpoint(event["link"])

    def _do_flush(self, event: dict[str, Any]) -> None:
        self.sides[event["side"]].ip("mptcp endpoint flush")

    def finish(self) -> dict[str, Any]:
        """Close everything in a random order, and wait until no socket is left; return the report."""
        ends = [end for played in self.connections for end in played.ends() if end.socket and not end.closed]
        self.chance.shuffle(ends)
        for end in ends:
            assert end.socket is not None
            end.socket.close()
            time.sleep(self.chance.choice((0.0, 0.001, 0.1)))
        for diag in (self.listener, *self.diag.values()):
            diag.close()
        deadline = time.monotonic() + EMPTY_S
        while (sockets := {name: side.sockets_left() for name, side in self.sides.items()}) and any(
            sockets.values()
        ):
            if time.monotonic() > deadline:
                break
            time.sleep(5)
        return {
            "violations": self.violations,
            "left": sockets,
            "counters": {name: side.counters() for name, side in self.sides.items()},
            "log": netlink.kernel_log(),
            "received": sum(end.received for played in self.connections for end in played.ends()),
            "virtual_s": round(self.now()),
        }


def main() -> None:
    """Play the case on standard input."""
    player = _Player(json.load(sys.stdin))
    player.play()
    print(json.dumps(player.finish()))


if __name__ == "__main__":
    main()
