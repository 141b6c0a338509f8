"""A host's answers about its addresses, routes and endpoints: JSON of programs there, which plait does not trust."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from plait.errors import TrialError

_DIGITS = 20
_LONGEST_NAME = 15
"""IFNAMSIZ of the kernel, without the zero."""
LARGEST_LIMIT = 8
"""MPTCP_PM_ADDR_MAX of the kernel."""


def whole_number(text: str) -> int | None:
    """Return the number that a host wrote in at most 19 decimal digits; None if it wrote anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None


def unicast(text: object) -> IPv4Address | IPv6Address | None:
    """Return the address of one interface that a host wrote; None if it wrote anything else.

    The scope of an address (`fe80::1%eth0`) is free text, so an address that has one does not count.
    """
    try:
        address = ip_address(str(text))
    except ValueError:
        return None
    scope = getattr(address, "scope_id", None)
    return None if scope or address.is_multicast or address.is_unspecified else address


def interfaces_with(address: str, text: str) -> set[str] | None:
    """Return the interfaces that have `address`, of the answer of `ip -json address`; None: there is no answer."""
    entries = objects_in(text)
    if entries is None:
        return None
    wanted = ip_address(address)
    return {
        _interface(entry.get("ifname"))
        for entry in entries
        for info in _list(entry.get("addr_info"))
        if isinstance(info, dict) and _is_address(info.get("local"), wanted)
    }


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_address(text: object, wanted: object) -> bool:
    try:
        return ip_address(str(text)) == wanted
    except ValueError:
        return False


def interface_of(text: str) -> str | None:
    """Return the interface of the answer of `ip -json route get`: empty without a route, None without an answer."""
    entries = objects_in(text)
    return None if entries is None else next((_interface(entry.get("dev", "")) for entry in entries), "")


def _interface(name: object) -> str:
    """Return the name of an interface that a host wrote, for sentences and commands: a `?` for each odd character."""
    return re.sub(r"^-|[^A-Za-z0-9_.:@+-]", "?", str(name))[:_LONGEST_NAME]


def objects_in(text: str) -> list[dict[str, Any]] | None:
    """Return the objects of a list in JSON; None if a host sent anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else None


def mptcp_in(text: str, name: str) -> tuple[list[dict[str, Any]], tuple[int, int]]:
    """Return the endpoints of `plait-agent --settings show`, and the limits of subflows and ADD_ADDRs.

    Raises TrialError if a host sent anything else.
    """
    try:
        shown = json.loads(text)
        endpoints = [
            {"address": _required(unicast(one["address"])), "flags": int(one["flags"])}
            for one in shown["endpoints"]
        ]
        limits = int(shown["limits"]["subflows"]), int(shown["limits"]["add_addr_accepted"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise TrialError(
            f"{name}: the host sent {text[:60]!r} instead of its endpoints and limits"
        ) from error
    if not all(0 <= limit <= LARGEST_LIMIT for limit in limits):
        raise TrialError(f"{name}: the host sent MPTCP limits that are not from 0 to {LARGEST_LIMIT}")
    return endpoints, limits


def _required(address: IPv4Address | IPv6Address | None) -> str:
    if address is None:
        raise ValueError("an address of no interface")
    return str(address)


def global_address(rows: list[dict[str, Any]], version: int | None = None) -> str | None:
    """Return the first global address that is not deprecated, IPv4 before IPv6; None without one.

    `rows` are what `ip -json address show` lists on a host that is not trusted.
    """
    infos = [info for row in rows for info in _list(row.get("addr_info")) if isinstance(info, dict)]
    addresses = [
        unicast(info.get("local"))
        for info in infos
        if info.get("scope") == "global" and not info.get("deprecated")
    ]
    usable = [address for address in addresses if address and version in (None, address.version)]
    return str(min(usable, key=lambda address: address.version)) if usable else None
