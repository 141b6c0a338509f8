"""The user's cache directory, and atomic writes to it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """Return plait's cache directory (`PLAIT_CACHE` overrides it), which may not exist yet."""
    override = os.environ.get("PLAIT_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("plait"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically: a reader sees the old file or the new one.

    Raises OSError.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
