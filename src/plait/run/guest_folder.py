"""The folder to which a guest writes, read as what it is: hostile.

A guest whose kernel was taken over puts anything there: links, FIFOs, files of any size, any number of them, any name.
Everything here opens files beneath the folder only, follows no link, opens regular files alone, and reads no more than
it was asked for. What it does not accept raises TrialError, so that the guest's trial fails and nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

from plait.errors import TrialError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SYS_OPENAT2 = 437
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08
"""RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH (linux/openat2.h)."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

MOST_ENTRIES = 20_000
"""Files and folders that a guest may leave."""
_MOST_DEPTH = 8
_MODE = 0o644

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def plain(text: str) -> str:
    """Return words of a guest as a terminal may get them: control characters are written out, lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


class GuestFolder:
    """The part of a job folder that a guest may write to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, name: str) -> int | None:
        """Return a descriptor of the regular file `name`; None when there is no such file."""
        folder = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            how = _OpenHow(_FLAGS, 0, _RESOLVE)
            descriptor = _libc.syscall(
                _SYS_OPENAT2, folder, os.fsencode(name), ctypes.byref(how), ctypes.sizeof(how)
            )
        finally:
            os.close(folder)
        if descriptor < 0:
            number = ctypes.get_errno()
            if number == errno.ENOENT:
                return None
            raise TrialError(f"reading {name!r} of the guest's folder: {os.strerror(number)}")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise TrialError(f"reading {name!r} of the guest's folder: it is not a regular file")
        return int(descriptor)

    def read(self, name: str, most: int) -> bytes | None:
        """Return the content of the file `name`, of at most `most` bytes; None when there is no such file."""
        descriptor = self.open(name)
        if descriptor is None:
            return None
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise TrialError(f"reading {name!r} of the guest's folder: it is longer than {most} bytes")
        return content

    def tail(self, name: str, most: int) -> bytes:
        """Return the last bytes of the file `name`, at most `most`; none when there is no such file."""
        descriptor = self.open(name)
        if descriptor is None:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            file.seek(max(0, os.fstat(descriptor).st_size - most))
            return file.read(most)

    def used_bytes(self) -> int:
        """Return how much of the disk the folder takes (TrialError when it holds too many entries)."""
        used = 0
        for entry in self._entries():
            try:
                used += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:  # the guest removed it meanwhile
                continue
        return used

    def collect(self, names: tuple[str, ...], target: Path) -> None:
        """Move files and folders called `names` to `target`; only regular files with plain names are accepted.

        The guest must have ended. Raises TrialError for anything else that is there, which stays where it is.
        """
        for name in names:
            source = self.path / name
            try:
                mode = source.lstat().st_mode
            except FileNotFoundError:
                continue
            self._accept(source, mode, 0)
            source.rename(target / name)

    def _accept(self, path: Path, mode: int, depth: int) -> None:
        shown = repr(str(path.relative_to(self.path)))
        if stat.S_ISREG(mode):
            path.chmod(_MODE)
            return
        if not stat.S_ISDIR(mode):
            raise TrialError(f"collecting {shown} of the guest's folder: it is neither a file nor a folder")
        if depth >= _MOST_DEPTH:
            raise TrialError(f"collecting {shown} of the guest's folder: it is nested too deeply")
        path.chmod(0o755)
        for entry in os.scandir(path):
            if not entry.name.isprintable():
                raise TrialError(f"collecting {shown} of the guest's folder: {entry.name!r} is no plain name")
            self._accept(path / entry.name, entry.stat(follow_symlinks=False).st_mode, depth + 1)

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        waiting = [str(self.path)]
        count = 0
        while waiting:
            try:
                entries = os.scandir(waiting.pop())
            except (FileNotFoundError, NotADirectoryError):  # the guest replaced it meanwhile
                continue
            with entries:
                for entry in entries:
                    count += 1
                    if count > MOST_ENTRIES:
                        raise TrialError(f"the guest left more than {MOST_ENTRIES} files and folders")
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)

    def remove(self) -> None:
        """Remove the folder with all that is in it; links in it are removed, not followed."""
        try:
            shutil.rmtree(self.path)
        except (OSError, RecursionError):  # nested more deeply than Python walks, or without permissions
            subprocess.run(["rm", "-rf", "--", str(self.path)], check=False, stderr=subprocess.DEVNULL)
