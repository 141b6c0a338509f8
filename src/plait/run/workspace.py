"""The folder in which guests run, and its removal whatever happens to plait.

A guest needs a directory of its own on the host. Leaving one behind after `kill -9` would be littering, and a
killed process cannot clean up; so a `sh` waits on a pipe that only plait holds open, and removes the folder when
the pipe closes: at the normal end, after Ctrl-C and after `kill -9` alike.
"""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from plait.errors import MachineError

# Guests die with plait (PR_SET_PDEATHSIG), but may still be writing for a moment: try again, a bounded number
# of times.
_JANITOR = 'read -r _; for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" && exit 0; sleep 0.2; done'


class Workspace:
    """A temporary folder below `parent` that is gone when the `with` block, or the process, ends."""

    def __init__(self, parent: Path, prefix: str) -> None:
        self._parent = parent
        self._prefix = prefix
        self._janitor: subprocess.Popen[bytes] | None = None
        self.path = parent
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        """Makes the folder. Raises MachineError when it cannot be made."""
        try:
            self._parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=self._prefix, dir=self._parent))
        except OSError as error:
            raise MachineError(
                f"making a working folder in {self._parent}: {error.strerror}; "
                "free some space there, or set PLAIT_CACHE to a directory that you can write to"
            ) from error
        self._janitor = subprocess.Popen(
            ["/bin/sh", "-c", _JANITOR, "sh", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for plait, not for the janitor
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._janitor is not None
        assert self._janitor.stdin is not None
        self._janitor.stdin.close()
        self._janitor.wait(timeout=30)

    def job(self) -> Path:
        """Makes and returns a fresh folder for one trial (OSError when it cannot). Any thread may call it."""
        path = self.path / f"{next(self._numbers):05d}"
        path.mkdir()
        return path
