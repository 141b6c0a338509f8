"""What crosses each line: TCP connections, MPTCP's options, and full packets.

All lines between two hosts carry their connections in one trial of a few seconds before the measurement: one with MPTCP
and a few bytes, and one with TCP that fills packets in both directions. Those with MPTCP begin one after the other, so
that the kernel's counters show whose announcements (ADD_ADDR) arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from plait.dataset.convert import read_stream
from plait.errors import RequestError, TrialError, shell_command
from plait.frames import IPV4_HEADER, IPV6_HEADER, MSS_RANGE, TCP_HEADER, TIMESTAMPS
from plait.measure.named import NamedLine
from plait.measure.probing import LineProber
from plait.plan.model.plan import Flow, Side
from plait.traffic.gaps import Gap
from plait.traffic.request import Request

_END_US = 8_000_000
"""How long connections have; a lost SYN alone costs 3 s when it is sent for the third time."""
_APART_US, _MOST_APART_US = 1_500_000, 6_000_000
"""Between the connections with MPTCP of two lines, so that counters show the announcements of each; if a round trip is
long, up to the second one."""
_ANNOUNCED_RTTS = 2.5
"""Round trips from the begin of a connection to the arrival of an announcement: two, and some of a third."""
_REPEATED_US = 900_000
"""A connection that takes so much longer needed a second SYN; Linux sends later ones without MPTCP."""
_GAP_US = 50_000
_FEW, _FULL = 64, 20_000
"""Bytes of requests and responses: of a part of a packet, and of several full ones."""
_SAMPLE_US = 100_000
_CONNECTIONS, _ANNOUNCED, _RECEIVED = (
    "MPTcpExtMPCapableSYNRX",
    "MPTcpExtAddAddrTx",
    "MPTcpExtAddAddr",
)
"""Counters of new connections, and of sent and received ADD_ADDR; old kernels do not count sent ones."""


@dataclass(frozen=True)
class Crossing:
    """What crossed one line."""

    connects: bool
    """Whether a TCP connection was established."""
    mptcp: bool | None
    """Whether a connection negotiated MPTCP; None: none was established, or a host lacks MPTCP."""
    full_packets: bool
    """Whether full packets arrived in both directions."""
    mtu: int | None = None
    """The largest IP packet in bytes that both hosts send over the line; None: not known."""
    drops_mptcp: bool = False
    """Whether handshakes with MPTCP's options found no answer, and plain ones did."""
    announcements: bool | None = None
    """Whether the server's ADD_ADDR arrived; None: it sent none, or plait cannot see it."""


def crossings(
    lines: Sequence[NamedLine], prober: LineProber, *, timestamps: bool, mptcp: bool
) -> dict[str, Crossing]:
    """Return what crosses the lines of two hosts, by their names.

    `timestamps`: whether both hosts put time stamps into TCP segments; `mptcp`: whether both have MPTCP. Raises
    TrialError if a host fails.
    """
    crossed, apart_us = _trial(lines, prober, timestamps, mptcp, _APART_US)
    if apart_us > _APART_US and len(lines) > 1:
        # on a line with a long round trip, announcements arrived among those of the next line
        crossed, _ = _trial(lines, prober, timestamps, mptcp, min(apart_us, _MOST_APART_US))
    if any(crossing.announcements is False for crossing in crossed.values()):
        # a random loss does not repeat itself
        again, _ = _trial(lines, prober, timestamps, mptcp, min(max(apart_us, _APART_US), _MOST_APART_US))
        crossed = {
            name: replace(crossing, announcements=crossing.announcements or again[name].announcements)
            for name, crossing in crossed.items()
        }
    return crossed


def _trial(
    lines: Sequence[NamedLine], prober: LineProber, timestamps: bool, mptcp: bool, apart_us: int
) -> tuple[dict[str, Crossing], int]:
    """Return what crosses the lines, and how far apart connections must begin for announcements to be told apart."""
    hosts = list(dict.fromkeys(end.host for line in lines for end in line.ends))
    sent = len(lines) * (_FULL + 2 * _FEW)
    end_us = _END_US + (len(lines) - 1) * apart_us

    def flows(host: str) -> tuple[Flow, ...]:
        return tuple(
            _flow(number, line, host, is_full=is_full, mptcp=mptcp, apart_us=apart_us)
            for number, line in enumerate(lines)
            for is_full in (False, True)
        )

    crossed, longest_us = {}, 0
    with prober.trial(hosts, flows, end_us, sent, sample_us=_SAMPLE_US, counters_us=_SAMPLE_US) as folder:
        for number, line in enumerate(lines):
            crossing, took_us = _crossing(folder, number, line, timestamps=timestamps, mptcp=mptcp)
            if (
                crossing.mptcp
            ):  # one that fell back may have waited for the timer of its SYN, not for a round trip
                longest_us = max(longest_us, took_us)
                begin_us = number * apart_us
                announced = _announcements(folder, line, begin_us, begin_us + apart_us)
                crossing = replace(crossing, announcements=announced)
            crossed[line.name] = crossing
    return crossed, int(_ANNOUNCED_RTTS * longest_us)


