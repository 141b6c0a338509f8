"""Folders that may come from a stranger: every path below one stays below it, and no link in it is followed.

Result folders, entries of the store and what a guest leaves are full of names that somebody else chose. `Folder` is the
only way to read, write, list, copy or remove below such a folder. It opens one component after the other, each relative
to the descriptor of the one before and without following links, which is what openat2(2) does with RESOLVE_BENEATH and
RESOLVE_NO_SYMLINKS. So a name such as `..` or `/etc`, and a link that appears in between, lead nowhere.

Every refusal is an `UnfitError`, an OSError with the whole path as its `filename` and a reason as its `strerror`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_BYTES = 256 << 20
"""No file of text that plait reads is longer (a plan of 1000 hosts has some 20 MB)."""
MOST_FILES = 100_000
MOST_DEPTH = 32
"""What a folder that is copied as a whole may hold."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20


def _nameless(folder: int, name: str) -> int:
    """Return a descriptor of a new file without a name, which a killed process leaves nowhere, or called `name`."""
    try:
        return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
        return os.open(name, _NEW, 0o666, dir_fd=folder)  # a file system that has none


class UnfitError(OSError):
    """Something in a folder is not what plait left there: a link, a device, a name that leads elsewhere, too much."""


def wrong_name(name: str) -> str | None:
    """Return why `name` cannot name a file in a folder, or None when it can."""
    if name in {"", ".", ".."}:
        return "it names no file of its own"
    if "/" in name:
        return "it has a slash, so that it leads to another folder"
    if not name.isprintable():
        return "it has control characters"
    if len(name.encode(errors="replace")) > 255:
        return "it is longer than 255 bytes"
    return None


