"""Resource limits of this process (`ulimit`): refuse those that are too low, and name the remedy of a system error.

Libraries that reserve address space abort the process without a useful message if they get none. So plait checks the
limits first.
"""

from __future__ import annotations

import errno
import resource
from dataclasses import dataclass

from plait.errors import MachineError

_REMEDIES = {
    errno.EMFILE: "raise the limit of open files (ulimit -n), or run fewer trials at once (--jobs)",
    errno.ENFILE: "the machine has reached its limit of open files; close some",
    errno.EAGAIN: "raise the limit of processes (ulimit -u), or run fewer trials at once (--jobs)",
    errno.ENOMEM: "free some memory, or raise the limit (ulimit -v)",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "the file system is read-only; choose another folder",
}


@dataclass(frozen=True)
class Need:
    """The least amount of a resource that plait needs for a purpose."""

    resource: int
    least: int
    words: str
    """The amount and its purpose, for messages."""
    option: str
    """The option of `ulimit` that sets the limit."""
    unit: int = 1
    """The unit of that option, in the unit of `least`."""


FILES = Need(resource.RLIMIT_NOFILE, 64, "64 open files", "-n")
ADDRESSES = Need(resource.RLIMIT_AS, 4 << 30, "4 GiB of addresses for its libraries", "-v", 1024)
DRAWING = Need(
    resource.RLIMIT_AS, 72 << 30, "72 GiB of addresses (not of memory) to draw figures", "-v", 1024
)
"""The JavaScript engine that draws figures reserves this address space at its start, and uses some 200 MB of it."""


def require(*needs: Need) -> None:
    """Raise MachineError if a limit of this process is below a need."""
    for need in needs:
        limit, _ = resource.getrlimit(need.resource)
        if limit != resource.RLIM_INFINITY and limit < need.least:
            raise MachineError(
                f"plait needs {need.words}, but this process is limited to {limit // need.unit} "
                f"(ulimit {need.option}); raise the limit to at least {need.least // need.unit}"
            )


def remedy(error: OSError, otherwise: str) -> str:
    """Return the remedy of a system error; `otherwise` for an error that has no general remedy."""
    return _REMEDIES.get(error.errno or 0, otherwise)
