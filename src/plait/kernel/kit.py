"""The build kit of a kernel: the part of its source tree that a later build of a module needs.

It has headers, the configuration, the exported symbols and the programs of the build: an archive of some 7 MB beside
the kernel in the cache. plait removes the tree itself (2 GB).
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path

from plait.cache import alone, scratch
from plait.errors import KernelBuildError
from plait.files import Folder
from plait.kernel.unpack import extract

ARCHIVE = "kit.tar.xz"
"""The archive's name in a kernel's folder."""

_SYMBOLS = "vmlinux.symvers"
"""The symbols that the kernel exports; the kit has them as `Module.symvers`."""
_FILES = ("Makefile", ".config")
_FOLDERS = ("include", "scripts", "arch/um", "arch/x86", "net/mptcp", "net/plait")
_WITHOUT = (
    "include/dt-bindings", "include/drm", "include/media", "include/soc", "include/sound", "scripts/coccinelle",
    "scripts/gdb", "scripts/gcc-plugins",
)  # fmt: skip
"""Large folders that no scheduler or congestion control needs."""
_LEFT_OVERS = (".o", ".a", ".cmd", ".ko", ".d", ".s")
_SOURCES = (".c", ".S")
"""Omitted, except for the programs of the build: a module includes only headers."""


def pack(tree: Path, archive: Path, *, quick: bool = False) -> None:
    """Write the kit of the built `tree` to `archive`: the same bytes for the same content.

    `quick`: compress it less (gzip), and keep an archive of the same files, because a kernel developer builds often.

    Raises KernelBuildError if the tree lacks files that a module needs.
    """
    missing = [name for name in (*_FILES, _SYMBOLS, "scripts/mod/modpost") if not (tree / name).exists()]
    if missing:
        raise KernelBuildError(
            f"packing the build kit: the built tree has no {', '.join(missing)}, which modules need"
        )
    note, state = archive.with_name(f"{archive.name}.of"), _state(tree) if quick else ""
    if quick and archive.exists() and note.exists() and note.read_text(encoding="utf-8") == state:
        return
    note.unlink(missing_ok=True)
    with (
        Folder(archive.parent).create(archive.name) as file,
        tarfile.open(fileobj=file, mode="w:gz", compresslevel=1, format=tarfile.PAX_FORMAT)
        if quick
        else tarfile.open(fileobj=file, mode="w:xz", preset=2, format=tarfile.PAX_FORMAT) as kit,
    ):
        for path in _kept(tree):
            kit.add(path, path.relative_to(tree).as_posix(), recursive=False, filter=_anonymous)
        kit.add(tree / _SYMBOLS, "Module.symvers", recursive=False, filter=_anonymous)
    if quick:
        Folder(note.parent).write(note.name, state.encode())


def _state(tree: Path) -> str:
    """Return a digest of the names, sizes and times of the kit's files, and of the symbols, which each build writes."""
    digest = hashlib.sha256((tree / _SYMBOLS).read_bytes())
    for path in _kept(tree):
        status = path.lstat()
        digest.update(
            f"{path.relative_to(tree).as_posix()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode()
        )
    return digest.hexdigest()


def unpacked(kernel: Path) -> Path:
    """Return the folder with the kit of the kernel in the folder `kernel`; unpack it the first time (60 MB).

    Raises KernelBuildError if the kit is missing or damaged, or if plait cannot write the folder.
    """
    folder = kernel.parent / ".kits" / kernel.name
    if folder.is_dir():
        return folder
    with alone("kit"):
        try:
            if not folder.is_dir():
                with scratch(folder.parent, ".unpacking-") as new:
                    _unpack(kernel / ARCHIVE, new / "kit")
                    Folder(folder.parent).take(new / "kit", folder.name)
        except OSError as error:
            raise KernelBuildError(f"unpacking {kernel / ARCHIVE} to {folder}: {error.strerror}") from error
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    if not archive.is_file():
        raise KernelBuildError(
            f"the kernel {archive.parent.name[:12]} has no kit to build modules with; "
            "build a kernel that has it (`plait kernel build`)"
        )
    folder.mkdir()
    try:
        extract(archive, folder)
    except KernelBuildError as error:
        remedy = f"if the archive is damaged, remove {archive.parent} and build the kernel again"
        raise KernelBuildError(f"{error}; {remedy}") from error


def _kept(tree: Path) -> Iterator[Path]:
    yield from (tree / name for name in _FILES)
    for folder in _FOLDERS:
        for path in sorted((tree / folder).rglob("*")):
            name = path.relative_to(tree).as_posix()
            if path.is_dir() and not path.is_symlink():
                continue
            if name.startswith(tuple(f"{folder}/" for folder in _WITHOUT)) or path.suffix in _LEFT_OVERS:
                continue
            if path.suffix not in _SOURCES or name.startswith("scripts/"):
                yield path


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the entry without user, group and time."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry
