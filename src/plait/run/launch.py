"""Starting and ending the host's process of a guest.

It dies with plait, runs at fixed addresses, and, where programs of the host run in it, is confined to folders of its
own (`confined.py`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from typing import IO, TYPE_CHECKING

from plait.errors import MachineError, TrialError
from plait.run import confined

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Should plait die before setpriv has asked for the signal, the signal never comes: so look who the parent is.
_UNLESS_ORPHANED = '[ "$PPID" = "$0" ] || exit 1; exec "$@"'


def launcher() -> list[str]:
    """Returns the command prefix under which guests run: they die with plait, at fixed addresses."""
    tools = {name: shutil.which(name) for name in ("setpriv", "setarch")}
    missing = [name for name, path in tools.items() if path is None]
    if missing:
        raise MachineError(
            f"{' and '.join(missing)} not found; install util-linux (`apt-get install util-linux`)"
        )
    unless_orphaned = ["/bin/sh", "-c", _UNLESS_ORPHANED, str(os.getpid())]
    return [str(tools["setpriv"]), "--pdeathsig=KILL", "--", *unless_orphaned, str(tools["setarch"]), "-R"]


def confiner(writable: Sequence[Path]) -> list[str]:
    """Returns the command prefix under which nothing of the host but `writable` can be changed."""
    folders = [str(folder.resolve()) for folder in writable]
    return [sys.executable, "-I", "-S", confined.__file__, *folders, "--"]


def refuse_unconfined(console: Sequence[str]) -> None:
    """Raises MachineError when the console tells that the machine did not allow it."""
    refused = [line.partition(": ")[2] for line in console if line.startswith("plait-confined:")]
    if refused:
        raise MachineError(
            f"keeping the host's files from being changed: {refused[0]}; programs of the host run only where "
            "namespaces of users or of mounts may be made (in a container: allow them, or run it privileged)"
        )


def memory_directory() -> str:
    """Returns the directory for the guest's memory: the first that is in memory, and writable."""
    for path in ("/dev/shm", "/tmp"):  # noqa: S108 - the file is unlinked by the guest as soon as it is open
        if os.access(path, os.W_OK | os.X_OK):
            return path
    raise MachineError("neither /dev/shm nor /tmp is writable; the guest's memory needs one of them")


def spawn(
    command: Sequence[str], folder: Path, console: IO[bytes], orders: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Starts a guest in `folder`; its console's log goes to `console`, `orders` is its descriptor 0.

    Raises TrialError when it cannot be started.
    """
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=orders,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={
                "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                "HOME": str(folder),
                "TMPDIR": memory_directory(),
            },
            start_new_session=True,  # Ctrl-C is for plait; and the whole guest can be ended as one group
        )
    except OSError as error:
        raise TrialError(
            f"starting the guest ({command[0]}): {error.strerror}; `plait doctor` says what is missing"
        ) from error


def end(guest: subprocess.Popen[bytes]) -> None:
    """Ends the guest's whole process group, and waits for it."""
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
        os.killpg(guest.pid, signal.SIGKILL)
    guest.wait()
