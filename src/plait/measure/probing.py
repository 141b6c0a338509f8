"""The packets that plait sends over a line, and their times as both hosts saw them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plait.dataset.convert import read_stream
from plait.engine.remote.exchange import Exchange
from plait.frames import IPV4_HEADER, IPV6_HEADER
from plait.measure.estimate import PacketTimes
from plait.plan.model.applications import Udp
from plait.plan.model.monitors import Monitors
from plait.plan.model.plan import Flow, Machine, Namespace, Network, Plan, Side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from plait.engine.remote.spent import Spent
    from plait.engine.remote.ssh import HostSession

UDP_HEADER, ETHERNET_HEADER = 8, 14
_DRAIN_US = 2_000_000


@dataclass(frozen=True)
class LineEnd:
    """One end of a line: the host, its address on the line, and the port on which it receives."""

    host: str
    address: str
    port: int


@dataclass(frozen=True)
class PacketBurst:
    """PacketTimes at a constant rate from one end to the other."""

    source: LineEnd
    target: LineEnd
    start_us: int
    packet_bytes: int
    """Payload of a packet."""
    interval_ns: int
    count: int

    @property
    def frame_bytes(self) -> int:
        """The bytes of a frame, without the check sequence."""
        header = IPV6_HEADER if ":" in self.source.address else IPV4_HEADER
        return self.packet_bytes + UDP_HEADER + header + ETHERNET_HEADER

    @property
    def end_us(self) -> int:
        """When the last packet is due."""
        return self.start_us + self.interval_ns * self.count // 1000

    @classmethod
    def at_rate(
        cls, ends: tuple[LineEnd, LineEnd], start_us: int, packet_bytes: int, bps: float, s: float
    ) -> PacketBurst:
        """Return a burst of `s` seconds at `bps` (bit/s of frames), from the first end to the second."""
        frame = cls(*ends, start_us, packet_bytes, 1, 1).frame_bytes
        interval_ns = max(1000, round(frame * 8e9 / bps))
        return cls(*ends, start_us, packet_bytes, interval_ns, max(20, round(s * 1e9 / interval_ns)))


class LineProber:
    """Sends bursts between real hosts, within the limits of the hosts file."""

    def __init__(self, sessions: Mapping[str, HostSession], folder: Path, spent: Spent) -> None:
        """`folder` is empty, and plait's own."""
        self._sessions = sessions
        self._folder = folder
        self._spent = spent
        self._trials = 0
        self.zero_us = 0.0
        """When the last trial began, on plait's clock."""

    def send(self, bursts: Sequence[PacketBurst]) -> list[PacketTimes]:
        """Send all `bursts` in one trial, and return their packets.

        Raises TrialError if a host or the connection fails, or a limit would be exceeded.
        """
        hosts = list(dict.fromkeys(end.host for burst in bursts for end in (burst.source, burst.target)))
        end_us = max(burst.end_us for burst in bursts) + _DRAIN_US + 1_000_000
        plans = {host: _plan(host, bursts, end_us) for host in hosts}
        self._spent.check(plans[hosts[0]])
        folder = self._folder / str(self._trials)
        self._trials += 1
        folder.mkdir()
        sessions = {host: self._sessions[host] for host in hosts}
        zeros = Exchange(sessions, folder, ()).run(plans, lambda _: None)
        self.zero_us = zeros[hosts[0]].ns / 1000
        self._spent.add_trial(_most_sent(bursts), end_us - _DRAIN_US - 1_000_000)
        packets = [_packets(folder, number, burst) for number, burst in enumerate(bursts)]
        shutil.rmtree(folder)
        return packets


def _most_sent(bursts: Sequence[PacketBurst]) -> int:
    sent: dict[str, int] = {}
    for burst in bursts:
        sent[burst.source.host] = sent.get(burst.source.host, 0) + burst.count * burst.packet_bytes
    return max(sent.values())


def _plan(host: str, bursts: Sequence[PacketBurst], end_us: int) -> Plan:
    return Plan(
        schema_version=1,
        seed=0,
        machine=Machine(),
        sample_interval_us=1_000_000,
        end_us=end_us,
        network=Network(namespaces=(Namespace(name=host, role="host"),), veths=()),
        links=(),
        flows=tuple(_flow(number, burst) for number, burst in enumerate(bursts)),
        monitors=Monitors(),
    )


def _flow(number: int, burst: PacketBurst) -> Flow:
    return Flow(
        id=number,
        name=f"burst{number}",
        application=Udp(
            packet_bytes=burst.packet_bytes,
            interval_ns=burst.interval_ns,
            count=burst.count,
            drain_us=_DRAIN_US,
        ),
        transport="udp",
        client=Side(netns=burst.source.host, address=burst.source.address, port=0),
        server=Side(netns=burst.target.host, address=burst.target.address, port=burst.target.port + number),
        sender="client",
        start_us=burst.start_us,
        paths=(),
        ideal_rate_bps=None,
    )


def _packets(folder: Path, number: int, burst: PacketBurst) -> PacketTimes:
    """Return the packets of a burst: when each left by the sender's clock, and arrived by the receiver's."""
    sent, received = (np.full(burst.count, np.nan) for _ in range(2))
    for host, column, times in (
        (burst.source.host, "sent_us", sent),
        (burst.target.host, "received_us", received),
    ):
        table = read_stream(folder / host / "messages.arrow", "messages")
        rows = table.filter((table["flow"] == number) & table[column].is_not_null())
        inside = rows.filter((rows["index"] >= 0) & (rows["index"] < burst.count))
        times[inside["index"].to_numpy()] = inside[column].to_numpy()
    known = ~np.isnan(sent)
    return PacketTimes(sent[known], received[known], burst.frame_bytes)
