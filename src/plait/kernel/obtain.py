"""Returns the laboratory kernel: from the cache, the installed package, or a build; the steps in their order."""

from __future__ import annotations

import datetime as dt
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plait.cache import used_folder
from plait.errors import KernelBuildError, MachineError, shell_command
from plait.files import Folder
from plait.kernel import cache, fetch, kit, packaged, recipe, unpack
from plait.kernel.build import Built, build, check_tools, is_patched
from plait.kernel.model import SYMBOLS, BuildRecord, Kernel, Progress, SourceRecord, silent
from plait.kernel.recipe import Recipe
from plait.version import __version__

Kind = Literal["given", "installed", "distribution", "kernel.org"]
Fetch = Callable[[Path, Progress], Path]
_PROCESSORS = ("x86_64", "AMD64")


@dataclass(frozen=True)
class Sources:
    """Where to search for the source if the user gives none, in this order."""

    installed: tuple[Path, ...] = (Path("/usr/src"),)
    """Folders that may hold the distribution's `linux-source-6.12.tar.*`."""
    fetched: tuple[tuple[Kind, Fetch], ...] = (
        ("distribution", fetch.package),
        ("kernel.org", lambda folder, progress: fetch.download(fetch.KERNEL_ORG, folder, progress)),
    )


def built_by_default() -> Kernel | None:
    """Return the kernel that `ensure()` returns without a build, or None."""
    return _ready(debug=False) or _packaged(silent)


def ensure(
    *,
    source: Path | None = None,
    progress: Progress | None = None,
    sources: Sources | None = None,
    debug: bool = False,
) -> Kernel:
    """Return the laboratory kernel: at once if the cache or an installed package has it, else after a build (minutes).

    With `PLAIT_BUILD=1` in the environment, only a kernel built on this machine counts.

    Args:
        source: a Linux source tree, or an archive of one. None: the kernel built last without a source, else the
            distribution's source, else kernel.org's.
        progress: called at each step.
        sources: where to search if `source` is None.
        debug: return a debug kernel (`config/debug.config`); it is never the default kernel.

    Raises:
        MachineError: programs for the build are missing, or this processor cannot run the kernel.
        KernelBuildError: there is no source, or a step of the build fails.
    """
    progress = progress or silent
    check_processor()
    if source is None:
        kernel = _ready(debug=debug) or (None if debug else _packaged(progress))
        if kernel is not None:
            return kernel
    check_tools(_package_hint())
    requested = None if source is None else _given_source(source)
    try:
        with cache.building(progress):
            if requested is not None:
                return _cached(requested, debug=debug) or _build(requested, progress, debug=debug)
            # another process may have built it while this one waited
            return _ready(debug=debug) or _build(
                _any_source(sources or Sources(), progress), progress, debug=debug
            )
    except OSError as error:
        raise KernelBuildError(
            f"building the laboratory kernel in {cache.kernels_root()}: {error.strerror}: {error.filename}"
        ) from error


@dataclass(frozen=True)
class _Source:
    """A source to build from."""

    kind: Kind
    path: Path
    """An archive, or a folder."""


def _given_source(path: Path) -> _Source:
    if not path.exists():
        raise KernelBuildError(
            f"building from --source {path}: there is no such file or folder; correct the path"
        )
    return _Source("given", path.resolve())


def _ready(*, debug: bool) -> Kernel | None:
    """Return the kernel without a source from the user, if the cache has it."""
    chosen = recipe.load(debug=debug).sha256
    return cache.of_recipe(chosen) if debug else cache.default(chosen, built_here=packaged.forced_build())


def _packaged(progress: Progress) -> Kernel | None:
    """Return the kernel of the installed package if this plait would build the same one, or None."""
    record = None if packaged.forced_build() else packaged.package_record()
    if record is None or record.recipe_sha256 != recipe.load().sha256:
        return None
    packaged.unpack(progress, replace=True)
    return _ready(debug=False)


def _package_hint() -> str:
    """Return how the user gets a built kernel instead of the programs that build one."""
    wanted = f"`{shell_command('pip', 'install', f'plait[kernel]=={__version__}')}`"
    if packaged.package_record() is None:
        return f"or install a built kernel with {wanted}"
    if packaged.forced_build():
        return "or unset PLAIT_BUILD to use the kernel of the installed package"
    return (
        f"or install the built kernel of this version with {wanted}, because the installed package "
        f"{packaged.DISTRIBUTION} has the kernel of another version"
    )


@contextmanager
def source_archive(progress: Progress | None = None, sources: Sources | None = None) -> Iterator[Path]:
    """Yield the archive of a source tree of Linux: the installed one, or one that is downloaded and then removed.

    No kernel is built meanwhile, because a build removes its download, which is the same file.

    Raises:
        KernelBuildError: there is no source, or the cache cannot be written.
    """
    with cache.building(progress or silent):
        path = _any_source(sources or Sources(), progress or silent).path
        try:
            yield path
        finally:
            _remove_download(path)


