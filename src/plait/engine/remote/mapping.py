"""From the plan's addresses and ports to those of real hosts, and back.

Each host gets a plan of its own: it is the only node, it builds nothing, and it has only the flows with a side on it.
The tables that come back get the addresses and ports of the plan again, so that paths have their names.

Where routers translate addresses, a host binds to its local address, and the other side connects to its public one. A
host without a public address can only open connections. If it is the server of a flow by the plan, the two sides of the
flow change places: it connects to the planned client, and the data flow as planned.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import chain

from plait.hosts.model import HostsFile
from plait.plan.model.monitors import Monitors
from plait.plan.model.plan import Flow, Machine, Namespace, Network, Plan, Side
from plait.traffic.page import PageConnection

Pair = tuple[str, str]
"""The addresses of client and server."""


@dataclass
class Mapping:
    """The real addresses and ports of a plan on the hosts of a file."""

    addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    """The local address, by node and address of the plan."""
    public: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The address that the other side connects to; None: it can connect to none."""
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """By node and port of the plan."""
    turned_clients: set[str] = field(default_factory=set)
    """The nodes to which the servers of their flows connect."""
    turned_servers: set[str] = field(default_factory=set)
    """The nodes that connect although the plan has servers there."""
    secret: int = field(default_factory=lambda: secrets.randbits(53))
    """The seed of all hosts' plans. By it a host knows the packet with which the other side opens the way."""
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Node and reason of each address or port that the hosts file lacks."""

    def is_turned(self, flow: Flow) -> bool:
        """Return whether the server of `flow` connects to its client, because only it can open connections."""
        return self.public[flow.server.netns, flow.server.address] is None

    def opener(self, flow: Flow) -> str:
        """Return the node that opens the connections of `flow`."""
        return flow.server.netns if self.is_turned(flow) else flow.client.netns

    def flow_at(self, flow: Flow, node: str) -> Flow:
        """Return `flow` as the agent on `node` carries it out: real addresses and ports, and the side that connects."""
        client, server = (self._side(side, node) for side in (flow.client, flow.server))
        if not self.is_turned(flow):
            return flow.model_copy(update={"client": client, "server": server})
        return flow.model_copy(
            update={
                "client": server.model_copy(update={"port": 0}),
                "server": client.model_copy(update={"port": self.ports[flow.client.netns, flow.server.port]}),
                "sender": "server" if flow.sender == "client" else "client",
            }
        )

    def _address(self, node: str, address: str, at: str) -> str:
        """Return an address of `node` as the host `at` uses it."""
        public = self.public[node, address]
        return public if at != node and public is not None else self.addresses[node, address]

    def _side(self, side: Side, at: str) -> Side:
        port = self.ports.get((side.netns, side.port), 0)
        return side.model_copy(update={"address": self._address(side.netns, side.address, at), "port": port})

    def endpoints(self, node: str, address: str, flags: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return the flags of the real endpoints for an MPTCP endpoint of the plan, by their address.

        An endpoint announces the public address. Without one it opens subflows instead, and the endpoints of a client
        that others connect to announce instead of opening. No host can bind to an address that only its router has, so
        an endpoint that announces it and opens subflows becomes two.
        """
        local = self.addresses.get((node, address))
        if local is None:
            return {}
        public, is_announced = self.public[node, address], "signal" in flags
        others = tuple(flag for flag in flags if flag not in ("signal", "subflow", "fullmesh"))
        if is_announced and public is None:
            return {local: ("subflow", *others)}
        is_turned = node in self.turned_clients
        if public is None or (public == local if is_announced else not is_turned):
            return {local: flags}
        opened = {local: ("subflow", *others)} if "subflow" in flags and not is_turned else {}
        return {**opened, public: ("signal", *others)}

    def pairs(self, flow: Flow, node: str) -> dict[tuple[str, str | None], list[Pair]]:
        """Return the plan's addresses of client and server, by the real ones that `node` sees, the initial ones first.

        The address of the other side is None where `node` cannot know under which address it sees that side.
        """
        pairs: dict[tuple[str, str | None], list[Pair]] = {}
        for pair in planned_pairs(flow):
            client, server = (flow.client.netns, pair[0]), (flow.server.netns, pair[1])
            own, other = (client, server) if flow.client.netns == node else (server, client)
            if own in self.addresses and other in self.addresses:
                pairs.setdefault((self.addresses[own], self.public[other]), []).append(pair)
        return pairs

    def planned_address(self, address: str | None, node: str, *, elsewhere: bool = False) -> str | None:
        """Return the plan's address for a real one of `node`, or of the other nodes; others stay.

        Where several paths have one real address, this is that of the first.
        """
        seen = self.public if elsewhere else self.addresses
        planned = (
            old for (where, old), new in seen.items() if new == address and (where == node) != elsewhere
        )
        return next(planned, address) if address is not None else None

    def planned_port(self, node: str, port: int | None) -> int | None:
        """Return the plan's port for a real one; other ports stay."""
        return next((old for (where, old), new in self.ports.items() if (where, new) == (node, port)), port)


