"""From the plan's addresses and ports to those of real hosts, and back.

Each host gets a plan of its own: it is the only node, it builds nothing, and it has only the flows with a side on it.
The tables that come back get the addresses and ports of the plan again, so that paths have their names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from plait.plan.model.applications import PageConnection
from plait.plan.model.monitors import Monitors
from plait.plan.model.plan import Flow, Machine, Namespace, Network, Path, Plan, Side

if TYPE_CHECKING:
    from plait.hosts.model import HostsFile

Pair = tuple[str, str]
"""The addresses of client and server."""


@dataclass(frozen=True)
class PlannedInterface:
    """An interface of a node in the plan: its name, and the name of its link."""

    node: str
    ifname: str
    link: str


@dataclass
class Mapping:
    """The real addresses and ports of a plan on the hosts of a file."""

    addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    """By node and address of the plan."""
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """By node and port of the plan."""
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Node and reason of each address or port that the hosts file lacks."""

    def side(self, side: Side) -> Side:
        """Return a side of a flow with its real address and port."""
        port = self.ports.get((side.netns, side.port), 0)
        address = self.addresses[side.netns, side.address]
        return side.model_copy(update={"address": address, "port": port})

    def pairs(self, flow: Flow) -> dict[Pair, Pair]:
        """Return the plan's addresses of client and server of each path of `flow`, by the real ones."""
        pairs: dict[Pair, Pair] = {}
        for path in flow.paths:
            client = self.addresses.get((flow.client.netns, path.client_address))
            server = self.addresses.get((flow.server.netns, path.server_address))
            if client is not None and server is not None:
                pairs.setdefault((client, server), (path.client_address, path.server_address))
        return pairs

    def planned_port(self, node: str, port: int | None) -> int | None:
        """Return the plan's port for a real one; other ports stay."""
        return next((old for (where, old), new in self.ports.items() if (where, new) == (node, port)), port)


def interfaces(plan: Plan) -> dict[tuple[str, str], PlannedInterface]:
    """Return the interface of each address, by node and address."""
    links = {(side.source, side.interface): link.name for link in plan.links for side in link.directions}
    by_address = {}
    for end in (end for veth in plan.network.veths for end in (veth.a, veth.b)):
        for prefix in end.addresses:
            link = links.get((end.netns, end.ifname), "")
            by_address[end.netns, prefix.split("/")[0]] = PlannedInterface(end.netns, end.ifname, link)
    return by_address


def mapping(plan: Plan, hosts: HostsFile) -> Mapping:
    """Return the real addresses and ports for `plan`; `missing` lists what the file lacks."""
    out = Mapping()
    places = interfaces(plan)
    for flow in plan.flows:
        wanted = [(flow.client.netns, flow.client.address), (flow.server.netns, flow.server.address)]
        for path in flow.paths:
            wanted += [(flow.client.netns, path.client_address), (flow.server.netns, path.server_address)]
        for node, address in dict.fromkeys(wanted):
            _map_address(out, hosts, places.get((node, address)), node, address)
        for side in (flow.client, flow.server):
            _map_port(out, hosts, side)
        _check_families(out, flow)
    out.missing = list(dict.fromkeys(out.missing))
    return out


def _map_address(
    out: Mapping, hosts: HostsFile, place: PlannedInterface | None, node: str, address: str
) -> None:
    host = hosts.hosts.get(node)
    if host is None:
        out.missing.append((node, "is not in the hosts file"))
        return
    names = [] if place is None else [place.link, place.ifname]
    real = next((host.addresses[name] for name in names if name in host.addresses), None)
    if real is None:
        wanted = " or ".join(name for name in names if name) or address
        out.missing.append((node, f"has no address for {wanted} in the hosts file"))
    else:
        out.addresses[node, address] = real


def _map_port(out: Mapping, hosts: HostsFile, side: Side) -> None:
    host = hosts.hosts.get(side.netns)
    if host is None or side.port == 0 or (side.netns, side.port) in out.ports:
        return
    used = sum(node == side.netns for node, _ in out.ports)
    if used >= len(host.port_range):
        out.missing.append((side.netns, f"has too few ports in the hosts file ({host.ports})"))
    else:
        out.ports[side.netns, side.port] = host.port_range[used]


def _check_families(out: Mapping, flow: Flow) -> None:
    pairs = [(flow.client.address, flow.server.address)]
    if flow.kind == "prototype":
        pairs += [(path.client_address, path.server_address) for path in flow.paths]
    for client_address, server_address in pairs:
        client = out.addresses.get((flow.client.netns, client_address))
        server = out.addresses.get((flow.server.netns, server_address))
        if client and server and ip_address(client).version != ip_address(server).version:
            out.missing.append(
                (flow.client.netns, f"has {client}, which cannot reach {server}: the families differ")
            )


def nodes_of(plan: Plan) -> list[str]:
    """Return the nodes with a side of a flow, in the order of the flows."""
    return list(dict.fromkeys(side.netns for flow in plan.flows for side in (flow.client, flow.server)))


def flows_of(plan: Plan, node: str) -> list[Flow]:
    """Return the flows with a side on `node`. Their places in this list are their numbers on that host."""
    return [flow for flow in plan.flows if node in (flow.client.netns, flow.server.netns)]


def plan_of(plan: Plan, node: str, real: Mapping, end_us: int) -> Plan:
    """Return the plan for the agent on `node`, which ends at `end_us` at the latest."""
    flows = flows_of(plan, node)
    numbers = {flow.id: number for number, flow in enumerate(flows)}
    return Plan(
        schema_version=1,
        seed=plan.seed,
        machine=Machine(),
        sample_interval_us=plan.sample_interval_us,
        end_us=min(plan.end_us, end_us),
        network=Network(namespaces=(Namespace(name=node, role="host"),), veths=()),
        links=(),
        flows=tuple(_flow(flow, numbers, real) for flow in flows),
        measure=plan.measure,
        monitors=Monitors(counters=plan.monitors.counters),
    )


def _flow(flow: Flow, numbers: dict[int, int], real: Mapping) -> Flow:
    application = flow.application
    if isinstance(application, PageConnection):
        application = application.model_copy(update={"page": numbers[application.page]})
    paths = flow.paths
    if flow.kind == "prototype":  # its program opens a socket for each path
        paths = tuple(_real_path(path, flow, real) for path in paths)
    return flow.model_copy(
        update={
            "id": numbers[flow.id],
            "paths": paths,
            "application": application,
            "client": real.side(flow.client),
            "server": real.side(flow.server),
            "after": tuple(numbers[other] for other in flow.after),
            "connection": None if flow.connection is None else numbers[flow.connection],
        }
    )


def _real_path(path: Path, flow: Flow, real: Mapping) -> Path:
    ends = {
        "client_address": real.addresses[flow.client.netns, path.client_address],
        "server_address": real.addresses[flow.server.netns, path.server_address],
    }
    return path.model_copy(update=ends)
