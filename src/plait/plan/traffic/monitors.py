"""The optional measurements of a plan: which interfaces, paths and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plait.frames import frame_bytes
from plait.plan.model.monitors import Capture, CounterMonitor, InterfaceMonitor, Monitors, Probe
from plait.plan.model.plan import Flow
from plait.plan.network.model import Port, Topology
from plait.scenario.fields.monitors import MonitorsSpec

RING_MIB = 8
"""The agent's memory for each captured interface."""
_TRACE_MIB = 64
"""The kernel's buffer for trace events."""


def monitors(net: Topology, flows: Iterable[Flow]) -> Monitors:
    """Return the monitors of a plan. The reader of the scenario has checked the names."""
    asked = net.scenario.monitors
    return Monitors(
        interfaces=_interfaces(asked, net),
        counters=None if asked.counters is None else CounterMonitor(interval_us=asked.counters.every.us),
        probes=tuple(_probes(asked, flows)),
        captures=tuple(_captures(asked, net)),
        trace=tuple(dict.fromkeys(asked.tracepoints)),
    )


def buffers_mib(watched: Monitors) -> int:
    """Return the memory of the guest in MiB that the monitors need."""
    return len(watched.captures) * RING_MIB + (_TRACE_MIB if watched.trace else 0)


def _interfaces(asked: MonitorsSpec, net: Topology) -> InterfaceMonitor | None:
    if asked.interfaces is None:
        return None
    nodes = asked.interfaces.nodes
    return InterfaceMonitor(
        interval_us=asked.interfaces.every.us,
        nodes=tuple(net.scenario.network.hosts) if nodes is None else tuple(dict.fromkeys(nodes)),
    )


def _probes(asked: MonitorsSpec, flows: Iterable[Flow]) -> Iterator[Probe]:
    """Yield one probe for each pair of addresses, with the name of the first path between them."""
    if asked.ping is None:
        return
    seen: set[tuple[str, str, str]] = set()
    for flow in flows:
        for path in flow.paths:
            pair = (flow.client.netns, path.client_address, path.server_address)
            if pair not in seen:
                seen.add(pair)
                yield Probe(
                    path=path.name,
                    netns=flow.client.netns,
                    source=path.client_address,
                    destination=path.server_address,
                    interval_us=asked.ping.every.us,
                    payload_bytes=asked.ping.bytes,
                )


def _captures(asked: MonitorsSpec, net: Topology) -> Iterator[Capture]:
    """Yield one capture for each interface, in the order of the scenario."""
    if asked.capture is None:
        return
    seen: set[Port] = set()
    for name in asked.capture.on:
        for port in _ports(name, net):
            if port not in seen:
                seen.add(port)
                yield Capture(
                    netns=port.node,
                    ifname=port.ifname,
                    file=f"{port.node}.{port.ifname}.pcapng",
                    packet_bytes=min(asked.capture.bytes, frame_bytes(port.link.spec.mtu)),
                )


def _ports(name: str, net: Topology) -> list[Port]:
    """Return the interfaces of a node, or the two of a link."""
    if name in net.ports:
        return [port for port in net.ports[name] if not port.segment.second]
    return next(link.ports for link in net.wires if link.key == name)
