"""The lines from this machine to one server, without a hosts file: this machine opens all connections."""

from __future__ import annotations

import re
import socket
import subprocess
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from plait.engine.remote.answers import unicast
from plait.engine.remote.ssh import HostSession
from plait.errors import MachineError, RequestError, printable
from plait.hosts.model import HostsFile
from plait.measure.interfaces import OwnLine, own_lines
from plait.scenario.names import NODE_NAME_MAX, RESERVED

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class LinesRequest:
    """What the user asks for: the server as ssh names it, and bounds of what both sides send."""

    server: str
    interfaces: tuple[str, ...] = ()
    """Empty: those with a default route."""
    address: str | None = None
    """The server's address for the flows; None: the one that ssh connects to."""
    ports: str = "5001-5010"
    limits: dict[str, str] = field(default_factory=dict)
    """As in a hosts file."""
    ssh_config: Path | None = None


@dataclass(frozen=True)
class Survey:
    """The lines from this machine to a server, before their measurement."""

    request: LinesRequest
    client: str
    """The node that stands for this machine."""
    server: str
    address: str
    """The address of the server that this machine connects to."""
    lines: tuple[OwnLine, ...]

    @property
    def names(self) -> list[str]:
        """The names of the lines as links: `laptop-vps`, `laptop-vps#2`."""
        first = f"{self.client}-{self.server}"
        return [first, *(f"{first}#{number}" for number in range(2, len(self.lines) + 1))]

    @property
    def labels(self) -> dict[str, str]:
        """The interface of each line, by the name of the link."""
        return {name: line.interface for name, line in zip(self.names, self.lines, strict=True)}

    def hosts(self, session: HostSession) -> HostsFile:
        """Return the two hosts as a hosts file would describe them; `session` is that of the server."""
        local = _server_local(session, self.address, self.lines[0].address)
        rows = zip(self.names, self.lines, strict=True)
        client = {name: {"local": line.address, "public": "none"} for name, line in rows}
        server = {name: {"local": local, "public": self.address} for name in self.names}
        return HostsFile.model_validate(
            {
                "limits": self.request.limits,
                "hosts": {
                    self.client: {"ssh": "localhost", "addresses": client},
                    self.server: {
                        "ssh": self.request.server,
                        "addresses": server,
                        "ports": self.request.ports,
                    },
                },
            }
        )


def survey(request: LinesRequest) -> Survey:
    """Return the lines of this machine to the server of `request`; it sends no packets over them.

    Raises RequestError if the server has no address, or this machine no line to it, and MachineError without ssh or ip.
    """
    name = _ssh_hostname(request)
    addresses = [request.address] if request.address else _addresses(name, request.server)
    refusals = []
    for address in addresses:
        try:
            lines = own_lines(address, request.interfaces)
        except RequestError as error:
            refusals.append(str(error))
            continue
        server = _node(request.server.removeprefix("ssh://").rpartition("@")[2], "server")
        client = _node(socket.gethostname(), "client")
        return Survey(request, client if client != server else "client", server, address, tuple(lines))
    raise RequestError("\n".join(dict.fromkeys(refusals)))


def _ssh_hostname(request: LinesRequest) -> str:
    """Return the name or address that ssh connects to for the server."""
    config = [] if request.ssh_config is None else ["-F", str(request.ssh_config)]
    command = ["ssh", *config, "-G", "--", request.server]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"asking ssh about {request.server}: {error}; install openssh-client") from error
    rows = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    if done.returncode != 0 or "hostname" not in rows:
        raise RequestError(
            f"--server {request.server}: ssh does not accept it: {printable(done.stderr.strip()[-200:])}; write a name "
            "of ~/.ssh/config, or USER@HOST"
        )
    return rows["hostname"].strip("[]")


def _addresses(name: str, server: str) -> list[str]:
    """Return the addresses of a name, IPv4 first: behind home routers it is the family that needs help."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RequestError(
            f"--server {server}: this machine finds no address of {name} ({error}); write its address with --address"
        ) from error
    addresses = {str(entry[4][0]).partition("%")[0] for entry in found}
    return sorted(addresses, key=lambda text: ip_address(text).version)


def _server_local(session: HostSession, public: str, client: str) -> str:
    """Return the address of the server's own interface: the public one, or the one to which its router leads ssh."""
    held, _ = session.route(public, client)
    reached = unicast(session.facts.get("reached"))
    if held or reached is None or reached.version != ip_address(public).version:
        return public
    return str(reached)


def _node(text: str, otherwise: str) -> str:
    """Return a name for a node of a scenario from the name of a host, which may be an address."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text.partition(".")[0])[:NODE_NAME_MAX]
    return name if re.match(r"[A-Za-z]", name) and name not in RESERVED else otherwise
