"""Access to untrusted folders: every path stays below the folder, and plait follows no symbolic link in it.

Others choose the names in result folders, in entries of the store and in the files of a guest. `Folder` is the only way
to read, write, list, copy or remove files below such a folder. It opens one path component after the other, each
relative to the descriptor of its parent and without following links, as openat2(2) does with RESOLVE_BENEATH and
RESOLVE_NO_SYMLINKS. So a name such as `..` or `/etc` cannot leave the folder, nor can a link that appears meanwhile.

Every refusal is an `UnfitError`, an OSError whose `filename` is the whole path and whose `strerror` is the reason.
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
"""The longest text file that plait reads (a plan of 1000 hosts has some 20 MB)."""
MOST_FILES = 100_000
MOST_DEPTH = 32
"""Limits of a folder that plait lists or copies recursively: files and levels."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20


def _nameless(folder: int, name: str) -> int:
    """Return a descriptor of a new unnamed file, or of one called `name` where the file system has no unnamed files.

    An unnamed file disappears if the process is killed.
    """
    try:
        return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
        return os.open(name, _NEW, 0o666, dir_fd=folder)  # no O_TMPFILE here


class UnfitError(OSError):
    """A folder holds something that plait refuses: a link, a device, a name that leads elsewhere, or too much."""


def wrong_name(name: str) -> str | None:
    """Return why `name` cannot name a file in a folder; None if it can."""
    if name in {"", ".", ".."}:
        return "it does not name a file"
    if "/" in name:
        return "it contains a slash, and so leads to another folder"
    if not name.isprintable():
        return "it contains control characters"
    if len(name.encode(errors="replace")) > 255:
        return "it is longer than 255 bytes"
    return None


def json_of(content: bytes) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for invalid JSON, also if it is nested too deeply.
    """
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


@dataclass(frozen=True)
class Folder:
    """The folder `root`, which the user named, or the folder `inside` below it, whose names are untrusted."""

    root: Path
    inside: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: Folder | Path) -> Folder:
        """Return the folder itself, or the folder at a path that the user named."""
        return place if isinstance(place, Folder) else cls(place)

    def __truediv__(self, name: str) -> Folder:
        """Return the subfolder `name`, without opening it."""
        return Folder(self.root, (*self.inside, name))

    @property
    def path(self) -> Path:
        """The path, for messages."""
        return self.root.joinpath(*self.inside)

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        """Return the sorted names in this folder; none if it does not exist."""
        return sorted(self._modes())

    def folders(self) -> list[str]:
        """Return the sorted names of subfolders.

        Raises UnfitError if a link leads to a folder.
        """
        modes = self._modes()
        for name, mode in modes.items():
            if stat.S_ISLNK(mode) and (self.path / name).is_dir():
                raise self._link(name)
        return sorted(name for name, mode in modes.items() if stat.S_ISDIR(mode))

    def has(self, name: str) -> bool:
        """Return whether an entry `name` exists, be it a link."""
        try:
            return self._mode(name) != 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a regular file of at most `most` bytes.

        Raises OSError.
        """
        with self._file(name) as descriptor:
            with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
                content = file.read(most + 1) if os.fstat(descriptor).st_size > most else file.readall()
            if len(content) > most:
                raise self._refused(errno.EFBIG, name, f"it has more than {most} bytes")
            return content

    def tail(self, name: str, most: int) -> bytes:
        """Return the last bytes of a regular file, at most `most`.

        Raises OSError.
        """
        with self._file(name) as descriptor:
            return os.pread(descriptor, most, max(0, os.fstat(descriptor).st_size - most))

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically and create missing folders: a reader sees the old file or the new one.

        An existing entry of this name is replaced, also a link, whose target does not change. Several processes may
        write the same file at once: the content of one of them remains. Raises OSError.
        """
        self._check(name)
        temporary = f".{secrets.token_hex(8)}.new"
        with self._opened(make=True) as here:
            try:
                with os.fdopen(_nameless(here, temporary), "wb") as file:
                    file.write(content)
                    file.flush()
                    with contextlib.suppress(FileExistsError):  # the file is a named one
                        os.link(f"/proc/self/fd/{file.fileno()}", temporary, dst_dir_fd=here)
                os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=here)
                raise self._named(error, name) from error

    def append(self, name: str, content: bytes) -> None:
        """Append to a regular file, which is created if missing. Raise OSError."""
        self._check(name)
        with self._opened(make=True) as here:
            try:
                descriptor = os.open(name, _APPEND, 0o666, dir_fd=here)
                with os.fdopen(descriptor, "ab", buffering=0) as file:
                    if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
                        raise self._unfit(name, mode)
                    file.write(content)
            except OSError as error:
                raise self._named(error, name) from error

    def remove(self, name: str) -> None:
        """Remove the entry `name`: a folder with its content, but only the link itself. Raises OSError."""
        with self._opened() as here:
            try:
                if stat.S_ISDIR(self._mode(name)):
                    shutil.rmtree(name, dir_fd=here)
                else:
                    os.unlink(name, dir_fd=here)
            except RecursionError as error:
                raise self._refused(errno.ELOOP, name, "its folders are nested too deeply") from error

    def take(self, source: Path, name: str) -> None:
        """Move the file or folder `source` of the same file system here, as `name`. Raises OSError."""
        self._check(name)
        with self._opened(make=True) as here:
            os.rename(source, name, dst_dir_fd=here)

    def give(self, name: str, target: Path) -> None:
        """Move the entry `name` to `target` on the same file system. Raises OSError."""
        self._check(name)
        with self._opened() as here:
            os.rename(name, target, src_dir_fd=here)

    def files(self) -> list[tuple[str, ...]]:
        """Return the paths of all files in this folder and below.

        Raises UnfitError for a link or a special file.
        """
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
        """Copy all files in this folder and below to `target`, which is created if missing. Raises OSError."""
        with target._opened(make=True):
            pass
        for *folders, name in self.files():
            source, place = self, target
            for folder in folders:
                source, place = source / folder, place / folder
            source.copy_file(name, place)

    def copy_file(self, name: str, target: Folder) -> None:
        """Copy a file to the folder `target`, which is created if missing.

        Raises OSError, also if `target` has a file of this name.
        """
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
        """Yield a descriptor of this folder; `make` creates it and its parents."""
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
                if not stat.S_ISREG(mode):  # opening a device or a FIFO can have an effect
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
        """Return the mode of each entry of this folder; none if the folder does not exist."""
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
