"""The lines of this machine: its interfaces with a default route, and how packets leave through each.

`ip -json` lists interfaces, addresses and routes. plait changes none of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from plait.engine.remote.answers import global_address
from plait.errors import MachineError, RequestError, shell_command

Rows = list[dict[str, Any]]
_PATIENCE_S = 10.0
_TABLE = 100
"""The first routing table that plait proposes."""


@dataclass(frozen=True)
class OwnLine:
    """An interface of this machine that leads to the Internet."""

    interface: str
    address: str
    """The address of the interface, from which flows leave."""
    gateway: str | None
    mtu: int


def ask_ip(*words: str) -> Rows:
    """Return what `ip -json WORDS` lists (MachineError if this machine has no `ip`)."""
    command = ["ip", "-json", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        rows = json.loads(done.stdout or "[]")
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise MachineError(
            f"listing the interfaces of this machine with `ip`: {error}; install iproute2"
        ) from error
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def own_lines(server: str, named: Sequence[str], ask: Callable[..., Rows] = ask_ip) -> list[OwnLine]:
    """Return the lines of this machine to the address `server`, best metric first.

    Lines are the interfaces with a default route in any table, or those `named`. Raises RequestError, with a sentence
    for each reason, if there is none, or if one of them cannot carry packets to the server.
    """
    version = f"-{ip_address(server).version}"
    gateways = _gateways(ask(version, "route", "show", "table", "all", "default"))
    present = {str(row.get("ifname")): row for row in ask(version, "address", "show")}
    lines, problems = [], []
    for name in dict.fromkeys(named or gateways):
        row = present.get(name)
        address = None if row is None else global_address([row])
        if row is None:
            shown = ", ".join(other for other in present if other != "lo") or "none"
            problems.append(f"{name}: this machine has no such interface with an address (it has {shown})")
        elif address is None:
            problems.append(
                f"{name}: it has no address from which it can reach {server}; connect it, or name the other "
                "interfaces with --interfaces"
            )
        else:
            lines.append(OwnLine(name, address, gateways.get(name), int(row.get("mtu", 1500))))
    for number, line in enumerate(lines, 1):
        problems += _misrouted(line, server, _TABLE + number, ask)
    if not lines and not problems:
        problems.append(
            f"no interface of this machine has a default route that leads to {server}; connect a line, or name "
            "interfaces with --interfaces"
        )
    if problems:
        raise RequestError("\n".join(problems))
    return lines


def _gateways(routes: Rows) -> dict[str, str | None]:
    """Return the gateway of each interface with a default route, in the order of the metrics."""
    gateways: dict[str, str | None] = {}
    for route in sorted(routes, key=lambda route: int(route.get("metric", 0))):
        for hop in [route, *route.get("nexthops", [])]:
            device, gateway = hop.get("dev"), hop.get("gateway")
            if isinstance(device, str) and route.get("type", "unicast") == "unicast" and device != "lo":
                gateways[device] = gateways.get(device) or (str(gateway) if gateway else None)
    return gateways


def _misrouted(line: OwnLine, server: str, table: int, ask: Callable[..., Rows]) -> Iterator[str]:
    """Yield why packets from the address of `line` to `server` do not leave through its interface, with the remedy."""
    through = next((route.get("dev") for route in ask("route", "get", server, "from", line.address)), None)
    if through == line.interface:
        return
    via = () if line.gateway is None else ("via", line.gateway)
    rule = shell_command("sudo", "ip", "rule", "add", "from", line.address, "table", str(table))
    where = ("dev", line.interface, "table", str(table))
    route = shell_command("sudo", "ip", "route", "add", "default", *via, *where)
    leaves = f"leave through {through}" if through else "have no route"
    yield (
        f"{line.interface}: packets from its address {line.address} to {server} {leaves}, so the line would carry "
        f"nothing. Give it a route of its own: `{rule} && {route}`"
    )
