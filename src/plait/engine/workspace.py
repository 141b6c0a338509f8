"""The folder in which guests run, and its removal whatever happens to plait.

A guest needs a directory of its own on the host, and a killed process cannot clean up. So the janitor, a `sh`, waits on
a pipe that only plait holds open, and removes the folder when the pipe closes: at the normal end, after Ctrl-C and
after `kill -9` alike. The janitor starts before plait creates the folder, so every folder has a janitor.

If the janitor is killed too, the next workspace in the same place removes the folder: a process that uses a workspace
holds a lock on it, and the lock ends with the process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import subprocess
from pathlib import Path
from typing import Self

from plait.cache import CACHE_REMEDY, cache_root, lock_folder, remove_abandoned, used_folder
from plait.errors import MachineError
from plait.files import Folder
from plait.limits import remedy

# Guests die with plait (PR_SET_PDEATHSIG), but may write for a moment longer, on a busy machine for some seconds: try
# again, a bounded number of times.
# chmod makes readable what a guest made unreadable; neither command follows links.
_JANITOR = """
read -r _
tries=60
while [ $tries -gt 0 ]; do
    rm -rf -- "$1" && exit 0
    chmod -R u+rwx -- "$1"
    sleep 0.2
    tries=$((tries - 1))
done
"""
_JANITOR_TIMEOUT_S = 60


class Workspace:
    """A temporary folder below `parent` that exists until the `with` block, or the process, ends."""

    def __init__(self, parent: Path, prefix: str) -> None:
        self._parent = parent
        self._prefix = prefix
        self._janitor: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self.path = parent
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        """Create the folder (MachineError if that fails)."""
        try:
            self._parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self._parent, self._prefix)
            while self._lock is None:
                self._end_janitor()  # of a folder that another plait removed
                self.path = self._parent / f"{self._prefix}{secrets.token_hex(8)}"
                self._janitor = _janitor(self.path)
                self.path.mkdir(0o700)
                self._lock = lock_folder(self.path)
        except OSError as error:
            in_cache = self._parent.is_relative_to(cache_root())
            hint = remedy(error, CACHE_REMEDY if in_cache else "choose another folder")
            raise MachineError(
                f"creating a working folder in {self._parent}: {error.strerror}; {hint}"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        assert self._lock is not None
        self._end_janitor()
        with contextlib.suppress(OSError):  # the janitor was killed, or the disk fails
            if self.path.exists():
                Folder(self._parent).remove(self.path.name)
        os.close(self._lock)

    def _end_janitor(self) -> None:
        """Let the janitor remove its folder, if there is one."""
        if self._janitor is None:
            return
        assert self._janitor.stdin is not None
        self._janitor.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # the disk is slow; the janitor goes on
            self._janitor.wait(timeout=_JANITOR_TIMEOUT_S)

    def job(self) -> Path:
        """Create and return an empty folder for one trial (OSError if that fails). Any thread may call it."""
        path = self.path / f"{next(self._numbers):05d}"
        path.mkdir()
        return path


def working_folder() -> Workspace:
    """Return a workspace in the cache, for what only this process uses."""
    return Workspace(used_folder("exec"), ".work-")


def _janitor(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _JANITOR, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in the terminal must reach plait, not the janitor
    )
