"""The guest's side of a hunt: plays the cases on standard input, and prints a line of JSON of what it saw in each.

plait starts this file with Python in a guest; it imports its neighbour and the standard library alone. Each case
has new network namespaces. After a case that violates an invariant no other one is played, because what a fault leaves
in the kernel is not known.
"""

from __future__ import annotations

import json
import os
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
    from plait.testing.hunt.kinds import KINDS
    from plait.testing.hunt.paths import PORT, Paths
    from plait.testing.hunt.rest import Rest
else:
    import netlink  # the folder of this file is the first in Python's path; the guest imports nothing else of plait
    from ends import BLOCK, End, Played
    from kinds import KINDS
    from paths import PORT, Paths
    from rest import Rest

MPTCP = 262
TCP_CONGESTION = 13
FAST_OPEN_CONNECT = 30
STANDSTILL_S = 30.0
"""The longest time without a byte on a connection that has a usable subflow, after the last event."""
SETTLED_S = 40.0
"""The time in which the last subflow opens, with a few lost SYNs."""
USER_PATHS_AFTER_S = 4.0
"""When a path manager in user space opens its subflows, after the start of the last connection: SYNs may be lost."""
ESTABLISHED_AFTER_S = 3.0
"""The time in which the last ACK of a handshake arrives, also if one is lost."""
LONGEST_S = 900.0
"""A case ends after this time in any case."""
EMPTY_S = 1800.0
"""How long closed sockets may take to go."""
REMOVED_S = 1.0
"""The time in which the kernel has removed the network namespaces of a case."""


