"""Samples the connections of captures at regular times, and makes the tables of a trial of one end or both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from plait.dataset.model import ALL_TABLES, CONNECTIONS, SUBFLOWS, TABLES
from plait.errors import RequestError
from plait.observe.captures.packets import Packet
from plait.observe.captures.tracking import SeenConnection, Subflow, Tracker

_MOST_ROWS = 500_000
_CHUNK = 20_000
_TIMESTAMPS = 12
Row = dict[str, object]


class Samples:
    """The samples of one end."""

    def __init__(self, tracker: Tracker, zero_us: int, interval_us: int) -> None:
        """`zero_us` is the zero of the trial on the clock of this end."""
        self.tracker = tracker
        self.zero_us = zero_us
        self.end_us = 0
        self._interval_us = interval_us
        self._active: dict[Subflow, None] = {}
        """The subflows that had a packet since the last sample."""
        self._last: dict[tuple[str, object], tuple[object, ...]] = {}
        """The last row of each subflow and connection."""
        self._rows: dict[str, list[tuple[object, ...]]] = {"subflows": [], "connections": []}
        self._frames: dict[str, list[pl.DataFrame]] = {"subflows": [], "connections": []}
        self._sampled_us = 0
        self._count = 0

    def take(self, packet: Packet) -> None:
        """Sample at the end of the last full interval before `packet`, and then take it."""
        t_us = packet.t_us - self.zero_us
        next_us = self._sampled_us + self._interval_us
        if t_us > next_us:
            self._sample(next_us)
            self._sampled_us = (t_us - 1) // self._interval_us * self._interval_us
        self.end_us = max(self.end_us, t_us)
        subflow = self.tracker.take(packet)
        if subflow is not None:
            self._active[subflow] = None

    def finish(self) -> None:
        """Sample the end of the captures."""
        self._active = {**dict.fromkeys(self.tracker.subflows), **self._active}
        self._sample(self.end_us)
        for name in self._rows:
            self._flush(name)

    def _sample(self, t_us: int) -> None:
        """Add rows of what had packets since the last sample."""
        active = [(subflow, subflow.connection) for subflow in self._active if subflow.connection is not None]
        for subflow, connection in active:
            self._add("subflows", subflow, _subflow_row(subflow, connection, t_us), SUBFLOWS)
        for number, connection in {item.number: item for _, item in active}.items():
            self._add("connections", number, _connection_row(connection, t_us), CONNECTIONS)
        self._active = {}

    def _add(self, name: str, key: object, row: Row, schema: Iterable[str]) -> None:
        """Add a row, and before it one for the end of the idle time in which nothing changed."""
        t_us = int(str(row["t_us"]))
        values = tuple(map(row.get, schema))
        last = self._last.get((name, key))
        if last is not None and last[1:] == values[1:] and t_us == self.end_us:
            return
        idle_until = self._sampled_us
        if last is not None and int(str(last[0])) < idle_until < t_us:
            self._rows[name].append((idle_until, *last[1:]))
        self._last[name, key] = values
        self._rows[name].append(values)
        self._count += 1
        if self._count > _MOST_ROWS:
            raise RequestError(
                f"reading captures: more than {_MOST_ROWS} samples; give a longer --every, or select with --port or "
                "--peer"
            )
        if len(self._rows[name]) >= _CHUNK:
            self._flush(name)

    def _flush(self, name: str) -> None:
        self._frames[name].append(pl.DataFrame(self._rows[name], schema=TABLES[name], orient="row"))
        self._rows[name] = []

    def frame(self, name: str, numbers: dict[int, int]) -> pl.DataFrame:
        """Return a table of samples, with the flow numbers that `numbers` gives to connections; others are left out."""
        frame = pl.concat(self._frames[name])
        renumbered = pl.col("flow").replace_strict(numbers, default=None, return_dtype=pl.Int64)
        return frame.with_columns(renumbered).filter(pl.col("flow").is_not_null())


@dataclass(frozen=True)
class Joined:
    """Which connections of both ends are the same, and how the clocks of the ends differ."""

    pairs: tuple[tuple[SeenConnection, SeenConnection], ...] = ()
    clock_offset_us: int | None = None
    """What plait subtracted from the times of the second end; None: the clocks agree with the order of packets."""
    clock_error_us: int | None = None


def tables_of(
    samples: list[Samples], nodes: list[str], zero_us: int
) -> tuple[dict[str, pl.DataFrame], Joined]:
    """Return the tables of a trial, from the samples of one end or of two, whose nodes have these names."""
    here = samples[0]
    joined = _joined(here.tracker, samples[1].tracker) if len(samples) > 1 else Joined()
    others = {first.number: second for first, second in joined.pairs}
    names = connection_names(here.tracker.connections)
    numbers = [{connection.number: connection.number for connection in here.tracker.connections}]
    numbers.append({second.number: first.number for first, second in joined.pairs})
    later = [0, -(joined.clock_offset_us or 0)]
    frames = {
        name: pl.concat(
            [
                part.frame(name, known).with_columns(pl.col("t_us") + shift)
                for part, known, shift in zip(samples, numbers, later, strict=False)
            ]
        ).sort("t_us", maintain_order=True)
        for name in ("connections", "subflows")
    }
    flows, programs = [], []
    for connection, name in zip(here.tracker.connections, names, strict=True):
        other = others.get(connection.number)
        flow, about = _flow_rows(connection, other, name, nodes)
        flows.append(_shifted(flow, zero_us))
        programs.append(about)
    counters = Counter(
        (node, connection.fallback)
        for part, node in zip(samples, nodes, strict=True)
        for connection in part.tracker.connections
        if connection.fallback is not None
    )
    rows = {
        "flows": flows,
        "program_flows": programs,
        "events": sorted(_events(samples, numbers, nodes, later), key=lambda row: row["t_us"]),
        "counters": [
            {"node": node, "counter": f"MPTcpExt{reason}", "before": 0, "after": count}
            for (node, reason), count in sorted(counters.items())
        ],
        "links": [],
        "programs": [],
        "program_figures": [],
    }
    made = {
        name: pl.DataFrame(
            [tuple(map(row.get, ALL_TABLES[name])) for row in content], schema=ALL_TABLES[name], orient="row"
        )
        for name, content in rows.items()
    }
    return {**made, **frames}, joined


def _events(
    samples: list[Samples], numbers: list[dict[int, int]], nodes: list[str], later: list[int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table events."""
    for part, known, node, shift in zip(samples, numbers, nodes, later, strict=False):
        for row in part.tracker.events:
            number = known.get(row["connection"].number)
            if number is not None:
                t_us = row["t_us"] - part.zero_us + shift
                yield {
                    **row,
                    "node": node,
                    "t_us": t_us,
                    "flow": number,
                    "token": row["connection"].token_here,
                }


