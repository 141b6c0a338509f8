"""Stock kernels: images of the distribution's packages in the user's cache, files of the user, or built from a tree.

    cache/stock/<package>/   boot/vmlinuz-VERSION, lib/modules/VERSION/, image.json (last, so it marks a complete image)

plait downloads a package with `apt-get download` and unpacks it with `dpkg-deb`; this needs neither root nor an
installation. Of the flavours for virtual machines and for PCs, which share their source, it takes the smaller one.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from plait.cache import alone, scratch, used_folder
from plait.errors import MachineError, RequestError
from plait.files import Folder
from plait.kernel.model import Kernel, Progress, silent
from plait.kernel.unpack import file_sha256

SCHEME = "debian:"
_PACKAGE = re.compile(r"^linux-image-(\d[\w.+~]*(?:-\d+)?)-(?:cloud-amd64|amd64)$")
_SERIES = re.compile(r"^\d+\.\d+(\.\d+)?$")
_VERSION_OFFSET, _MAGIC_OFFSET = 0x20E, 0x202
_APT_S, _UNPACK_S = 1800, 600


@dataclass(frozen=True)
class StockKernel:
    """A kernel image without plait's changes."""

    image: Path
    modules: Path | None
    """The folder with its modules (`lib/modules/VERSION`); None: the kernel has all built in."""
    version: str
    """As the image says: `6.12.117+deb12-cloud-amd64`."""
    identity: str
    """A hash of the image and of all modules."""


class _ImageRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    package: str
    image: str
    modules: str
    version: str
    identity: str


def of_files(image: Path, modules: Path | None) -> StockKernel:
    """Return the kernel in a file of the user (RequestError if it is no kernel for x86-64, or the folder is none)."""
    if modules is not None and not modules.is_dir():
        raise RequestError(
            f"--modules {modules}: it is not a folder; give the one with the kernel's modules, lib/modules/VERSION"
        )
    try:
        return StockKernel(image, modules, _version(image), _identity(image, modules))
    except OSError as error:
        raise RequestError(f"--kernel {image}: {error.strerror}; give a kernel image (vmlinuz)") from error


def of_build(kernel: Kernel) -> StockKernel:
    """Return a kernel that plait built for the engine `machine`."""
    return StockKernel(kernel.binary, None, _version(kernel.binary), kernel.binary_sha256)


def of_distribution(series: str, progress: Progress = silent) -> StockKernel:
    """Return the distribution's newest kernel of `series` (`6.12`), or exactly the version `6.12.117`.

    The cache keeps it. Raises RequestError for anything else than a version, MachineError if there is no such package
    or the download fails.
    """
    if not _SERIES.match(series):
        raise RequestError(
            f"--kernel {SCHEME}{series}: this is not a version; write for example {SCHEME}6.12"
        )
    cached = [kernel for kernel in _cached() if _in_series(kernel.version, series)]
    if cached:
        return max(cached, key=lambda kernel: _age(kernel.version))
    known = [package for package in _known_packages() if _in_series(_package_version(package), series)]
    if not known:
        raise MachineError(
            f"looking for a kernel {series} among the distribution's packages: there is none for amd64; "
            "`apt-cache search linux-image` lists them, and --kernel PATH takes any image"
        )
    return _fetch(_smallest_of_newest(known), progress)


def nearest(version: str, progress: Progress = silent) -> StockKernel:
    """Return the distribution's kernel whose version is nearest to `version`, from the cache if it has that series.

    The last version before another first number is the nearest: of 6.1 and 6.12, 6.12 is nearer to 7.3.

    Raises MachineError as `of_distribution`.
    """
    wanted = numbers(version)
    cached = [kernel for kernel in _cached() if numbers(kernel.version)[:2] == wanted[:2]]
    if cached:
        return min(cached, key=lambda kernel: _distance(numbers(kernel.version), wanted))
    known = _known_packages()
    if not known:
        raise MachineError(
            "looking for the distribution's kernels: apt knows none for amd64; run `sudo apt-get update`, or give an "
            "image (--kernel PATH/vmlinuz --modules DIR)"
        )
    best = min(_distance(numbers(_package_version(package)), wanted) for package in known)
    near = [package for package in known if _distance(numbers(_package_version(package)), wanted) == best]
    package = _smallest_of_newest(near)
    return _fetch(package, progress)


def numbers(version: str) -> tuple[int, int, int]:
    """Return the three numbers of a version: (6, 12, 117) of `6.12.117+deb12-amd64`."""
    first = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return (int(first[1]), int(first[2]), int(first[3] or 0)) if first else (0, 0, 0)


def _distance(version: tuple[int, int, int], wanted: tuple[int, int, int]) -> tuple[int, int, int]:
    if version[0] != wanted[0]:
        side = 1 if version > wanted else -1
        return (side * (version[0] - wanted[0]), side * version[1], side * version[2])
    return (0, abs(version[1] - wanted[1]), abs(version[2] - wanted[2]))


def _in_series(version: str, series: str) -> bool:
    parts = tuple(map(int, series.split(".")))
    return numbers(version)[: len(parts)] == parts


def _package_version(package: str) -> str:
    return package.removeprefix("linux-image-")


def _age(version: str) -> tuple[int, ...]:
    """Return what orders versions: their numbers, and that of the interface to modules (50 of `6.1.0-50-amd64`)."""
    interface = re.search(r"-(\d+)-", version)
    return (*numbers(version), int(interface[1]) if interface else 0)


