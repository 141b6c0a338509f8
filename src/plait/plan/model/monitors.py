"""Optional measurements.

These records are part of the plan's contract (`plan.py`).
"""

from __future__ import annotations

from pydantic import Field

from plait.frames import MAX_PACKET
from plait.parts import U16, U32, Address, IfName, Record


class InterfaceMonitor(Record):
    """Counters of every interface of these namespaces except `lo`, read every `interval_us`."""

    interval_us: int = Field(ge=1000)
    nodes: tuple[str, ...]


class CounterMonitor(Record):
    """Counters of every namespace except `wire`, read every `interval_us`."""

    interval_us: int = Field(ge=1000)


class Probe(Record):
    """ICMP echo requests from `source` to `destination`, one every `interval_us` from the trial's zero on."""

    path: str
    """The name of the first path between the two addresses."""
    netns: str
    source: Address
    destination: Address
    interval_us: int = Field(ge=1000)
    payload_bytes: int = Field(ge=8, le=1400)


class Capture(Record):
    """Every packet of an interface, written to `pcap/FILE` of the trial's folder."""

    netns: str
    ifname: IfName
    file: str
    packet_bytes: int = Field(ge=64, le=MAX_PACKET)
    """The number of bytes kept of each packet."""


class ConnectionMonitor(Record):
    """Connections that other programs of the machine made, in the namespace of a node, as flows of the tables.

    Each list that is not empty restricts them: to a local or remote port, to an address of the other end, to sockets of
    a process. The agent starts and changes nothing. It ends when its caller says `end`, and flushes each sample.
    """

    node: str
    ports: tuple[U16, ...] = ()
    peers: tuple[Address, ...] = ()
    processes: tuple[U32, ...] = ()


class Monitors(Record):
    """The optional measurements of a trial."""

    interfaces: InterfaceMonitor | None = None
    counters: CounterMonitor | None = None
    probes: tuple[Probe, ...] = ()
    captures: tuple[Capture, ...] = ()
    trace: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Trace events of the kernel, `SYSTEM:EVENT` with wildcards."""
    connections: ConnectionMonitor | None = Field(default=None, exclude_if=lambda value: value is None)
