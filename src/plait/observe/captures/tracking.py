"""Follows the connections of one end through its captures: subflows, data sequence numbers, fallbacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from plait.errors import RequestError
from plait.observe.captures.halves import Half
from plait.observe.captures.packets import (
    ACK,
    ADD_ADDR,
    CAPABLE,
    DSS,
    FAIL,
    FASTCLOSE,
    JOIN,
    REMOVE_ADDR,
    RST,
    SYN,
    Packet,
    PacketOptions,
)
from plait.observe.captures.streams import DataStream, derived

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Address and port here, and at the other end."""
_MOST_SUBFLOWS = 20_000
_UNMAPPED_BYTES = 1 << 16
"""No mapping is longer: data without one that are longer than this have none."""
_MOST_EVENTS = 100_000
_REFUSED, _RESET = 111, 104
"""ECONNREFUSED and ECONNRESET, as the kernel reports them."""


@dataclass
class SeenConnection:
    """One connection as this end sees it."""

    opened_here: bool
    start_us: int
    number: int = 0
    mptcp: bool = False
    with_handshake: bool = False
    subflows: list[Subflow] = field(default_factory=list)
    out: DataStream = field(default_factory=DataStream)
    into: DataStream = field(default_factory=DataStream)
    token_here: int | None = None
    token_there: int | None = None
    capable: dict[str, bool] = field(default_factory=dict)
    """Whether SYN, SYN/ACK and ACK had MP_CAPABLE when they passed the capture."""
    fallback: str | None = None
    """The kernel's counter that stands for the reason."""
    connected_us: int | None = None
    first_byte_us: int | None = None
    arrived_us: int | None = None
    """When the last new data arrived here."""
    acked_us: int | None = None
    """When the last new acknowledgement arrived here."""
    announced: dict[str, bool] = field(default_factory=dict)
    """Addresses that an end announced, and whether it was the other one."""

    @property
    def is_plain(self) -> bool:
        """Whether its bytes are those of its only subflow."""
        return not self.mptcp or self.fallback is not None

    def unjoined(self) -> Iterator[tuple[str, bool]]:
        """Yield the announced addresses to which no subflow was tried, and whether the other end announced them."""
        for address, there in self.announced.items():
            used = {(subflow.there if there else subflow.here)[0] for subflow in self.subflows}
            if address not in used:
                yield address, there


@dataclass(eq=False)
class Subflow:
    """One subflow, or one TCP connection."""

    here: tuple[str, int]
    there: tuple[str, int]
    opened_us: int
    opened_here: bool | None = None
    connection: SeenConnection | None = None
    number: int = 0
    out: Half = field(default_factory=Half)
    into: Half = field(default_factory=Half)
    mappings: dict[bool, tuple[int, int, int]] = field(default_factory=dict)
    """By whether they are from here: place in the subflow, data sequence number and length of the last mapping."""
    shifts: dict[bool, int] = field(default_factory=dict)
    unmapped: dict[bool, int] = field(default_factory=dict)
    joins: bool = False
    token: tuple[bool, int] | None = None
    """Whether it is that of the other end, and the token of its MP_JOIN."""
    syn_us: int | None = None
    synack_us: int | None = None
    state: str = "SYN_SENT"
    backup: bool | None = None
    timestamps: bool = False
    mss: int | None = None
    cut: bool = False

    @property
    def ended(self) -> bool:
        """Whether a reset or both FINs ended it."""
        return self.state == "CLOSE"