def connection_names(connections: Iterable[SeenConnection]) -> Iterator[str]:
    """Yield what to call each connection: the address of the other end and the port of the server."""
    counts: Counter[str] = Counter()
    for connection in connections:
        initial = connection.subflows[0]
        server = initial.there if connection.opened_here else initial.here
        base = f"{initial.there[0]}:{server[1]}"
        counts[base] += 1
        yield base if counts[base] == 1 else f"{base}#{counts[base]}"


def _shifted(row: Row, zero_us: int) -> Row:
    times = ("start_us", "connected_us", "first_byte_us", "end_us")
    return {**row, **{name: at - zero_us for name in times if isinstance(at := row[name], int)}}


def _flow_rows(
    connection: SeenConnection, other: SeenConnection | None, name: str, nodes: list[str]
) -> tuple[Row, Row]:
    """Return the rows of a connection in the tables flows (with times of the capture's clock) and program_flows."""
    initial = connection.subflows[0]
    out_bytes, in_bytes = sent_bytes(connection), received_bytes(connection) or 0
    sends = out_bytes >= in_bytes
    client, server = (
        (initial.here, initial.there) if connection.opened_here else (initial.there, initial.here)
    )
    there = nodes[1] if other is not None else initial.there[0]
    ends = (nodes[0], there) if connection.opened_here else (there, nodes[0])
    acked = acked_bytes(connection)
    arrived = received_bytes(other) if other is not None else acked
    fallen = connection.fallback is not None or (other is not None and other.fallback is not None)
    flow: Row = {
        "flow": connection.number,
        "name": name,
        "kind": "program",
        "transport": "mptcp" if connection.mptcp else "tcp",
        "start_us": connection.start_us,
        "connected_us": connection.connected_us,
        "first_byte_us": None if sends else connection.first_byte_us,
        "end_us": connection.acked_us if sends else connection.arrived_us,
        "sent_bytes": out_bytes if sends else None if other is None else sent_bytes(other),
        "received_bytes": arrived if sends else in_bytes,
        "completed": True,
        "fallback": fallen if connection.mptcp else None,
    }
    about: Row = {
        "flow": connection.number,
        "client": ends[0],
        "client_address": client[0],
        "client_port": client[1],
        "server": ends[1],
        "server_address": server[0],
        "server_port": server[1],
        "sender": "client" if sends == connection.opened_here else "server",
    }
    return flow, about


def sent_bytes(connection: SeenConnection) -> int:
    """Return the bytes of data that this end sent, without repetitions."""
    if connection.is_plain:
        half = connection.subflows[0].out
        return half.sent_bytes - half.retransmitted_bytes
    return connection.out.new_bytes


