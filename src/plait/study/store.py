"""The store of finished trials: plait never runs an identical trial twice.

An entry is a folder named by the trial's identity (plan, kernel, agent), below the user's cache. It holds the
trial's files and `manifest.json` with the SHA-256 of each. The store removes an entry that does not match its
manifest, and the trial runs again. Entries appear by rename, so a killed process cannot leave a partial one. Names in
a manifest cannot lead outside the entry, and the store does not follow links in an entry.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from plait.files import Folder

MANIFEST = "manifest.json"
_MANIFEST = TypeAdapter(dict[str, str])
_MOST_BYTES = 1 << 32
"""The size limit for one file of a trial (a capture may be long)."""


class Store:
    """Finished trials below `root`, by identity."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def fetch(self, identity: str, target: Path) -> bool:
        """Copy the files of trial `identity` into the existing folder `target`.

        Return False if there is no such entry, or if it is damaged; the store then removes it. Raise OSError if it
        cannot write to `target`.
        """
        group = Folder(self.root) / identity[:2]
        try:
            contents = _contents(group / identity)
        except FileNotFoundError:
            return False
        except (OSError, ValidationError, ValueError):
            self._remove(identity)
            return False
        for name, content in contents.items():
            *folders, file = name.split("/")
            Folder(target, tuple(folders)).write(file, content)
        with contextlib.suppress(OSError):  # `plait store prune` removes first what nobody has used for long
            os.utime((group / identity).path)
        return True

    def keep(self, identity: str, source: Path, staging: Path) -> None:
        """Keep all files below `source` as trial `identity`, in place of an older entry.

        `staging` is an empty folder on the store's file system; it becomes the entry. Raise OSError if it cannot
        write.
        """
        manifest: dict[str, str] = {}
        for *folders, file in Folder(source).files():
            content = Folder(source, tuple(folders)).read(file, _MOST_BYTES)
            Folder(staging, tuple(folders)).write(file, content)
            manifest["/".join((*folders, file))] = _sha256(content)
        text = json.dumps(manifest, indent=1, sort_keys=True)
        Folder(staging).write(MANIFEST, text.encode())
        self._remove(identity)
        group = Folder(self.root) / identity[:2]
        try:
            group.take(staging, identity)
        except OSError:
            if not (group / identity).has(
                MANIFEST
            ):  # otherwise another process was faster, with the same bytes
                raise

    def _remove(self, identity: str) -> None:
        """Remove an entry, or what occupies the place of its group's folder."""
        root = Folder(self.root)
        with contextlib.suppress(OSError):
            try:
                (root / identity[:2]).remove(identity)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    root.remove(identity[:2])


def _contents(entry: Folder) -> dict[str, bytes]:
    """Return the files of an entry by name. Raise ValueError or OSError if it is damaged."""
    manifest = _MANIFEST.validate_json(entry.read(MANIFEST))
    contents = {}
    for name, digest in manifest.items():
        *folders, file = name.split("/")
        content = Folder(entry.root, (*entry.inside, *folders)).read(file, _MOST_BYTES)
        if _sha256(content) != digest:
            raise ValueError(name)
        contents[name] = content
    return contents


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
