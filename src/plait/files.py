"""The one way in which plait writes files and reads untrusted folders: no name and no link leads out of a folder.

Others choose the names in result folders, in entries of the store and in the files of a guest. `Folder` is the only way
to read, write, list, copy or remove files below such a folder. It opens one path component after the other, each
relative to the descriptor of its parent and without following links, as openat2(2) does with RESOLVE_BENEATH and
RESOLVE_NO_SYMLINKS. So a name such as `..` or `/etc` cannot leave the folder, nor can a link that appears meanwhile.

A program in a guest can replace a folder that it shares (`--rw`) by a link while it runs. Therefore what plait writes
after a guest goes to a folder that plait holds open since before the guest started: `Folder.hold`, `Output`.

Every refusal is an `UnfitError`, an OSError whose `filename` is the whole path and whose `strerror` is the reason.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import stat
import weakref
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

from plait.whole_files import NEW, remove_tree, whole_file, wrong_name

MOST_BYTES = 256 << 20
"""The longest text file that plait reads (a plan of 1000 hosts has some 20 MB)."""
MOST_FILES = 100_000
MOST_DEPTH = 32
"""Limits of a folder that plait lists or copies recursively: files and levels."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HELD = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20


class UnfitError(OSError):
    """A folder holds something that plait refuses: a link, a device, a name that leads elsewhere, or too much."""


def json_of(content: bytes) -> Any:
    """Return the value of a JSON text; ValueError if it is invalid, too deep, or has a number that is not finite."""
    try:
        return json.loads(content, parse_constant=_finite, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite(text: str) -> float:
    """Return a number of a JSON text; Python also reads `Infinity`, `NaN` and `1e999`."""
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text[:40]} is not a finite number")


