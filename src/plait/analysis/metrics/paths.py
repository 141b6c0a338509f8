"""The name of a path, from the addresses that a subflow has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from plait.analysis.translation import Translated

if TYPE_CHECKING:
    from plait.plan.model.plan import Path


class HasPaths(Protocol):
    """A flow, or a record with the same fields."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that it may use."""


def path_name(
    flow: HasPaths, side: str, local: str | None, remote: str | None, remote_port: int | None = None
) -> str:
    """Return the name of the planned path between two addresses as one side sees them, or both addresses.

    The port distinguishes paths that look alike to a server, behind a router that translates addresses.
    """
    client, server = (local, remote) if side == "client" else (remote, local)
    ends = client, server
    names = [path for path in flow.paths if (_client_address(path, side), path.server_address) == ends]
    if not names:
        # In a tunnel that a program makes, a packet passes the router that translates with its own address.
        names = [path for path in flow.paths if (path.client_address, path.server_address) == ends]
    for path in names:
        if isinstance(path, Translated) and remote_port in path.seen_ports:
            return path.name
    return names[0].name if names else f"{client or '?'} to {server or '?'}"


def _client_address(path: Path, side: str) -> str:
    """The client's address as one side sees it."""
    return path.seen_address if side == "server" and isinstance(path, Translated) else path.client_address