def _smallest_of_newest(packages: Sequence[str]) -> str:
    newest = max(_age(_package_version(package)) for package in packages)
    newest_packages = [package for package in packages if _age(_package_version(package)) == newest]
    return max(newest_packages, key=lambda package: ("-cloud-" in package, package))


def _known_packages() -> list[str]:
    listed = _run(["apt-cache", "pkgnames", "linux-image-"], Path("/"), _APT_S)
    return sorted(name for name in listed.split() if _PACKAGE.match(name))


def _cached() -> Iterator[StockKernel]:
    for folder in sorted(_root().glob("linux-image-*")):
        try:
            record = _ImageRecord.model_validate_json(Folder(folder).read("image.json"))
        except (OSError, ValidationError):
            continue
        image = folder / record.image
        if image.is_file():
            yield StockKernel(image, folder / record.modules, record.version, record.identity)


def _fetch(package: str, progress: Progress) -> StockKernel:
    """Return the kernel of a package, which one plait at a time downloads unless the cache has it by then."""
    with alone("stock", lambda holder: progress(f"waiting for {holder} that downloads a kernel", None)):
        cached = [kernel for kernel in _cached() if (_root() / package) in kernel.image.parents]
        return cached[0] if cached else _download(package, progress)


def _download(package: str, progress: Progress) -> StockKernel:
    """Download and unpack a package, and those that have its image and modules, into the cache."""
    root = _root()
    try:
        with scratch(root, ".fetching-") as folder:
            progress(f"downloading the package {package}", None)
            _run(["apt-get", "download", "-q", package, *_parts(package)], folder, _APT_S)
            unpacked = folder / "unpacked"
            for deb in folder.glob("*.deb"):
                _run(["dpkg-deb", "--extract", str(deb), str(unpacked)], folder, _UNPACK_S)
            record = _record(package, unpacked)
            Folder(unpacked).write("image.json", record.model_dump_json(indent=1).encode())
            target = root / package
            if target.exists():
                shutil.rmtree(target)
            Folder(root).take(unpacked, package)
    except OSError as error:
        raise MachineError(
            f"unpacking the package {package} below {root}: {error}; is the disk full?"
        ) from error
    return StockKernel(target / record.image, target / record.modules, record.version, record.identity)


def _parts(package: str) -> list[str]:
    """Return the packages of the image and of the modules, which Debian's kernels from 7.2 on only depend on."""
    version = _package_version(package)
    wanted = {f"linux-binary-{version}", f"linux-modules-{version}"}
    shown = _run(["apt-cache", "show", "--no-all-versions", package], Path("/"), _APT_S)
    depends = [line for line in shown.splitlines() if line.startswith("Depends: ")]
    return sorted(wanted & set(re.findall(r"[\w.+~-]+", " ".join(depends))))


def _record(package: str, unpacked: Path) -> _ImageRecord:
    """Return what the files of a package are. Raise MachineError if it has no kernel of its version."""
    version = _package_version(package)
    images = (unpacked / "boot" / f"vmlinuz-{version}", unpacked / "usr/lib/modules" / version / "vmlinuz")
    image = next((path for path in images if path.is_file()), None)
    folders = (unpacked / "lib/modules" / version, unpacked / "usr/lib/modules" / version)
    folder = next((path for path in folders if path.is_dir()), None)
    if image is None or folder is None:
        raise MachineError(
            f"looking for a kernel in the package {package}: it has no image with modules; give another version, or "
            "an image (--kernel PATH/vmlinuz --modules DIR)"
        )
    return _ImageRecord(
        package=package,
        image=image.relative_to(unpacked).as_posix(),
        modules=folder.relative_to(unpacked).as_posix(),
        version=_version(image),
        identity=_identity(image, folder),
    )


def _run(command: list[str], folder: Path, timeout_s: float) -> str:
    try:
        answer = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except FileNotFoundError as error:
        raise MachineError(
            f"running {command[0]}: this machine does not have it; give an image (--kernel PATH/vmlinuz --modules DIR)"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"running {' '.join(command)}: it took longer than {timeout_s:.0f} s") from error
    if answer.returncode != 0:
        reason = next(
            (line for line in answer.stderr.splitlines() if line.startswith("E:")), answer.stderr[-300:]
        )
        raise MachineError(
            f"running {' '.join(command)}: {reason.strip()}; if the package lists are old, run `sudo apt-get update`"
        )
    return answer.stdout


def _version(image: Path) -> str:
    """Return the version in the header of a bzImage (Documentation/arch/x86/boot.rst)."""
    with image.open("rb") as file:
        header = file.read(1 << 16)
    if header[_MAGIC_OFFSET : _MAGIC_OFFSET + 4] != b"HdrS":
        raise RequestError(f"--kernel {image}: it is not a kernel image for x86-64 (bzImage)")
    start = 0x200 + int.from_bytes(header[_VERSION_OFFSET : _VERSION_OFFSET + 2], "little")
    text = header[start : start + 256].partition(b"\0")[0].decode("ascii", errors="replace")
    return text.split(" ")[0] or "unknown"


def _identity(image: Path, modules: Path | None) -> str:
    parts = [file_sha256(image)]
    if modules is not None:
        paths = sorted(path for path in modules.rglob("*.ko*") if path.is_file() and not path.is_symlink())
        parts += [f"{path.relative_to(modules).as_posix()} {file_sha256(path)}" for path in paths]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _root() -> Path:
    return used_folder("stock")
