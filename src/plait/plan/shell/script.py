"""The plan as iproute2 commands that a person can run by hand, as root, on any host.

The script makes the same objects as an engine does. Two differences are unavoidable: the script only shows the
settings that a kernel has once for all namespaces, because they would change the host; and a `tc` without netem's
`seed` argument cannot set it.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from plait.plan.links.chain import with_chains
from plait.plan.model.forwarding import Datapath, FlowRule
from plait.plan.model.links import VethEnd
from plait.plan.model.mptcp import (
    AddEndpoint,
    ChangeEndpoint,
    Endpoint,
    RemoveEndpoint,
    SetLimits,
    SetSysctl,
)
from plait.plan.model.plan import Action, ChangeQdisc, Network, Plan, Route, SetDevice
from plait.plan.model.qdiscs import Tbf
from plait.plan.network import middlebox
from plait.plan.network.sysctls import ALLOWED_CONGESTION_CONTROL
from plait.plan.shell.tc import command_in, conditions, qdisc_command
from plait.plan.shell.traffic import programs, traffic

_ABOUT = """\
#!/bin/sh
# The network of one trial. `sh FILE` as root creates it, and `sh FILE clean` removes it. The script needs
# iproute2, ethtool, and a kernel with MPTCP, netem, tbf, matchall and mirred.
set -eu
for tool in ip tc ethtool sysctl; do
    command -v $tool >/dev/null || { echo "$tool is missing: apt install iproute2 ethtool procps" >&2; exit 3; }
done
"""
_CLEAN = """\
if [ "${1:-}" = clean ]; then
%s
    exit 0
