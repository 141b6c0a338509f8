"""The files that a worker has got from studies: below `shipped/` in its cache, by the SHA-256 of their content.

A worker verifies a file each time before it prepares itself. It also uses a file that is at its original path with the
same content, for instance on a shared file system.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import TYPE_CHECKING

from plait.cache import cache_root
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from plait.engine.portable import ShippedFile

SHIPPED = "shipped"
MOST_BYTES = 2 << 30
"""How much `prune` keeps beside the files of the running study."""
_IN_USE_S = 86400.0
"""A file that a study used within this time may be in use by another process."""


def path_of(file: ShippedFile) -> Path | None:
    """Return the path of a file with the right content on this machine; None if there is none."""
    kept = cache_root() / SHIPPED / file.sha256[:2] / file.sha256
    for path in (file.origin, kept):
        with contextlib.suppress(OSError):
            if path.stat().st_size == file.size:
                with path.open("rb") as content:
                    if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256:
                        if path is kept:
                            os.utime(path)  # `prune` removes first what nobody has used for long
                        return path
    return None


def keep(file: ShippedFile, content: bytes) -> None:
    """Keep a file in the cache. Raise ValueError if it has another content than it should, and OSError."""
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ValueError(f"the file {file.origin.name} was damaged on the way to the worker")
    Folder(cache_root(), (SHIPPED, file.sha256[:2])).write(file.sha256, content)
    (cache_root() / SHIPPED / file.sha256[:2] / file.sha256).chmod(0o755)


def prune(in_use: AbstractSet[str], limit: int = MOST_BYTES, now: float | None = None) -> None:
    """Remove the files that were not used for longest, until those that nobody uses have at most `limit` bytes.

    Keeps the files `in_use`, by SHA-256, and what was used within a day before `now`. Ignores a cache that plait cannot
    read or write.
    """
    last_use = (time.time() if now is None else now) - _IN_USE_S
    root = Folder(cache_root()) / SHIPPED
    with contextlib.suppress(OSError):
        files = [(root.path.joinpath(*names), names[-1]) for names in root.files()]
        entries = [(path.stat(), path) for path, name in files if name not in in_use]
        kept_bytes = sum(status.st_size for status, _ in entries)
        for status, path in sorted(entries, key=lambda entry: entry[0].st_mtime):
            if kept_bytes <= limit or status.st_mtime > last_use:
                return
            path.unlink(missing_ok=True)
            kept_bytes -= status.st_size
