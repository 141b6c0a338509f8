"""Fake plans have two hosts with one switch on each path, and need no code that reads scenarios."""

from __future__ import annotations

from dataclasses import dataclass

from plait.frames import DEFAULT_MTU
from plait.plan.model.links import Link, LinkDirection, VethEnd
from plait.plan.model.plan import Flow, Machine, Namespace, Network, Path, Plan, Side, Veth
from plait.traffic.bulk import Bulk
from plait.traffic.transfer import File, Transfer

SAMPLE_INTERVAL_US = 100_000


@dataclass(frozen=True)
class FakePath:
    """One path of two equal links: `rate_bps` (None: unlimited), one-way delay of each link, drop-tail queue."""

    rate_bps: int | None = 5_000_000
    delay_ns: int = 5_000_000
    queue_packets: int | None = 100
    loss_ratio: float = 0.0


@dataclass(frozen=True)
class FakeFlow:
    """The application of a flow: bulk if it has a duration, a transfer if it has bytes."""

    transport: str = "mptcp"
    duration_us: int | None = 10_000_000
    bytes: int | None = None
    file: File | None = None
    sender: str = "client"
    start_us: int = 0


TWO_EQUAL_PATHS = (FakePath(), FakePath())


def fake_plan(
    *flows: FakeFlow, paths: tuple[FakePath, ...] = TWO_EQUAL_PATHS, seed: int = 1, mtu: int = DEFAULT_MTU
) -> Plan:
    """Return a plan of hosts h1 and h2 with a switch s1, s2, .. on each path.

    Without `flows`, it has one default flow.
    """
    switches = [f"s{number}" for number in range(1, len(paths) + 1)]
    links: list[Link] = []
    for switch, path in zip(switches, paths, strict=True):
        links += [_link("h1", switch, path, len(links)), _link(switch, "h2", path, len(links) + 1)]
    namespaces = (
        *(Namespace(name=name, role="host") for name in ("h1", "h2")),
        *(Namespace(name=name, role="switch") for name in switches),
        Namespace(name="wire", role="wire"),
    )
    planned = tuple(_flow(number, flow, paths) for number, flow in enumerate(flows or (FakeFlow(),)))
    asked = flows or (FakeFlow(),)
    end_us = max(
        flow.start_us + (600_000_000 if flow.bytes is not None else flow.duration_us or 600_000_000)
        for flow in asked
    )
    return Plan(
        seed=seed,
        machine=Machine(),
        sample_interval_us=SAMPLE_INTERVAL_US,
        end_us=end_us + 1_000_000,
        network=Network(namespaces=namespaces, veths=_veths(links, mtu)),
        links=tuple(links),
        flows=planned,
    )


def _link(a: str, b: str, path: FakePath, number: int) -> Link:
    """Return one link of the scenario, with equal directions."""

    def direction(source: str, target: str, side: int) -> LinkDirection:
        return LinkDirection(
            name=f"{source}->{target}",
            source=source,
            target=target,
            ifname=f"w{2 * number + side}",
            rate_bps=path.rate_bps,
            delay_ns=path.delay_ns,
            loss_ratio=path.loss_ratio,
            queue_packets=path.queue_packets,
        )

    return Link(name=f"{a}-{b}", directions=(direction(a, b, 0), direction(b, a, 1)))


def _veths(links: list[Link], mtu: int) -> tuple[Veth, ...]:
    """Return one veth pair per link end: node to wire."""
    veths = []
    for number, link in enumerate(links):
        for side, node in enumerate((link.directions[0].source, link.directions[0].target)):
            serial = 2 * number + side
            address = (f"10.0.{number // 2}.{1 if node == 'h1' else 2}/24",) if node in ("h1", "h2") else ()
            veths.append(
                Veth(
                    a=VethEnd(netns=node, ifname=f"{node}-{serial}", mac=_mac(2 * serial), addresses=address),
                    b=VethEnd(netns="wire", ifname=f"w{serial}", mac=_mac(2 * serial + 1)),
                    mtu=mtu,
                )
            )
    return tuple(veths)


def _mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def _flow(number: int, flow: FakeFlow, paths: tuple[FakePath, ...]) -> Flow:
    """Return one flow from h1 to h2 over all paths (TCP: over the first)."""
    used = paths if flow.transport == "mptcp" else paths[:1]
    rates = [path.rate_bps for path in used]
    return Flow(
        id=number,
        name=f"flow{number + 1}",
        application=Bulk(duration_us=flow.duration_us)
        if flow.bytes is None
        else Transfer(bytes=flow.bytes, file=flow.file),
        transport="mptcp" if flow.transport == "mptcp" else "tcp",
        client=Side(netns="h1", address="10.0.0.1", port=0),
        server=Side(netns="h2", address="10.0.0.2", port=5001 + number),
        sender="server" if flow.sender == "server" else "client",
        start_us=flow.start_us,
        paths=tuple(_path(index, path, flow.sender) for index, path in enumerate(used)),
        ideal_rate_bps=None if None in rates else sum(rate for rate in rates if rate is not None),
    )


def _path(index: int, path: FakePath, sender: str) -> Path:
    switch = f"s{index + 1}"
    there = (f"h1->{switch}", f"{switch}->h2")
    back = (f"h2->{switch}", f"{switch}->h1")
    return Path(
        name=f"h1-{switch}-h2",
        client_address=f"10.0.{index}.1",
        server_address=f"10.0.{index}.2",
        forward=there if sender == "client" else back,
        backward=back if sender == "client" else there,
        rate_bps=path.rate_bps,
        base_rtt_us=4 * path.delay_ns / 1000,
    )
