"""The user's cache directory, its locks, what is kept there by its hash, and temporary folders that outlast no kill."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from plait.errors import MachineError
from plait.files import MOST_BYTES, Folder

_SUM_BYTES = 32
_USED = "used.lock"
_used: dict[Path, int] = {}
"""By cache, the descriptor of the lock that shows other processes that this one uses it."""
CACHE_REMEDY = "set PLAIT_CACHE to a folder that you can write to"


def cache_root() -> Path:
    """Return plait's cache directory (`PLAIT_CACHE` overrides it), which may not exist yet.

    Raises MachineError if something else has its name.
    """
    root = _place()
    nearest = next(place for place in (root, *root.parents) if os.path.lexists(place))
    if not os.path.isdir(nearest):  # noqa: PTH112 - Path.is_dir raises an error where this user may not look
        link = nearest.is_symlink()
        what = f"a link to {nearest.readlink()}, where you can use no folder" if link else "no folder"
        raise MachineError(f"using the cache {root}: {nearest} is {what}; {CACHE_REMEDY}")
    return root


def used_folder(name: str) -> Path:
    """Return the folder `name` of the cache, whose files this process needs by their paths; it may not exist yet.

    From then on until this process ends, `plait store prune` leaves such folders alone (see `unless_used`).
    """
    root = cache_root()
    if root not in _used:
        with contextlib.suppress(OSError):  # there is no cache yet, or it is another user's
            descriptor = _opened(root / _USED)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            while _used:  # a test has a cache of its own, a user one
                os.close(_used.popitem()[1])
            _used[root] = descriptor
    return root / name


@contextlib.contextmanager
def unless_used(root: Path) -> Iterator[bool]:
    """Yield whether no process uses the cache `root` by `used_folder`; those that begin to do so wait for the end."""
    try:
        descriptor = _opened(root / _USED)
    except OSError:  # there is no cache yet, or it is another user's
        yield True
        return
    try:
        yield _is_free(descriptor)
    finally:
        os.close(descriptor)


def _place() -> Path:
    override = os.environ.get("PLAIT_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("plait"))


def locked(
    name: str,
    notice: Callable[[str], object] = lambda _: None,
    wait: Callable[[], None] | None = None,
    place: Path | None = None,
) -> int:
    """Return the descriptor of the lock `name` of this user, once no other plait holds it (MachineError).

    While another one does, first `notice` is called with its name, and then `wait` again and again; it waits a moment,
    or raises an exception. The lock is in `place`; without it, in the cache.
    """
    remedy = "" if place else f"; {CACHE_REMEDY}"
    path = (place or cache_root()) / f"{name}.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _opened(path)
    except OSError as error:
        raise MachineError(f"creating {path}: {error.strerror}{remedy}") from error
    try:
        if not _is_free(descriptor):
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            notice(f"another plait (process {holder})")
            while not _is_free(descriptor, at_once=wait is not None):
                assert wait is not None
                wait()
        with contextlib.suppress(OSError):  # a full disk has no place for the name of the holder
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):  # a file system without locks
            raise MachineError(f"locking {path}: {error.strerror}{remedy}") from error
        raise
    return descriptor


def _opened(lock: Path) -> int:
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _is_free(descriptor: int, *, at_once: bool = True) -> bool:
    """Take a lock, and return whether that was possible."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if at_once else 0))
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def alone(
    name: str, notice: Callable[[str], object] = lambda _: None, wait: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock `name` of this user during the block (see `locked`).

    What is missing may have been made meanwhile by whoever held it, so look again at the block's beginning.
    """
    lock = locked(name, notice, wait)
    try:
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def scratch(root: Path, prefix: str) -> Iterator[Path]:
    """Yield an empty folder in `root`, and remove it, and those that killed processes left. Raise OSError.

    The caller holds a lock, so nobody else uses a folder with this prefix.
    """
    root.mkdir(parents=True, exist_ok=True)
    for left in root.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=prefix) as name:
        yield Path(name)


@contextlib.contextmanager
def temporary(purpose: str, place: Path | None = None) -> Iterator[Path]:
    """Yield a folder that only this user can read, where the system has temporary files, or in `place`.

    It outlasts the block only if the process is killed, and no later one that makes such a folder. Raise OSError.
    """
    root, prefix = place or Path(tempfile.gettempdir()), f"plait-{os.geteuid()}-"
    remove_abandoned(root, prefix)
    lock = None
    while lock is None:  # another plait took it for abandoned
        folder = Path(tempfile.mkdtemp(dir=root, prefix=f"{prefix}{purpose}-"))
        lock = lock_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove those folders of this user whose names begin so and whose process was killed; others are locked."""
    inside = Folder(parent)
    for name in inside.names():
        if name.startswith(prefix):
            with contextlib.suppress(OSError):  # in use, or a link, which plait did not create
                descriptor = os.open(
                    parent / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                )
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.fstat(descriptor).st_uid == os.geteuid():
                        inside.remove(name)
                finally:
                    os.close(descriptor)


def lock_folder(folder: Path) -> int | None:
    """Return a descriptor whose lock protects the new folder from removal; None if another plait has removed it."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(
            OSError
        ):  # a file system without locks: other processes cannot lock it either
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if folder.exists():
            return descriptor
        os.close(descriptor)
    return None


@dataclass(frozen=True)
class ContentCache:
    """A folder of the cache whose files have the hash of what they follow from as their names.

    A damaged entry counts as missing, and a cache that cannot be written is no error: both cost only time.
    """

    name: str
    most: int
    """Files that `prune` leaves; the oldest go first."""
    most_bytes: int = MOST_BYTES
    """The longest content; what is longer is not kept."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`; None when there is nothing."""
        with contextlib.suppress(OSError):  # it was never made
            kept = self._folder.read(key, self.most_bytes + _SUM_BYTES)
            if kept[-_SUM_BYTES:] == hashlib.sha256(kept[:-_SUM_BYTES]).digest():
                return kept[:-_SUM_BYTES]
        return None

    def put(self, key: str, content: bytes) -> None:
        """Keep `content` under `key`, with its SHA-256 behind it."""
        if len(content) > self.most_bytes:
            return
        with contextlib.suppress(OSError):  # the next one makes it again
            self._folder.write(key, content + hashlib.sha256(content).digest())

    def prune(self) -> None:
        """Remove the oldest files beyond the number that is kept, and a tenth more."""
        try:
            with os.scandir(self._folder.path) as entries:
                files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            if len(files) > self.most:
                ages = sorted(files, key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
                for entry in ages[: len(files) - self.most * 9 // 10]:
                    Path(entry).unlink(missing_ok=True)
        except OSError:
            return  # another report prunes at the same time, or the folder cannot be read

    @property
    def _folder(self) -> Folder:
        return Folder(_place()) / self.name
