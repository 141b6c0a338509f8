"""Small file operations that the runner needs to be crash-safe, and the place of the user's cache."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """Returns the user's cache directory of plait (`PLAIT_CACHE` overrides it). It may not exist yet."""
    override = os.environ.get("PLAIT_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("plait"))


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` to `path` so that readers see all of it or nothing (OSError when it cannot)."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
