"""Check the parts of a scenario against each other: every name refers to an existing thing of the right kind."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_interface
from itertools import islice

from plait.frames import DEFAULT_MTU
from plait.scenario.check.conditions import bucket_mistakes, link_mistakes, queue_mistakes
from plait.scenario.check.events import check_events, check_host_events, endpoint_mistakes
from plait.scenario.check.figures import check_across, check_figures, check_judge, check_published
from plait.scenario.check.labels import check_labels
from plait.scenario.check.programs import check_programs, check_traffic
from plait.scenario.fields.network import NetworkSpec
from plait.scenario.generators.base import MAX_LINKS
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.model import ScenarioModel
from plait.scenario.names import LinkName, read_link_name
from plait.scenario.vary.text import networks
from plait.scenario.wording import nearest

MAX_MISTAKES = 200
"""plait looks for no more; users fix these first."""


def check(scenario: ScenarioModel, *, states_known: bool = True) -> list[FieldMistake]:
    """Return every mistake, but at most MAX_MISTAKES.

    `states_known`: whether all events are present, so that the state of each link at an event is known.
    """
    network = scenario.network
    if len(network.links) > MAX_LINKS:
        at_most = f"a network has at most {MAX_LINKS}"
        return [
            *_nodes(network),
            (("network", "links"), f"there are {len(network.links)} links; {at_most}"),
        ]
    return list(islice(_mistakes(scenario, states_known=states_known), MAX_MISTAKES))


def _mistakes(scenario: ScenarioModel, *, states_known: bool) -> Iterator[FieldMistake]:
    """Yield each mistake; later checks use the names that earlier ones have parsed."""
    network = scenario.network
    yield from _nodes(network)
    names: dict[str, LinkName] = {}
    yield from _links(network, names)
    links_of: dict[str, set[str]] = {node: set() for node in (*network.hosts, *network.routers)}
    for key, name in names.items():
        for node in (name.a, name.b):
            links_of.get(node, set()).add(key)
    yield from _addresses(network, links_of)
    yield from _nat(network, links_of)
    yield from _buckets(network, links_of)
    yield from _mptcp(scenario, links_of)
    yield from check_traffic(scenario, links_of)
    yield from _monitors(scenario)
    yield from check_events(scenario, names, states_known=states_known)
    yield from check_host_events(scenario, links_of)
    yield from check_published(scenario)
    yield from check_judge(scenario.judge)
    yield from check_across(scenario.across, networks(scenario.vary))
    yield from check_figures(scenario.figures, scenario.vary)
    yield from check_labels(scenario, names)
    yield from check_programs(scenario)


def _nodes(network: NetworkSpec) -> Iterator[FieldMistake]:
    """Yield nodes that share a name."""
    seen: dict[str, str] = {}
    for kind in ("hosts", "switches", "routers"):
        for name in getattr(network, kind):
            if name in seen:
                yield (
                    ("network", kind, name),
                    f"'{name}' is also the name of one of the {seen[name]}; choose another name",
                )
            seen.setdefault(name, kind)


def _links(network: NetworkSpec, names: dict[str, LinkName]) -> Iterator[FieldMistake]:
    """Yield mistakes of links, and fill `names` with those whose names are valid."""
    nodes = {**network.hosts, **network.switches, **network.routers}
    seen: dict[tuple[frozenset[str], str], str] = {}
    for key, link in network.links.items():
        here: Where = ("network", "links", key)
        try:
            name = read_link_name(key, nodes)
        except ValueError as error:
            yield here, str(error)
            continue
        names[key] = name
        pair = (frozenset((name.a, name.b)), name.suffix)
        if pair in seen:
            yield here, f"{key} joins the same nodes as {seen[pair]}; call a second link {name.a}-{name.b}#2"
        seen.setdefault(pair, key)
        yield from (((*here, *fields), message) for fields, message in link_mistakes(link))


def _buckets(network: NetworkSpec, links_of: dict[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes of shared buckets: they use links of their node, and hold a frame."""
    for kind in ("hosts", "routers"):
        for node, options in getattr(network, kind).items():
            bucket = options.bucket
            if bucket is None:
                continue
            here: Where = ("network", kind, node, "bucket")
            for i, link in enumerate(bucket.links or ()):
                if link not in links_of[node]:
                    message = f"{node} has no link '{link[:40]}'; {nearest(link, links_of[node])}"
                    yield (*here, "links", i), message
            used = [network.links[key] for key in (bucket.links or links_of[node]) if key in network.links]
            mtu = max((link.mtu for link in used), default=DEFAULT_MTU)
            for fields, message in bucket_mistakes(bucket, bucket.peak, mtu, "peak"):
                yield (*here, *fields), message
            for fields, message in queue_mistakes(bucket.queue, mtu):
                yield (*here, *fields), message