def check_ports(lines: Sequence[NamedLine]) -> None:
    """Raise RequestError if a server has too few ports for the connections of the lines to it."""
    for server, to_server in _by_server(lines):
        first, last = map(int, to_server[0].server_ports.split("-"))
        needed, ports = 2 * len(to_server), last - first + 1
        if ports < needed:
            raise RequestError(
                f"measuring {len(to_server)} lines takes {needed} ports of {server}, and it has {ports}; allow more "
                f"(--ports, or ports in the hosts file), such as {first}-{first + needed - 1}"
            )


def _by_server(lines: Sequence[NamedLine]) -> Iterator[tuple[str, list[NamedLine]]]:
    """Yield each server with the lines to it."""
    for server in dict.fromkeys(line.server.host for line in lines):
        yield server, [line for line in lines if line.server.host == server]


def opening_command(ports: str, protocol: Literal["tcp", "udp"]) -> str:
    """Return the command that opens the ports FIRST-LAST of a server with ufw."""
    return shell_command("sudo", "ufw", "allow", f"{ports.replace('-', ':')}/{protocol}")


def _flow(number: int, line: NamedLine, host: str, *, is_full: bool, mptcp: bool, apart_us: int) -> Flow:
    client, server = line.ends
    size = _FULL if is_full else _FEW
    return Flow(
        id=2 * number + is_full,
        name=f"{'full' if is_full else 'mptcp'}{number}",
        application=Request(
            request_bytes=size,
            response_bytes=size,
            loop="closed",
            gap=Gap(mean_us=_GAP_US),
            count=1 if is_full else 2,
        ),
        transport="mptcp" if mptcp and not is_full else "tcp",
        client=Side(netns=client.host, address=client.address, port=0),
        server=Side(
            netns=server.host, address=server.address_for(host), port=server.port + 2 * number + is_full
        ),
        sender="server",
        start_us=0 if is_full else number * apart_us,
        paths=(),
        ideal_rate_bps=None,
    )


def _crossing(
    folder: Path, number: int, line: NamedLine, *, timestamps: bool, mptcp: bool
) -> tuple[Crossing, int]:
    """Return what crossed a line but announcements, and how long its connection with MPTCP took to be established."""
    small, full = 2 * number, 2 * number + 1
    client = read_stream(folder / line.client.host / "flows.arrow", "flows")
    of_small, of_full = (client.filter(client["flow"] == flow).to_dicts()[0] for flow in (small, full))
    is_small, is_full = (row["connected_us"] is not None for row in (of_small, of_full))
    negotiated = not of_small["fallback"] if is_small and mptcp else None
    took_us = [row["connected_us"] - row["start_us"] for row in (of_small, of_full) if row["connected_us"]]
    is_late = len(took_us) == 2 and took_us[0] - took_us[1] > _REPEATED_US
    crossing = Crossing(
        is_small or is_full,
        negotiated,
        full_packets=True,
        drops_mptcp=mptcp and is_full and (not is_small or (is_late and negotiated is False)),
    )
    small_us = of_small["connected_us"] - of_small["start_us"] if is_small else 0
    if not of_full["completed"]:
        is_whole = not crossing.connects or not of_small["completed"]
        return replace(crossing, full_packets=is_whole), small_us
    return replace(crossing, mtu=_mtu(folder, full, line, timestamps=timestamps)), small_us


def _mtu(folder: Path, flow: int, line: NamedLine, *, timestamps: bool) -> int | None:
    """Return the largest packet that both hosts send, by the segments of a connection."""
    header = IPV6_HEADER if ":" in line.client.address else IPV4_HEADER
    sizes = []
    for end in line.ends:
        rows = read_stream(folder / end.host / "subflows.arrow", "subflows")
        known = rows.filter(rows["flow"] == flow)["mss_bytes"].drop_nulls()
        sizes += [int(known[-1])] if len(known) else []
    if any(size not in MSS_RANGE for size in sizes):
        raise TrialError(
            f"measuring what crosses the lines: a host sent an MSS of {min(sizes)} B, which TCP has not"
        )
    if len(sizes) < len(line.ends):
        return None
    return min(sizes) + TCP_HEADER + header + TIMESTAMPS * timestamps


