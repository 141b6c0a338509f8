"""The guest's root: an initramfs that holds only the agent, so that a trial depends on no host file.

The archive is the kernel's "newc" cpio (Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from plait.files import Folder

DIRECTORIES = ("dev", "job", "proc", "run", "sys", "tmp")


class ArchiveEntry(NamedTuple):
    """A file, folder or device of an archive."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)
    mtime: int = 0
    """In seconds; fixed unless given, because an archive must be the same everywhere."""


def _record(number: int, entry: ArchiveEntry) -> bytes:
    name = entry.name.encode() + b"\0"
    fields = (
        number,
        entry.mode,
        0,  # uid
        0,  # gid
        1,  # links
        entry.mtime & 0xFFFFFFFF,
        len(entry.content),
        0,
        0,  # device that holds the file
        *entry.device,
        len(name),
        0,  # checksum: unused in newc
    )
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def archive(agent: bytes) -> bytes:
    """Return a newc cpio archive with `agent` as /init, the mount points, and /dev/console."""
    entries = [ArchiveEntry(name, stat.S_IFDIR | 0o755) for name in DIRECTORIES]
    entries.append(ArchiveEntry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
    entries.append(ArchiveEntry("init", stat.S_IFREG | 0o755, agent))
    return pack(entries)


def pack(entries: Iterable[ArchiveEntry]) -> bytes:
    """Return a newc cpio archive with these entries."""
    whole = [*entries, ArchiveEntry("TRAILER!!!", 0)]
    return b"".join(_record(number, entry) for number, entry in enumerate(whole, start=1))


def ensure(agent: bytes, agent_sha256: str, place: Path) -> Path:
    """Return the path of the archive for this agent in `place`; write it if it is missing or damaged (OSError)."""
    folder = Folder(place)
    name = f"{agent_sha256}.cpio"
    content = archive(agent)
    try:
        sound = folder.read(name) == content
    except OSError:
        sound = False
    if not sound:
        folder.write(name, content)
    os.utime(folder.path / name)
    return folder.path / name