def _addresses(network: NetworkSpec, links_of: dict[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes of addresses: each is a host address on a link of its node."""
    for kind in ("hosts", "routers"):
        for node, options in getattr(network, kind).items():
            for link, addresses in options.addresses.items():
                here: Where = ("network", kind, node, "addresses", link)
                if link not in links_of[node]:
                    yield here, f"{node} has no link '{link[:40]}'; {nearest(link, links_of[node])}"
                mistakes = [message for address in addresses if (message := _address_mistake(address))]
                yield from ((here, message) for message in mistakes)
                if not mistakes and len({ip_interface(address).version for address in addresses}) < len(
                    addresses
                ):
                    yield here, "the interface has two addresses of one family; keep one of each family"


def _nat(network: NetworkSpec, links_of: dict[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes of NAT: its outside links are links of the router, and one link remains inside."""
    for router, options in network.routers.items():
        for i, link in enumerate(options.nat):
            here: Where = ("network", "routers", router, "nat", i)
            if link not in links_of[router]:
                yield here, f"{router} has no link '{link[:40]}'; {nearest(link, links_of[router])}"
            elif link in options.nat[:i]:
                yield here, f"'{link}' occurs twice; remove one"
        if options.nat and links_of[router] <= set(options.nat):
            message = (
                f"all links of {router} are outside links; remove those that lead to the hosts behind the NAT"
            )
            yield ("network", "routers", router, "nat"), message


def _address_mistake(text: str) -> str | None:
    try:
        interface = ip_interface(text)
    except ValueError:
        return f"'{text[:40]}' is not an address with a prefix length; write for example 192.168.1.1/24"
    if "/" not in text:
        return f"'{text}' lacks its prefix length; write for example {text}/{24 if interface.version == 4 else 64}"
    network = interface.network
    if interface.is_loopback or interface.is_multicast or interface.is_unspecified or interface.is_link_local:
        return f"'{text}' cannot be the address of a host on a link; write for example 192.168.1.1/24"
    if interface.version == 4 and network.num_addresses > 2 and interface.ip in (network[0], network[-1]):
        return f"'{text}' is the network or the broadcast address; choose an address between them"
    return None


def _mptcp(scenario: ScenarioModel, links_of: dict[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes of MPTCP limits and endpoints: hosts, links and addresses exist."""
    hosts = scenario.network.hosts
    for field in ("limits", "endpoints"):
        for host in getattr(scenario.mptcp, field):
            if host not in hosts:
                yield ("mptcp", field, host), f"no host is called '{host[:40]}'; {nearest(host, hosts)}"
    if scenario.mptcp.subflows_per_path > 1:
        yield from _unmanaged(scenario)
    for host, endpoints in scenario.mptcp.endpoints.items():
        if len(endpoints) > 8:
            yield (
                ("mptcp", "endpoints", host),
                f"there are {len(endpoints)} endpoints; the kernel accepts at most 8",
            )
        for i, endpoint in enumerate(endpoints):
            if host in hosts:
                here: Where = ("mptcp", "endpoints", host, i)
                yield from endpoint_mistakes(host, endpoint, here, links_of[host])


def _unmanaged(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Yield settings of the kernel's path manager, which is off when several subflows share a path."""
    for host in scenario.mptcp.limits:
        yield (
            ("mptcp", "limits", host),
            "with subflows_per_path plait opens the subflows, and kernel limits have no effect; remove one of them",
        )
    for host, endpoints in scenario.mptcp.endpoints.items():
        for i, endpoint in enumerate(endpoints):
            for field in ("port", "id"):
                if getattr(endpoint, field) is not None:
                    yield (
                        ("mptcp", "endpoints", host, i, field),
                        f"with subflows_per_path plait opens the subflows and announces no address; remove the {field}",
                    )


def _monitors(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Yield monitored nodes and links that do not exist."""
    network, monitors = scenario.network, scenario.monitors
    nodes = {**network.hosts, **network.switches, **network.routers}
    for i, node in enumerate((monitors.interfaces and monitors.interfaces.nodes) or ()):
        if node not in nodes:
            here: Where = ("monitors", "interfaces", "nodes", i)
            yield here, f"no node is called '{node[:40]}'; {nearest(node, nodes)}"
    for i, name in enumerate(monitors.capture.on if monitors.capture else ()):
        if name not in nodes and name not in network.links:
            guess = nearest(name, [*nodes, *network.links])
            yield ("monitors", "capture", "on", i), f"no node or link is called '{name[:40]}'; {guess}"
