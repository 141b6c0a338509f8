"""The settings of a scenario that `--configure` makes on a real host: endpoints, limits and sysctls of MPTCP and TCP.

The keeper on the host makes each change as root (`sudo -n`), after it has written the old value to its journal. plait
never touches addresses, routes, rules or interfaces, so the route that carries SSH stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.engine.remote.mapping import Mapping
    from plait.plan.model.plan import Plan

_ALLOWED = re.compile(r"net/(mptcp|ipv4/tcp_)[a-z0-9_/]*", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9_. \t-]{1,100}", re.ASCII)
_FIRST_ID = 200
"""Ids of plait's endpoints: from here on, so that they do not meet those of the host."""


def planned_sysctls(plan: Plan, node: str) -> dict[str, str]:
    """Return the settings of TCP and MPTCP that the plan has for `node`, by path below /proc/sys."""
    return {
        path: " ".join(value.split())
        for space in plan.network.namespaces
        if space.name == node
        for path, value in space.sysctls
        if _ALLOWED.fullmatch(path) and _VALUE.fullmatch(value)
    }


def settings_of(plan: Plan, node: str, real: Mapping) -> Iterator[tuple[str, ...]]:
    """Yield the changes for `node`, as the words of the keeper's order."""
    for path, value in planned_sysctls(plan, node).items():
        yield ("sysctl", path, *value.split())
    for mptcp in plan.network.mptcp:
        if mptcp.netns != node:
            continue
        yield ("limits", "subflows", str(mptcp.subflows), "add_addr_accepted", str(mptcp.add_addr_accepted))
        for number, endpoint in enumerate(mptcp.endpoints):
            address = real.addresses.get((node, endpoint.address))
            if address is not None:
                yield ("endpoint", str(_FIRST_ID + number), address, *endpoint.flags)
