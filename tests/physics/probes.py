"""Helpers send single UDP packets over many links in one trial and record each packet's fate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from plait.engine.request import links_of_environment

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

HEADERS = 14 + 20 + 8
"""Ethernet, IPv4, UDP."""
FULL = 1514 - HEADERS
ERRORS = 3.5
DEVICES = links_of_environment() != "chain"
"""Whether links are devices. PLAIT_LINKS=chain runs all tests with chains."""


def transmission_us(frames_bytes: int, rate_bps: float) -> float:
    """Return the time that frames need on an idle link: on a device their own, on a chain none, as it has tokens."""
    return frames_bytes * 8e6 / rate_bps if DEVICES else 0.0


@dataclass(frozen=True)
class Probe:
    """One link and what is sent over it."""

    link: str
    packets: int = 2000
    interval: str = "20ms"
    packet: int = 100
    backward: bool = False


class Arrivals:
    """What became of the packets of one flow, in the order in which they were sent."""

    def __init__(self, ran: Ran, flow: int) -> None:
        rows = ran.tables["messages"].filter(pl.col("flow") == flow).sort("index")
        self.sent: list[int] = rows["sent_us"].to_list()
        self.received: list[int | None] = rows["received_us"].to_list()
        self.copies: list[int] = rows["copies"].to_list()

    @property
    def delays(self) -> list[int]:
        """Return the delays of the packets that arrived, in microseconds."""
        return [r - s for s, r in zip(self.sent, self.received, strict=True) if r is not None]

    @property
    def lost(self) -> list[bool]:
        return [r is None for r in self.received]

    @property
    def loss(self) -> float:
        return fmean(self.lost)


def scenario(probes: list[Probe], sample: str = "10s", flows: str = "") -> str:
    """Return parallel links between two hosts, and for each link a packet, and then the flow that is measured."""
    links, sent = [], []
    for number, probe in enumerate(probes, 1):
        name = "a-b" if number == 1 else f"a-b#{number}"
        links.append(f"    {name}: {probe.link}")
        ends = "{from: b, to: a" if probe.backward else "{from: a, to: b"
        lasts = f"{int(probe.interval[:-2]) * probe.packets}{probe.interval[-2:]}"
        to = f"  - udp: {ends}, via: {name}, start_jitter: 0s, "
        sent.append(f"{to}packet: 8B, every: 10ms, duration: 10ms}}")  # so that addresses are known
        sent.append(
            f"{to}packet: {probe.packet}B, every: {probe.interval}, duration: {lasts}, start: 500ms}}"
        )
    return "\n".join(
        [
            "title: probes",
            "network:",
            "  hosts: [a, b]",
            "  links:",
            *links,
            "traffic:",
            *sent,
            *([flows] if flows else []),
            f"sample: {sample}",
        ]
    )


def measured(
    run_trial: RunTrial, probes: dict[str, Probe], sample: str = "10s", flows: str = ""
) -> tuple[dict[str, Arrivals], Ran]:
    """Return what became of the packets of each probe; further `flows` follow in the scenario."""
    ran = run_trial(scenario(list(probes.values()), sample, flows))
    return {name: Arrivals(ran, 2 * number + 1) for number, name in enumerate(probes)}, ran


def binomial(share: float, of: int) -> float:
    """Return the error of a share that is measured with so many packets."""
    return ERRORS * sqrt(share * (1 - share) / of)
