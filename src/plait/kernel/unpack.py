"""Unpacks the part of a Linux source tree that User-Mode Linux needs, and hashes its content."""

from __future__ import annotations

import hashlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plait.errors import KernelBuildError

_OTHER_ARCHITECTURES = (
    "alpha", "arc", "arm", "arm64", "csky", "hexagon", "ia64", "loongarch", "m68k", "microblaze", "mips", "nios2",
    "openrisc", "parisc", "powerpc", "riscv", "s390", "sh", "sparc", "xtensa",
)  # fmt: skip
_DRIVERS = (
    "accel", "clk", "gpu", "iio", "infiniband", "media", "net/ethernet", "net/wireless", "pinctrl", "scsi", "staging",
    "usb",
)  # fmt: skip

# Never compiled for ARCH=um, and three quarters of the tree. Kconfig files and Makefiles stay, because make reads them.
UNUSED_FOLDERS = (
    "*/Documentation/*/*",
    "*/tools/perf/*",
    "*/tools/testing/*",
    "*/sound/*.[chS]",
    "*/samples/*.[chS]",
    *(f"*/drivers/{name}/*.[chS]" for name in _DRIVERS),
    *(f"*/arch/{name}/*{end}" for name in _OTHER_ARCHITECTURES for end in (".[chS]", ".dts*", "defconfig")),
)

LEFT_OUT_OF_CHECKOUT = (
    "/*",
    "!/Documentation/*/",
    "!/tools/perf/",
    "!/tools/testing/",
    "!/sound/**/*.[chS]",
    "!/samples/**/*.[chS]",
    *(f"!/drivers/{name}/**/*.[chS]" for name in _DRIVERS),
    *(
        f"!/arch/{name}/**/*{end}"
        for name in _OTHER_ARCHITECTURES
        for end in (".[chS]", ".dts*", "defconfig")
    ),
)
"""The same as patterns of git's sparse checkout."""

# Files of a source tree that are no sources: its history, and the products of a build in it.
_PRODUCTS = (
    "./.git", "./.config", "./.config.old", "./linux", "./vmlinux", "./Module.symvers", "./System.map",
    "./include/config", "./include/generated", "./arch/*/include/generated",
    "*/*.o", "*/*.ko", "*/*.a", "*/.*.cmd", "*/.*.d", "*/.tmp_*", "*/modules.order",
)  # fmt: skip

_MATCH = ("--anchored", "--wildcards", "--wildcards-match-slash")


def archive(path: Path, target: Path) -> None:
    """Unpack the source archive `path` (tar, compressed or not) into the existing folder `target`.

    Raises:
        KernelBuildError: the archive cannot be read, or the disk is full.
    """
    extract(path, target, "--strip-components=1", *_patterns(UNUSED_FOLDERS))


def extract(path: Path, target: Path, *options: str) -> None:
    """Extract the archive `path` (tar, compressed or not) into the existing folder `target`, and nowhere else.

    It uses GNU tar: `TarFile.extractall` is safe only with `filter`, which Python 3.11.2 of Debian 12 does not have.

    Raises:
        KernelBuildError: the archive cannot be read, or the disk is full.
    """
    _tar(["--extract", f"--file={path}", *options], target, path)


def tree(path: Path, target: Path) -> None:
    """Copy the source tree `path` into the existing folder `target`, without the products of a build in it."""
    packed = [
        "tar",
        "--create",
        "--file=-",
        *_patterns((*UNUSED_FOLDERS, *_PRODUCTS)),
        f"--directory={path}",
        ".",
    ]
    with subprocess.Popen(packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        _tar(["--extract", "--file=-"], target, path, reader)
    if reader.returncode != 0:
        raise KernelBuildError(
            f"reading the source tree {path}: tar failed; check that you can read all its files"
        )


def version(folder: Path) -> str:
    """Return the version of the source tree in `folder` (`6.12.117`, `7.3.0-rc7`).

    Raises:
        KernelBuildError: the folder is no Linux source tree.
    """
    try:
        text = (folder / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise KernelBuildError(
            "the source is not a Linux source tree: it has no Makefile; give another with --source"
        ) from error
    return version_of(text)


def version_of(text: str) -> str:
    """Return the version in the text of Linux's Makefile (KernelBuildError)."""
    fields = dict(
        re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", text, re.MULTILINE)
    )
    if not fields.get("VERSION") or not fields.get("PATCHLEVEL"):
        raise KernelBuildError(
            "the source is not a Linux source tree: its Makefile has no version; give another with --source"
        )
    return f"{fields['VERSION']}.{fields['PATCHLEVEL']}.{fields.get('SUBLEVEL') or '0'}{fields.get('EXTRAVERSION', '')}"


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_sha256(folder: Path) -> str:
    """Return a SHA-256 over the names, executable bits and contents of all files in `folder`."""
    files = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    with ThreadPoolExecutor() as pool:
        contents = pool.map(_content, files, chunksize=256)
        digest = hashlib.sha256()
        for path, content in zip(files, contents, strict=True):
            digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link {path.readlink()}"
    kind = "program" if path.stat().st_mode & 0o100 else "file"
    return f"{kind} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _patterns(patterns: tuple[str, ...]) -> list[str]:
    return [*_MATCH, *(f"--exclude={pattern}" for pattern in patterns)]


def _tar(
    arguments: list[str], target: Path, source: Path, reader: subprocess.Popen[bytes] | None = None
) -> None:
    # the folder first: tar applies it to what follows it
    command = ["tar", f"--directory={target}", "--no-same-owner", *arguments]
    stdin = reader.stdout if reader is not None else subprocess.DEVNULL
    answer = subprocess.run(command, stdin=stdin, capture_output=True, check=False)
    if answer.returncode != 0:
        reason = answer.stderr.decode(errors="replace").strip().splitlines()
        raise KernelBuildError(f"unpacking {source}: {reason[0] if reason else 'tar failed'}")
