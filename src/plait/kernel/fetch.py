"""Getting a kernel source archive onto this machine: from the distribution's package, or from kernel.org."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING

from plait.errors import KernelBuildError

if TYPE_CHECKING:
    from pathlib import Path

    from plait.kernel.model import Progress

PACKAGE = "linux-source-6.12"
"""Debian's package of the kernel's source."""

_CHUNK = 1 << 20
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Pinned:
    """An archive on the network whose content is known beforehand."""

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
    """Return the source archive in the distribution's package, downloaded with `apt-get` and unpacked in `folder`.

    Neither root nor an installation is needed.

    Raises:
        KernelBuildError: there is no apt, it does not know the package, or the download failed.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise KernelBuildError("this machine has no apt-get")
    downloads = folder / "package"
    downloads.mkdir(parents=True, exist_ok=True)
    progress(f"downloading the package {PACKAGE}", None)
    done = subprocess.run(
        ["apt-get", "download", "-q", PACKAGE], cwd=downloads, capture_output=True, text=True, check=False
    )
    packages = sorted(downloads.glob("*.deb"))
    if done.returncode != 0 or not packages:
        raise KernelBuildError(_apt_failure(done.stderr))
    return _archive_in(packages[-1], folder)


def _apt_failure(stderr: str) -> str:
    errors = [line[2:].strip() for line in stderr.splitlines() if line.startswith("E:")]
    reason = errors[0] if errors else "apt-get download failed"
    if "Unable to locate" in reason or "No candidate" in reason or "Can't select" in reason:
        return f"{reason}; if its lists are empty, `sudo apt-get update` fills them"
    return f"{reason}; if its lists are old, `sudo apt-get update` renews them"


def _archive_in(deb: Path, folder: Path) -> Path:
    """Unpack the archive in a package of Debian's, and removes the package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as reader:
        subprocess.run(
            ["tar", "--extract", f"--directory={folder}", "--strip-components=3", "--wildcards", "*/usr/src/*.tar.*"],
            stdin=reader.stdout, capture_output=True, check=False,
        )  # fmt: skip
    archives = sorted(folder.glob(f"{PACKAGE}.tar.*"))
    if reader.returncode != 0 or not archives:
        raise KernelBuildError(f"the package {deb.name} holds no source archive, or the disk is full")
    shutil.rmtree(deb.parent)
    return archives[-1]


def download(pinned: Pinned, folder: Path, progress: Progress) -> Path:
    """Return the archive, downloaded into `folder` unless it is there already. Its checksum is verified.

    Raises:
        KernelBuildError: it cannot be fetched, or is not what it should be; nothing is kept then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / pinned.name
    if target.exists() and _sha256(target) == pinned.sha256:
        return target
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        digest = _receive(pinned, partial, progress)
        if digest != pinned.sha256:
            raise KernelBuildError(
                f"{pinned.url} is not the file that plait knows: its SHA-256 is {digest}, not {pinned.sha256}; "
                "it was not used. Something between here and there alters it."
            )
        partial.rename(target)
    except (urllib.error.URLError, HTTPException, OSError) as error:
        reason = error if isinstance(error, urllib.error.HTTPError) else getattr(error, "reason", error)
        raise KernelBuildError(f"downloading {pinned.url}: {reason}") from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def _receive(pinned: Pinned, partial: Path, progress: Progress) -> str:
    """Write what the network has to `partial`, and returns its SHA-256."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(pinned.url, timeout=_TIMEOUT_S) as answer, partial.open("wb") as file:  # noqa: S310 - a constant
        total = int(answer.headers.get("Content-Length") or 0)
        done = 0
        while chunk := answer.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
            done += len(chunk)
            progress(f"downloading {pinned.name}", done / total if total else None)
    if total and done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
