"""Builds a kernel from an unpacked source tree: patch, configure, check the configuration, compile, strip.

The build works in the tree, a private copy, with relative paths, so that no path of this machine reaches the binary.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from plait.errors import KernelBuildError, MachineError, shell_command
from plait.files import Folder
from plait.kernel import kit
from plait.kernel import recipe as recipes
from plait.kernel.model import KernelEngine, Progress
from plait.kernel.recipe import Recipe

STEPS = 930
"""Compilations in a build of 6.12 for User-Mode Linux; other versions have a similar number. It is for the progress."""

_TOOLS = {
    "gcc": "gcc", "ld": "binutils", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "patch": "patch",
    "tar": "tar", "xz": "xz-utils", "perl": "perl-base", "setpriv": "util-linux",
}  # fmt: skip
_HEADERS = {"/usr/include/stdio.h": "libc6-dev"}
_FOR_BTF = {"pahole": "pahole"}, {"/usr/include/gelf.h": "libelf-dev"}
_TARGETS = {"virtual": ("linux", "modules_prepare"), "machine": ("bzImage",)}
_IMAGE = Path("arch", "x86", "boot", "bzImage")
_TAIL_LINES = 20
_CONFIGURED = "laboratory.configured"
"""The inputs of the last configuration, and its time."""
_PATCHED = "laboratory.patched"
"""The digest of the recipe whose patches and sources the tree has."""
_KCONFIG = re.compile(r"^\s*(?:deps_config := )?([\w./-]*Kconfig[\w.-]*)", re.MULTILINE)
"""The files that a configuration was read from, in a file for make."""


@dataclass(frozen=True)
class Built:
    """The results of a build."""

    binary: Path
    config: Path
    kit: Path | None
    """The files that modules are built with; None for the engine `machine`."""
    symbols: Path | None
    """The kernel with symbols, for a debugger; None if the configuration has no debug information."""
    compiler: str
    jobs: int


def check_tools(otherwise: str = "", engine: KernelEngine = "virtual") -> None:
    """Raise MachineError if programs for a build are missing.

    The message has the command that installs them, and `otherwise`, another remedy.
    """
    tools, headers = _FOR_BTF if engine == "machine" else ({}, {})
    missing = {package for tool, package in {**_TOOLS, **tools}.items() if shutil.which(tool) is None}
    missing |= {package for path, package in {**_HEADERS, **headers}.items() if not Path(path).exists()}
    if missing:
        command = shell_command("sudo", "apt-get", "install", *sorted(missing))
        raise MachineError(
            f"building a kernel needs programs that are not installed; "
            f"install them with `{command}`{otherwise and f', {otherwise}'}"
        )


def build(tree: Path, recipe: Recipe, log: Path, progress: Progress, *, prepared: bool = False) -> Built:
    """Build the kernel in `tree` and return its files. All output goes to `log`.

    `prepared`: the tree has plait's patches and sources, and make compiles only what changed since the last build. A
    tree that an interrupted build has patched is compiled on.

    Raises:
        KernelBuildError: a step failed; the message has the last lines of the log.
    """
    jobs = len(os.sched_getaffinity(0))
    begun = prepared or is_patched(tree, recipe)
    with log.open("w", encoding="utf-8") as output:
        maker = _Make(tree, jobs, log, output, recipe)
        if not begun:
            progress("patching", None)
            for patch in recipe.patches:
                maker.run(
                    ["patch", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", f"--input={patch}"]
                )
            _add(tree, recipe)
            Folder(tree).write(_PATCHED, recipe.sha256.encode())
        configured = begun and _is_configured(tree, recipe)
        compiled = _compiled(tree) if configured else 0
        if not configured:
            progress("configuring", None)
            _configure(maker, recipe)
        known = recipe.engine == "virtual" and not (prepared and (tree / "vmlinux.symvers").exists())
        maker.compile(progress, STEPS if known else None, compiled)
        if recipe.engine == "machine":
            return Built(tree / _IMAGE, tree / ".config", None, None, _compiler(), jobs)
        progress("linking", 1.0)
        maker.run(["strip", "-o", "linux.stripped", "linux"])
        symbols = tree / "linux.symbols" if recipe.has_symbols else None
        if symbols is not None:
            progress("packing the symbols", None)
            keep = ["--only-keep-debug", "--compress-debug-sections=zlib"]
            maker.run(["objcopy", *keep, "linux", symbols.name])
        progress("packing the files that modules need", None)
        kit.pack(tree, tree / kit.ARCHIVE, quick=prepared)
    return Built(tree / "linux.stripped", tree / ".config", tree / kit.ARCHIVE, symbols, _compiler(), jobs)


def is_patched(tree: Path, recipe: Recipe) -> bool:
    """Return whether an interrupted build has applied this recipe's patches to the tree, all of them."""
    try:
        return (tree / _PATCHED).read_text(encoding="utf-8") == recipe.sha256
    except OSError:
        return False


