"""The packets that plait sends over a line, and their times as both hosts saw them."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plait.dataset.convert import read_stream
from plait.dataset.trial import making_sense
from plait.engine.remote.exchange import Exchange
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import HostSession
from plait.errors import TrialError
from plait.frames import ETHERNET_HEADER, IPV4_HEADER, IPV6_HEADER, UDP_HEADER
from plait.measure.estimates.packets import PacketTimes
from plait.plan.model.monitors import CounterMonitor, Monitors
from plait.plan.model.plan import Flow, Machine, Namespace, Network, Plan, Side
from plait.traffic.udp import Udp

DRAIN_US = 4_000_000
"""How long a trial listens after its last packet is due."""
_BESIDE_US = 60_000_000
"""Times may be so far outside of a trial: queues hold packets for seconds, and hosts begin at different moments."""
_OPENING_US = 1_000_000
"""Time before the first packets, in which an end behind a translating router opens the way."""


@dataclass(frozen=True)
class LineEnd:
    """One end of a line: the host, its addresses on the line, and the port on which it receives."""

    host: str
    address: str
    """The address to which it binds."""
    public: str | None
    """The address under which the other end reaches it; None: it can only open connections itself."""
    port: int

    def address_for(self, host: str) -> str:
        """Return the address of the end as `host` uses it."""
        return self.address if self.host == host or self.public is None else self.public


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
        self.clock_error_us = 0.0
        """The bound of the error between the clocks of the hosts in the last trial."""

    def send(self, bursts: Sequence[PacketBurst]) -> list[PacketTimes]:
        """Send all `bursts` in one trial, and return their packets.

        Raises TrialError if a host or the connection fails, or a limit would be exceeded.
        """
        hosts = list(dict.fromkeys(end.host for burst in bursts for end in (burst.source, burst.target)))
        end_us = max(burst.end_us for burst in bursts) + _OPENING_US + DRAIN_US

        def flows(host: str) -> tuple[Flow, ...]:
            return tuple(_flow(number, burst, host) for number, burst in enumerate(bursts))

        with self.trial(hosts, flows, end_us, _most_sent(bursts)) as folder:
            return [_packets(folder, number, burst, end_us) for number, burst in enumerate(bursts)]

    @contextmanager
    def trial(
        self,
        hosts: Sequence[str],
        flows: Callable[[str], tuple[Flow, ...]],
        end_us: int,
        sent_bytes: int,
        *,
        sample_us: int = 1_000_000,
        is_bounded: bool = False,
        counters_us: int | None = None,
    ) -> Iterator[Path]:
        """Run one trial, and yield the folder with a subfolder of tables for each host; it is removed afterwards.

        `flows` returns the flows as a host carries them out; a host sends at most `sent_bytes`, or with
        `is_bounded` what it reports, and its agent ends the trial at the limits. `counters_us` is the time between two
        readings of the kernel's counters. Raises TrialError as `send` does.
        """
        secret = secrets.randbits(53)  # only the hosts of the line know it
        monitors = Monitors(counters=CounterMonitor(interval_us=counters_us) if counters_us else None)
        plans = {
            host: _plan(host, flows(host), end_us, secret=secret, sample_us=sample_us, monitors=monitors)
            for host in hosts
        }
        self._spent.check(plans[hosts[0]])
        folder = self._folder / str(self._trials)
        self._trials += 1
        folder.mkdir()
        sessions = {host: self._sessions[host] for host in hosts}
        exchange = Exchange(sessions, folder, self._spent.arguments() if is_bounded else ())
        zeros = exchange.run(plans, lambda _: None)
        self.zero_us = zeros[hosts[0]].ns / 1000
        self.clock_error_us = sum(zero.error_ns for zero in zeros.values()) / 1000
        reported_bytes = self._spent.most_bytes(exchange.sent_bytes(), exchange.lasted_s())
        self._spent.add_trial(max(sent_bytes, reported_bytes), end_us - DRAIN_US)
        with making_sense(folder):  # of the caller, too: a table may lack any row
            yield folder
        shutil.rmtree(folder)

    def wait(self, seconds: float) -> None:
        """Send nothing for some time."""
        time.sleep(seconds)


def _most_sent(bursts: Sequence[PacketBurst]) -> int:
    sent: dict[str, int] = {}
    for burst in bursts:
        sent[burst.source.host] = sent.get(burst.source.host, 0) + burst.count * burst.packet_bytes
    return max(sent.values())


def _plan(
    host: str, flows: tuple[Flow, ...], end_us: int, *, secret: int, sample_us: int, monitors: Monitors
) -> Plan:
    return Plan(
        schema_version=1,
        seed=secret,
        machine=Machine(),
        sample_interval_us=sample_us,
        end_us=end_us,
        network=Network(namespaces=(Namespace(name=host, role="host"),), veths=()),
        links=(),
        flows=flows,
        monitors=monitors,
    )


def _flow(number: int, burst: PacketBurst, host: str) -> Flow:
    """Return the flow of a burst as `host` carries it out. A target that nobody can reach opens the way itself."""
    turned = burst.target.public is None
    client, server = (burst.target, burst.source) if turned else (burst.source, burst.target)
    return Flow(
        id=number,
        name=f"burst{number}",
        application=Udp(
            packet_bytes=burst.packet_bytes,
            interval_ns=burst.interval_ns,
            count=burst.count,
            drain_us=DRAIN_US,
        ),
        transport="udp",
        client=Side(netns=client.host, address=client.address_for(host), port=0),
        server=Side(netns=server.host, address=server.address_for(host), port=server.port + number),
        sender="server" if turned else "client",
        start_us=burst.start_us + _OPENING_US,
        paths=(),
        ideal_rate_bps=None,
    )


def _packets(folder: Path, number: int, burst: PacketBurst, end_us: int) -> PacketTimes:
    """Return the packets of a burst: when each left by the sender's clock, and arrived by the receiver's.

    Raises TrialError if a host reports a time that is not of the trial, which ends at `end_us`.
    """
    sent, received = (np.full(burst.count, np.nan) for _ in range(2))
    for host, column, times in (
        (burst.source.host, "sent_us", sent),
        (burst.target.host, "received_us", received),
    ):
        table = read_stream(folder / host / "messages.arrow", "messages")
        rows = table.filter((table["flow"] == number) & table[column].is_not_null())
        inside = rows.filter((rows["index"] >= 0) & (rows["index"] < burst.count))
        values = inside[column].to_numpy()
        if ((values < -_BESIDE_US) | (values > end_us + _BESIDE_US)).any():
            raise TrialError(
                f"{host} reports a packet at a time that is not of the trial; is its clock set while it measures?"
            )
        times[inside["index"].to_numpy()] = values
    known = ~np.isnan(sent)
    return PacketTimes(sent[known], received[known], burst.frame_bytes)