def check_processor() -> None:
    """Raise MachineError if this processor cannot run the kernel."""
    machine = platform.machine()
    if machine not in _PROCESSORS:
        raise MachineError(
            f"running the laboratory kernel: this machine has an {machine} processor, and User-Mode Linux runs "
            "on x86-64 only; run the study on an x86-64 machine. Results from there can be read and compared here"
        )


def _cached(source: _Source, *, debug: bool) -> Kernel | None:
    """Return the kernel of an archive from the cache, without unpacking the archive."""
    if source.path.is_dir():
        return None
    content = unpack.file_sha256(source.path)
    for _, record in cache.list_built():
        if record.source.content_sha256 == content:
            identity = recipe.load(record.version, debug=debug).identity(content)
            return cache.of_identity(identity, by_default=False, built_here=packaged.forced_build())
    return None


def _any_source(sources: Sources, progress: Progress) -> _Source:
    for folder in sources.installed:
        for path in sorted(folder.glob(f"{fetch.PACKAGE}.tar.*")):
            return _Source("installed", path)
    reasons = []
    for kind, fetcher in sources.fetched:
        try:
            return _Source(kind, fetcher(used_folder("sources"), progress))
        except KernelBuildError as error:
            reasons.append(f"{kind}: {error}")
    raise KernelBuildError(
        "finding the source of the laboratory kernel failed:\n"
        + "\n".join(f"  {reason}" for reason in reasons)
        + f"\nOn Debian, run `{shell_command('apt-get', 'install', fetch.PACKAGE)}`; "
        "elsewhere, give an archive or tree of linux-6.12 (`plait kernel build --source PATH`)"
    )


def _build(source: _Source, progress: Progress, *, debug: bool) -> Kernel:
    """Build a kernel of `source` unless the cache has it (the caller holds the lock)."""
    started = time.monotonic()
    content = "" if source.path.is_dir() else unpack.file_sha256(source.path)
    with cache.unfinished(content) if content else cache.workplace() as workplace:
        tree = workplace / "source"
        if not (content and _can_resume(tree, debug=debug)):
            shutil.rmtree(tree, ignore_errors=True)
            tree.mkdir()
            progress(f"unpacking {source.path.name}", None)
            content = _unpack(source.path, tree)
        version = unpack.version(tree)
        chosen = recipe.load(version, debug=debug)
        by_default = source.kind != "given" and not debug
        identity = chosen.identity(content)
        kernel = cache.of_identity(identity, by_default=by_default, built_here=packaged.forced_build())
        if kernel is None:
            built = compile_tree(tree, version, chosen, identity, progress)
            record = BuildRecord(
                schema_version=1, identity=identity, version=version, hz=chosen.hz, recipe_sha256=chosen.sha256,
                chosen_by_default=by_default,
                source=SourceRecord(
                    kind=source.kind, name=source.path.name + ", --debug" * debug, content_sha256=content
                ),
                compiler=built.compiler, binary_sha256=unpack.file_sha256(built.binary),
                binary_bytes=built.binary.stat().st_size, built_at=utc_now(),
                build_s=round(time.monotonic() - started, 1), jobs=built.jobs,
            )  # fmt: skip
            kernel = cache.install(finished_folder(workplace / "finished", built, record), identity)
    _remove_download(source.path)
    return kernel


def _can_resume(tree: Path, *, debug: bool) -> bool:
    """Return whether an interrupted build has left the tree, patched as this one would patch it."""
    try:
        return is_patched(tree, recipe.load(unpack.version(tree), debug=debug))
    except KernelBuildError:
        return False


def _remove_download(archive: Path) -> None:
    if archive.parent == used_folder("sources"):
        archive.unlink(missing_ok=True)


def _unpack(path: Path, tree: Path) -> str:
    """Fill `tree` from a source, and return the SHA-256 of its content."""
    if path.is_dir():
        unpack.tree(path, tree)
        return unpack.tree_sha256(tree)
    unpack.archive(path, tree)
    return unpack.file_sha256(path)


def compile_tree(
    tree: Path, version: str, chosen: Recipe, identity: str, progress: Progress, *, prepared: bool = False
) -> Built:
    """Build the kernel in `tree`; `prepared`: the tree has plait's patches, and products of an earlier build.

    Raises KernelBuildError with the place of the whole log.
    """
    log = tree.parent / f"{tree.name}.log"
    try:
        return build(tree, chosen, log, progress, prepared=prepared)
    except KernelBuildError as error:
        kept = cache.kernels_root() / "logs" / f"{identity[:16]}.log"
        Folder(kept.parent).write(kept.name, log.read_bytes())
        raise KernelBuildError(f"building Linux {version}: {error}\nthe whole log: {kept}") from error


def finished_folder(folder: Path, built: Built, record: BuildRecord) -> Path:
    """Make the folder of a built kernel for the cache, and return it."""
    folder.mkdir()
    Folder(folder).bring(built.binary, "linux")
    (folder / "linux").chmod(0o755)
    Folder(folder).bring(built.config, "config")
    if built.kit is not None:
        Folder(folder).bring(built.kit, kit.ARCHIVE)
    if built.symbols is not None:
        Folder(folder).bring(built.symbols, SYMBOLS)
    cache.write_record(folder, record)
    return folder


def utc_now() -> str:
    """Return the time in UTC, ISO 8601."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
