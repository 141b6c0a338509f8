"""Limits that the machine sets to this process (`ulimit`): which of them are too low, and what to do about each error.

Libraries that reserve addresses abort the process where they get none, without a word that helps. So what is too low is
refused beforehand.
"""

from __future__ import annotations

import errno
import resource
from dataclasses import dataclass

from plait.errors import MachineError

_REMEDIES = {
    errno.EMFILE: "allow the process to open more files (ulimit -n), or run fewer trials at once (--jobs)",
    errno.ENFILE: "this machine may open no more files; close some",
    errno.EAGAIN: "allow this user more processes (ulimit -u), or run fewer trials at once (--jobs)",
    errno.ENOMEM: "free some memory, or allow the process more (ulimit -v)",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "it cannot be written to; choose another place",
}


@dataclass(frozen=True)
class Need:
    """How much of a resource something needs."""

    resource: int
    least: int
    words: str
    """What there is `least` of, and what for."""
    option: str
    """That of `ulimit` that sets it .."""
    unit: int = 1
    """.. in units of so many."""


FILES = Need(resource.RLIMIT_NOFILE, 64, "64 open files", "-n")
ADDRESSES = Need(resource.RLIMIT_AS, 4 << 30, "4 GiB of addresses for its libraries", "-v", 1024)
DRAWING = Need(
    resource.RLIMIT_AS, 72 << 30, "72 GiB of addresses (not of memory) to draw figures", "-v", 1024
)
"""The JavaScript engine that draws reserves that much before it starts, and gets by with some 200 MB."""


def require(*needs: Need) -> None:
    """Raise MachineError where the process is allowed less than it needs."""
    for need in needs:
        limit, _ = resource.getrlimit(need.resource)
        if limit != resource.RLIM_INFINITY and limit < need.least:
            raise MachineError(
                f"plait needs {need.words}, and this process is allowed {limit // need.unit} (ulimit {need.option}); "
                f"allow at least {need.least // need.unit}"
            )


def remedy(error: OSError, otherwise: str) -> str:
    """Return what to do about an error of the system; `otherwise` where it says nothing of the machine."""
    return _REMEDIES.get(error.errno or 0, otherwise)
