"""Find the studies below the folders that a user names, and give each an ID that addresses can carry.

Names in these folders come from strangers. An address contains IDs, never a path; links are not followed.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.errors import RequestError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST_DEPTH = 6
MOST_FOLDERS = 20_000
"""Bounds of the search: levels below a folder that the user names, and folders in all."""


@dataclass(frozen=True)
class FoundStudy:
    """A result folder: its ID in addresses, its name for people, and its path."""

    id: str
    name: str
    folder: Path


def find_studies(roots: Sequence[Path]) -> list[FoundStudy]:
    """Return the studies in and below `roots`, in the order of their names.

    Raises:
        RequestError: a folder does not exist, or there are too many folders to search.
    """
    found: dict[str, FoundStudy] = {}
    for root in roots:
        if not root.is_dir():
            raise RequestError(f"{root}: there is no such folder; give a folder with results of `plait run`")
        for folder in _study_folders(root):
            inside = folder.relative_to(root).as_posix()
            name = root.resolve().name if inside == "." else inside
            name = f"{root.name or root.resolve().name}/{name}" if len(roots) > 1 and inside != "." else name
            key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
            found[key] = FoundStudy(key, printable(name, keep=""), folder)
    return sorted(found.values(), key=lambda study: study.name)


def _study_folders(root: Path) -> Iterator[Path]:
    """Yield each folder with a study.json; a study inside a study is part of it."""
    waiting = [(root, 0)]
    visited = 0
    while waiting:
        folder, depth = waiting.pop()
        visited += 1
        if visited > MOST_FOLDERS:
            raise RequestError(
                f"searching {root} for studies: it holds more than {MOST_FOLDERS} folders; give a folder nearer to them"
            )
        try:
            with os.scandir(folder) as entries:
                listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:  # without permission, or removed meanwhile: no study of this user
            continue
        if any(name == "study.json" and not is_folder for name, is_folder in listed):
            yield folder
        elif depth < MOST_DEPTH:
            inner = [name for name, is_folder in listed if is_folder and not name.startswith(".")]
            waiting += [(folder / name, depth + 1) for name in inner]
