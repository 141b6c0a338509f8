"""Downloads a kernel source archive: from the distribution's package, or from kernel.org."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from plait.errors import KernelBuildError
from plait.files import Folder
from plait.kernel.model import Progress
from plait.kernel.unpack import file_sha256

PACKAGE = "linux-source-6.12"
"""The Debian package of the kernel source."""

_CHUNK = 1 << 20
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Pinned:
    """An archive on the network with a known checksum."""

    url: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's name."""
        return self.url.rpartition("/")[2]


KERNEL_ORG = Pinned(
    "https://cdn.kernel.org/pub/linux/kernel/v6.x/linux-6.12.64.tar.xz",
    "d1ad94a33681148efe884f4028970d69e332f2b003f0e8be53a1d25de38e49a2",
)


def package(folder: Path, progress: Progress) -> Path:
    """Download the distribution's package with `apt-get`, and return the source archive in it, unpacked in `folder`.

    This needs neither root nor an installation. An archive that an interrupted build left there is returned at once.

    Raises:
        KernelBuildError: there is no apt, it does not know the package, or the download fails.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise KernelBuildError("this machine has no apt-get or no dpkg-deb")
    if kept := sorted(folder.glob(f"{PACKAGE}.tar.*")):
        return kept[-1]
    downloads = folder / "package"
    downloads.mkdir(parents=True, exist_ok=True)
    progress(f"downloading the package {PACKAGE}", None)
    answer = subprocess.run(
        ["apt-get", "download", "-q", PACKAGE], cwd=downloads, capture_output=True, text=True, check=False
    )
    packages = sorted(downloads.glob("*.deb"))
    if answer.returncode != 0 or not packages:
        raise KernelBuildError(_apt_failure(answer.stderr))
    return _archive_in(packages[-1], folder)


def _apt_failure(stderr: str) -> str:
    errors = [line[2:].strip() for line in stderr.splitlines() if line.startswith("E:")]
    reason = errors[0] if errors else "apt-get download failed"
    if "Unable to locate" in reason or "No candidate" in reason or "Can't select" in reason:
        return f"{reason}; if apt has no package lists, run `sudo apt-get update`"
    return f"{reason}; if the package lists of apt are old, run `sudo apt-get update`"


def _archive_in(deb: Path, folder: Path) -> Path:
    """Unpack the archive in a Debian package, and remove the package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as reader:
        subprocess.run(
            ["tar", "--extract", "--strip-components=3", "--wildcards", "*/usr/src/*.tar.*"], cwd=deb.parent,
            stdin=reader.stdout, capture_output=True, check=False,
        )  # fmt: skip
    archives = sorted(deb.parent.glob(f"{PACKAGE}.tar.*"))
    if reader.returncode != 0 or not archives:
        raise KernelBuildError(
            f"unpacking the package {deb.name}: it has no source archive, or the disk is full"
        )
    Folder(folder).take(archives[-1], archives[-1].name)
    shutil.rmtree(deb.parent)
    return folder / archives[-1].name


def download(pinned: Pinned, folder: Path, progress: Progress) -> Path:
    """Download the archive to `folder` unless it exists there, verify its checksum, and return its path.

    Raises:
        KernelBuildError: the download fails, or the checksum differs; no file stays then.
    """
    from http.client import HTTPException  # here and below: few commands download anything
    from urllib.error import HTTPError

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / pinned.name
    if target.exists() and file_sha256(target) == pinned.sha256:
        return target
    try:
        with Folder(folder).create(pinned.name) as file:
            digest = _receive(pinned, file, progress)
            if digest != pinned.sha256:
                raise KernelBuildError(
                    f"downloading {pinned.url}: the SHA-256 is {digest}, but plait expects {pinned.sha256}, "
                    "so it does not use the file; check for a proxy that changes it"
                )
    except (HTTPException, OSError) as error:
        reason = error if isinstance(error, HTTPError) else getattr(error, "reason", error)
        raise KernelBuildError(f"downloading {pinned.url}: {reason}; check the network") from error
    return target


def _receive(pinned: Pinned, file: BinaryIO, progress: Progress) -> str:
    """Write the download to `file`, and return its SHA-256."""
    from urllib.request import urlopen

    digest = hashlib.sha256()
    with urlopen(pinned.url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - a constant
        total = int(answer.headers.get("Content-Length") or 0)
        received = 0
        while chunk := answer.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
            received += len(chunk)
            progress(f"downloading {pinned.name}", received / total if total else None)
    if total and received < total:
        raise ConnectionError(f"the connection ended after {received} of {total} bytes")
    return digest.hexdigest()
