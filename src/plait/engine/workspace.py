"""The folder in which guests run, and its removal whatever happens to plait.

A guest needs a directory of its own on the host, and a killed process cannot clean up. So a `sh`, the janitor, waits on
a pipe that only plait holds open, and removes the folder when the pipe closes: at the normal end, after Ctrl-C and
after `kill -9` alike. The janitor starts before the folder exists, so that there is never a folder without a janitor.

Should somebody kill the janitor as well, the next workspace beside it removes the folder: whoever uses one holds a lock
on it, which ends with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import subprocess
from typing import TYPE_CHECKING, Self

from plait.errors import MachineError
from plait.files import Folder
from plait.limits import remedy

if TYPE_CHECKING:
    from pathlib import Path

# Guests die with plait (PR_SET_PDEATHSIG), but may still be writing for a moment: try again, a bounded number of times.
# What a guest has made unreadable is made readable first; neither command follows links.
_JANITOR = """
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1" && exit 0
    chmod -R u+rwx -- "$1"
    sleep 0.2
done
"""
_JANITOR_TIMEOUT_S = 30


class Workspace:
    """A temporary folder below `parent` that is gone when the `with` block, or the process, ends."""

    def __init__(self, parent: Path, prefix: str) -> None:
        self._parent = parent
        self._prefix = prefix
        self._janitor: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self.path = parent
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        """Makes the folder. Raises MachineError when it cannot be made."""
        try:
            self._parent.mkdir(parents=True, exist_ok=True)
            self._remove_abandoned()
            while self._lock is None:
                self.path = self._parent / f"{self._prefix}{secrets.token_hex(8)}"
                self._janitor = _janitor(self.path)
                self.path.mkdir(0o700)
                self._lock = _locked(self.path)
        except OSError as error:
            hint = remedy(error, "set PLAIT_CACHE to a directory that you can write to")
            raise MachineError(
                f"making a working folder in {self._parent}: {error.strerror}; {hint}"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        assert self._janitor is not None
        assert self._janitor.stdin is not None
        assert self._lock is not None
        self._janitor.stdin.close()
        self._janitor.wait(timeout=_JANITOR_TIMEOUT_S)
        with contextlib.suppress(OSError):  # somebody has killed the janitor, or the disk is broken
            if self.path.exists():
                Folder(self._parent).remove(self.path.name)
        os.close(self._lock)

    def job(self) -> Path:
        """Makes and returns a fresh folder for one trial (OSError when it cannot). Any thread may call it."""
        path = self.path / f"{next(self._numbers):05d}"
        path.mkdir()
        return path

    def _remove_abandoned(self) -> None:
        """Removes folders whose plait and whose janitor were killed; those in use are locked."""
        parent = Folder(self._parent)
        for name in parent.names():
            if name.startswith(self._prefix):
                with contextlib.suppress(OSError):  # in use; or a link, which is not ours
                    descriptor = os.open(self._parent / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        parent.remove(name)
                    finally:
                        os.close(descriptor)


def _janitor(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _JANITOR, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in the terminal is for plait, not for the janitor
    )


def _locked(folder: Path) -> int | None:
    """Returns a descriptor that keeps the new folder from being removed as abandoned; None: it was removed already."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a file system without locks: others cannot take one either
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if folder.exists():
            return descriptor
        os.close(descriptor)
    return None
