"""A line with the names that messages and the scenario use, and its ends by who opens connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.hosts.model import HostsFile, RealHost
from plait.measure.probing import LineEnd


@dataclass(frozen=True)
class NamedLine:
    """A line between two hosts."""

    name: str
    """As a link of the scenario: `laptop-vps#2`."""
    label: str
    """What messages call it: the interface of this machine, or its name."""
    client: LineEnd
    """The end that opens connections."""
    server: LineEnd
    """The end that listens."""
    server_ports: str
    """The ports on which the server may listen, `FIRST-LAST`."""
    interface: str | None = None
    """The interface of the client's address, if it is known."""

    @property
    def ends(self) -> tuple[LineEnd, LineEnd]:
        """The ends of the client and the server."""
        return self.client, self.server


def named_lines(hosts: HostsFile, interfaces: Mapping[str, str] | None = None) -> list[NamedLine]:
    """Return the lines of a hosts file, in its order.

    The first host of a line opens connections, or the second one if only that can. With `interfaces` of the clients, by
    the name of the line, these are the labels.
    """
    lines = []
    for name in hosts.lines():
        a, b = ends_of(hosts, name)
        client, server = (a, b) if b.public is not None else (b, a)
        interface = (interfaces or {}).get(name)
        ports = hosts.hosts[server.host].ports
        lines.append(NamedLine(name, interface or name, client, server, ports, interface))
    return lines


def ends_of(hosts: HostsFile, line: str) -> tuple[LineEnd, LineEnd]:
    """Return the two ends of a line, in the order of the hosts file."""
    a, b = (_end(name, hosts.hosts[name], line) for name in hosts.lines()[line])
    return a, b


def _end(name: str, host: RealHost, line: str) -> LineEnd:
    address = host.addresses[line]
    return LineEnd(name, address.local, address.public, host.port_range[0])
