"""Optional measurements of a scenario, beyond the tables of every trial.

Only probes affect flows, because their packets share the links.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from plait.frames import MAX_PACKET
from plait.parts import Interval, Listed, Part, Whole
from plait.scenario.names import NodeName
from plait.units import Duration, Within

ProbeInterval = Annotated[Duration, Within(least=10**6, most=60 * 10**9, step=1000)]
"""The interval of a probe or a counter, which may be short."""


def _every(value: object) -> object:
    """Accept `500ms` for `{every: 500ms}`."""
    return value if isinstance(value, (dict, Part)) else {"every": value}


def _on(value: object) -> object:
    """Accept `[h1, h2-s2]` and `h1` for `{on: [..]}`."""
    return {"on": value} if isinstance(value, (str, list, tuple)) else value


class InterfaceMonitorSpec(Part):
    """Counters of network interfaces, as bwm-ng reads them."""

    every: ProbeInterval = Duration.parse("500ms")
    nodes: Annotated[list[NodeName], Field(min_length=1)] | None = None
    """Nodes whose interfaces to monitor. Default: all hosts."""


class Ping(Part):
    """ICMP echo requests on each path of each flow, from the connecting host, during the whole trial."""

    every: ProbeInterval = Duration.parse("1s")
    bytes: Annotated[Whole, Field(ge=8, le=1400)] = 56
    """Payload of a request; the reply has the same length."""


class CounterMonitorSpec(Part):
    """The kernel's counters of each node over time; every trial records them at its start and end."""

    every: ProbeInterval = Duration.parse("1s")


class CaptureSpec(Part):
    """Packet captures on interfaces, one pcapng file for each."""

    on: Annotated[list[str], Field(min_length=1, max_length=1024), Listed]
    """Nodes (all their interfaces), or links (the two interfaces at their ends)."""
    bytes: Annotated[Whole, Field(ge=64, le=MAX_PACKET)] = 128
    """Captured bytes per packet; 128 hold all headers with every MPTCP option."""


def _given(kind: type[Part]) -> BeforeValidator:
    return BeforeValidator(_every, json_schema_input_type=str | kind)


class SampleSpec(Part):
    """The rows over time of connections, subflows and links."""

    every: Interval = Duration.parse("100ms")
    flows: Annotated[Whole, Field(ge=0, le=4096)] | None = None
    """Sample only this many flows, evenly spread over the traffic; others have their last rows. Default: all."""


SampleField = Annotated[SampleSpec, _given(SampleSpec)]


def _trace_event(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_*]{1,64}:[A-Za-z0-9_*]{1,64}", name):
        raise ValueError(f"{name[:60]!r} names no trace events; write SYSTEM:EVENT, such as mptcp:*")
    return name


TraceEvents = Annotated[str, AfterValidator(_trace_event)]
"""The name of a trace event, `SYSTEM:EVENT`, in which `*` matches any characters."""


class MonitorsSpec(Part):
    """Optional measurements."""

    interfaces: Annotated[InterfaceMonitorSpec, _given(InterfaceMonitorSpec)] | None = None
    ping: Annotated[Ping, _given(Ping)] | None = None
    counters: Annotated[CounterMonitorSpec, _given(CounterMonitorSpec)] | None = None
    capture: (
        Annotated[CaptureSpec, BeforeValidator(_on, json_schema_input_type=str | list[str] | CaptureSpec)]
        | None
    ) = None
    tracepoints: Annotated[list[TraceEvents], Field(max_length=64), Listed] = []
    """Trace events of the kernel, such as `mptcp:*`; the kernel must be built with `--tracing`."""
