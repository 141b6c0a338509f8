"""Kernel settings that every plan sets, so that no result depends on a machine's memory or distribution.

The values are Linux 6.12's defaults on a machine with ample memory, except where a comment gives a reason.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.plan.model.mptcp import SetSysctl
from plait.plan.model.plan import Flow, Namespace
from plait.scenario.fields.nodes import Host
from plait.scenario.scenario import Scenario

Setting = tuple[str, str]
_PAGE = 4096
DEFAULT_BUFFER_MAX = 212_992
CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"
SCHEDULER = "net/mptcp/scheduler"
HASH_SEED = "net/ipv4/fib_multipath_hash_seed"
"""The seed of ECMP, for both families. Without it, all routers of one kernel would make the same choices."""
_DERIVED = "derived"
"""A placeholder for a seed that follows from the trial's."""
_HASH_BY_FIELDS, _FIVE_TUPLE = 3, 0b110111
"""Policy 1 would use the hash that the sending socket left on the packet, while a real router sees only headers."""
ALLOWED_CONGESTION_CONTROL = "net/ipv4/tcp_allowed_congestion_control"


def path(name: str) -> str:
    """Return a sysctl's path below /proc/sys; `net.ipv4.tcp_sack` and `net/ipv4/tcp_sack` are the same."""
    return name if "/" in name else name.replace(".", "/")


def of_kernel(
    memory_mib: int,
    namespaces: Iterable[Namespace],
    flows: Iterable[Flow],
    later: Iterable[SetSysctl],
    machine_bytes: int | None,
) -> tuple[Setting, ...]:
    """Return the settings that exist once for all namespaces.

    Their values suffice for these namespaces, flows and later settings. With `machine_bytes`, TCP has the memory that
    it has on a machine of this size.
    """
    pages = memory_mib * 2**20 // _PAGE
    ample = f"{pages // 4} {pages * 3 // 8} {pages // 2}"
    flows = list(flows)
    asked = [
        size
        for flow in flows
        for size in (flow.socket.send_buffer, flow.socket.receive_buffer)
        if size is not None
    ]
    largest = max([DEFAULT_BUFFER_MAX, *asked])
    used = {value for space in namespaces for name, value in space.sysctls if name == CONGESTION_CONTROL}
    used |= {flow.socket.congestion_control for flow in flows if flow.socket.congestion_control is not None}
    used |= {setting.value for setting in later if setting.path == CONGESTION_CONTROL}
    return (
        # the trial's memory (which is ample) bounds TCP's memory, not the kernel's default
        ("net/ipv4/tcp_mem", ample if machine_bytes is None else tcp_memory(machine_bytes)),
        # the default, or the largest request of a flow: otherwise the kernel would reduce it silently
        ("net/core/rmem_max", str(largest)),
        ("net/core/wmem_max", str(largest)),
        # a namespace may use only these
        (ALLOWED_CONGESTION_CONTROL, " ".join(sorted(used | {"reno"}))),
        # packets between namespaces wait here; a drop would be a loss that no link has
        ("net/core/netdev_max_backlog", "1000000"),
        # all namespaces share the neighbour table; the defaults would evict entries of large networks
        ("net/ipv4/neigh/default/gc_thresh1", "16384"),
        ("net/ipv4/neigh/default/gc_thresh2", "32768"),
        ("net/ipv4/neigh/default/gc_thresh3", "65536"),
    )


