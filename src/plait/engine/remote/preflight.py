"""Checks of real hosts before the first trial: why a plan cannot run between them, with the remedies.

This sends nothing over the lines; `probe` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Mapping as Map

from plait.bpf.programs import ALGORITHMS, SCHEDULERS, accepts, has_object
from plait.engine.remote.answers import whole_number
from plait.engine.remote.configure import planned_endpoints, planned_programs, planned_sysctls
from plait.engine.remote.mapping import Mapping, flows_of, nodes_of
from plait.engine.remote.ssh import HostSession
from plait.errors import shell_command
from plait.plan.model.plan import Flow, Plan

_MEMORY_KIB = 64 << 10
"""Memory for an agent and its sockets."""
_DISK_KIB = 32 << 10
"""Room for an agent, and for the tables of a short trial."""
_ROW_BYTES = 600
"""Bytes of a sample of a connection and one of its subflows, at most."""
_IMPLICIT = 16


def problems(plan: Plan, real: Mapping, sessions: Map[str, HostSession], *, configure: bool) -> Iterator[str]:
    """Yield what the hosts lack for the plan, in one sentence each. Raises TrialError if a host does not answer."""
    for node in nodes_of(plan):
        session = sessions[node]
        yield from _addresses(plan, real, session)
        yield from _algorithms(plan, session, configure=configure)
        yield from _room(plan, session)
        if any(flow.transport == "mptcp" for flow in flows_of(plan, node)):
            yield from _mptcp(plan, real, session, configure=configure)


def _addresses(plan: Plan, real: Mapping, session: HostSession) -> Iterator[str]:
    """Yield addresses that the host lacks, and those whose packets leave through another interface."""
    found = []
    for local, remote in local_pairs(plan, session.name, real):
        held, route = session.route(local, remote or local)
        if held is not None and route is not None:  # without `ip` the connections show what it would
            found.append(route_problem(session.name, local, remote, held, route))
    yield from dict.fromkeys(problem for problem in found if problem is not None)


def _algorithms(plan: Plan, session: HostSession, *, configure: bool) -> Iterator[str]:
    name, facts = session.name, session.facts
    available = facts.get("net/ipv4/tcp_available_congestion_control", "").split()
    allowed = facts.get("net/ipv4/tcp_allowed_congestion_control", "").split()
    planned = planned_sysctls(plan, name) if configure else {}
    default = planned.get("net/ipv4/tcp_congestion_control")
    of_flows = {flow.socket.congestion_control for flow in flows_of(plan, name)} - {None, default}
    for algorithm in sorted(filter(None, {*of_flows, default})):
        if available and algorithm not in available:
            lacks = f"{name} has no congestion control {algorithm} (it has {', '.join(available)})"
            if algorithm not in ALGORITHMS:
                yield f"{lacks}; load it there: `{shell_command('modprobe', f'tcp_{algorithm}')}`"
            elif not configure:
                command = shell_command("plait", "bpf", "load", algorithm)
                yield f"{lacks}; use --configure, or load it there: `{command}`"
            elif why := _refuses_programs(facts):
                yield f"{lacks}, and cannot load plait's BPF program of it: {why}"
        elif algorithm in of_flows and facts.get("net_admin") != "yes" and algorithm not in allowed:
            setting = f"net.ipv4.tcp_allowed_congestion_control={' '.join([*allowed, algorithm])}"
            yield (
                f"{name} does not allow the congestion control {algorithm} to processes without CAP_NET_ADMIN; "
                f"allow it there: `{shell_command('sysctl', '-w', setting)}`, or start its container with "
                "--cap-add NET_ADMIN"
            )
    schedulers = facts.get("net/mptcp/available_schedulers", "").split()
    scheduler = planned.get("net/mptcp/scheduler")
    if scheduler and schedulers and scheduler not in schedulers:
        lacks = f"{name} has no MPTCP scheduler {scheduler}; it has {', '.join(schedulers)}"
        if scheduler not in SCHEDULERS:
            yield f"{lacks}. Leave mptcp.scheduler out, or load the scheduler there"
        elif facts.get("takes_schedulers") != "yes":
            yield (
                f"{lacks}, and takes no schedulers by BPF (no struct_ops mptcp_sched_ops). Leave mptcp.scheduler "
                "out, or boot a kernel of MPTCP's development tree there"
            )
        elif why := _refuses_programs(facts):
            yield f"{lacks}, and cannot load plait's BPF program of it: {why}"


def _room(plan: Plan, session: HostSession) -> Iterator[str]:
    name, facts = session.name, session.facts
    samples = plan.end_us / plan.sample_interval_us
    rows = samples * sum(len(flow.paths) for flow in flows_of(plan, name))
    needed = {"disk_kib": _DISK_KIB + int(rows * _ROW_BYTES / 1024), "memory_kib": _MEMORY_KIB}
    remedy = {
        "disk_kib": f"in {facts.get('folder', 'the temporary folder')}; make room there, or set TMPDIR",
        "memory_kib": "of memory; end other programs there",
    }
    for fact, least in needed.items():
        free = whole_number(facts.get(fact, ""))
        if free is not None and free < least:
            yield f"{name} has {free >> 10} MiB {remedy[fact]} (a trial needs {-(-least >> 10)} MiB)"


def _mptcp(plan: Plan, real: Mapping, session: HostSession, *, configure: bool) -> Iterator[str]:
    name, facts = session.name, session.facts
    coming = planned_sysctls(plan, name) if configure else {}
    if "net/mptcp/enabled" not in facts:
        yield f"the kernel of {name} has no MPTCP; use transport tcp, or another kernel there"
        return
    if facts["net/mptcp/enabled"] != "1" and "net/mptcp/enabled" not in coming:
        yield f"{name} has MPTCP disabled; enable it there (`sysctl -w net.mptcp.enabled=1`), or use --configure"
    if facts.get("net/mptcp/pm_type", "0") != "0" and "net/mptcp/pm_type" not in coming:
        yield (
            f"on {name} a program opens the subflows (net.mptcp.pm_type = {facts['net/mptcp/pm_type']}), not the "
            "kernel; set it to 0 there"
        )
    state = session.mptcp_state()
    if state is None or configure:
        return  # the subflows of a probe show what is missing
    present = {endpoint["address"] for endpoint in state[0] if not endpoint["flags"] & _IMPLICIT}
    for address, flags in planned_endpoints(plan, name, real).items():
        if needs_endpoint(plan, name, address, real) and address not in present:
            yield (
                f"{name} has no MPTCP endpoint {address}, so MPTCP would not use that line; use --configure, or "
                f"add it there: `ip mptcp endpoint add {address} {' '.join(flags)}`"
            )


def programs_to_bring(plan: Plan, session: HostSession) -> list[str]:
    """Return the algorithms of the plan whose BPF objects the host gets.

    It also gets those that its kernel has, if they are here: one that a killed session left there is taken away before
    the host makes the settings of this one.
    """
    lists = ("net/ipv4/tcp_available_congestion_control", "net/mptcp/available_schedulers")
    available = " ".join(session.facts.get(path, "") for path in lists).split()
    planned = planned_programs(plan, session.name)
    return [name for name in planned if name not in available or has_object(name)]


def _refuses_programs(facts: Map[str, str]) -> str | None:
    """Return why a host cannot load BPF programs, with the remedy."""
    if not accepts(facts.get("kernel", "")):
        return f"its Linux {facts.get('kernel', '')} is too old; boot Linux 6.12 or a newer one there"
    if facts.get("btf") != "yes":
        return (
            "its kernel has no type information; boot one with CONFIG_DEBUG_INFO_BTF there, such as Debian's"
        )
    if facts.get("bpftool") != "yes":
        return "bpftool is missing; install it there (`apt-get install bpftool`)"
    return None


def route_problem(name: str, local: str, remote: str | None, held: Collection[str], route: str) -> str | None:
    """Return why packets from `local` to `remote` do not leave the host `name` by the interface with that address.

    `held` are the interfaces with the address, and `route` is that of the packets, as `HostSession.route` returns them;
    `remote` is None if a router hides the other side.
    """
    if not held:
        return (
            f"{name} has no address {local}, which the hosts file names; `ip -brief address` on "
            "that host lists its addresses"
        )
    if remote is None:
        return None  # a probe shows whether answers reach it
    if not route:
        return (
            f"{name} has no route from {local} to {remote}; add one there (`ip rule add from {local} "
            "table 101` and a route in that table)"
        )
    if route in held or "lo" in held:
        return None
    return (
        f"{name} sends packets from {local} to {remote} through {route}, and the address belongs "
        f"to {', '.join(sorted(held))}: the line would carry nothing. Add `ip rule add from {local} table "
        f"101` and `{shell_command('ip', 'route', 'add', remote, 'dev', min(held), 'table', '101')}` "
        "there, with the line's gateway"
    )


def real_pairs(flow: Flow, real: Mapping) -> list[tuple[str, str]]:
    """Return the different pairs of real addresses between which the opener of a flow can connect, the initial first.

    The first address of a pair is the opener's own, the second one the public address of the other side.
    """
    pairs = real.pairs(flow, real.opener(flow))
    return [(local, public) for local, public in pairs if public is not None]


def local_pairs(plan: Plan, node: str, real: Mapping) -> list[tuple[str, str | None]]:
    """Return the pairs of local and remote real addresses between which `node` sends (see `Mapping.pairs`)."""
    return list(dict.fromkeys(pair for flow in flows_of(plan, node) for pair in real.pairs(flow, node)))


def needs_endpoint(plan: Plan, node: str, address: str, real: Mapping) -> bool:
    """Return whether a flow reaches a path only through the endpoint `address` of `node`."""
    for flow in flows_of(plan, node):
        if flow.transport == "mptcp":
            first, *others = real_pairs(flow, real)
            end = 0 if real.opener(flow) == node else 1
            # A path with an address of its own of the opener needs that endpoint; only others need the other side's.
            if any(
                pair[end] == address != first[end] and (end == 0 or pair[0] == first[0]) for pair in others
            ):
                return True
    return False
