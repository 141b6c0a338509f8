"""What crosses each line: TCP connections, MPTCP's options, and full packets.

All lines carry their connections at once, in one trial of a few seconds before the measurement: one with MPTCP and a
few bytes, and one with TCP that fills packets in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plait.dataset.convert import read_stream
from plait.errors import RequestError, TrialError, shell_command
from plait.frames import IPV4_HEADER, IPV6_HEADER, MSS_RANGE
from plait.plan.model.plan import Flow, Side
from plait.traffic.gaps import Gap
from plait.traffic.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from plait.measure.probing import LineEnd, LineProber

_END_US = 8_000_000
"""How long connections have; a lost SYN alone costs 3 s when it is sent for the third time."""
_GAP_US = 50_000
_FEW, _FULL = 64, 20_000
"""Bytes of requests and responses: of a part of a packet, and of several full ones."""
_TCP_HEADER, _TIMESTAMPS = 20, 12
_SAMPLE_US = 100_000


@dataclass(frozen=True)
class Crossing:
    """What crossed one line."""

    connects: bool
    """Whether a TCP connection was established."""
    mptcp: bool | None
    """Whether a connection negotiated MPTCP; None: none was established."""
    full_packets: bool
    """Whether full packets arrived in both directions."""
    mtu: int | None = None
    """The largest IP packet in bytes that both hosts send over the line; None: not known."""


def crossings(
    lines: Sequence[tuple[LineEnd, LineEnd]], prober: LineProber, *, timestamps: bool
) -> list[Crossing]:
    """Return what crosses the lines, each from its client's end to its server's.

    `timestamps`: whether both hosts put time stamps into TCP segments. Raises TrialError if a host fails.
    """
    hosts = [end.host for end in lines[0]]

    def flows(host: str) -> tuple[Flow, ...]:
        return tuple(
            _flow(2 * number + is_full, ends, host, is_full=bool(is_full))
            for number, ends in enumerate(lines)
            for is_full in (0, 1)
        )

    sent = len(lines) * (_FULL + 2 * _FEW)
    with prober.trial(hosts, flows, _END_US, sent, sample_us=_SAMPLE_US) as folder:
        return [
            _crossing(folder, hosts, number, ends, timestamps=timestamps) for number, ends in enumerate(lines)
        ]


def check_ports(lines: int, ports: range) -> None:
    """Raise RequestError if the server has too few ports for the connections of so many lines."""
    if len(ports) < 2 * lines:
        raise RequestError(
            f"measuring {lines} lines takes {2 * lines} ports of the server, and --ports names {len(ports)}; name "
            f"more, such as --ports {ports[0]}-{ports[0] + 2 * lines - 1}"
        )


def opening_command(ports: str, protocol: Literal["tcp", "udp"]) -> str:
    """Return the command that opens the ports FIRST-LAST of a server with ufw."""
    return shell_command("sudo", "ufw", "allow", f"{ports.replace('-', ':')}/{protocol}")


def _flow(number: int, ends: tuple[LineEnd, LineEnd], host: str, *, is_full: bool) -> Flow:
    client, server = ends
    public = server.public if server.public is not None and server.host != host else server.address
    size = _FULL if is_full else _FEW
    return Flow(
        id=number,
        name=f"{'full' if is_full else 'mptcp'}{number // 2}",
        application=Request(
            request_bytes=size,
            response_bytes=size,
            loop="closed",
            gap=Gap(mean_us=_GAP_US),
            count=1 if is_full else 2,
        ),
        transport="tcp" if is_full else "mptcp",
        client=Side(netns=client.host, address=client.address, port=0),
        server=Side(netns=server.host, address=public, port=server.port + number),
        sender="server",
        start_us=0,
        paths=(),
        ideal_rate_bps=None,
    )


def _crossing(
    folder: Path, hosts: Sequence[str], number: int, ends: tuple[LineEnd, LineEnd], *, timestamps: bool
) -> Crossing:
    small, full = 2 * number, 2 * number + 1
    client = read_stream(folder / hosts[0] / "flows.arrow", "flows")
    of_small, of_full = (client.filter(client["flow"] == flow).to_dicts()[0] for flow in (small, full))
    connects = of_small["connected_us"] is not None or of_full["connected_us"] is not None
    mptcp = None if of_small["connected_us"] is None else not of_small["fallback"]
    if not of_full["completed"]:
        return Crossing(connects, mptcp, full_packets=not connects or not of_small["completed"])
    header = IPV6_HEADER if ":" in ends[0].address else IPV4_HEADER
    sizes = []
    for host in hosts:
        rows = read_stream(folder / host / "subflows.arrow", "subflows")
        known = rows.filter(rows["flow"] == full)["mss_bytes"].drop_nulls()
        sizes += [int(known[-1])] if len(known) else []
    if any(size not in MSS_RANGE for size in sizes):
        raise TrialError(
            f"measuring what crosses the lines: a host sent an MSS of {min(sizes)} B, which TCP has not"
        )
    mtu = min(sizes) + _TCP_HEADER + header + _TIMESTAMPS * timestamps if len(sizes) == len(hosts) else None
    return Crossing(connects, mptcp, full_packets=True, mtu=mtu)


def crossing_remarks(crossed: Mapping[str, Crossing], server: str, ports: str) -> Iterator[str]:
    """Yield what does not cross lines, by the interface of each, with the remedies."""
    blocked = [name for name, crossing in crossed.items() if not crossing.connects]
    first, opened = ports.partition("-")[0], opening_command(ports, "tcp")
    if blocked and len(blocked) == len(crossed):
        yield f"{server}: TCP port {first} is closed: `{opened}` (or the same in the firewall of its provider)"
    elif blocked:
        yield (
            f"{', '.join(blocked)}: no TCP connection to port {first} of {server}, which other lines reach: the line "
            "blocks the port; choose others with --ports"
        )
    for name, crossing in crossed.items():
        if crossing.mptcp is False:
            yield (
                f"{name} removes MPTCP's options: connections that begin there fall back "
                "to TCP. Let them begin on another line (the lowest metric of its default route), or put a tunnel on "
                "this line"
            )
        if not crossing.full_packets:
            mtu = shell_command("sudo", "ip", "link", "set", name, "mtu", "1280")
            yield (
                f"{name} loses full packets and reports nothing (a path MTU black hole), so transfers hang: lower the "
                f"MTU of the interface: `{mtu}`"
            )