def tcp_memory(machine_bytes: int) -> str:
    """Return `tcp_mem` in pages as Linux sets it on a machine with this memory (net/ipv4/tcp.c, tcp_init_mem)."""
    limit = max(machine_bytes // _PAGE // 16, 128)
    least = limit // 4 * 3
    return f"{least} {limit} {2 * least}"


def of_node(scenario: Scenario, role: str, *, ipv6: bool) -> list[Setting]:
    """Return the settings of one namespace, without those of a single host."""
    settings = list(_ipv6(on=ipv6 and role in ("host", "router")))
    if role in ("host", "router"):
        settings += [
            ("net/ipv4/ip_forward", str(int(role == "router"))),
            # with several interfaces a packet may arrive on one that the main table would not use for the answer
            ("net/ipv4/conf/all/rp_filter", "0"),
            ("net/ipv4/conf/default/rp_filter", "0"),
            # an interface answers ARP for its own address only, and asks with it, so that each path stays separate
            ("net/ipv4/conf/all/arp_ignore", "1"),
            ("net/ipv4/conf/all/arp_announce", "2"),
        ]
        if ipv6:
            settings += [("net/ipv6/conf/all/forwarding", str(int(role == "router")))]
    if role == "router":
        # a router would look for a socket of its own for each packet that it forwards
        settings.append(("net/ipv4/ip_early_demux", "0"))
    if role == "router" and scenario.network.routing.ecmp:
        settings += _spreading(ipv6=ipv6)
    if role == "host":
        settings += _tcp(scenario)
    return settings


def of_host(host: Host) -> list[Setting]:
    """Return the settings that a host has in place of the common ones."""
    settings = ((SCHEDULER, host.scheduler), (CONGESTION_CONTROL, host.congestion_control))
    return [(name, value) for name, value in settings if value is not None]


def _ipv6(*, on: bool) -> tuple[Setting, ...]:
    """Return the settings of IPv6: off if unused, because its solicitations and reports would load the links.

    If on, addresses are usable at once, without duplicate address detection.
    """
    if not on:
        return (("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1"))
    names = ("accept_dad", "dad_transmits", "accept_ra", "autoconf", "router_solicitations")
    return tuple((f"net/ipv6/conf/{which}/{name}", "0") for which in ("all", "default") for name in names)


def _spreading(*, ipv6: bool) -> list[Setting]:
    """Return ECMP by a hash of addresses, protocol and ports, with a seed for each router and trial (`reseeded`)."""
    families = ("ipv4", "ipv6") if ipv6 else ("ipv4",)
    return [
        *((f"net/{family}/fib_multipath_hash_policy", str(_HASH_BY_FIELDS)) for family in families),
        *((f"net/{family}/fib_multipath_hash_fields", str(_FIVE_TUPLE)) for family in families),
        (HASH_SEED, _DERIVED),
    ]


def reseeded(namespace: Namespace, seed: int) -> Namespace:
    """Return the namespace with this seed for its choice among equal-cost routes.

    A namespace that makes no such choice, or has a given seed, stays as it is.
    """
    settings = dict(namespace.sysctls)
    if settings.get(HASH_SEED) != _DERIVED:
        return namespace
    settings[HASH_SEED] = str(1 + seed % (2**32 - 1))
    return namespace.model_copy(update={"sysctls": tuple(settings.items())})


def _tcp(scenario: Scenario) -> list[Setting]:
    tcp = scenario.tcp
    receive, send = int(tcp.receive_buffer_max), int(tcp.send_buffer_max)
    return [
        ("net/ipv4/tcp_rmem", f"4096 {min(131072, receive)} {receive}"),
        ("net/ipv4/tcp_wmem", f"4096 {min(16384, send)} {send}"),
        (CONGESTION_CONTROL, tcp.congestion_control),
        # a flow must not start with the metrics of an earlier flow to the same host
        ("net/ipv4/tcp_no_metrics_save", "1"),
        ("net/mptcp/enabled", "1"),
        (SCHEDULER, scenario.mptcp.scheduler),
        # the path manager in user space, which is the agent
        *([("net/mptcp/pm_type", "1")] if scenario.mptcp.subflows_per_path > 1 else []),
        *_cap(scenario),
    ]


def _cap(scenario: Scenario) -> list[Setting]:
    """Return the settings of the scheduler `capped`, if the scenario gives them."""
    cap = scenario.mptcp.capped
    if cap is None:
        return []
    return [
        ("net/mptcp_capped/e_permille", str(round(cap.extra * 1000))),
        ("net/mptcp_capped/window_ms", str(cap.window.us // 1000)),
        ("net/mptcp_capped/hold_alone", str(int(cap.alone == "hold"))),
    ]


def merged(*groups: list[Setting]) -> tuple[Setting, ...]:
    """Return the groups in order; a later value of a setting replaces an earlier one in its place."""
    return tuple({name: value for group in groups for name, value in group}.items())


def given(sysctls: dict[str, str]) -> list[Setting]:
    """Return the settings that a scenario gives, with paths as names."""
    return [(path(name), value) for name, value in sysctls.items()]