def _announcements(folder: Path, line: NamedLine, begin_us: int, end_us: int) -> bool | None:
    """Return whether an announcement of the server arrived while only this line had a new connection."""
    client, server = (folder / end.host for end in line.ends)
    if _grown(server, _CONNECTIONS, begin_us, end_us) != 1 or not _grown(
        server, _ANNOUNCED, begin_us, end_us
    ):
        return None  # other programs opened connections, too, or nothing was announced
    return _grown(client, _RECEIVED, begin_us, end_us) > 0


def _grown(folder: Path, counter: str, begin_us: int, end_us: int) -> int:
    """Return by how much a counter of a host grew in a part of a trial; 0 for one that the kernel lacks."""
    counters = read_stream(folder / "counters.arrow", "counters").filter(counter=counter)["before"]
    series = read_stream(folder / "counter_series.arrow", "counter_series").filter(counter=counter)
    values = [0, *counters.to_list()[-1:]]
    for t_us in (begin_us, end_us):
        values += series.filter(pl.col("t_us") <= t_us)["value"].to_list()[-1:] or values[-1:]
    return int(values[-1]) - int(values[-2])


def crossing_remarks(lines: Sequence[NamedLine], crossed: Mapping[str, Crossing]) -> Iterator[str]:
    """Yield what does not cross lines, with the remedies."""
    seen = [line for line in lines if line.name in crossed]
    for _, to_server in _by_server(seen):
        yield from _ports(to_server, crossed)
    for line in seen:
        yield from _changes(line, crossed[line.name])


def _ports(lines: Sequence[NamedLine], crossed: Mapping[str, Crossing]) -> Iterator[str]:
    """Yield which ports of one server are closed, or blocked by a line."""
    blocked = [line.label for line in lines if not crossed[line.name].connects]
    if not blocked:
        return
    server, port = lines[0].server.host, lines[0].server.port
    if len(blocked) == len(lines):
        opened = opening_command(lines[0].server_ports, "tcp")
        yield f"{server}: TCP port {port} is closed: `{opened}` (or the same in the firewall of its provider)"
    else:
        yield (
            f"{', '.join(blocked)}: no TCP connection to port {port} of {server}, which other lines reach: the line "
            "blocks the port; choose others with --ports (or ports in the hosts file)"
        )


def _changes(line: NamedLine, crossing: Crossing) -> Iterator[str]:
    """Yield what a line does to the packets of connections."""
    label = line.label
    if crossing.mptcp is False and not crossing.drops_mptcp:
        yield (
            f"{label} removes MPTCP's options: connections that begin there fall back "
            "to TCP. Let them begin on another line (the lowest metric of its default route), or put a tunnel on "
            "this line"
        )
    if crossing.drops_mptcp:
        yield (
            f"{label} drops handshakes with MPTCP's options, so connections that begin there wait for seconds: let "
            "them begin on another line (the lowest metric of its default route), or put a tunnel on this line"
        )
    if crossing.announcements is False:
        yield (
            f"{label} loses the announcements (ADD_ADDR) of {line.server.host}, so {line.client.host} joins none of "
            "its other addresses: let connections begin on another line, or open subflows from endpoints of "
            f"{line.client.host} with the flag fullmesh or subflow"
        )
    if not crossing.full_packets:
        mtu = shell_command("sudo", "ip", "link", "set", line.interface or label, "mtu", "1280")
        yield (
            f"{label} loses full packets and reports nothing (a path MTU black hole), so transfers hang: lower the "
            f"MTU of the interface: `{mtu}`"
        )


def udp_remarks(lines: Sequence[NamedLine], blocked: Sequence[str]) -> Iterator[str]:
    """Yield over which lines no UDP packet passes, of those to each server; `blocked` are their names."""
    for server, to_server in _by_server(lines):
        labels = [line.label for line in to_server if line.name in blocked]
        first = to_server[0]
        if len(labels) == len(to_server):
            opened = opening_command(first.server_ports, "udp")
            yield f"{server}: no UDP packet arrives over any line; if its firewall drops them: `{opened}`"
        elif labels:
            yield (
                f"{', '.join(labels)}: no UDP packet to port {first.server.port} of {server} arrives, and those of "
                "other lines do: the line blocks UDP, so QUIC and calls over it fail or fall back to TCP"
            )