class _Held:
    """A descriptor of a folder, which is closed with the last reference to it."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, _HELD)
        weakref.finalize(self, os.close, self.descriptor)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a folder that is held open cannot be sent to another process")


@dataclass(frozen=True)
class Folder:
    """The folder `root`, which the user named, or the folder `inside` below it, whose names are untrusted."""

    root: Path
    inside: tuple[str, ...] = ()
    _held: _Held | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, place: Folder | Path) -> Folder:
        """Return the folder itself, or the folder at a path that the user named."""
        return place if isinstance(place, Folder) else cls(place)

    @classmethod
    def hold(cls, path: Path, *, make: bool = False, shared: Collection[Path] = ()) -> Self:
        """Return the folder at `path`, held open: nothing that happens to its name later leads elsewhere.

        `make` creates it and its parents. `shared`: folders that guests can change; plait follows no link below them.
        Raises OSError.
        """
        place = path.absolute()
        for parent in (place, *place.parents):
            real = parent.resolve()
            expected = real / os.path.normpath(place.relative_to(parent))
            if any(real.is_relative_to(folder) for folder in shared) and place.resolve() != expected:
                reason = f"a symbolic link in {parent}, which guests can change, leads to another folder"
                raise UnfitError(errno.ELOOP, reason, str(path))
        if make:
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, (), _Held(path))

    def __truediv__(self, name: str) -> Folder:
        """Return the subfolder `name`, without opening it."""
        return Folder(self.root, (*self.inside, name), self._held)

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

    def require_file(self, name: str) -> None:
        """Raise UnfitError if an entry `name` exists that is no regular file."""
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(mode := self._mode(name)):
                raise self._unfit(name, mode)

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a regular file of at most `most` bytes (OSError)."""
        with self._file(name) as descriptor:
            with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
                content = file.read(most + 1) if os.fstat(descriptor).st_size > most else file.readall()
            if len(content) > most:
                raise self._refused(errno.EFBIG, name, f"it has more than {most} bytes")
            return content

    def head(self, name: str, most: int) -> bytes:
        """Return the first bytes of a regular file, at most `most` (OSError)."""
        with self._file(name) as descriptor:
            return os.pread(descriptor, most, 0)

    @contextlib.contextmanager
    def stream(self, name: str) -> Iterator[BinaryIO]:
        """Yield a regular file to read. Raises OSError."""
        with self._file(name) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            yield file

    def tail(self, name: str, most: int) -> bytes:
        """Return the last bytes of a regular file, at most `most` (OSError)."""
        with self._file(name) as descriptor:
            return os.pread(descriptor, most, max(0, os.fstat(descriptor).st_size - most))

    def write(self, name: str, content: bytes) -> None:
        """Write a file as `create` does. Raises OSError."""
        with self.create(name) as file:
            file.write(content)

    @contextlib.contextmanager
    def create(self, name: str, *, keep: bool = False) -> Iterator[BinaryIO]:
        """Yield a file to write, which gets its name when the block ends; create missing folders.

        A reader sees the old file or the new one, and an error or `kill -9` leaves no part of a file. An existing entry
        of this name is replaced, also a link, whose target does not change; `keep` raises FileExistsError instead.
        Several processes may write the same file at once: the content of one of them remains. Raises OSError.
        """
        self._check(name)
        with self._opened(make=True) as here:
            try:
                with whole_file(here, name, keep=keep) as file:
                    yield file
            except OSError as error:
                if error.errno is None or (
                    error.filename2 is None and error.filename not in {None, ".", name}
                ):
                    raise  # it concerns something that the caller reads
                raise self._named(error, name) from error

    def new(self, name: str, mode: int = 0o666) -> int:
        """Create a file that others see at once, and return its descriptor.

        Raises OSError, also if the name is used.
        """
        self._check(name)
        with self._opened(make=True) as here:
            try:
                return os.open(name, NEW, mode, dir_fd=here)
            except OSError as error:
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
                    remove_tree(here, name)
                else:
                    os.unlink(name, dir_fd=here)
            except OSError as error:
                raise self._named(error, name) from error

    def take(self, source: Path, name: str) -> None:
        """Move the file or folder `source` of the same file system here, as `name`. Raises OSError."""
        self._check(name)
        with self._opened(make=True) as here:
            os.rename(source, name, dst_dir_fd=here)

    def link(self, name: str, target: Path) -> None:
        """Make `name` a symbolic link to `target`, for a program that plait starts. Raises OSError."""
        self._check(name)
        with self._opened(make=True) as here:
            os.symlink(target, name, dir_fd=here)

    def give(self, name: str, target: Path) -> None:
        """Move the entry `name` to `target` on the same file system. Raises OSError."""
        self._check(name)
        with self._opened() as here:
            os.rename(name, target, src_dir_fd=here)

    def files(self) -> list[tuple[str, ...]]:
        """Return the paths of all files in this folder and below.

        Raises UnfitError for a link or a special file.
        """
        return sorted(self._files())

    def versions(self) -> list[tuple[tuple[str, ...], int, int]]:
        """Return the path of each file in this folder and below, its size, and when it changed (ctime in ns).

        Raises UnfitError for a link or a special file.
        """
        return sorted((path, entry.st_size, entry.st_ctime_ns) for path, entry in self._files().items())

    def _files(self) -> dict[tuple[str, ...], os.stat_result]:
        paths: dict[tuple[str, ...], os.stat_result] = {}
        pending: list[tuple[str, ...]] = [()]
        while pending:
            place = pending.pop()
            folder = Folder(self.root, self.inside + place, self._held)
            for name, entry in folder._entries().items():
                folder._check(name)
                mode = entry.st_mode
                if stat.S_ISDIR(mode) and len(place) < MOST_DEPTH:
                    pending.append((*place, name))
                elif stat.S_ISREG(mode):
                    paths[*place, name] = entry
                else:
                    raise folder._unfit(name, mode)
            if len(paths) + len(pending) > MOST_FILES:
                raise self._refused(errno.EFBIG, "", f"it holds more than {MOST_FILES} files and folders")
        return paths

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
        with self._file(name) as source:
            target._fill(name, source)

    def bring(self, source: Path, name: str) -> None:
        """Copy the file `source`, which the user or plait named, here as `name`.

        Raises OSError, also if the name is used.
        """
        content = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(content).st_mode):
                raise UnfitError(errno.EINVAL, "it is not a regular file", str(source))
            self._fill(name, content)
        finally:
            os.close(content)

    def _fill(self, name: str, source: int) -> None:
        """Copy the content of a descriptor to the new file `name`."""
        copy = self.new(name)
        try:
            while os.sendfile(copy, source, None, _CHUNK << 6):
                pass
        except OSError as error:
            raise self._named(error, name) from error
        finally:
            os.close(copy)

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of this folder; `make` creates it and its parents."""
        if self._held is not None:
            descriptor = os.open(".", _FOLDER, dir_fd=self._held.descriptor)
        else:
            if make:
                self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root, _FOLDER)
        try:
            for depth, name in enumerate(self.inside):
                parent = Folder(self.root, self.inside[:depth], self._held)
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
        return {name: entry.st_mode for name, entry in self._entries().items()}

    def _entries(self) -> dict[str, os.stat_result]:
        try:
            with self._opened() as here, os.scandir(here) as entries:
                return {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
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
            raise self._refused(errno.EILSEQ, "", f"the name {name[:80]!r} cannot be used: {reason}")

    def _not_a_folder(self, parent: Folder, descriptor: int, name: str) -> OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
            return parent._link(name)
        return parent._refused(errno.ENOTDIR, name, "it is not a folder")

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


@dataclass(frozen=True)
class Output:
    """A file that the user named for plait to write, in a folder that plait holds open."""

    folder: Folder
    name: str

    @classmethod
    def at(cls, path: Path, *, shared: Collection[Path] = (), make: bool = False) -> Self:
        """Return the output at `path`; see `Folder.hold` for `shared` and `make`.

        Raises OSError if there is no such folder, or if the name is that of a link, folder or special file.
        """
        folder = Folder.hold(path.parent, make=make, shared=shared)
        folder.require_file(path.name)
        return cls(folder, path.name)

    def __str__(self) -> str:
        return str(self.folder.path / self.name)

    def exists(self) -> bool:
        """Return whether an entry of this name exists."""
        return self.folder.has(self.name)

    def write(self, content: bytes, *, keep: bool = False) -> None:
        """Write the file (see `Folder.create`)."""
        with self.create(keep=keep) as file:
            file.write(content)

    def create(self, *, keep: bool = False) -> contextlib.AbstractContextManager[BinaryIO]:
        """Return a context manager that yields a file to write (see `Folder.create`)."""
        return self.folder.create(self.name, keep=keep)
