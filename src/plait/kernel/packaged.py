"""The kernel of the installed package `plait-kernel`, which plait unpacks into the cache.

There it is like a kernel that this machine has built.
The package is a folder of data. It runs no code, and plait only reads it:

plait_kernel/
build.json   the record of the build, as in the cache
linux.gz     the kernel
config       its configuration
kit.tar.xz   what a build of a module needs
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import zlib
from pathlib import Path

from pydantic import ValidationError

from plait.errors import KernelBuildError, shell_command
from plait.files import Folder
from plait.kernel import cache, kit
from plait.kernel.model import BuildRecord, Kernel, KernelEngine, Progress, silent

DISTRIBUTION = "plait-kernel"
MODULE = "plait_kernel"
RECORD, BINARY, CONFIG = "build.json", "linux.gz", "config"

_MOST_BYTES = 64 << 20
"""The longest kernel that plait unpacks; that of 6.12 has 9 MB."""


def package_record() -> BuildRecord | None:
    """Return the record of the installed package's kernel; None without the package.

    Raises KernelBuildError if the package is damaged.
    """
    folder = _folder()
    if folder is None:
        return None
    try:
        return BuildRecord.model_validate_json((folder / RECORD).read_bytes())
    except (OSError, ValidationError) as error:
        raise _damaged(f"its {RECORD} cannot be read") from error


def find(name: str, engine: KernelEngine = "virtual") -> Kernel:
    """Return the kernel called `name` for an engine, from the cache or from the installed package (see `cache.find`).

    Raises:
        RequestError: there is none, or more than one.
        KernelBuildError: the package is damaged, or the cache cannot be written.
    """
    unpack()
    return cache.find(name, engine)


def unpack(progress: Progress = silent, *, replace: bool = False) -> None:
    """Unpack the installed package's kernel into the cache, unless the cache has it; do nothing without a package.

    Args:
        progress: called with the step.
        replace: replace the kernel in the cache if its file has changed.

    Raises KernelBuildError if the package is damaged or the cache cannot be written.
    """
    folder, record = _folder(), package_record()
    if folder is None or record is None or _is_cached(record, replace=replace):
        return
    with cache.building(progress):
        if _is_cached(record, replace=replace):
            return  # another process has unpacked it
        progress(f"unpacking the kernel of the package {DISTRIBUTION}", None)
        with cache.workplace() as workplace:
            try:
                _fill(workplace / "finished", folder, record)
            except OSError as error:
                raise KernelBuildError(
                    f"unpacking the package {DISTRIBUTION} into {cache.kernels_root()}: {error.strerror}; "
                    "check the space and permissions of the cache"
                ) from error
            cache.install(workplace / "finished", record.identity)


def forced_build() -> bool:
    """Return whether the user wants a kernel built on this machine (`PLAIT_BUILD=1`)."""
    return os.environ.get("PLAIT_BUILD") == "1"


def _folder() -> Path | None:
    spec = importlib.util.find_spec(MODULE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def _is_cached(record: BuildRecord, *, replace: bool) -> bool:
    if replace:
        return cache.of_identity(record.identity, by_default=False) is not None
    return (cache.kernels_root() / record.identity / RECORD).is_file()


def _fill(target: Path, folder: Path, record: BuildRecord) -> None:
    """Write the folder of a built kernel from the package's files (KernelBuildError, OSError)."""
    target.mkdir()
    try:
        with gzip.open(folder / BINARY) as file:
            content = file.read(_MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(f"its {BINARY} is not a complete gzip file") from error
    if hashlib.sha256(content).hexdigest() != record.binary_sha256:
        raise _damaged(f"the SHA-256 of its kernel is not the one of its {RECORD}")
    Folder(target).write("linux", content)
    (target / "linux").chmod(0o755)
    Folder(target).bring(folder / CONFIG, "config")
    Folder(target).bring(folder / kit.ARCHIVE, kit.ARCHIVE)
    cache.write_record(target, record.model_copy(update={"packaged": True}))


def _damaged(reason: str) -> KernelBuildError:
    return KernelBuildError(
        f"reading the kernel of the package {DISTRIBUTION}: {reason}; "
        "install the package again "
        f"(`{shell_command('pip', 'install', '--force-reinstall', '--no-deps', DISTRIBUTION)}`)"
    )
