"""Tells which user of this machine a connection on the loopback comes from.

The address of `plait view` is no secret of one user: the command line of the browser that opens it has it, and every
user may read command lines.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The connections of this machine (proc_net(5)). A socket of IPv6 can connect to an address of IPv4."""
_ESTABLISHED = "01"
_MAPPED = "0000000000000000FFFF0000"
"""The first 96 bits of an address of IPv4 in the table of IPv6."""


def is_trusted(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Return whether the connection from `client` (address, port) to `server` comes from this user or from root.

    Only a connection that is still open has an owner; False for any other. Raises OSError without the kernel's table.
    """
    return owner(client, server) in {os.getuid(), 0}


def owner(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the user ID of the process that made an IPv4 connection; None if it is not open. Raises OSError."""
    ends = _written(client), _written(server)
    for table, prefix in zip(TABLES, ("", _MAPPED), strict=True):
        try:
            lines = table.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:  # a kernel without IPv6
            if not prefix:
                raise
            continue
        wanted = [f"{prefix}{end}" for end in ends]
        for line in lines:
            words = line.split()
            if words[1:3] == wanted and words[3] == _ESTABLISHED:
                return int(words[7])
    return None


def _written(end: tuple[str, int]) -> str:
    """Return an address and a port as the kernel writes them."""
    address = int.from_bytes(socket.inet_aton(end[0]), sys.byteorder)
    return f"{address:08X}:{end[1]:04X}"
