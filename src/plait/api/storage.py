"""The entries of the user's cache, their sizes, and the removal of those unused for long.

Every entry can be made again: trials run again, reports compute again, and kernels, packages and sources need a build
or a download. Removal is safe while studies run. A study that misses a trial runs it, and a report that misses a row
computes it. Files that a running guest needs by their path (`needed`) stay while any plait uses this cache.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.errors import RequestError
from plait.files import Folder

_AGE = re.compile(r"([0-9]{1,5}) *(h|d|w)")
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True)
class CachePart:
    """A folder of the cache."""

    name: str
    title: str
    levels: int = 1
    """How many folders an entry is below: 2 for `trials/ab/abcd..`."""
    cheap: bool = True
    """Whether plait makes it again by itself, without the network; else `prune` removes it only by its name."""
    needed: bool = False
    """Whether a running guest, worker or build needs it by its path."""
    folder: tuple[str, ...] = ()
    """Its folder below the cache, if that is not its name."""


PARTS = (
    CachePart("trials", "finished trials", levels=2),
    CachePart("rows", "metrics of trials, for reports"),
    CachePart("summaries", "summaries of studies, for reports"),
    CachePart("explanations", "explanations of trials, for reports"),
    CachePart("reports", "cautions of reports, to show them again"),
    CachePart("view", "pages of `plait view`"),
    CachePart("views", "what pages show of summaries"),
    CachePart("figures", "figures"),
    CachePart("calibration", "measurements of earlier versions", levels=2),
    CachePart("inventories", "what kernels offer"),
    CachePart("shipped", "files of studies of other machines", levels=2, needed=True),
    CachePart("initramfs", "root file systems of guests", cheap=False, needed=True),
    CachePart("kernels", "laboratory kernels", cheap=False, needed=True),
    CachePart("trees", "checkouts of git trees", cheap=False, needed=True, folder=("kernels", ".trees")),
    CachePart("bisections", "values of bisections", cheap=False, needed=True, folder=("kernels", ".bisect")),
    CachePart("selftests", "upstream's selftests", cheap=False, needed=True),
    CachePart("sources", "sources of kernels", cheap=False, needed=True),
    CachePart("stock", "stock kernels", cheap=False, needed=True),
    CachePart("machines", "stock kernels after their boot"),
    CachePart("emulator", "the emulator of the engine machine", cheap=False, needed=True),
    CachePart("npm", "packages of programs", cheap=False, needed=True),
)


@dataclass(frozen=True)
class CacheEntry:
    """One thing in the cache: a trial, a figure, a kernel."""

    part: CachePart
    path: tuple[str, ...]
    """Names below the cache."""
    size: int
    """Bytes on the disk."""
    used_s: float
    """When it was made or last used, in seconds since 1970."""


def entries(cache: Path, parts: Iterable[CachePart] = PARTS) -> Iterator[CacheEntry]:
    """Yield all entries of these parts, without those that appear or disappear meanwhile. Raise OSError."""
    for part in parts:
        for path in _paths(cache, part.folder or (part.name,), part.levels):
            with contextlib.suppress(OSError):
                yield CacheEntry(part, path, *_size_and_time(cache.joinpath(*path)))


def _paths(cache: Path, folder: tuple[str, ...], levels: int) -> Iterator[tuple[str, ...]]:
    """Yield the paths of entries `levels` below a folder; names that begin with a dot are no entries."""
    try:
        with os.scandir(cache.joinpath(*folder)) as inside:
            names = [
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in inside
                if not entry.name.startswith(".")
            ]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, is_folder in sorted(names):
        if levels == 1:
            yield (*folder, name)
        elif is_folder:
            yield from _paths(cache, (*folder, name), levels - 1)


def _size_and_time(path: Path) -> tuple[int, float]:
    """Return the bytes on the disk of a file or folder, and its latest time of change. Raise OSError."""
    size, latest = 0, 0.0
    pending = [path]
    while pending:
        place = pending.pop()
        try:
            status = place.lstat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                continue  # nested too deeply for a path
            raise
        size, latest = size + status.st_blocks * 512, max(latest, status.st_mtime)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(place) as inner:
                pending += [place / entry.name for entry in inner]
    return size, latest


def chosen_parts(names: Sequence[str]) -> tuple[CachePart, ...]:
    """Return the parts with these names; without any, those that plait makes again by itself. Raise RequestError."""
    by_name = {part.name: part for part in PARTS}
    for name in names:
        if name not in by_name:
            raise RequestError(
                f"--part {name}: the cache has no such part; write one of: {', '.join(by_name)}"
            )
    return tuple(by_name[name] for name in names) if names else tuple(part for part in PARTS if part.cheap)


def age_s(text: str) -> float:
    """Return the seconds of an age such as `12h`, `30d` or `4w`. Raise RequestError."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise RequestError(f"--older-than {text}: write a number and h, d or w, for example 30d")
    return float(match[1]) * _SECONDS[match[2]]


def to_remove(
    present: Iterable[CacheEntry], older_than_s: float | None, keep: int | None
) -> list[CacheEntry]:
    """Return the entries to remove, the oldest first.

    Those not used for `older_than_s` seconds, and the oldest ones beyond `keep` bytes in total; with both, what either
    names.
    """
    before = None if older_than_s is None else time.time() - older_than_s
    kept = 0
    removed = []
    for entry in sorted(present, key=lambda entry: entry.used_s, reverse=True):
        kept += entry.size
        if (before is not None and entry.used_s < before) or (keep is not None and kept > keep):
            kept -= entry.size
            removed.append(entry)
    return removed[::-1]


def remove(cache: Path, entry: CacheEntry) -> None:
    """Remove an entry, unless another process was faster. Raise OSError."""
    *above, name = entry.path
    with contextlib.suppress(FileNotFoundError):
        Folder(cache, tuple(above)).remove(name)


def without_needed(parts: Sequence[CachePart], *, used: bool, named: bool) -> tuple[CachePart, ...]:
    """Return the parts that plait may prune now: if the cache is `used`, without those needed by their paths.

    Raise RequestError if the user named one of these.
    """
    needed = [part.name for part in parts if part.needed and used]
    if needed and named:
        raise RequestError(
            f"pruning {', '.join(needed)}: plait runs on this machine and may need it; wait for its end, or choose "
            "other parts (--part trials)"
        )
    return tuple(part for part in parts if part.name not in needed)


def size_text(size: int) -> str:
    """Return a size as people read it: `512 B`, `3.4 MB`."""
    number = float(size)
    for unit in ("B", "KB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def age_text(seconds: float) -> str:
    """Return an age as people read it: `3 h`, `12 days`."""
    hours = max(0.0, seconds) / 3600
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"
