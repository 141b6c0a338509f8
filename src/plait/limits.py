"""Resource limits of this process (`ulimit`): refuse those that are too low, and name the remedy of a system error.

Libraries that reserve address space abort the process without a useful message if they get none. So plait checks the
limits first.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from dataclasses import dataclass
from pathlib import Path

from plait.errors import MachineError

_REMEDIES = {
    errno.EMFILE: "raise the limit of open files (ulimit -n), or run fewer trials at once (--jobs)",
    errno.ENFILE: "the machine has reached its limit of open files; close some",
    errno.EAGAIN: "raise the limit of processes (ulimit -u), or run fewer trials at once (--jobs)",
    errno.ENOMEM: "free some memory, or raise the limit (ulimit -v)",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EILSEQ: "choose another name",
    errno.EROFS: "the file system is read-only; choose another folder",
}


@dataclass(frozen=True)
class _Need:
    """The least amount of a resource that plait needs for a purpose."""

    resource: int
    least: int
    words: str
    """The amount and its purpose, for messages."""
    option: str
    """The option of `ulimit` that sets the limit."""
    unit: int = 1
    """The unit of that option, in the unit of `least`."""


FILES = _Need(resource.RLIMIT_NOFILE, 64, "64 open files", "-n")
ADDRESSES = _Need(resource.RLIMIT_AS, 4 << 30, "4 GiB of addresses for its libraries", "-v", 1024)
DRAWING = _Need(
    resource.RLIMIT_AS, 72 << 30, "72 GiB of addresses (not of memory) to draw figures", "-v", 1024
)
"""The JavaScript engine that draws figures reserves this address space at its start, and uses some 200 MB of it."""


def require(*needs: _Need) -> None:
    """Raise MachineError if a limit of this process is below a need."""
    for need in needs:
        limit, _ = resource.getrlimit(need.resource)
        if limit != resource.RLIM_INFINITY and limit < need.least:
            raise MachineError(
                f"plait needs {need.words}, but this process is limited to {limit // need.unit} "
                f"(ulimit {need.option}); raise the limit to at least {need.least // need.unit}"
            )


_PROCESSES, _PROCESSES_PER_CORE = 48, 8
"""The libraries start threads for each core, and a guest has a process for each process inside it."""
_PLENTY = 4096
"""With a limit this high, plait does not count processes; a user who reaches it gets the remedy of the error."""


def require_processes() -> None:
    """Raise MachineError if this user may not start the processes and threads that plait needs (`ulimit -u`).

    The kernel does not apply the limit to root.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() == 0 or limit == resource.RLIM_INFINITY or limit >= _PLENTY:
        return
    running = _tasks_of_user(os.getuid())
    least = running + _PROCESSES + _PROCESSES_PER_CORE * len(os.sched_getaffinity(0))
    if limit < least:
        raise MachineError(
            f"plait needs {least - running} more processes and threads, but this user is limited to {limit} and runs "
            f"{running} (ulimit -u); raise the limit to at least {least}"
        )


def _tasks_of_user(user: int) -> int:
    """Return the number of processes and threads of a user (proc_pid_status(5), `Uid` and `Threads`)."""
    tasks = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, ValueError, LookupError):
            fields = dict(line.split(":", 1) for line in status.read_text(errors="replace").splitlines())
            if int(fields["Uid"].split()[0]) == user:
                tasks += int(fields["Threads"])
    return tasks


def remedy(error: OSError, otherwise: str) -> str:
    """Return the remedy of a system error; `otherwise` for an error that has no general remedy."""
    return _REMEDIES.get(error.errno or 0, otherwise)
