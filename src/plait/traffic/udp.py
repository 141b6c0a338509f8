"""UDP traffic: send packets at a constant rate, and measure loss, delay and jitter at the receiver."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from plait.parts import Count, Micros, Record, Span
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, Tool
from plait.traffic.spec import REQUEST_LEAST, Paced, SlotFacts
from plait.units import Size, Within

PACKET_MOST = 65_507
"""The largest payload of a UDP packet over IPv4."""


Packet = Annotated[Size, Within(least=REQUEST_LEAST, most=PACKET_MOST)]
"""Payload of a UDP packet."""


class UdpSpec(Paced):
    """Send UDP packets at a constant rate, and measure loss, delay and jitter at the receiver."""

    SMALLEST: ClassVar[dict[str, Any]] = {"packet": "1KB", "rate": "1mbit", "duration": "1s"}

    packet: Packet
    """Payload of a packet, without headers (IPv4: 28 bytes)."""
    back: bool = False
    """Whether the receiver also sends: from its first received packet on, as many packets of the same size at the same
    rate, to the source of that packet. So they pass a NAT."""

    @property
    def parts(self) -> int:
        """2 if both sides send."""
        return 2 if self.back else 1

    def transport_of(self, copy: int, default: str) -> str:
        """Return UDP."""
        del copy, default
        return "udp"

    def nat_remedy(self, server: str, client: str) -> str:
        """Return the direction that a router lets pass."""
        return f"write from: {server}, to: {client}, and back: true if packets should go both ways"

    def job(self, slot: SlotFacts) -> Udp:
        """Return what the flow of `slot` does; its paths decide `drain_us`."""
        size = int(self.packet)
        pace = self.interval_ns(size)
        count = self.messages_due(pace, slot.start_us)
        return Udp(packet_bytes=size, interval_ns=pace, count=count, drain_us=0)


class Udp(FlowJob):
    """UDP packets at a constant rate: packet i leaves at the flow's start + i * `interval_ns`.

    A flow that uses the sockets of another flow (`connection`) starts when the first packet of that flow has
    arrived, and sends to the source of that packet; it fails when none arrives. The first 8 bytes of each
    packet hold its number. The flow is complete when all packets have arrived, or `drain_us` after the last
    interval: packets that have not arrived by then are lost.
    """

    MEASURED_DELAY: ClassVar[str | None] = "udp_delay"
    HEADLINE: ClassVar[str] = "udp_loss_ratio"
    NOUNS: ClassVar[tuple[str, str]] = ("packets", "Packet delay")

    kind: Literal["udp"] = "udp"
    packet_bytes: int = Field(ge=8, le=65507)
    interval_ns: Span
    count: Count
    drain_us: Micros

    @property
    def sends_ns(self) -> int | None:
        """The intervals of all packets."""
        return self.count * self.interval_ns

    @property
    def ends_us(self) -> int | None:
        """After the last packet has had time to arrive."""
        return self.count * self.interval_ns // 1000 + self.drain_us

    @property
    def certain_bytes(self) -> int:
        """The payload of all packets."""
        return self.packet_bytes * self.count

    @property
    def certain_bps(self) -> float:
        """A packet each interval."""
        return math.floor(self.packet_bytes * 8e9 / self.interval_ns)

    def messages(self, flow: PlannedFlow) -> int:
        """Return the number of packets."""
        del flow
        return self.count

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return the intervals of all packets, and the time for the last one; packets that come back may begin late."""
        late_us = 0 if flow.connection is None else PATIENCE_US
        return self.interval_ns * self.count // 1000 + self.drain_us + late_us

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return the frames of all packets."""
        del rate_bps, frame
        return self.messages(flow) * (1 + self.packet_bytes / payload)

    def seeded_from(self, planned: Record) -> Record:
        """Return the job with the time for the last packet, which the links decide."""
        return self.model_copy(update={"drain_us": planned.drain_us}) if isinstance(planned, Udp) else self

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield iperf3 with its rate."""
        del names
        size, pace = self.packet_bytes, self.interval_ns
        yield f"{self.count} packets of {size} bytes, one every {pace / 1e6:g} ms"
        yield "iperf3", f"-u -b {size * 8 * 10**9 // pace} -l {size} -t {pace * self.count / 1e9:g}"
