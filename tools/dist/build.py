"""Builds the distributions into `dist/`: the wheel of plait, and the wheel and the source of `plait-kernel`.

The same commit, kernel and tools give the same bytes: files have fixed modes and order, and the time of the commit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bill
import kernel_package

from plait import kernel as kernels
from plait.errors import PlaitError
from plait.kernel import obtain

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 100_000_000
"""Package indexes refuse larger files."""
_EARLIEST = 315_532_800
"""1980: a zip file has no earlier time."""


def epoch() -> int:
    """Return SOURCE_DATE_EPOCH, else the time of the last commit, in seconds."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        done = subprocess.run(
            ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        given = done.stdout.strip() or "0"
    return max(int(given), _EARLIEST)


def package(folder: Path, out: Path, target: str, seconds: int) -> None:
    """Build one distribution of the project in `folder` (`target`: wheel or sdist)."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "SOURCE_DATE_EPOCH": str(seconds)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        sys.exit(f"building the {target} of {folder.name}: {''.join(last) or 'hatchling failed'}")


def sums(out: Path) -> None:
    """Write SHA256SUMS, and exit if a file is too large for an index."""
    lines = []
    for path in sorted(out.iterdir()):
        if path.name == "SHA256SUMS":
            continue
        size = path.stat().st_size
        if size >= MOST_BYTES:
            sys.exit(f"{path}: {size} bytes, and an index takes less than {MOST_BYTES}")
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
        sys.stdout.write(f"{size / 1e6:6.1f} MB  {path}\n")
    (out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Build all distributions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to fill [default: dist]")
    parser.add_argument("--source", type=Path, help="the archive that the kernel was built from")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "dist", help="folder for the packed source [default: build/dist]"
    )
    parser.add_argument("--without-kernel", action="store_true", help="build only the wheel of plait")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    seconds = epoch()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    bill.write_licences(ROOT, ROOT / "src" / "plait" / "_bin" / "licences.txt")
    if subprocess.run(["make", "--no-print-directory", "-C", "bpf"], cwd=ROOT, check=False).returncode != 0:
        sys.exit("compiling the BPF programs failed; install clang and libbpf-dev (`tools/system-packages test`)")
    package(ROOT, out, "wheel", seconds)
    if not arguments.without_kernel:
        try:
            kernel = kernels.built_by_default()
            if kernel is None:
                sys.exit("no laboratory kernel of this tree is built; run `make kernel` first")
            archive = kernel_package.source_archive(kernel, obtain.Sources(), arguments.source)
            pruned = kernel_package.pruned(archive, arguments.work)
            with tempfile.TemporaryDirectory(prefix="plait-dist-") as scratch:
                stage = Path(scratch) / "plait-kernel"
                kernel_package.fill(stage, kernel, pruned, seconds)
                package(stage, out, "wheel", seconds)
                package(stage, out, "sdist", seconds)
        except PlaitError as error:
            sys.exit(str(error))
    sums(out)


if __name__ == "__main__":
    main()