fi
"""


def to_shell(plan: Plan) -> str:
    """Return a shell script: the network, its removal with the argument `clean`, and example traffic as comments."""
    plan = with_chains(plan)
    parts = [
        (
            (
                "Settings of the whole kernel: a trial has these; on your host, you decide. Without the first one,\n"
                "# the kernel may refuse a congestion control below (not permitted)"
            ),
            _kernel(plan),
        ),
        ("Nodes, and the namespace that holds all links", _namespaces(plan.network)),
        ("Links: each end in its node, the other end in wire", _veths(plan.network)),
        ("Switches", _bridges(plan.network)),
        (
            "OpenFlow switches: datapaths, ports, flows (needs the module openvswitch)",
            _datapaths(plan.network),
        ),
        ("Conditions of the links", conditions(plan.network)),
        *([("Middleboxes", middlebox.commands(plan.network))] if plan.network.middleboxes else []),
        ("Routes: a table for each interface, chosen by the source address", _routes(plan.network)),
        ("Address translation", _nats(plan.network)),
        ("MPTCP", _mptcp(plan.network)),
        ("Example traffic, to run by hand", traffic(plan.flows)),
        *([("Programs, to start by hand", programs(plan))] if plan.programs else []),
        *([("Events, by the time after the network is complete", _events(plan))] if plan.events else []),
    ]
    clean = _CLEAN % "\n".join(
        f"    ip netns delete {quote(space.name)}" for space in plan.network.namespaces
    )
    sections = [f"# {title}\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts]
    return "\n".join([_ABOUT, clean, *sections])


def _kernel(plan: Plan) -> Iterator[str]:
    for module in plan.machine.modules:
        yield f"# insmod {quote(module.name)}.ko   (of the source with SHA-256 {module.sha256[:12]}..)"
    urgent_first = sorted(plan.machine.sysctls, key=lambda setting: setting[0] != ALLOWED_CONGESTION_CONTROL)
    for path, value in urgent_first:
        yield f"# sysctl -w {quote(_plain(path))}={quote(value)}"


def _plain(path: str) -> str:
    return path.replace("/", ".")


def _namespaces(network: Network) -> Iterator[str]:
    for namespace in network.namespaces:
        name = quote(namespace.name)
        yield f"ip netns add {name}"
        for path, value in namespace.sysctls:
            yield f"ip netns exec {name} sysctl -qw {quote(_plain(path) + '=' + value)}"
        yield f"ip -n {name} link set lo up"


def _veths(network: Network) -> Iterator[str]:
    for veth in network.veths:
        a, b, mtu = veth.a, veth.b, ("mtu", veth.mtu)
        peer = ("peer", "name", b.ifname, "address", b.mac, *mtu, "netns", b.netns)
        yield command_in(
            a.netns, "ip", "link", "add", a.ifname, "address", a.mac, *mtu, "type", "veth", *peer
        )
        yield from _end(a)
        yield from _end(b)


def _end(end: VethEnd) -> Iterator[str]:
    # one skb is one frame: no segmentation offload when sending or receiving
    name = quote(end.ifname)
    yield f"ip netns exec {quote(end.netns)} ethtool -K {name} tso off gso off gro off"
    for address in end.addresses:
        extra = ("nodad",) if ":" in address else ()
        yield command_in(end.netns, "ip", "address", "add", address, "dev", end.ifname, *extra)
    yield command_in(end.netns, "ip", "link", "set", end.ifname, "up")


def _bridges(network: Network) -> Iterator[str]:
    for bridge in network.bridges:
        kind = ("type", "bridge", "stp_state", 0, "mcast_snooping", 0)
        yield command_in(bridge.netns, "ip", "link", "add", bridge.ifname, "address", bridge.mac, *kind)
        for port in bridge.ports:
            yield command_in(bridge.netns, "ip", "link", "set", port, "master", bridge.ifname)
        yield command_in(bridge.netns, "ip", "link", "set", bridge.ifname, "up")


def _datapaths(network: Network) -> Iterator[str]:
    for path in network.datapaths:
        dpctl = f"ip netns exec {quote(path.netns)} ovs-dpctl"
        yield f"{dpctl} add-dp {quote(path.ifname)}"
        for number, port in enumerate(path.ports, start=1):
            yield f"{dpctl} add-if {quote(path.ifname)} {quote(f'{port},port_no={number}')}"
        for rule in path.rules:
            matched, actions = ovs_flow(path, rule)
            yield f"{dpctl} add-flow {quote(path.ifname)} {quote(matched)} {quote(actions)}"
        if path.learning:
            yield "# only ovs-vswitchd learns addresses: add the ports to one of its bridges instead (ovs-vsctl)"


def _routes(network: Network) -> Iterator[str]:
    for route in network.routes:
        yield _route(route)
    for rule in network.rules:
        to = ("to", rule.destination) if rule.destination is not None else ()
        how = ("from", rule.source, *to, "lookup", rule.table, "priority", rule.priority)
        yield command_in(rule.netns, "ip", *_family(rule.source), "rule", "add", *how)


def _route(route: Route) -> str:
    words: list[object] = [*_family(route.destination), "route", "add"]
    words += [route.kind] if route.kind != "unicast" else []
    words.append(route.destination)
    for word, value in (
        ("via", route.via),
        ("dev", route.device),
        ("src", route.source),
        ("metric", route.metric),
    ):
        words += [word, value] if value is not None else []
    words += ["table", route.table] if route.table != 254 else []
    for hop in route.nexthops:
        words += ["nexthop", "via", hop.via, "dev", hop.device]
    return command_in(route.netns, "ip", *words)


def _family(address: str) -> tuple[str, ...]:
    return ("-6",) if ":" in address else ()


def _nats(network: Network) -> Iterator[str]:
    for nat in network.nats:
        nft = f"ip netns exec {quote(nat.netns)} nft"
        yield f"{nft} add table ip plait"
        yield f"{nft} {quote('add chain ip plait masquerade { type nat hook postrouting priority 100 ; }')}"
        for ifname in nat.outside:
            yield f"{nft} {quote(f'add rule ip plait masquerade oifname {ifname} masquerade')}"


def _mptcp(network: Network) -> Iterator[str]:
    for manager in network.mptcp:
        limits = ("subflow", manager.subflows, "add_addr_accepted", manager.add_addr_accepted)
        yield command_in(manager.netns, "ip", "mptcp", "limits", "set", *limits)
        for endpoint in manager.endpoints:
            yield _endpoint(manager.netns, endpoint)


def _endpoint(netns: str, endpoint: Endpoint) -> str:
    words: list[object] = [endpoint.address]
    words += ["dev", endpoint.device] if endpoint.device is not None else []
    words += ["port", endpoint.port] if endpoint.port is not None else []
    return command_in(netns, "ip", "mptcp", "endpoint", "add", *words, "id", endpoint.id, *endpoint.flags)


def _events(plan: Plan) -> Iterator[str]:
    for event in plan.events:
        yield f"# at {event.t_us / 1e6:g} s: {event.text}"
        for action in event.actions:
            yield from (f"#   {line}" for line in _action(action))


def _action(action: Action) -> Iterator[str]:
    match action:
        case ChangeQdisc():
            yield from qdisc_command("change", action.qdisc)
            if isinstance(action.qdisc.options, Tbf) and action.qdisc.options.peak_bps is not None:
                yield "(tc fills the bucket; a trial keeps its tokens)"
        case SetDevice():
            yield from device_commands(action)
        case SetSysctl():
            yield f"ip netns exec {quote(action.netns)} sysctl -qw {quote(_plain(action.path) + '=' + action.value)}"
        case SetLimits():
            limits = ("subflow", action.subflows, "add_addr_accepted", action.add_addr_accepted)
            yield command_in(action.netns, "ip", "mptcp", "limits", "set", *limits)
        case AddEndpoint():
            yield _endpoint(action.netns, action.endpoint)
        case ChangeEndpoint():
            flags = [flag if getattr(action, flag) else f"no{flag}" for flag in ("backup", "fullmesh")]
            yield command_in(action.netns, "ip", "mptcp", "endpoint", "change", "id", action.id, *flags)
        case RemoveEndpoint():
            address = (action.address,) if action.id == 0 else ()
            yield command_in(action.netns, "ip", "mptcp", "endpoint", "delete", "id", action.id, *address)


def device_commands(action: SetDevice) -> Iterator[str]:
    """Yield the commands that set an interface down, or up with its addresses and routes."""
    device = ("dev", action.ifname)
    yield command_in(action.netns, "ip", "link", "set", *device, "up" if action.up else "down")
    for address in action.addresses:
        yield command_in(action.netns, "ip", "address", "add", address, *device, "nodad")
    for route in action.routes:
        yield _route(route)


def ovs_flow(datapath: Datapath, rule: FlowRule) -> tuple[str, str]:
    """Return the match of a flow and its actions; ports appear as numbers."""
    numbers = {port: number for number, port in enumerate(datapath.ports, start=1)}
    matched = [f"recirc_id({_hex(rule.recirculation)})"]
    if rule.in_port is not None:
        matched.append(f"in_port({numbers[rule.in_port]})")
    if rule.hash_mask is not None:
        matched.append(f"dp_hash({_hex(rule.hash)}/{_hex(rule.hash_mask)})")
    if rule.destination is not None:
        matched.append(f"eth(dst={rule.destination})")
    actions = []
    if rule.hash_basis is not None:
        actions = [f"hash(sym_l4({rule.hash_basis}))", f"recirc({_hex(rule.recirculate)})"]
    actions += [str(numbers[port]) for port in rule.output]
    return ",".join(matched), ",".join(actions) or "drop"


def _hex(value: int) -> str:
    return "0" if value == 0 else hex(value)
