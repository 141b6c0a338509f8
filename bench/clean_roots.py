"""Install plait from `dist/` in roots without compilers, run two-paths there, and report digests and times.

Each root is a fresh distribution that mmdebstrap has made: Python with venv, and no compiler. Inside bubblewrap, an
ordinary user creates a virtual environment, installs the wheels and runs the scenario. The first study must end
within 60 s of the start of pip. A second, short study must have the golden digest.

    make dist
    python bench/clean_roots.py bookworm trixie          # Debian 12 and 13
    python bench/clean_roots.py --root FOLDER ..         # a root file system that exists already

Options after `--` go to pip.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 60.0
COMPILERS = ("gcc", "cc", "clang", "make", "ld", "flex", "bison", "rustc", "cargo")
SHORT = ("--repeat", "2", "--fresh", "--set", "traffic.0.bulk.duration=2s")
"""The study of the golden digest."""
_WAIT_S = 900.0
_TIMED = '"$@"; code=$?; times >&2; exit $code'
_TEMPORARY = "/tmp"  # noqa: S108 - a folder in the root, in a namespace of its own


@dataclass(frozen=True)
class Seconds:
    """What a command took."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} s (processor {self.processor:.1f} s)"


def _processor_s(times: str) -> float:
    """Return the processor time of all children in the output of the shell's `times`, its last line."""
    parts = re.findall(r"(\d+)m([\d.]+)s", times.strip().splitlines()[-1])
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in parts)


class Clean:
    """A root file system, entered by an ordinary user with a home of its own."""

    def __init__(self, root: Path, home: Path, wheels: Path, cpu: str | None) -> None:
        self.root = root
        self._command = [
            "bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--uid", "1000",
            "--gid", "1000", "--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", _TEMPORARY,
            "--tmpfs", "/home", "--bind", str(home), "/home/user", "--ro-bind", str(wheels), "/mnt",
            *self._network(), "--chdir", "/home/user", "--clearenv", "--setenv", "HOME", "/home/user",
            "--setenv", "PATH", "/home/user/env/bin:/usr/bin:/bin", "--setenv", "LC_ALL", "C.UTF-8",
        ]  # fmt: skip
        for name, value in os.environ.items():
            if name.startswith("PIP_") and name != "PIP_FIND_LINKS":
                self._command += ["--setenv", name, value]
        if cpu is not None:
            self._command += ["--setenv", "QEMU_CPU", cpu]

    def _network(self) -> list[str]:
        """Return the options that give the root the host's name servers and certificates."""
        files = [Path("/etc/resolv.conf").resolve(), Path("/etc/ssl/certs/ca-certificates.crt")]
        targets = ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"]
        pairs = zip(files, targets, strict=True)
        present = [(file, at) for file, at in pairs if file.is_file() and (self.root / at[1:]).exists()]
        return [word for file, at in present for word in ("--ro-bind", str(file), at)]

    def run(self, *command: str) -> tuple[Seconds, str]:
        """Run a command to its end; return its seconds and its standard output, or exit with its errors."""
        started = time.monotonic()
        done = subprocess.run(
            [*self._command, "sh", "-c", _TIMED, "sh", *command],
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(
                f"{self.root.name}: `{' '.join(command)}` ended with {done.returncode}:\n{done.stderr[-3000:]}"
            )
        return Seconds(time.monotonic() - started, _processor_s(done.stderr)), done.stdout


def measure(root: Path, wheels: Path, options: list[str], cpu: str | None) -> bool:
    """Install plait in `root`, run the studies, print a line of figures, and return whether all holds."""
    present = [
        name for name in COMPILERS if any((root / place / name).exists() for place in ("usr/bin", "bin"))
    ]
    if present:
        sys.exit(f"{root}: the root has {', '.join(present)}; give one without compilers")
    with tempfile.TemporaryDirectory(prefix="plait-clean-") as home:
        clean = Clean(root, Path(home), wheels, cpu)
        _, version = clean.run("python3", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])")
        clean.run("python3", "-m", "venv", "env")
        install, _ = clean.run(
            "env/bin/pip", "install", "--quiet", "--find-links", "/mnt", "plait[kernel]", *options
        )
        first, _ = clean.run("plait", "run", "two-paths", "--out", "results")
        if not (Path(home) / "results" / "report.html").is_file():
            sys.exit(f"{root}: the study left no report")
        _, output = clean.run("plait", "run", "two-paths", "--out", "short", "--json", *SHORT)
        digest = json.loads(output)["digest"]
        identity = json.loads((Path(home) / "short" / "study.json").read_text())["kernel"]["identity"]
    golden = json.loads((ROOT / "tests" / "data" / "golden-digests.json").read_text()).get(identity)
    wall = install.wall + first.wall
    same, fast = digest == golden, wall <= LIMIT_S
    sys.stdout.write(
        f"{root.name}, Python {version.strip()}: pip {install}, first study {first}, together {wall:.1f} s "
        f"({'at most' if fast else 'MORE THAN'} {LIMIT_S:.0f} s; load {os.getloadavg()[0]:.0f}); "
        f"digest {'golden' if same else f'{digest}, golden is {golden}'}\n"
    )
    sys.stdout.flush()
    return same and fast


def made(suite: str, folder: Path) -> Path:
    """Return a root of `suite` that mmdebstrap has just made."""
    root = folder / suite
    packages = "--include=python3,python3-venv,ca-certificates,libstdc++6"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", packages, suite, str(root)], check=True)
    return root


def main() -> int:
    """Measure each root."""
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", help="suites that mmdebstrap makes roots of")
    parser.add_argument("--root", type=Path, action="append", default=[], help="an existing root file system")
    parser.add_argument(
        "--dist", type=Path, default=ROOT / "dist", help="folder with the wheels [default: dist]"
    )
    parser.add_argument(
        "--cpu", help="processor that QEMU's user mode imitates, if the root's programs run in it"
    )
    chosen = parser.parse_args(arguments)
    missing = [name for name in ("bwrap", "mmdebstrap") if shutil.which(name) is None]
    if missing:
        sys.exit(f"this measurement needs {' and '.join(missing)}; install them from the distribution")
    with tempfile.TemporaryDirectory(prefix="plait-roots-") as folder:
        roots = [*chosen.root, *(made(suite, Path(folder)) for suite in chosen.suites)]
        held = [measure(root.resolve(), chosen.dist.resolve(), options, chosen.cpu) for root in roots]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