def json_of(content: bytes) -> Any:
    """Return the value in a JSON text (ValueError for anything else, also where it is nested too deeply)."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


@dataclass(frozen=True)
class Folder:
    """The folder `root`, which the user named, or the one at `inside` below it, whose names a stranger chose."""

    root: Path
    inside: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: Folder | Path) -> Folder:
        """Return the folder itself, or the one that the user named by its path."""
        return place if isinstance(place, Folder) else cls(place)

    def __truediv__(self, name: str) -> Folder:
        """Return the folder `name` in this one. Nothing is opened yet."""
        return Folder(self.root, (*self.inside, name))

    @property
    def path(self) -> Path:
        """The path, for messages."""
        return self.root.joinpath(*self.inside)

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        """Return the names in this folder, sorted; none when there is no such folder."""
        return sorted(self._modes())

    def folders(self) -> list[str]:
        """Return the names of folders in this one, sorted; UnfitError where a link leads to a folder."""
        modes = self._modes()
        for name, mode in modes.items():
            if stat.S_ISLNK(mode) and (self.path / name).is_dir():
                raise self._link(name)
        return sorted(name for name, mode in modes.items() if stat.S_ISDIR(mode))

    def has(self, name: str) -> bool:
        """Return whether there is anything called `name`, a link included."""
        try:
            return self._mode(name) != 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a regular file of at most `most` bytes (OSError)."""
        with self._file(name) as descriptor:
            with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
                content = file.read(most + 1) if os.fstat(descriptor).st_size > most else file.readall()
            if len(content) > most:
                raise self._refused(errno.EFBIG, name, f"it has more than {most} bytes")
            return content

    def tail(self, name: str, most: int) -> bytes:
        """Return the last bytes of a regular file, at most `most` (OSError)."""
        with self._file(name) as descriptor:
            return os.pread(descriptor, most, max(0, os.fstat(descriptor).st_size - most))

    def write(self, name: str, content: bytes) -> None:
        """Write a file, making folders on the way; a reader sees the old file or the new one (OSError).

        What had the name before is replaced, a link as well; what it leads to stays as it is. Any number of processes
        may write the same file at once: one of them wins, whole.
        """
        self._check(name)
        temporary = f".{secrets.token_hex(8)}.new"
        with self._opened(make=True) as here:
            try:
                with os.fdopen(_nameless(here, temporary), "wb") as file:
                    file.write(content)
                    file.flush()
                    with contextlib.suppress(FileExistsError):  # it has a name where none was to be avoided
                        os.link(f"/proc/self/fd/{file.fileno()}", temporary, dst_dir_fd=here)
                os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=here)
                raise self._named(error, name) from error

    def remove(self, name: str) -> None:
        """Remove what is called `name`: a folder with all that is in it, of a link the link (OSError)."""
        with self._opened() as here:
            try:
                if stat.S_ISDIR(self._mode(name)):
                    shutil.rmtree(name, dir_fd=here)
                else:
                    os.unlink(name, dir_fd=here)
            except RecursionError as error:
                raise self._refused(errno.ELOOP, name, "its folders are nested too deeply") from error

    def take(self, source: Path, name: str) -> None:
        """Move the folder or file `source`, of the same file system, here as `name` (OSError)."""
        self._check(name)
        with self._opened(make=True) as here:
            os.rename(source, name, dst_dir_fd=here)

    def give(self, name: str, target: Path) -> None:
        """Move what is called `name` out of here, to `target` on the same file system (OSError)."""
        self._check(name)
        with self._opened() as here:
            os.rename(name, target, src_dir_fd=here)

    def files(self) -> list[tuple[str, ...]]:
        """Return the paths of all files in this folder and below (UnfitError where one is a link or no file)."""
        paths: list[tuple[str, ...]] = []
        pending: list[tuple[str, ...]] = [()]
        while pending:
            place = pending.pop()
            folder = Folder(self.root, self.inside + place)
            for name, mode in folder._modes().items():
                folder._check(name)
                if stat.S_ISDIR(mode) and len(place) < MOST_DEPTH:
                    pending.append((*place, name))
                elif stat.S_ISREG(mode):
                    paths.append((*place, name))
                else:
                    raise folder._unfit(name, mode)
            if len(paths) + len(pending) > MOST_FILES:
                raise self._refused(errno.EFBIG, "", f"it holds more than {MOST_FILES} files and folders")
        return sorted(paths)

    def copy(self, target: Folder) -> None:
        """Copy all files in this folder and below to `target`, which is made (OSError)."""
        with target._opened(make=True):
            pass
        for *folders, name in self.files():
            source, place = self, target
            for folder in folders:
                source, place = source / folder, place / folder
            source.copy_file(name, place)

    def copy_file(self, name: str, target: Folder) -> None:
        """Copy a file to the folder `target`, which is made; a file that is there already is an error (OSError)."""
        with self._file(name) as source, target._opened(make=True) as there:
            copy = os.open(name, _NEW, 0o666, dir_fd=there)
            try:
                while os.sendfile(copy, source, None, _CHUNK << 6):
                    pass
            except OSError as error:
                raise target._named(error, name) from error
            finally:
                os.close(copy)

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of this folder, which is made with those on the way to it where `make`."""
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root, _FOLDER)
        try:
            for depth, name in enumerate(self.inside):
                parent = Folder(self.root, self.inside[:depth])
                parent._check(name)
                try:
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(name, dir_fd=descriptor)
                    inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                except NotADirectoryError as error:
                    raise self._not_a_folder(parent, descriptor, name) from error
                except OSError as error:
                    raise parent._named(error, name) from error
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _file(self, name: str) -> Iterator[int]:
        """Yield a descriptor of a regular file."""
        self._check(name)
        with self._opened() as here:
            try:
                mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
                if not stat.S_ISREG(mode):  # opening a device or a FIFO may do something already
                    raise self._unfit(name, mode)
                descriptor = os.open(name, _FILE, dir_fd=here)
            except OSError as error:
                raise self._named(error, name) from error
        try:
            if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
                raise self._unfit(name, mode)
            yield descriptor
        finally:
            os.close(descriptor)

    def _modes(self) -> dict[str, int]:
        """Return the modes of all that is in this folder; nothing when there is no such folder."""
        try:
            with self._opened() as here, os.scandir(here) as entries:
                return {entry.name: entry.stat(follow_symlinks=False).st_mode for entry in entries}
        except FileNotFoundError:
            return {}

    def _mode(self, name: str) -> int:
        self._check(name)
        with self._opened() as here:
            try:
                return os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            except OSError as error:
                raise self._named(error, name) from error

    def _check(self, name: str) -> None:
        reason = wrong_name(name)
        if reason is not None:
            raise self._refused(errno.EINVAL, "", f"there is no file {name[:80]!r} in a folder: {reason}")

    def _not_a_folder(self, parent: Folder, descriptor: int, name: str) -> OSError:
        mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
        return (
            parent._link(name)
            if stat.S_ISLNK(mode)
            else parent._refused(errno.ENOTDIR, name, "it is not a folder")
        )

    def _unfit(self, name: str, mode: int) -> OSError:
        if stat.S_ISLNK(mode):
            return self._link(name)
        if stat.S_ISDIR(mode):
            return self._refused(errno.EISDIR, name, "it is a folder")
        return self._refused(errno.EINVAL, name, "it is neither a file nor a folder")

    def _link(self, name: str) -> OSError:
        return self._refused(errno.ELOOP, name, "it is a symbolic link, which plait does not follow")

    def _refused(self, number: int, name: str, reason: str) -> OSError:
        return UnfitError(number, reason, str(self.path / name))

    def _named(self, error: OSError, name: str) -> OSError:
        if isinstance(error, UnfitError):
            return error
        return OSError(error.errno, error.strerror, str(self.path / name))