def planned_pairs(flow: Flow) -> list[Pair]:
    """Return the plan's addresses of client and server: those of the flow, and those of its paths."""
    first = (flow.client.address, flow.server.address)
    return list(dict.fromkeys([first, *((path.client_address, path.server_address) for path in flow.paths)]))


def _interfaces(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """Return what the hosts file may call the interface of each address, by node and address: its link, its name."""
    links = {(side.source, side.interface): link.name for link in plan.links for side in link.directions}
    return {
        (end.netns, prefix.split("/")[0]): [links.get((end.netns, end.ifname), ""), end.ifname]
        for veth in plan.network.veths
        for end in (veth.a, veth.b)
        for prefix in end.addresses
    }


def mapping(plan: Plan, hosts: HostsFile) -> Mapping:
    """Return the real addresses and ports for `plan`; `missing` lists what the file lacks."""
    real = Mapping()
    names = _interfaces(plan)
    for flow in plan.flows:
        ends = (
            zip((flow.client.netns, flow.server.netns), pair, strict=True) for pair in planned_pairs(flow)
        )
        for node, address in dict.fromkeys(chain.from_iterable(ends)):
            _map_address(real, hosts, names.get((node, address), []), node, address)
        for side in (flow.client, flow.server):
            _map_port(real, hosts, side.netns, side.port)
        _check_families(real, flow)
        _turn(real, hosts, flow)
    real.missing = list(dict.fromkeys(real.missing))
    return real


def _map_address(real: Mapping, hosts: HostsFile, names: list[str], node: str, address: str) -> None:
    host = hosts.hosts.get(node)
    if host is None:
        real.missing.append((node, "is not in the hosts file"))
        return
    found = next((host.addresses[name] for name in names if name in host.addresses), None)
    if found is None:
        wanted = " or ".join(name for name in names if name) or address
        real.missing.append((node, f"has no address for {wanted} in the hosts file"))
    else:
        real.addresses[node, address], real.public[node, address] = found.local, found.public


def _map_port(real: Mapping, hosts: HostsFile, node: str, port: int) -> None:
    host = hosts.hosts.get(node)
    if host is None or port == 0 or (node, port) in real.ports:
        return
    used = sum(other == node for other, _ in real.ports)
    if used >= len(host.port_range):
        real.missing.append((node, f"has too few ports in the hosts file ({host.ports})"))
    else:
        real.ports[node, port] = host.port_range[used]


def _turn(real: Mapping, hosts: HostsFile, flow: Flow) -> None:
    """Give the client of a flow a port to listen on, if only the server can connect on one of the paths."""
    for address, hidden in planned_pairs(flow):
        is_hidden = real.public.get((flow.server.netns, hidden), "") is None
        if is_hidden and real.public.get((flow.client.netns, address)) is not None:
            _map_port(real, hosts, flow.client.netns, flow.server.port)
    client, server = ((side.netns, side.address) for side in (flow.client, flow.server))
    if client not in real.public or server not in real.public or real.public[server] is not None:
        return
    if real.public[client] is None:
        real.missing.append(
            (
                flow.server.netns,
                f"has no public address for flow {flow.name}, and neither has {flow.client.netns}",
            )
        )
        return
    real.turned_clients.add(flow.client.netns)
    real.turned_servers.add(flow.server.netns)


def _check_families(real: Mapping, flow: Flow) -> None:
    client, server = (real.addresses.get((side.netns, side.address)) for side in (flow.client, flow.server))
    if client and server and ip_address(client).version != ip_address(server).version:
        real.missing.append(
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
        seed=real.secret,
        machine=Machine(),
        sample_interval_us=plan.sample_interval_us,
        end_us=min(plan.end_us, end_us),
        network=Network(namespaces=(Namespace(name=node, role="host"),), veths=()),
        links=(),
        flows=tuple(_flow(flow, numbers, real, node) for flow in flows),
        measure=plan.measure,
        monitors=Monitors(counters=plan.monitors.counters),
    )


def _flow(flow: Flow, numbers: dict[int, int], real: Mapping, node: str) -> Flow:
    application = flow.application
    if isinstance(application, PageConnection):
        application = application.model_copy(update={"page": numbers[application.page]})
    return real.flow_at(flow, node).model_copy(
        update={
            "id": numbers[flow.id],
            "application": application,
            "after": tuple(numbers[other] for other in flow.after),
            "connection": None if flow.connection is None else numbers[flow.connection],
        }
    )
