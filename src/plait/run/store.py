"""The store of finished trials: an identical trial is never run twice.

An entry is a folder named by the trial's identity (plan, kernel, agent), below the user's cache. It holds the
trial's files and `manifest.json` with the SHA-256 of each; an entry that does not match its manifest is removed
and the trial runs again. Entries appear by rename, so a killed process cannot leave half of one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "manifest.json"


class Store:
    """Finished trials below `root`, by identity."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fetch(self, identity: str, target: Path) -> bool:
        """Copies the files of trial `identity` into the existing folder `target`.

        Returns False when there is no such entry, or when it was damaged (it is removed then). Raises OSError when
        `target` cannot be written.
        """
        entry = self._entry(identity)
        try:
            manifest: dict[str, str] = json.loads((entry / MANIFEST).read_text(encoding="utf-8"))
            contents = {name: (entry / name).read_bytes() for name in manifest}
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            shutil.rmtree(entry, ignore_errors=True)
            return False
        if any(_sha256(content) != manifest[name] for name, content in contents.items()):
            shutil.rmtree(entry, ignore_errors=True)
            return False
        for name, content in contents.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return True

    def put(self, identity: str, source: Path, staging: Path) -> None:
        """Keeps all files below `source` as trial `identity`.

        `staging` is an empty folder on the store's file system to build the entry in; it is consumed. An older
        entry is replaced. Raises OSError when it cannot write.
        """
        manifest: dict[str, str] = {}
        for path in sorted(source.rglob("*")):
            if path.is_file():
                name = path.relative_to(source).as_posix()
                content = path.read_bytes()
                copy = staging / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
                manifest[name] = _sha256(content)
        (staging / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        entry = self._entry(identity)
        entry.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        try:
            staging.rename(entry)
        except OSError:
            if not (entry / MANIFEST).is_file():  # else another process was faster, with the same bytes
                raise

    def _entry(self, identity: str) -> Path:
        return self._root / identity[:2] / identity


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