@dataclass
class _Player:
    """Plays one case."""

    case: dict[str, Any]
    violations: list[dict[str, str | bool]] = field(default_factory=list)
    quiet_from_s: float = 0.0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.case["seed"])  # noqa: S311 - it chooses an order
        self.paths = Paths(self.case)
        self.sides = self.paths.sides
        self.listener = self.paths.server.socket(socket.SOCK_STREAM, MPTCP, self.paths.family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._choose(self.listener)
        self.listener.bind(("::" if self.case["ipv6"] else "0.0.0.0", PORT))  # noqa: S104 - a namespace of its own
        self.listener.listen(64)
        self.listener.setblocking(False)
        self._children: list[int] = []
        self._replaced: dict[tuple[str, int, int], list[int]] = {}
        """Identifiers to add again, by side, link and time of the event."""
        self.edges = select.epoll()
        self.edges.register(self.listener, select.EPOLLIN)
        self.diag = {
            name: side.socket(socket.SOCK_RAW, 4, socket.AF_NETLINK) for name, side in self.sides.items()
        }
        for diag in self.diag.values():
            diag.settimeout(1.0)
        self.rest = Rest(self.case, self.paths, self.diag, self.violation)
        self.connections = [self._connection(i, entry) for i, entry in enumerate(self.case["connections"])]
        self.began = time.monotonic()

    def _choose(self, end: socket.socket) -> None:
        end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.case["congestion_control"].encode())

    def _connection(self, number: int, entry: dict[str, Any]) -> Played:
        source = random.Random(number)  # noqa: S311 - content, no secret
        upload, download = (source.randbytes(BLOCK) * 2 for _ in range(2))
        up_bytes, down_bytes, hold = entry["up_bytes"], entry["down_bytes"], entry["hold"]
        client_waits, server_waits = (0, 0) if entry["early_end"] else (down_bytes, up_bytes)
        pace = (hold, entry["read_every_ms"] / 1000, entry["write_bytes"], entry["write_every_ms"] / 1000)
        return Played(
            End("client", number, upload, download, up_bytes, client_waits, *pace, read_by=entry["read_by"]),
            End(
                "server", number, download, upload, down_bytes, server_waits, *pace, read_by=entry["read_by"]
            ),
            entry["start_ms"] / 1000,
        )

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self.began

    def violation(self, kind: str, text: str, **circumstances: bool) -> None:
        """Note that an invariant does not hold; a few are enough."""
        if len(self.violations) < 8:
            self.violations.append({"kind": kind, "text": text, **circumstances})

    def play(self) -> None:
        """Play until all events have happened and no connection has anything to do."""
        agenda = [(event["at_ms"] / 1000, event) for event in self.case["events"]]
        agenda += [(at_s + event["for_ms"] / 1000, {**event, "do": f"end_{event['do']}"})
                   for at_s, event in agenda if KINDS[event["do"]].lasts and event["do"] != "share"]  # fmt: skip
        agenda += [
            (played.start_s, {"do": "open", "connection": i}) for i, played in enumerate(self.connections)
        ]
        if self.case["user_paths"]:
            opened_s = max(played.start_s for played in self.connections) + USER_PATHS_AFTER_S
            agenda += [(opened_s, {"do": "add_endpoint", "link": i})
                       for i, link in enumerate(self.case["links"]) if i and link["endpoint"] != "none"]  # fmt: skip
        agenda.sort(key=lambda item: item[0])
        while self.now() < LONGEST_S:
            while agenda and agenda[0][0] <= self.now():
                self._apply(agenda.pop(0)[1])
            if not agenda and not any(played.unfinished() for played in self.connections):
                self._settle()
                return
            wait = min(1.0, agenda[0][0] - self.now()) if agenda else 1.0
            self._serve(max(0.001, wait))
            self._look_for_standstill()
            if self.violations:
                return

    def _settle(self) -> None:
        """Let what is open come to rest, and examine it."""
        until_s = self.now() + SETTLED_S
        while (
            any(end.is_open() for played in self.connections for end in played.ends())
            and self.now() < until_s
        ):
            self._serve(1.0)
        for played in self.connections:
            self.rest.examine(played)

    def _serve(self, wait_s: float) -> None:
        """Wait for an edge, a due time or so long, and let each end do what it can.

        Nothing looks at a socket without an edge, so a connection that Linux forgets to announce stands still.
        """
        now = self.now()
        ends = [(played, end) for played in self.connections for end in played.ends() if end.is_served()]
        dues = [due - now for _, end in ends for due in (end.reads_at_s, end.writes_at_s) if due > now]
        wait_s = 0.0 if any(end.moves(now) for _, end in ends) else min([wait_s, *dues])
        by_file = {end.file: end for _, end in ends}
        for file, events in self.edges.poll(wait_s):
            if file in by_file:
                by_file[file].notice(events)
            elif file == self.listener.fileno():
                self._accept()
        for played, end in ends:
            if end.moves(self.now()):
                self._move(played, end)

    def _watch(self, end: End) -> None:
        assert end.socket is not None
        end.file = end.socket.fileno()
        self.edges.register(end.file, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

    def _accept(self) -> None:
        accepted, peer = self.listener.accept()
        for played in self.connections:
            client = played.client.socket
            if client is not None and not played.client.closed and client.getsockname()[1] == peer[1]:
                accepted.setblocking(False)
                played.server.socket, played.server.connected = accepted, True
                played.server.prepare()
                self._watch(played.server)
                played.moved_s = self.now()
                entry = self.case["connections"][played.server.number]
                if entry["fast_open"] and not entry["writes_at_once"]:
                    played.server.writes_at_s = self.now() + ESTABLISHED_AFTER_S
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
                usable = self.rest.usable(client)
                if usable and not played.server.closed:
                    self.violation(
                        "progress",
                        f"connection {played.client.number}: nothing for {quiet:.0f} s, with {usable} subflows; "
                        f"received {played.server.received} of {played.client.sent} and "
                        f"{played.client.received} of {played.server.sent} bytes",
                        memory_full=played.memory_is_full(),
                        fell_back=self.rest.fell_back(played),
                    )
                played.moved_s = self.now()
                played.client.error = played.client.error or "it stands still"

    def _apply(self, event: dict[str, Any]) -> None:
        self.quiet_from_s = self.now()
        kind = event["do"].removeprefix("end_")
        if kind in KINDS and KINDS[kind].middlebox:
            self.paths.middlebox(event["link"], kind, present=kind == event["do"])
        else:
            getattr(self, f"_do_{event['do']}")(event)

    def _do_open(self, event: dict[str, Any]) -> None:
        end = self.connections[event["connection"]].client
        end.socket = self.paths.client.socket(socket.SOCK_STREAM, MPTCP, self.paths.family)
        end.socket.setblocking(False)
        if self.case["connections"][event["connection"]]["fast_open"]:
            end.fast_open = True
            end.socket.setsockopt(socket.IPPROTO_TCP, FAST_OPEN_CONNECT, 1)
        self._choose(end.socket)
        end.prepare()
        self.connections[event["connection"]].moved_s = self.now()
        try:
            end.socket.connect((self.paths.address(0, 2), PORT))
        except BlockingIOError:
            pass
        except OSError as error:
            end.error = error.strerror
        self._watch(end)

    def _end_of(self, event: dict[str, Any]) -> tuple[Played, End]:
        played = self.connections[event["connection"]]
        return played, played.client if event["side"] == "client" else played.server

    def _do_close(self, event: dict[str, Any]) -> None:
        played, end = self._end_of(event)
        played.disturbed = True
        if end.socket is not None and not end.closed:
            end.closed = True
            self.edges.unregister(
                end.file
            )  # a child may share the socket, so that closing it does not end this
            end.socket.close()

    def _do_reset(self, event: dict[str, Any]) -> None:
        end = self._end_of(event)[1]
        if end.socket is not None and not end.closed:
            end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.reset = end.connected and not end.ended and not end.saw_end and not end.error
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
            if self.paths.link_of(local) == event["link"]:
                played.disturbed = True
                self.sides[event["side"]].enter()
                netlink.destroy(self.diag[event["side"]], local, local_port, remote_port)

    def _do_share(self, event: dict[str, Any]) -> None:
        """Let a child process have the socket for a time, so that closing it is not the last close."""
        end = self._end_of(event)[1]
        if end.socket is None or end.closed:
            return
        child = os.fork()
        if child:
            self._children.append(child)
        else:
            for played in self.connections:
                for another in played.ends():
                    if another.socket is not None and another is not end:
                        another.socket.close()
            self.listener.close()
            time.sleep(event["for_ms"] / 1000)
            os._exit(0)

    def _clients(self) -> list[socket.socket]:
        ends = (played.client for played in self.connections)
        return [end.socket for end in ends if end.socket is not None and end.is_open()]

    def _do_link_down(self, event: dict[str, Any]) -> None:
        self.paths.client.ip(f"link set c{event['link']} down")

    def _do_end_link_down(self, event: dict[str, Any]) -> None:
        self.paths.link_up(event["link"])

    def _do_unplug(self, event: dict[str, Any]) -> None:
        self.paths.client.ip(f"link set c{event['link']} down")
        self.paths.unplugged.add(event["link"])

    def _do_backup(self, event: dict[str, Any]) -> None:
        self.paths.set_backup(event["link"], backup=True)

    def _do_end_backup(self, event: dict[str, Any]) -> None:
        self.paths.set_backup(event["link"], backup=False)

    def _do_remove_endpoint(self, event: dict[str, Any]) -> None:
        self.paths.remove(event["link"], self._clients(), self.now())

    def _do_add_endpoint(self, event: dict[str, Any]) -> None:
        self.paths.add(event["link"], self._clients(), self.now())

    def _do_replace_endpoint(self, event: dict[str, Any]) -> None:
        """Remove an endpoint or an announced address, to add it again with its identifier."""
        link, side = event["link"], event["side"]
        identifiers = (
            self.paths.remove(link, self._clients(), self.now())
            if side == "client"
            else self.paths.withdraw(link, self.now())
        )
        self._replaced[side, link, event["at_ms"]] = [0] if self._by_user(side) else identifiers

    def _by_user(self, side: str) -> bool:
        return bool(self.case["user_paths"]) and side == "client"

    def _do_end_replace_endpoint(self, event: dict[str, Any]) -> None:
        link, side = event["link"], event["side"]
        for identifier in self._replaced.pop((side, link, event["at_ms"])):
            if side == "client":
                self.paths.add(link, self._clients(), self.now(), identifier)
            else:
                self.paths.announce(link, self.now(), identifier)

    def _do_announce(self, event: dict[str, Any]) -> None:
        self.paths.announce(event["link"], self.now())

    def _do_withdraw(self, event: dict[str, Any]) -> None:
        self.paths.withdraw(event["link"], self.now())

    def _do_flush(self, event: dict[str, Any]) -> None:
        self.paths.flush(event["side"], self.now())

    def finish(self) -> dict[str, Any]:
        """Close everything in a random order, and wait until no socket is left; return the report."""
        ends = [end for played in self.connections for end in played.ends() if end.socket and not end.closed]
        self.chance.shuffle(ends)
        for end in ends:
            assert end.socket is not None
            end.socket.close()
            time.sleep(self.chance.choice((0.0, 0.001, 0.1)))
        for opened in (self.listener, *self.diag.values()):
            opened.close()
        self.edges.close()
        for pipe in [end.pipe for played in self.connections for end in played.ends() if end.pipe]:
            os.close(pipe[0])
            os.close(pipe[1])
        for child in self._children:
            os.waitpid(child, 0)
        if any(link["own_port"] for link in self.case["links"]):
            self.paths.flush("server", self.now())  # an announced port has a socket that listens
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
            "received": sum(end.received for played in self.connections for end in played.ends()),
            "virtual_s": round(self.now()),
        }


def _played(case: dict[str, Any]) -> dict[str, Any]:
    """Play a case, and return its report once nothing of it is left."""
    home = netlink.home()
    player = _Player(case)
    player.play()
    report = player.finish()
    netlink.leave(home)
    os.close(home)
    player.paths.close()
    time.sleep(REMOVED_S)
    return {**report, "log": netlink.kernel_log()}


def main() -> None:
    """Play the cases on standard input until one violates an invariant."""
    for case in json.load(sys.stdin):
        report = _played(case)
        print(json.dumps(report), flush=True)
        if report["violations"] or any(report["left"].values()):
            return


if __name__ == "__main__":
    main()
