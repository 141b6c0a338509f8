"""The settings of a scenario that `--configure` makes on a real host: endpoints, limits and sysctls of MPTCP and TCP.

A congestion control or a scheduler that the host's kernel lacks, and that plait has as a BPF program, comes with them.
The agent on the host makes them as root (`sudo -n`) and restores them (`agent/src/settings`). plait never touches
addresses, routes, rules or interfaces, so the route that carries SSH stays as it is.
"""

from __future__ import annotations

import json
import re

from plait.bpf.programs import NAMES
from plait.engine.remote.mapping import Mapping, flows_of
from plait.plan.model.plan import Plan

_ALLOWED = re.compile(r"net/(mptcp|ipv4/tcp_)[a-z0-9_/]*", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9_. \t-]{1,100}", re.ASCII)


def planned_sysctls(plan: Plan, node: str) -> dict[str, str]:
    """Return the settings of TCP and MPTCP that the plan has for `node`, by path below /proc/sys."""
    return {
        path: " ".join(value.split())
        for path, value in plan.sysctls.get(node, {}).items()
        if _ALLOWED.fullmatch(path) and _VALUE.fullmatch(value)
    }


def planned_programs(plan: Plan, node: str) -> list[str]:
    """Return the congestion controls and schedulers of the plan for `node` that plait has as BPF programs."""
    planned = planned_sysctls(plan, node)
    defaults = {planned.get(path) for path in ("net/ipv4/tcp_congestion_control", "net/mptcp/scheduler")}
    names = defaults | {flow.socket.congestion_control for flow in flows_of(plan, node)}
    return [name for name in NAMES if name in names]


def planned_endpoints(plan: Plan, node: str, real: Mapping) -> dict[str, tuple[str, ...]]:
    """Return the flags of the endpoints that the plan has for `node`, by real address."""
    endpoints: dict[str, tuple[str, ...]] = {}
    for mptcp in plan.network.mptcp:
        for endpoint in mptcp.endpoints if mptcp.netns == node else ():
            for address, flags in real.endpoints(node, endpoint.address, endpoint.flags).items():
                endpoints.setdefault(address, flags)
    return endpoints


def wanted(plan: Plan, node: str, real: Mapping) -> bytes:
    """Return the settings for `node`, as the agent reads them (`wanted.json`)."""
    limits = next(
        (
            {"subflows": mptcp.subflows, "add_addr_accepted": mptcp.add_addr_accepted}
            for mptcp in plan.network.mptcp
            if mptcp.netns == node
        ),
        None,
    )
    if limits is not None and node in real.turned_servers:
        # it connects, so the others announce their addresses to it
        limits["add_addr_accepted"] = max(mptcp.add_addr_accepted for mptcp in plan.network.mptcp)
    endpoints = [
        {"address": address, "flags": flags} for address, flags in planned_endpoints(plan, node, real).items()
    ]
    settings = {
        "sysctls": planned_sysctls(plan, node),
        "limits": limits,
        "endpoints": endpoints,
        "programs": planned_programs(plan, node),
    }
    return json.dumps(settings).encode()