class Tracker:
    """The connections of one end."""

    def __init__(self, local: Collection[str]) -> None:
        """`local` are the addresses of this end."""
        self._local = set(local)
        self._by_ends: dict[Ends, Subflow] = {}
        self._by_token: dict[tuple[bool, int], SeenConnection] = {}
        self._by_data: dict[tuple[bool, int], SeenConnection] = {}
        self.connections: list[SeenConnection] = []
        self.subflows: list[Subflow] = []
        self.events: list[dict[str, Any]] = []
        self.packets = 0
        self.cut_packets = 0

    def take(self, packet: Packet) -> Subflow | None:
        """Note a packet, and return its subflow; None if it crosses no line or belongs to a connection that ended."""
        self.packets += 1
        self.cut_packets += packet.cut
        outgoing = packet.source[0] in self._local
        if outgoing and packet.destination[0] in self._local:
            return None
        ends = (packet.source, packet.destination) if outgoing else (packet.destination, packet.source)
        subflow = self._by_ends.get(ends)
        opens = packet.flags & (SYN | ACK) == SYN
        if subflow is None or (opens and subflow.ended):
            if packet.flags & RST:
                return None
            if len(self.subflows) >= _MOST_SUBFLOWS:
                raise RequestError(
                    f"reading captures: they hold more than {_MOST_SUBFLOWS} TCP connections; select some with --port "
                    "or --peer"
                )
            subflow = Subflow(*ends, opened_us=packet.t_us)
            self._by_ends[ends] = subflow
            self.subflows.append(subflow)
            if not packet.flags & SYN:
                subflow.state = "ESTABLISHED"
        self._follow(subflow, packet, outgoing=outgoing)
        return subflow

    def _follow(self, subflow: Subflow, packet: Packet, *, outgoing: bool) -> None:
        sender, receiver = (subflow.out, subflow.into) if outgoing else (subflow.into, subflow.out)
        subflow.cut = subflow.cut or packet.cut
        if packet.flags & SYN:
            self._take_syn(subflow, packet, outgoing=outgoing)
            sender.shift = packet.shift or 0 if not packet.cut else None
        if packet.flags & RST:
            self._end(subflow, packet, outgoing=outgoing)
            return
        fresh = sender.send(packet.seq, packet.payload, packet.flags, packet.t_us)
        before = receiver.acked
        if packet.flags & ACK:
            receiver.acknowledge(packet.ack, packet.sacked, packet.t_us)
        if sender.shift is not None and receiver.shift is not None:
            sender.window = packet.window if packet.flags & SYN else packet.window << sender.shift
        options = packet.mptcp
        connection = self._settle(subflow, packet, outgoing=outgoing)
        if connection is None:
            return
        if subflow.state != "ESTABLISHED" and not packet.flags & SYN and not subflow.ended:
            self._establish(subflow, connection, packet, outgoing=outgoing)
        if not outgoing and receiver.acked != before:
            connection.acked_us = packet.t_us
        if packet.flags & SYN:
            self._note_handshake(subflow, packet)
        if options is not None:
            self._take_options(connection, subflow, packet, options, outgoing=outgoing)
        if packet.payload:
            self._take_data(connection, subflow, packet, fresh, outgoing=outgoing)
        if _has_ended(subflow):
            subflow.state = "CLOSE"
            self._event(packet.t_us, "sub_closed", connection, subflow)

    def _take_syn(self, subflow: Subflow, packet: Packet, *, outgoing: bool) -> None:
        opens = not packet.flags & ACK
        subflow.opened_here = outgoing == opens
        subflow.timestamps = packet.timestamps
        if packet.mss is not None:
            subflow.mss = packet.mss if subflow.mss is None else min(subflow.mss, packet.mss)
        if opens:
            subflow.syn_us = packet.t_us if subflow.syn_us is None else subflow.syn_us
        else:
            subflow.synack_us = packet.t_us if subflow.synack_us is None else subflow.synack_us
        options = packet.mptcp
        if options is not None and JOIN in options.subtypes:
            subflow.joins = True
            if opens:
                subflow.backup = options.backup
                if options.token is not None:
                    subflow.token = (outgoing, options.token)

    def _settle(self, subflow: Subflow, packet: Packet, *, outgoing: bool) -> SeenConnection | None:
        """Return the connection of a subflow, once it is known.

        A token tells it; without the handshake, a data sequence number does: of 2^64, two connections would hardly use
        neighbours.
        """
        if subflow.connection is not None:
            return subflow.connection
        options = packet.mptcp
        found = None if subflow.token is None else self._by_token.get(subflow.token)
        initial = bool(packet.flags & SYN) and not subflow.joins
        dsn = None if options is None else options.dsn
        if found is None and dsn is not None and dsn >> 32:
            place = dsn >> 32
            found = next(
                (
                    self._by_data[outgoing, near]
                    for near in (place, place - 1, place + 1)
                    if (outgoing, near) in self._by_data
                ),
                None,
            )
        if found is None:
            mapped = dsn is not None
            plain = options is None and not subflow.joins and bool(packet.payload)
            if not (initial or mapped or plain):
                return None
            here = subflow.opened_here
            # Without the handshake, a server mostly has the lower port.
            opened_here = subflow.here[1] > subflow.there[1] if here is None else here
            found = SeenConnection(
                opened_here, subflow.opened_us, len(self.connections), with_handshake=initial
            )
            self.connections.append(found)
        if subflow.token is not None:
            self._remember(found, *subflow.token)
        subflow.connection, subflow.number = found, len(found.subflows)
        found.subflows.append(subflow)
        found.mptcp = found.mptcp or options is not None or subflow.joins
        return found

    def _remember(self, connection: SeenConnection, there: bool, token: int) -> None:
        self._by_token[there, token] = connection
        if there:
            connection.token_there = token
        else:
            connection.token_here = token

    def _establish(
        self, subflow: Subflow, connection: SeenConnection, packet: Packet, *, outgoing: bool
    ) -> None:
        subflow.state = "ESTABLISHED"
        if subflow.joins:
            self._event(packet.t_us, "sub_established", connection, subflow)
        else:
            at_opener = subflow.synack_us if subflow.opened_here else packet.t_us
            connection.connected_us = (
                at_opener if connection.connected_us is None else connection.connected_us
            )
            if not connection.is_plain:
                self._event(packet.t_us, "established", connection, subflow)
        if (
            not subflow.joins
            and outgoing == subflow.opened_here
            and connection.with_handshake
            and not packet.cut
        ):
            capable = packet.mptcp is not None and bool({CAPABLE, DSS} & packet.mptcp.subtypes)
            connection.capable["ACK"] = capable
            if not capable and connection.capable.get("SYN/ACK"):
                self._fall_back(connection, subflow, packet.t_us, "MPCapableFallbackACK")

    def _take_options(
        self,
        connection: SeenConnection,
        subflow: Subflow,
        packet: Packet,
        options: PacketOptions,
        *,
        outgoing: bool,
    ) -> None:
        sender, receiver = (
            (connection.out, connection.into) if outgoing else (connection.into, connection.out)
        )
        if CAPABLE in options.subtypes and options.key is not None:
            self._take_key(connection, sender, options, outgoing=outgoing)
        if options.data_ack is not None:
            receiver.acknowledge(options.data_ack, packet.t_us)
        for address, port in options.announced if ADD_ADDR in options.subtypes else ():
            if address not in connection.announced and len(connection.announced) < 256:
                connection.announced[address] = not outgoing
                if not outgoing:
                    self._event(
                        packet.t_us,
                        "announced",
                        connection,
                        None,
                        remote_address=address,
                        remote_port=port or subflow.there[1],
                        remote_id=options.address_id,
                    )
        if REMOVE_ADDR in options.subtypes and not outgoing:
            self._event(packet.t_us, "removed", connection, None, remote_id=options.address_id)
        if FAIL in options.subtypes:
            self._fall_back(connection, subflow, packet.t_us, "DataCsumErr")
        if FASTCLOSE in options.subtypes:
            self._event(packet.t_us, "closed", connection, None)

    def _take_key(
        self, connection: SeenConnection, sender: DataStream, options: PacketOptions, *, outgoing: bool
    ) -> None:
        """Note what follows from the key of a side."""
        assert options.key is not None
        token, start = derived(options.key, options.version)
        self._remember(connection, not outgoing, token)
        if sender.first is None:
            sender.start(start + 1)
            self._by_data[outgoing, sender.last >> 32] = connection

    def _take_data(
        self,
        connection: SeenConnection,
        subflow: Subflow,
        packet: Packet,
        fresh: tuple[int, int],
        *,
        outgoing: bool,
    ) -> None:
        half = subflow.out if outgoing else subflow.into
        start, end = fresh
        if not outgoing:
            if connection.first_byte_us is None:
                connection.first_byte_us = packet.t_us
            if end > start:
                connection.arrived_us = packet.t_us
        if not connection.mptcp or connection.fallback is not None or half.base is None:
            return
        stream = connection.out if outgoing else connection.into
        options, place = packet.mptcp, half.place(packet.seq) if half.end >= 0 else 0
        if options is not None and options.length is not None:
            if options.dsn is not None and options.length == 0:
                self._fall_back(connection, subflow, packet.t_us, "InfiniteMapRx")
                return
            self._map(subflow, stream, options, place, outgoing=outgoing)
        if end <= start:
            return
        mapping = subflow.mappings.get(outgoing)
        if mapping is not None and mapping[0] <= start < mapping[0] + mapping[2]:
            subflow.unmapped[outgoing] = 0
            first = mapping[1] + start - mapping[0]
            stream.add(first, first + min(end, mapping[0] + mapping[2]) - start)
            self._by_data[outgoing, stream.last >> 32] = connection
        elif not packet.cut:
            unmapped = subflow.unmapped[outgoing] = subflow.unmapped.get(outgoing, 0) + end - start
            if mapping is None and half.from_syn and not subflow.joins:
                self._fall_back(connection, subflow, packet.t_us, "MPCapableDataFallback")
            elif unmapped > _UNMAPPED_BYTES:
                self._fall_back(connection, subflow, packet.t_us, "DssFallback")

    @staticmethod
    def _map(
        subflow: Subflow, stream: DataStream, options: PacketOptions, place: int, *, outgoing: bool
    ) -> None:
        """Note the mapping of a segment at `place`. The first one may stand in MP_CAPABLE, without numbers."""
        assert options.length is not None
        half = subflow.out if outgoing else subflow.into
        if options.dsn is None or options.subflow_sequence is None:
            if stream.first is not None:
                subflow.mappings[outgoing] = (0, stream.first, options.length)
            return
        number = options.subflow_sequence - 1
        if half.from_syn:
            shift = 0
        else:  # the sequence number of its SYN is unknown; a mapping begins at a segment or before
            shift = min(place - number, subflow.shifts.get(outgoing, place - number))
            subflow.shifts[outgoing] = shift
        offset = (place - shift - number) % (1 << 32)
        subflow.mappings[outgoing] = (place - offset, stream.whole(options.dsn), options.length)

    def _fall_back(self, connection: SeenConnection, subflow: Subflow, t_us: int, reason: str) -> None:
        if connection.fallback is None and connection.mptcp:
            connection.fallback = reason
            self._event(t_us, "fallback", connection, subflow)

    def _end(self, subflow: Subflow, packet: Packet, *, outgoing: bool) -> None:
        """Note a reset."""
        if subflow.connection is None:
            self._settle(subflow, packet, outgoing=outgoing)
        was, subflow.state = subflow.state, "CLOSE"
        if subflow.connection is not None and subflow.joins and was != "CLOSE":
            error = _REFUSED if was == "SYN_SENT" else _RESET
            reason = None if packet.mptcp is None else packet.mptcp.reset_reason
            self._event(
                packet.t_us, "sub_closed", subflow.connection, subflow, error=error, reset_reason=reason
            )

    def _note_handshake(self, subflow: Subflow, packet: Packet) -> None:
        """Note whether the first packets of a connection have MP_CAPABLE."""
        connection = subflow.connection
        if connection is None or subflow.joins or packet.cut or not packet.flags & SYN:
            return
        capable = packet.mptcp is not None and CAPABLE in packet.mptcp.subtypes
        word = "SYN/ACK" if packet.flags & ACK else "SYN"
        connection.capable[word] = capable
        if word == "SYN/ACK" and not capable and connection.capable.get("SYN"):
            self._fall_back(connection, subflow, packet.t_us, "MPCapableFallbackSYNACK")
        elif word == "SYN/ACK" and capable:
            self._event(packet.t_us, "created", connection, subflow)

    def _event(
        self, t_us: int, event: str, connection: SeenConnection, subflow: Subflow | None, **more: object
    ) -> None:
        if len(self.events) >= _MOST_EVENTS:
            raise RequestError(
                f"reading captures: they hold more than {_MOST_EVENTS} events; select connections with --port or --peer"
            )
        ends = {}
        if subflow is not None:
            ends = {
                "local_address": subflow.here[0],
                "local_port": subflow.here[1],
                "remote_address": subflow.there[0],
                "remote_port": subflow.there[1],
                "backup": subflow.backup,
            }
        row = {"t_us": t_us, "event": event, "connection": connection, **ends, **more}
        self.events.append(row)


def _has_ended(subflow: Subflow) -> bool:
    """Whether both sides have acknowledged the other's FIN."""
    return not subflow.ended and all(
        half.fin is not None and half.acked is not None and half.acked > half.fin
        for half in (subflow.out, subflow.into)
    )