def received_bytes(connection: SeenConnection) -> int | None:
    """Return the bytes that arrived here in order."""
    if connection.is_plain:
        half = connection.subflows[0].into
        received = half.received_bytes
        return None if received is None else received - int(half.fin == half.received.in_order)
    return connection.into.in_order_bytes


def acked_bytes(connection: SeenConnection) -> int | None:
    """Return the bytes that the other end acknowledged, as the kernel counts them."""
    if connection.is_plain:
        return connection.subflows[0].out.acked_bytes
    return connection.out.acked_bytes


def _connection_row(connection: SeenConnection, t_us: int) -> Row:
    plain = connection.is_plain
    live = sum(subflow.state == "ESTABLISHED" for subflow in connection.subflows)
    return {
        "t_us": t_us,
        "flow": connection.number,
        "side": _side(connection),
        "subflows": live,
        "sent_bytes": sent_bytes(connection),
        "retransmitted_bytes": (
            connection.subflows[0].out.retransmitted_bytes if plain else connection.out.again_bytes
        ),
        "acked_bytes": acked_bytes(connection),
        "received_bytes": received_bytes(connection),
    }


def _subflow_row(subflow: Subflow, connection: SeenConnection, t_us: int) -> Row:
    out, into = subflow.out, subflow.into
    mss = subflow.mss
    if mss is not None and subflow.timestamps:
        mss -= _TIMESTAMPS
    return {
        "t_us": t_us,
        "flow": connection.number,
        "side": _side(connection),
        "subflow": subflow.number,
        "local_address": subflow.here[0],
        "local_port": subflow.here[1],
        "remote_address": subflow.there[0],
        "remote_port": subflow.there[1],
        "state": subflow.state,
        "backup": subflow.backup,
        "rtt_us": None if out.rtt_us is None else round(out.rtt_us),
        "rttvar_us": None if out.rtt_us is None else round(out.rttvar_us),
        "min_rtt_us": out.min_rtt_us,
        "mss_bytes": mss or max(out.mss, into.mss) or None,
        "sent_bytes": out.sent_bytes,
        "retransmitted_bytes": out.retransmitted_bytes,
        "retransmitted_segments": out.retransmitted_segments,
        "acked_bytes": out.acked_bytes,
        "received_bytes": into.received_bytes,
        "unacked_segments": out.unacked_segments,
        "out_of_order_segments": into.out_of_order_segments,
        "send_window_bytes": into.window,
        "receive_window_bytes": out.window,
    }


def _side(connection: SeenConnection) -> str:
    return "client" if connection.opened_here else "server"


def _joined(here: Tracker, there: Tracker) -> Joined:
    """Find the connections that both ends captured, by tokens or by their initial subflow, and compare the clocks."""
    by_key: dict[object, SeenConnection] = {}
    for connection in reversed(there.connections):
        initial = connection.subflows[0]
        by_key[initial.there, initial.here] = connection
        for key in (("here", connection.token_there), ("there", connection.token_here)):
            if key[1] is not None:
                by_key[key] = connection
    pairs: list[tuple[SeenConnection, SeenConnection]] = []
    used: set[int] = set()
    for connection in here.connections:
        initial = connection.subflows[0]
        keys = (
            ("here", connection.token_here),
            ("there", connection.token_there),
            (initial.here, initial.there),
        )
        other = next((by_key[key] for key in keys if key in by_key), None)
        if other is not None and other.number not in used:
            used.add(other.number)
            pairs.append((connection, other))
    return Joined(tuple(pairs), *_clocks(pairs))


def _clocks(pairs: Iterable[tuple[SeenConnection, SeenConnection]]) -> tuple[int | None, int | None]:
    """Return the offset of the other end's clock and the bound of its error; None where packets do not contradict.

    A SYN and its answer cross the line in opposite directions, so half of the difference of their apparent delays is
    the offset, if both take equally long (as in NTP, RFC 5905).
    """
    forth: list[int] = []
    back: list[int] = []
    for connection, other in pairs:
        ends = {(subflow.there[1], subflow.here[1]): subflow for subflow in other.subflows}
        for subflow in connection.subflows:
            far = ends.get((subflow.here[1], subflow.there[1]))
            if far is None or None in (subflow.syn_us, subflow.synack_us, far.syn_us, far.synack_us):
                continue
            syn, answer = far.syn_us - subflow.syn_us, subflow.synack_us - far.synack_us  # type: ignore[operator]  # no None
            if not subflow.opened_here:
                syn, answer = -answer, -syn
            forth.append(syn)
            back.append(answer)
    if not forth or (min(forth) >= 0 and min(back) >= 0):
        return None, None
    return (min(forth) - min(back)) // 2, (min(forth) + min(back)) // 2
