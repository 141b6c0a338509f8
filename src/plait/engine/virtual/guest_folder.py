"""Reads the folder to which a guest writes, and treats it as hostile.

A compromised guest kernel can write anything there: links, FIFOs, files of any size, number and name. `Folder` refuses
them; this module turns each refusal into a TrialError, so that only the trial of this guest fails. It also copies the
results of a trial out of the folder.

While the guest runs, the folder is a file system in memory (tmpfs, `contain/src/root`), whose size limits space and
names.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from plait.errors import TrialError
from plait.files import Folder

_OPENED = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


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

    def length(self, name: str) -> int:
        """Return the length of a file in this folder, 0 if there is none; a look at a link touches nothing else."""
        try:
            return (self.path / name).lstat().st_size
        except OSError:
            return 0

    def mount(self, descriptor: int) -> None:
        """Put the folder in memory that `descriptor` refers to in place of this one, until `remove`.

        It belongs to the guest's mount namespace. The link that leads to it also serves other processes of the user.
        """
        shutil.rmtree(self.path)
        Folder(self.path.parent).link(self.path.name, Path(f"/proc/{os.getpid()}/fd/{descriptor}"))

    def open(self, name: str) -> int:
        """Return a descriptor of a regular file to read, which is created if missing."""
        try:
            descriptor = os.open(self.path / name, _OPENED, 0o600)
        except OSError as error:
            raise TrialError(f"opening {name} of the guest's folder: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise TrialError(f"opening {name} of the guest's folder: it is not a regular file")
        return descriptor

    def exhausted(self) -> str | None:
        """Return what the guest has used up of its folder in memory, `space` or `files`; None for neither."""
        if (
            not self.path.is_symlink()
        ):  # without a root of its own, the guest writes to the disk of the job folder
            return None
        status = os.statvfs(self.path)
        return "space" if status.f_bavail == 0 else "files" if status.f_favail == 0 else None

    def collect(self, names: tuple[str, ...], target: Path) -> None:
        """Copy the files and folders called `names` to `target`; refuse anything but plain files in them.

        The guest must have ended.
        """
        folder = Folder(self.path)
        status = os.statvfs(self.path)
        bytes_left = status.f_blocks * status.f_frsize  # files with holes would need more on the disk
        for name in names:
            try:
                if not folder.has(name):
                    continue
                is_folder = stat.S_ISDIR((self.path / name).lstat().st_mode)
                inside = [(name, *path) for path in (folder / name).files()] if is_folder else [(name,)]
                bytes_left -= sum(self.path.joinpath(*path).lstat().st_size for path in inside)
                if bytes_left < 0:
                    raise TrialError(f"collecting {name} of the guest's folder: its files have holes")
                if is_folder:
                    (folder / name).copy(Folder(target) / name)
                else:
                    folder.copy_file(name, Folder(target))
            except OSError as error:
                place = os.path.relpath(error.filename or name, self.path)
                raise TrialError(f"collecting {place} of the guest's folder: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the folder and its contents; links in it are removed, not followed."""
        if self.path.is_symlink():
            descriptor = int(self.path.readlink().name)
            self.path.unlink()
            os.close(descriptor)  # the last reference to the file system in memory
            return
        try:
            shutil.rmtree(self.path)
        except (OSError, RecursionError):  # nested too deeply for Python, or without permissions
            subprocess.run(
                ["rm", "-rf", "--", str(self.path)], check=False, stderr=subprocess.DEVNULL, timeout=600
            )
