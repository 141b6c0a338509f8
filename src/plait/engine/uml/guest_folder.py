"""Reads the folder to which a guest writes, and treats it as hostile.

A compromised guest kernel can write anything there: links, FIFOs, files of any size, number and name. `Folder` refuses
them; this module turns each refusal into a TrialError, so that only the trial of this guest fails. It also limits the
disk space and the number of files, and moves the results of a trial out of the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

from plait.errors import TrialError
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_ENTRIES = 20_000
"""Maximum number of files and folders that a guest may write."""
_MODE = 0o644


class GuestFolder:
    """The subfolder of a job folder that a guest may write to. Raises TrialError for what no intact guest writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """Return the content of a file of at most `max_bytes` bytes; None if there is no such file."""
        return self._read_with(name, lambda folder, last: folder.read(last, max_bytes))

    def tail(self, name: str, max_bytes: int) -> bytes:
        """Return the last bytes of a file, at most `max_bytes`; empty if there is no such file."""
        return self._read_with(name, lambda folder, last: folder.tail(last, max_bytes)) or b""

    def _read_with(self, name: str, take: Callable[[Folder, str], bytes]) -> bytes | None:
        *folders, last = name.split("/")
        try:
            return take(Folder(self.path, tuple(folders)), last)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TrialError(f"reading {name} of the guest's folder: {error.strerror}") from error

    def used_bytes(self) -> int:
        """Return the disk space that the folder occupies, in bytes."""
        used = 0
        for entry in self._entries():
            try:
                used += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:  # the guest has removed it
                continue
        return used

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        waiting = [str(self.path)]
        count = 0
        while waiting:
            try:
                entries = os.scandir(waiting.pop())
            except (FileNotFoundError, NotADirectoryError, PermissionError):  # the guest has changed it
                continue
            with entries:
                for entry in entries:
                    count += 1
                    if count > MAX_ENTRIES:
                        raise TrialError(
                            f"the guest wrote more than {MAX_ENTRIES} files and folders; make its programs write fewer"
                        )
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)

    def collect(self, names: tuple[str, ...], target: Path) -> None:
        """Move the files and folders called `names` to `target`; refuse anything but plain files in them.

        The guest must have ended.
        """
        folder = Folder(self.path)
        for name in names:
            try:
                if not folder.has(name):
                    continue
                inside: list[tuple[str, ...]] = [(name,)]
                if stat.S_ISDIR((self.path / name).lstat().st_mode):
                    inside = [(name, *path) for path in (folder / name).files()]
                else:
                    folder.tail(name, 1)  # refuses anything but a regular file
                for path in inside:
                    self.path.joinpath(*path).chmod(_MODE)
                folder.give(name, target / name)
            except OSError as error:
                where = os.path.relpath(error.filename or name, self.path)
                raise TrialError(f"collecting {where} of the guest's folder: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the folder and its contents; links are removed, not followed."""
        try:
            shutil.rmtree(self.path)
        except (OSError, RecursionError):  # nested too deeply for Python, or without permissions
            subprocess.run(
                ["rm", "-rf", "--", str(self.path)], check=False, stderr=subprocess.DEVNULL, timeout=600
            )
