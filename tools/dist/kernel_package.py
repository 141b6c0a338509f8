"""Fills the project folder of `plait-kernel`: the built kernel for the wheel, its complete source for the sdist."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from plait.kernel import cache, kit, packaged, recipe, unpack
from plait.kernel.model import BuildRecord, Kernel, silent
from plait.kernel.obtain import Sources


PROJECT = Path(__file__).resolve().parents[2] / "packaging" / "plait-kernel"
LIBRARY_LICENCE = "LICENSES/preferred/LGPL-2.1"


def source_archive(kernel: Kernel, sources: Sources, given: Path | None) -> Path:
    """Return the archive that `kernel` was built from; download the distribution's if none is given or installed.

    Exits if it is not the source of that kernel.
    """
    wanted = _record(kernel).source
    places = [given] if given else [path for folder in sources.installed for path in folder.glob(wanted.name)]
    if not places:
        folder = Path(tempfile.gettempdir()) / "plait-dist-source"
        fetch = next((get for kind, get in sources.fetched if kind == wanted.kind), sources.fetched[0][1])
        ready = folder / wanted.name
        places = [ready if ready.is_file() else fetch(folder, silent)]
    for place in places:
        if unpack.file_sha256(place) == wanted.content_sha256:
            return place
    sys.exit(
        f"packing the source of the kernel {kernel.name}: {', '.join(map(str, places))} is not the archive it was "
        f"built from ({wanted.name}, SHA-256 {wanted.content_sha256}); give that one with --source, or build the "
        "kernel again"
    )


def pruned(archive: Path, folder: Path) -> Path:
    """Return a tar.xz of what the build reads of a Linux source archive; pack it the first time (a minute or two).

    It has the tree that `plait kernel build` unpacks, so every kernel proves it complete.
    """
    key = hashlib.sha256("\n".join((unpack.file_sha256(archive), *unpack.UNUSED_FOLDERS)).encode()).hexdigest()
    target = folder / f"linux-{key[:16]}.tar.xz"
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir()
        unpack.archive(archive, tree)
        packed = Path(scratch) / "linux.tar.xz"
        with tarfile.open(packed, "w:xz", preset=1, format=tarfile.PAX_FORMAT) as out:
            for path in sorted(tree.rglob("*")):
                out.add(path, path.relative_to(tree).as_posix(), recursive=False, filter=_anonymous)
        packed.rename(target)
    return target


def fill(stage: Path, kernel: Kernel, linux: Path, seconds: int) -> None:
    """Write the project to the new folder `stage`: `linux` is the pruned source, `seconds` the time of the release."""
    shutil.copytree(PROJECT, stage, ignore=shutil.ignore_patterns("__pycache__"))
    chosen = recipe.load(kernel.version)
    _write_source(stage, chosen, linux)
    built, data = kernel.binary.parent, stage / packaged.MODULE
    with (data / packaged.BINARY).open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(kernel.binary.read_bytes())
    shutil.copyfile(built / "config", data / packaged.CONFIG)
    shutil.copyfile(built / kit.ARCHIVE, data / kit.ARCHIVE)
    with tarfile.open(built / kit.ARCHIVE) as archive:
        (stage / "kit.files").write_text("".join(f"{name}\n" for name in archive.getnames()), encoding="utf-8")
    record = _record(kernel).model_copy(
        update={
            "built_at": dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds"),
            "build_s": None, "jobs": None, "chosen_by_default": True, "packaged": True,
        }
    )  # fmt: skip
    cache.write_record(data, record)


def _write_source(stage: Path, chosen: recipe.Recipe, linux: Path) -> None:
    shutil.copyfile(linux, stage / "linux.tar.xz")
    (stage / "patches").mkdir()
    for number, patch in enumerate(chosen.patches, 1):
        shutil.copyfile(patch, stage / "patches" / f"{number:02}-{patch.name}")
    for source, target in chosen.additions:
        destination = stage / "added" / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, destination)
    added = stage / "added" / recipe.ADDED
    if chosen.additions:
        (added / "Makefile").write_text(recipe.makefile(added), encoding="utf-8")
    (stage / "laboratory.config").write_text(chosen.fragment, encoding="utf-8")
    settings = "".join(f"{name}={value}\n" for name, value in recipe.PINNED.items())
    (stage / "settings").write_text(settings, encoding="utf-8")
    shutil.copyfile(recipe.LABORATORY / "COPYING", stage / "COPYING")
    done = subprocess.run(
        ["tar", "--extract", f"--file={linux}", "--to-stdout", "--occurrence=1", LIBRARY_LICENCE],
        capture_output=True, check=True,
    )  # fmt: skip
    (stage / "COPYING.LIB").write_bytes(done.stdout)


def _record(kernel: Kernel) -> BuildRecord:
    return BuildRecord.model_validate_json((kernel.binary.parent / packaged.RECORD).read_bytes())


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the entry without user, group and time, and with one of two modes."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
