"""The cache of built kernels: `kernels/<identity>/` below plait's cache directory.

kernels/
<identity>/   linux, config, kit.tar.xz, build.json, symbols (with --tracing): complete or absent, because plait moves
              a finished build here
.lock         held by the process that builds
.building-*   a build in progress; stale unless the lock is held
.unfinished-* an interrupted build of an archive, which the next one resumes
.kits/        unpacked kits, to build modules with
.trees/       checkouts of git trees, with the products of their last build
.bisect/      values and state of bisections
logs/         the output of failed builds
sources/      archives downloaded for a build, until it succeeds
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from plait.cache import locked, used_folder
from plait.errors import KernelBuildError, MachineError, RequestError
from plait.files import Folder
from plait.kernel import recipe
from plait.kernel.model import BuildRecord, Kernel, KernelEngine, Progress

_NUMBER = re.compile(r"[0-9]{1,9}")
SHORTEST_PREFIX = 4
"""Minimum number of characters of an identity that select a kernel."""


def kernels_root() -> Path:
    """Return the folder of the built kernels. It may not exist yet."""
    return used_folder("kernels")


def list_built() -> list[tuple[Kernel, BuildRecord]]:
    """Return every kernel in the cache with its record, newest version first."""
    entries = [entry for folder in _folders() if (entry := _read(folder)) is not None]
    return sorted(entries, key=lambda entry: (_natural(entry[0].version), entry[1].built_at), reverse=True)


def is_default(record: BuildRecord) -> bool:
    """Return whether a run takes this kernel if it names none: an earlier version of plait had another default."""
    return record.chosen_by_default and record.recipe_sha256 == recipe.load().sha256


def find(name: str, engine: KernelEngine = "virtual") -> Kernel:
    """Return the kernel called `name`: its name, its version, its identity, or a beginning that only it has.

    Only kernels for `engine` count.

    A version selects kernels without a name of their own only, so that 6.12 is not a patched kernel. Of several
    matches, the default kernel counts.

    Raises:
        RequestError: there is none, or more than one.
    """
    built = [kernel for kernel, _ in list_built() if kernel.engine == engine]
    matching = next(
        (kernels for rule in _CALLED if (kernels := [kernel for kernel in built if rule(kernel, name)])), []
    )
    by_default = {kernel.identity for kernel, record in list_built() if is_default(record)}
    if name not in {kernel.identity for kernel in matching}:
        chosen = [kernel for kernel in matching if kernel.identity in by_default]
        matching = chosen if len(chosen) == 1 else matching
    if len(matching) == 1:
        if not _is_sound(matching[0]):
            raise RequestError(
                f"the kernel {name!r}: {matching[0].binary} has changed since its build; remove its folder and "
                "build it again (`plait kernel build`)"
            )
        return replace(matching[0], label=name) if name in matching[0].other_labels else matching[0]
    if matching:
        names = ", ".join(kernel.name for kernel in matching)
        raise RequestError(f"kernel {name}: several kernels match: {names}; write one of these names")
    raise RequestError(f"kernel {name}: {_absent(name, built, engine)}")


def _absent(name: str, built: Sequence[Kernel], engine: KernelEngine) -> str:
    """Return why there is no kernel called `name` for an engine that has `built`, and what to do."""
    if others := {kernel.engine for kernel, _ in list_built() if _is_called(kernel, name)}:
        return f"plait built it for the engine {others.pop()}, and not for {engine}; choose that engine (--engine)"
    names = ", ".join(kernel.name for kernel in built)
    if engine == "machine":
        return (
            f"no file and no kernel for the engine machine has this name (built: {names or 'none'}); give an "
            "image (PATH/vmlinuz), a version (debian:6.12), or build one of a tree (`plait kernel build --tree DIR "
            "--engine machine --name NAME`)"
        )
    if set(name) & {":", "/"}:
        return (
            "only `plait run --engine machine` boots a stock kernel (debian:6.12) or an image (PATH/vmlinuz)"
        )
    if names:
        return f"there is no such built kernel; there is: {names}"
    return "no kernel is built yet; run `plait kernel build`"


def default(recipe_sha256: str, *, built_here: bool = False) -> Kernel | None:
    """Return the kernel of that recipe that `ensure()` returns without a source, or None.

    `built_here`: return none that plait unpacked from a package.
    """
    for kernel, record in list_built():
        if built_here and record.packaged:
            continue
        if record.chosen_by_default and record.recipe_sha256 == recipe_sha256 and _is_sound(kernel):
            return kernel
    return None


def of_recipe(recipe_sha256: str) -> Kernel | None:
    """Return the newest kernel with that recipe whose binary is unchanged, from any source, or None."""
    built = (kernel for kernel, record in list_built() if record.recipe_sha256 == recipe_sha256)
    return next((kernel for kernel in built if _is_sound(kernel)), None)


def of_identity(identity: str, *, by_default: bool, built_here: bool = False) -> Kernel | None:
    """Return the kernel of that identity, or None.

    Args:
        identity: its whole identity.
        by_default: make it the one that `ensure()` returns.
        built_here: return none that plait unpacked from a package.
    """
    folder = kernels_root() / identity
    entry = _read(folder)
    if entry is None or not _is_sound(entry[0]):
        return None
    kernel, record = entry
    if built_here and record.packaged:
        return None
    if by_default and not record.chosen_by_default:
        write_record(folder, record.model_copy(update={"chosen_by_default": True}))
    return kernel


def label(kernel: Kernel, name: str) -> Kernel:
    """Give a kernel in the cache a further name, which another one for its engine loses, and return it."""
    for named, record in list_built():
        if named.engine != kernel.engine:
            continue
        others = [known for known in (record.label, *record.other_labels) if known not in (None, name)]
        labels = [name, *others] if named.identity == kernel.identity else others
        wanted = {"label": labels[0] if labels else None, "other_labels": tuple(labels[1:])}
        if (record.label, record.other_labels) != (wanted["label"], wanted["other_labels"]):
            write_record(kernels_root() / named.identity, record.model_copy(update=wanted))
    return replace(kernel, label=name)


def write_record(folder: Path, record: BuildRecord) -> None:
    """Write `build.json` into `folder`."""
    Folder(folder).write("build.json", record.model_dump_json(by_alias=True, indent=2).encode() + b"\n")


@contextlib.contextmanager
def building(progress: Progress) -> Iterator[None]:
    """Hold the cache's build lock; report and wait while another process holds it.

    Raises:
        KernelBuildError: the cache cannot be written.
    """
    try:
        descriptor = locked(
            "kernels/", lambda holder: progress(f"waiting for {holder} that is building a kernel", None)
        )
    except MachineError as error:
        raise KernelBuildError(str(error)) from error
    try:
        for stale in kernels_root().glob(".building-*"):  # its process no longer holds the lock
            shutil.rmtree(stale, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Yield an empty folder in the cache (the caller holds the lock), and remove it in any case."""
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=kernels_root()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def unfinished(content: str) -> Iterator[Path]:
    """Yield the folder for a build of this content (the caller holds the lock), and remove those of all others.

    It stays after an interrupt alone, so that the next build resumes.
    """
    folder = kernels_root() / f".unfinished-{content[:16]}"
    for other in set(kernels_root().glob(".unfinished-*")) - {folder}:
        shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    try:
        yield folder
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def install(folder: Path, identity: str) -> Kernel:
    """Move a finished folder to its place (the caller holds the lock), and return the kernel in it."""
    destination = kernels_root() / identity
    shutil.rmtree(destination, ignore_errors=True)  # a damaged kernel; plait uses an intact one
    folder.chmod(0o755)
    Folder(kernels_root()).take(folder, identity)
    entry = _read(destination)
    if entry is None:
        raise KernelBuildError(
            f"reading back the kernel in {destination} failed; check whether the disk is full"
        )
    return entry[0]