def _add(tree: Path, recipe: Recipe) -> None:
    """Copy plait's own sources to the tree, below a Makefile that names their folders."""
    for source, target in recipe.additions:
        destination = tree / target
        Folder(destination.parent).write(destination.name, source.read_bytes())
    folder = tree / recipes.ADDED
    if recipe.additions:
        Folder(folder).write("Makefile", recipes.makefile(folder).encode())


def _configure(maker: _Make, recipe: Recipe) -> None:
    fragment = "laboratory.config"
    Folder(maker.tree).write(fragment, recipe.fragment.encode())
    maker.run(["make", f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"])
    rejected = recipes.rejected_options(recipe.options, (maker.tree / ".config").read_text(encoding="utf-8"))
    if rejected:
        lines = ", ".join(option.line for option in rejected)
        raise KernelBuildError(
            f"configuring the kernel: this version does not accept {lines}; "
            "an option was renamed, or a dependency of it is off"
        )
    Folder(maker.tree).write(_CONFIGURED, _configured(recipe).encode())


def _is_configured(tree: Path, recipe: Recipe) -> bool:
    """Return whether the tree was configured so, and none of its Kconfig files changed since."""
    try:
        if (tree / _CONFIGURED).read_text(encoding="utf-8") != _configured(recipe):
            return False
        since = (tree / _CONFIGURED).stat().st_mtime_ns
        files = _KCONFIG.findall((tree / "include/config/auto.conf.cmd").read_text(encoding="utf-8"))
        return bool(files) and all((tree / name).stat().st_mtime_ns < since for name in files)
    except OSError:
        return False


def _configured(recipe: Recipe) -> str:
    return f"{_compiler()}\n{recipe.fragment}"


def _compiled(tree: Path) -> int:
    """Return how many files of the kernel an interrupted build compiled: those that kbuild kept the command of."""
    parts = [
        folder for folder in tree.iterdir() if folder.is_dir() and folder.name not in {"scripts", "tools"}
    ]
    commands = (command.name for folder in parts for command in folder.rglob(".*.o.cmd"))
    return sum(not name.startswith((".built-in", ".vmlinux")) for name in commands)


class _Make:
    """Runs the steps in the tree with a clean environment, and writes all their output to the log."""

    def __init__(self, tree: Path, jobs: int, log: Path, output: IO[str], recipe: Recipe) -> None:
        self.tree = tree
        self._targets = _TARGETS[recipe.engine]
        self._jobs = jobs
        self._log = log
        self._output = output
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "LOCALVERSION": "",
            **recipe.settings,
        }

    def run(self, command: list[str]) -> None:
        """Run one command to its end (KernelBuildError if it fails)."""
        self._follow(command, lambda _line: None)

    def compile(self, progress: Progress, total: int | None, compiled: int) -> None:
        """Compile and link, and report the progress: the file, and how many of about `total` there were.

        An earlier build compiled `compiled` of them.
        """

        def count(line: str) -> None:
            nonlocal compiled
            if line.startswith(("  CC ", "  AS ")):
                compiled += 1 if total is None or compiled < total else 0
                position = f"{compiled} of about {total} files" if total else f"file {compiled}"
                name = line.rsplit(maxsplit=1)[-1].removeprefix(f"{self.tree}/")
                progress(
                    f"compiling, {position}: {name}",
                    min(compiled / total, 0.99) if total else None,
                )

        self._follow(["make", f"--jobs={self._jobs}", *self._targets], count)

    def _follow(self, command: list[str], on_line: Callable[[str], None]) -> None:
        self._output.write(f"$ {' '.join(command)}\n")
        self._output.flush()
        reading, writing = os.pipe()
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            try:
                process = subprocess.Popen(
                    # If plait is killed, make gets SIGTERM and ends all its compilers. It also holds the end of the
                    # pipe that plait reads: it would die of SIGPIPE if it wrote before that signal comes.
                    ["setpriv", "--pdeathsig=TERM", "--", *command],
                    cwd=self.tree, env=self._environment, stdin=subprocess.DEVNULL, stdout=writing,
                    stderr=subprocess.STDOUT, pass_fds=(reading,), start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(writing)
            try:
                for line in lines:
                    self._output.write(line)
                    on_line(line)
                process.wait()
            finally:
                if process.poll() is None:  # interrupted: end make and all its compilers
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if process.returncode != 0:
            self._output.flush()
            raise KernelBuildError(f"`{' '.join(command)}` failed\n{_tail(self._log)}")


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
    return "\n".join(f"  {line}" for line in lines)


def _compiler() -> str:
    answer = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.splitlines()[0] if answer.stdout else "unknown"
