"""The name of a path, from the addresses that a subflow has. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plait.plan.model import Path


class HasPaths(Protocol):
    """A flow, or what stands for one."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that it may use."""


def path_name(flow: HasPaths, side: str, local: str | None, remote: str | None) -> str:
    """Return the name of the planned path between two addresses as one side sees them, or both addresses."""
    client, server = (local, remote) if side == "client" else (remote, local)
    for path in flow.paths:
        if (path.client_address, path.server_address) == (client, server):
            return path.name
    return f"{client or '?'} to {server or '?'}"