def _folders() -> list[Path]:
    root = kernels_root()
    return [path for path in root.iterdir() if not path.name.startswith(".")] if root.is_dir() else []


def _read(folder: Path) -> tuple[Kernel, BuildRecord] | None:
    """Return the kernel in `folder`, or None if it has no complete one."""
    try:
        record = BuildRecord.model_validate_json(Folder(folder).read("build.json"))
        binary = folder / "linux"
        if binary.stat().st_size != record.binary_bytes or record.identity != folder.name:
            return None
    except (OSError, ValidationError):
        return None
    kernel = Kernel(record.identity, record.version, binary, record.binary_sha256, record.hz, record.label)
    return replace(kernel, other_labels=record.other_labels, engine=record.engine), record


def _is_sound(kernel: Kernel) -> bool:
    """Return whether the kernel's file is unchanged since its build (some 20 ms)."""
    try:
        return (
            sha256(Folder(kernel.binary.parent).read(kernel.binary.name)).hexdigest() == kernel.binary_sha256
        )
    except OSError:
        return False


def _is_called(kernel: Kernel, name: str) -> bool:
    return name in (
        kernel.label,
        *kernel.other_labels,
        kernel.identity,
        f"{kernel.version}-{kernel.identity[:8]}",
    )


def _has_version(kernel: Kernel, name: str) -> bool:
    """Return whether `name` is the version, or its first numbers: 6.12 for 6.12.117."""
    return kernel.label is None and f"{kernel.version}.".startswith(f"{name}.")


def _starts_so(kernel: Kernel, name: str) -> bool:
    """Return whether `name` is a beginning of the kernel's name or identity; 6.1 is none of 6.12.117."""
    if kernel.name.startswith(name) and (kernel.label or "-" in name):
        return True
    return len(name) >= SHORTEST_PREFIX and kernel.identity.startswith(name)


_CALLED = (_is_called, _has_version, _starts_so)
"""The ways to name a kernel; plait uses the first that any kernel fits."""


def _natural(version: str) -> tuple[int, ...]:
    parts = version.replace("-", ".").split(".")
    return tuple(int(part) if _NUMBER.fullmatch(part) else -1 for part in parts)
