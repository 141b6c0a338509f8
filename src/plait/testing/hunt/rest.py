"""The guest's side of a hunt: what must hold once a connection has come to rest.

It needs the standard library and its neighbours alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from plait.testing.hunt import netlink
    from plait.testing.hunt.ends import Played
    from plait.testing.hunt.kinds import KINDS, resets_arrive
    from plait.testing.hunt.paths import Paths
else:
    import netlink
    from kinds import KINDS, resets_arrive

_LONGEST_SYN = 9000
"""Bytes that fit into a SYN."""
_SENT_AGAIN_BYTES = 4500
"""Bytes that a timer may send again over a backup, where a full queue dropped what the first subflow had sent."""
_FIRST_PACKETS, _FIRST_DATA_S = 20, 5.0
"""Packets that a server sends at first (twice the initial window), and the time in which the first one arrives."""


@dataclass
class Rest:
    """What both hosts of a case are asked, and who hears of violations."""

    case: dict[str, Any]
    paths: Paths
    diag: dict[str, socket.socket]
    violation: Callable[[str, str], None]

    def __post_init__(self) -> None:
        """Note what the case's events allow."""
        kinds = {event["do"] for event in self.case["events"]}
        self.calm = all(KINDS[kind].calm for kind in kinds)
        # a REMOVE_ADDR arrives over another link than that of which it says that it is gone
        self.hears = all(KINDS[kind].calm for kind in kinds - {"unplug"}) and resets_arrive(
            self.case, "unplug"
        )
        # Linux keeps and counts a subflow that it has reset as long as it has bytes without a mapping
        self.stripped = any(event["do"] in {"strip", "rewrite"} for event in self.case["events"])

    def usable(self, client: socket.socket) -> int:
        """Return the number of subflows that are established at both ends, over links that are not gone."""
        at_client, at_server = self._ports(netlink.ESTABLISHED)
        ports = [
            (local, remote)
            for address, local, peer, remote in netlink.subflows(client)
            if not self.paths.unplugged & {self.paths.link_of(address), self.paths.link_of(peer)}
        ]
        return sum((local, remote) in at_client and (remote, local) in at_server for local, remote in ports)

    def _ports(self, states: int) -> list[set[tuple[int, int]]]:
        """Return the local and remote ports of TCP sockets of the client and of the server in one of these states."""
        return [netlink.ports(diag, states, self.paths.family) for diag in self.diag.values()]

    def _in_states(self, listed: list[list[netlink.Addresses]], states: int) -> list[list[netlink.Addresses]]:
        """Return those of the listed subflows of the client and of the server that are in one of the states."""
        return [
            [entry for entry in of_side if (entry[1], entry[3]) in ports]
            for of_side, ports in zip(listed, self._ports(states), strict=True)
        ]

    def fell_back(self, played: Played) -> bool:
        """Return whether an end has fallen back to TCP."""
        ends = [netlink.information(end.socket) for end in played.ends() if end.socket]
        return any(end is None or end.fell_back for end in ends)

    def examine(self, played: Played) -> None:
        """Note what is wrong with a connection that had time to come to rest."""
        reset_by = next((end for end in played.ends() if end.reset), None)
        if reset_by is not None and resets_arrive(self.case):
            peer = played.server if reset_by is played.client else played.client
            if peer.is_open() and not peer.ended:
                sight = "an end instead of a reset" if peer.saw_end else "no reset"
                self.violation("closing", f"connection {peer.number}: the {peer.side} saw {sight}")
        elif all(end.is_open() and not end.saw_end for end in played.ends()) and not played.unfinished():
            self._compare(played)
        elif self.calm and all(end.is_open() and end.ended and end.saw_end for end in played.ends()):
            assert played.client.socket is not None
            if usable := self.usable(played.client.socket):
                self.violation(
                    "closing",
                    f"connection {played.client.number}: both ends ended their streams, and {usable} subflows are "
                    "still established",
                )

    def _compare(self, played: Played) -> None:
        """Compare what both ends of a connection at rest know of each other, and its subflows with its endpoints."""
        sockets = [end.socket for end in played.ends() if end.socket]
        ends = [netlink.information(connection) for connection in sockets]
        listed = [netlink.subflows(connection) for connection in sockets]
        # a connection also lists its first subflow after that is closed
        subflows = self._in_states(listed, netlink.OPEN)
        client, server = ends
        number = played.client.number
        if client is None or server is None or client.fell_back or server.fell_back or not all(subflows):
            return  # without a subflow, an end does not learn what its peer has
        for end, peer, side in ((client, server, "client"), (server, client, "server")):
            if not end.write_sequence == end.acknowledged == peer.expected:
                self.violation(
                    "counters",
                    f"connection {number}: the {side} wrote {(end.write_sequence - peer.expected) % 2**64} bytes more "
                    f"than its peer received, and {(end.write_sequence - end.acknowledged) % 2**64} more than it knows",
                )
        for end, counted, side in zip(
            (client, server), self._in_states(listed, netlink.COUNTED), ("client", "server"), strict=True
        ):
            if end.subflows != len(counted) and not self.stripped:
                self.violation(
                    "counters",
                    f"connection {number}: the {side} has {len(counted)} subflows and counts {end.subflows}",
                )
        entry = self.case["connections"][number]
        # the path manager starts with the first DATA_ACK, which a stream that fits into the SYN does not get
        moved = played.client.received or played.client.sent > _LONGEST_SYN * entry["fast_open"]
        if self.calm and moved and subflows[0] and self.paths.fits():
            wrong = self.paths.wrong(subflows[0], self._heard_from_s(played))
            if not wrong and len(subflows[0]) != len(subflows[1]):
                wrong = f"the client has {len(subflows[0])} subflows, and the server {len(subflows[1])}"
            if wrong:
                self.violation("paths", f"connection {number}: {wrong}")
            self._examine_backups(number, subflows[0])
        elif self.hears and (superfluous := self.paths.superfluous(subflows[0])):
            self.violation("paths", f"connection {number}: {', '.join(superfluous)}")

    def _heard_from_s(self, played: Played) -> float:
        """Return since when the client hears announcements.

        Linux opens no subflow to an address that arrives before it has the first data of the server, but answers and
        so ends the announcement (`__mptcp_subflow_connect`).
        """
        link = self.case["links"][0]
        is_lost = link["loss_percent"] or link["queue_packets"] < _FIRST_PACKETS
        return played.start_s + _FIRST_DATA_S if is_lost and played.server.to_send else 0.0

    def _examine_backups(self, number: int, subflows: list[netlink.Addresses]) -> None:
        """See whether a backup subflow carried bytes while the initial one was usable."""
        if not self.paths.keeps_backups():
            return
        at_client, at_server = (netlink.bytes_sent(diag, self.paths.family) for diag in self.diag.values())
        for address, local, _, remote in subflows:
            sent = at_client.get((local, remote), 0) + at_server.get((remote, local), 0)
            link = self.paths.link_of(address)
            if link and sent > _SENT_AGAIN_BYTES and self.case["links"][link]["endpoint"] == "subflow backup":
                self.violation(
                    "backup", f"connection {number}: {sent} bytes over link {link}, which is a backup"
                )
