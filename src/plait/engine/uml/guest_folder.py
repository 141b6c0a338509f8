"""The folder to which a guest writes, read as what it is: hostile.

A guest whose kernel was taken over puts anything there: links, FIFOs, files of any size, any number of them, any name.
`Folder` opens what is there; this module turns all that it refuses into a TrialError, so that the guest's trial fails
and nothing else, limits what the guest may use, and hands over what a trial leaves.
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
"""Files and folders that a guest may leave."""
_MODE = 0o644


class GuestFolder:
    """The part of a job folder that a guest may write to. TrialError tells what no guest of plait does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """Return the content of a file of at most `max_bytes` bytes; None when there is no such file."""
        return self._read_with(name, lambda folder, last: folder.read(last, max_bytes))

    def tail(self, name: str, max_bytes: int) -> bytes:
        """Return the last bytes of a file, at most `max_bytes`; none when there is no such file."""
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
        """Return how much of the disk the folder takes."""
        used = 0
        for entry in self._entries():
            try:
                used += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:  # the guest removed it meanwhile
                continue
        return used

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        waiting = [str(self.path)]
        count = 0
        while waiting:
            try:
                entries = os.scandir(waiting.pop())
            except (FileNotFoundError, NotADirectoryError, PermissionError):  # the guest changed it meanwhile
                continue
            with entries:
                for entry in entries:
                    count += 1
                    if count > MAX_ENTRIES:
                        raise TrialError(f"the guest left more than {MAX_ENTRIES} files and folders")
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)

    def collect(self, names: tuple[str, ...], target: Path) -> None:
        """Move files and folders called `names` to `target`, where they hold nothing but plain files.

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
                    folder.tail(name, 1)  # refuses what is no regular file
                for path in inside:
                    self.path.joinpath(*path).chmod(_MODE)
                folder.give(name, target / name)
            except OSError as error:
                where = os.path.relpath(error.filename or name, self.path)
                raise TrialError(f"collecting {where} of the guest's folder: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the folder with all that is in it; links in it are removed, not followed."""
        try:
            shutil.rmtree(self.path)
        except (OSError, RecursionError):  # nested more deeply than Python walks, or without permissions
            subprocess.run(
                ["rm", "-rf", "--", str(self.path)], check=False, stderr=subprocess.DEVNULL, timeout=600
            )
