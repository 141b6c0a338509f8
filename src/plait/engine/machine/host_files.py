"""Files of this machine that go into a machine: each at its own path, with the symbolic links that lead to it.

A machine gets some of the files that a guest of the engine `virtual` sees (`plait.engine.host_view`), never others.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from plait.engine.host_view import HostView, mounts
from plait.engine.virtual.initramfs import ArchiveEntry
from plait.plan.model.programs import PRIVATE

PLACE = "host"
"""The folder of the archive with the files (`ROOT` of agent/src/program/root.rs)."""
MAX_BYTES, MAX_FILES = 256 << 20, 20_000
"""The largest total size of one trial's files: they stay in the machine's memory."""
_HIDDEN = ("/proc", "/sys", "/run", "/dev")
_MOUNT_POINTS = (*(path.lstrip("/") for path in (*PRIVATE, *_HIDDEN)), "etc", "var")
_OF_THE_KERNEL = """
autofs binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs functionfs fusectl mqueue nsfs
proc pstore rpc_pipefs securityfs sysfs tracefs
"""
_MOST_LINKS = 40


class TooManyFilesError(Exception):
    """The files are more than a machine takes."""


class HostFiles:
    """Files of this machine, by the paths under which programs find them."""

    def __init__(self, covered: Iterable[str] = (), view: HostView | None = None) -> None:
        """`covered`: folders that programs never see, beside the usual ones; `view`: what they see; None: the rest."""
        self._view = view
        self._covered = (*_HIDDEN, *PRIVATE, *covered)
        self._entries: dict[str, os.stat_result] = {}
        self._links: dict[str, str] = {}
        self.bytes = 0

    def covers(self, path: str) -> bool:
        """Return whether programs never see this machine's file at the absolute path."""
        if self._view is not None and not self._view.leads_to(Path(path)):
            return True
        return any(path == folder or path.startswith(f"{folder}/") for folder in self._covered)

    def add(self, path: str) -> Path | None:
        """Add the file or the folder (without its files) at an absolute path, and every link on the way.

        Returns its real path; None if there is none that a program could read. Raises TooManyFilesError.
        """
        parts, parent, links = path.split("/")[::-1], "/", 0
        while parts:
            name = parts.pop()
            if name in ("", "."):
                continue
            if name == "..":
                parent = os.path.dirname(parent)  # noqa: PTH120 - `at` has no link, so this is the parent
                continue
            path_here = f"{parent.rstrip('/')}/{name}"
            status = self._status(path_here)
            if status is None:
                return None
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if links > _MOST_LINKS:
                    return None
                target = self._links[path_here] = os.readlink(path_here)  # noqa: PTH115 - exactly as it is
                parts += target.split("/")[::-1]
                parent = "/" if target.startswith("/") else parent
            elif stat.S_ISDIR(status.st_mode) or not any(parts):
                parent = path_here
            else:
                return None
            self._keep(path_here, status)
        return Path(parent)

    def add_tree(self, folder: str, skipped: Iterable[str] = ()) -> Iterator[Path]:
        """Add a folder with all that is in it, and yield the real paths of its files; `skipped`: names of folders."""
        top = self.add(folder)
        if top is None or not top.is_dir():
            return
        skipped_names = set(skipped)
        for place, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if name not in skipped_names)
            for name in (*folders, *sorted(names)):
                added = self.add(f"{place}/{name}")
                if added is not None and added.is_file():
                    yield added

    def entries(self) -> list[ArchiveEntry]:
        """Return the archive's entries, folders before what is in them (OSError if a file has changed)."""
        needed = (PLACE, *(f"{PLACE}/{path}" for path in _MOUNT_POINTS))
        folders = {name: ArchiveEntry(name, stat.S_IFDIR | 0o755) for name in needed}
        folders |= {entry.name: entry for entry in self.copies(f"{PLACE}/")}
        hosts = f"{PLACE}/etc/hosts"  # the agent mounts its own over it
        folders.setdefault(hosts, ArchiveEntry(hosts, stat.S_IFREG | 0o644))
        return [folders[name] for name in sorted(folders)]

    def copies(self, place: str) -> Iterator[ArchiveEntry]:
        """Yield an entry for each file below `place` ("" or "FOLDER/"), sorted (OSError if a file has changed)."""
        for path, status in sorted(self._entries.items()):
            # Times are part of what the machine's kernel reads, so they are fixed but for Python's, which
            # compares them with those in its compiled files.
            mtime = int(status.st_mtime) if path.endswith(".py") else 0
            yield ArchiveEntry(place + path[1:], _mode(status), self._content(path, status), mtime=mtime)

    def _status(self, path: str) -> os.stat_result | None:
        if self.covers(path):
            return None
        try:
            status = os.lstat(path)
        except OSError:
            return None
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG and not os.access(path, os.R_OK):
            return None
        return status if kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK) else None

    def _keep(self, path: str, status: os.stat_result) -> None:
        if path in self._entries:
            return
        self._entries[path] = status
        self.bytes += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if self.bytes > MAX_BYTES or len(self._entries) > MAX_FILES:
            raise TooManyFilesError(path)

    def _content(self, path: str, status: os.stat_result) -> bytes:
        if stat.S_ISLNK(status.st_mode):
            return self._links[path].encode()
        if stat.S_ISDIR(status.st_mode):
            return b""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(status.st_size + 1)
        if len(content) != status.st_size:
            raise OSError(0, "the file has changed meanwhile; run again", path)
        return content


def _mode(status: os.stat_result) -> int:
    """Return the kind and the permissions, without set-user-ID."""
    return stat.S_IFMT(status.st_mode) | (status.st_mode & 0o777)


def mounts_of_the_kernel() -> list[str]:
    """Return where this machine's kernel has mounted file systems of its own."""
    kinds = _OF_THE_KERNEL.split()
    return [str(place) for place, kind in mounts() if kind in kinds]
