"""The records of hosts.yaml: destinations of SSH, addresses by link, and limits.

The file is the only source of destinations and addresses. A scenario cannot name any: a stranger's
scenario sends no traffic to a host that the user did not list.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from plait.parts import Part
from plait.scenario.mistakes import as_one_error
from plait.scenario.names import NodeName
from plait.units import Duration, Rate, Size, Within

MOST_HOSTS = 16
_DESTINATION = re.compile(r"(?:ssh://)?[A-Za-z0-9_.@:%\[\]][A-Za-z0-9_.@:%\[\]-]{0,250}", re.ASCII)
_PORTS = re.compile(r"([0-9]{1,5})-([0-9]{1,5})", re.ASCII)
LEAST_PORT = 1024


class Limits(Part):
    """Limits of what each host sends in one command of plait; all of them are required."""

    rate: Annotated[Rate, Within(least=10_000)]
    """Rate at which a host may send, as a mean over one second."""
    bytes: Annotated[Size, Within(least=10_000)]
    """Bytes that a host may send in all trials together."""
    time: Annotated[Duration, Within(least=10**9, step=1000)]
    """Time in which hosts may send, in all trials together."""


def is_destination(value: object) -> bool:
    """Return whether a value is a destination of ssh, and no option of it."""
    return isinstance(value, str) and _DESTINATION.fullmatch(value) is not None


def _destination(value: object) -> object:
    if not is_destination(value):
        raise ValueError(
            f"{str(value)[:60]!r} is not a destination of ssh; write a name of ~/.ssh/config, or USER@HOST"
        )
    return value


def _address(value: object) -> object:
    try:
        address = ip_address(str(value))
    except ValueError as error:
        raise ValueError(f"{str(value)[:60]!r} is not an IP address; write for example 192.0.2.1") from error
    if address.is_multicast or address.is_unspecified or getattr(address, "scope_id", None):
        raise ValueError(f"{address} is not the address of one interface; write a unicast address")
    return str(address)


Address = Annotated[str, BeforeValidator(_address)]


def _public(value: object) -> object:
    return None if value == "none" else _address(value)


class LinkAddress(Part):
    """The address of a host on a link, and the one under which others reach it there.

    They differ where a router translates addresses. In the file, one address means both.
    """

    local: Address
    """Address of the host's own interface, to which it binds."""
    public: Annotated[Address | None, BeforeValidator(_public)]
    """Address that the other side connects to; `none`: the host can only open connections itself."""

    @model_validator(mode="before")
    @classmethod
    def _accept_one_address(cls, value: Any) -> Any:
        if isinstance(value, dict | cls):
            return value
        address = _address(value)
        return {"local": address, "public": address}

    @model_validator(mode="after")
    def _check_families(self) -> Self:
        if self.public is not None and ip_address(self.local).version != ip_address(self.public).version:
            raise ValueError(
                f"{self.local} and {self.public} are of different families; plait uses one for both"
            )
        return self


LinkOfHost = Annotated[str, Field(min_length=1, max_length=80)]


class RealHost(Part):
    """A real host."""

    ssh: Annotated[str, BeforeValidator(_destination)]
    """Destination for ssh: a name of ~/.ssh/config, or USER@HOST."""
    addresses: Annotated[dict[LinkOfHost, LinkAddress], Field(min_length=1, max_length=32)]
    """Address of this host on each of its links, by the name of the link (`h1-s1`) or of a line."""
    ports: str = "5001-5100"
    """Ports on which it may listen, `FIRST-LAST`."""

    @field_validator("ports")
    @classmethod
    def _check_ports(cls, text: str) -> str:
        match = _PORTS.fullmatch(text)
        if match is None or not LEAST_PORT <= int(match[1]) <= int(match[2]) <= 65535:
            raise ValueError(
                f"{text[:40]!r} is not a range of ports; write FIRST-LAST from {LEAST_PORT} to 65535, such as 5001-5100"
            )
        return text

    @property
    def port_range(self) -> range:
        """The ports on which the host may listen."""
        first, last = self.ports.split("-")
        return range(int(first), int(last) + 1)


class HostsFile(Part):
    """The content of hosts.yaml."""

    limits: Limits
    hosts: Annotated[dict[NodeName, RealHost], Field(min_length=2, max_length=MOST_HOSTS)]

    @model_validator(mode="before")
    @classmethod
    def _name_hosts(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("hosts"), list):
            raise as_one_error([(("hosts",), "this is a list; write {NAME: {ssh: .., addresses: ..}}")])
        return value

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        for line, ends in self.lines().items():
            if all(self.hosts[end].addresses[line].public is None for end in ends):
                raise ValueError(
                    f"neither {ends[0]} nor {ends[1]} has a public address on {line}, so neither can connect to the "
                    "other; give one of them a public address"
                )
        return self

    def lines(self) -> dict[str, tuple[str, str]]:
        """Return the two hosts of each line, by its name: the link names that exactly two hosts have."""
        ends: dict[str, list[str]] = {}
        for name, host in self.hosts.items():
            for link in host.addresses:
                ends.setdefault(link, []).append(name)
        return {link: (names[0], names[1]) for link, names in ends.items() if len(names) == 2}
