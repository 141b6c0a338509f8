"""The files of this machine that the programs of a plan need: programs, libraries, and what Python imports.

plait looks for files without running any of them. It finds what a command line or a script names (files by their
paths, programs by their names), the interpreter of a script, the libraries of a program, and the modules that a Python
script imports. It does not find what a program decides to open by itself, but for the few files of `_USUAL`.

A stock kernel gets algorithms as BPF programs: their objects, and what loads them. The agent runs `bpftool`, which is a
copy of this machine's, before the trial (`agent/src/machine/mod.rs`).
"""

from __future__ import annotations

import ast
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.bpf import programs as bpf
from plait.engine.host_view import PROGRAMS, HostView, view_for_programs
from plait.engine.machine.host_files import (
    MAX_BYTES,
    MAX_FILES,
    HostFiles,
    TooManyFilesError,
    mounts_of_the_kernel,
)
from plait.engine.machine.libraries import Libraries
from plait.engine.support import Unsupported, Use
from plait.engine.virtual.initramfs import ArchiveEntry, pack
from plait.errors import MachineError
from plait.kernel.stock import StockKernel
from plait.plan.model.plan import Plan
from plait.plan.model.programs import Program

_USUAL = """
/etc/group /etc/host.conf /etc/ld.so.cache /etc/localtime /etc/nsswitch.conf /etc/passwd /etc/protocols /etc/services
/etc/ssl/openssl.cnf /bin/sh /lib64
"""
_USUAL_FOLDERS = ("/usr/lib/locale/C.utf8",)
_WORD = re.compile(r"[\w.+@/-]+")
_PYTHON = re.compile(r"^python3(\.\d+)?$")
_VERSIONED = re.compile(r"^python3\.\d+$")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "busybox")
_SKIPPED_OF_PYTHON = (
    *("dist-packages", "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip"),
    *("lib2to3", "pydoc_data", "distutils"),
)
_MAX_SCRIPT = 256 << 10


class NeededFiles:
    """The files that programs need, as far as plait can tell."""

    def __init__(self, view: HostView) -> None:
        """`view`: what programs see of this machine; no other file is added."""
        self.files = HostFiles(mounts_of_the_kernel(), view)
        self.missing: list[Unsupported] = []
        """The programs that cannot start, because this machine lacks a file."""
        self._libraries = Libraries(self.files)
        self._examined: set[Path] = set()
        self._imported: set[str] = set()
        self._packages: list[str] = []
        """Folders of Python packages, of the virtual environments that commands name."""

        for path in _USUAL.split():
            self._file(path, "/", ())
        for folder in _USUAL_FOLDERS:
            list(self.files.add_tree(folder))
        self._libraries.take_missing()

    def add(self, program: Program) -> None:
        """Add what a program needs (TooManyFilesError)."""
        environment = dict(program.environment)
        search = environment.get("PATH", "")
        modules = [program.directory, *environment.get("PYTHONPATH", "").split(":")]
        for number, argument in enumerate(program.argv):
            self._words(argument, program.directory, search, modules)
            if argument == "-m" and number + 1 < len(program.argv):
                self._module(program.argv[number + 1], modules, search)
            if argument == "-c" and number + 1 < len(program.argv):
                self._imports(program.argv[number + 1], modules, search)
            self._folder(argument)
        for file in program.files:
            if file.text is not None:
                self._text(file.text, Path(file.path), search, modules)
        for reason in self._libraries.take_missing():
            problem = f"cannot run it: {reason}, which is not on this machine"
            self.missing.append(_lack(program.name, problem))

    def _folder(self, argument: str) -> None:
        """Add a folder that is an argument as a whole, or after `=`, with what is in it."""
        path = argument.rpartition("=")[2]
        if path.startswith("/") and path.strip("/") and Path(path).is_dir():
            for file in self.files.add_tree(path):
                self._examine(file, "", (), required=False)

    def _words(self, text: str, directory: str, search: str, modules: Sequence[str]) -> None:
        for word in _WORD.findall(text):
            if "/" in word:
                path = word if word.startswith("/") else f"{directory}/{word}"
                if Path(path).is_file():
                    self._file(path, search, modules)
            elif not word.startswith("-"):
                program = shutil.which(word, path=search)
                if program is not None:
                    self._file(program, search, modules)

    def _file(self, path: str, search: str, modules: Sequence[str]) -> None:
        real = self.files.add(path)
        if real is None or not real.is_file():
            return
        environment = Path(path).parent.parent
        if _VERSIONED.match(real.name) and (environment / "pyvenv.cfg").is_file():
            self.files.add(f"{environment}/pyvenv.cfg")
            self._packages.append(f"{environment}/lib/{real.name}/site-packages")
        self._examine(real, search, modules)

    def _examine(self, path: Path, search: str, modules: Sequence[str], *, required: bool = True) -> None:
        """Add what the file at a real path needs itself."""
        if path in self._examined:
            return
        self._examined.add(path)
        with path.open("rb") as file:
            start = file.read(4)
            text = start + file.read(_MAX_SCRIPT) if start[:2] == b"#!" or path.suffix == ".py" else b""
        if start == b"\x7fELF":
            self._libraries.add(path, required=required)
            if _PYTHON.match(path.name):
                self._standard_library(path)
        elif text and len(text) <= _MAX_SCRIPT:
            self._text(text.decode(errors="replace"), path, search, modules)

    def _text(self, text: str, path: Path, search: str, modules: Sequence[str]) -> None:
        """Add what a script names: its interpreter; in a shell every word; in Python what it imports."""
        first, _, rest = text.partition("\n")
        folder = str(path.parent)
        interpreters = _WORD.findall(first) if first.startswith("#!") else []
        self._words(" ".join(interpreters), folder, search, modules)
        names = {Path(word).name for word in interpreters}
        if names & set(_SHELLS):
            self._words(rest, folder, search, modules)
        if path.suffix == ".py" or any(_PYTHON.match(name) for name in names):
            self._imports(text, [folder, *modules], search)

    def _standard_library(self, interpreter: Path) -> None:
        """Add the library of an interpreter `PREFIX/bin/python3.N`: `PREFIX/lib/python3.N`."""
        prefix = interpreter.parent.parent
        if not _VERSIONED.match(interpreter.name):
            return
        folder = prefix / "lib" / interpreter.name
        skipped = [*_SKIPPED_OF_PYTHON, *(path.name for path in folder.glob("config-*"))]
        for file in self.files.add_tree(str(folder), skipped):
            if file.suffix == ".so":
                self._examine(file, "", (), required=False)

    def _imports(self, code: str, modules: Sequence[str], search: str) -> None:
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return  # no Python, or wrong: the program will say so
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._module(alias.name, modules, search)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._module(node.module, modules, search)

    def _module(self, name: str, modules: Sequence[str], search: str) -> None:
        """Add the module or the package that an import names, and what it imports; not of the standard library."""
        top = name.partition(".")[0]
        if top in self._imported or not top.isidentifier():
            return
        self._imported.add(top)
        for folder in (*modules, *self._packages, *_package_folders(search)):
            if not folder.startswith("/"):
                continue
            if Path(folder, top).is_dir():
                for file in self.files.add_tree(f"{folder}/{top}", ("test", "tests")):
                    self._examine(file, search, modules, required=False)
                return
            if Path(folder, f"{top}.py").is_file():
                self._file(f"{folder}/{top}.py", search, modules)
                return


def _package_folders(search: str) -> Iterator[str]:
    """Yield where the interpreter has installed packages."""
    program = shutil.which("python3", path=search)
    if program is None:
        return
    version = Path(program).resolve().name
    yield f"/usr/local/lib/{version}/dist-packages"
    yield "/usr/lib/python3/dist-packages"
    yield f"{Path(program).resolve().parent.parent}/lib/{version}/site-packages"


_MPTCP_SINCE = (6, 6)
"""Linux can since then change the protocol of a socket that a program asks for (agent/src/program/transport.rs)."""
_STEP_MIB = 64


@dataclass(frozen=True)
class ProgramFiles:
    """Files of this machine for the programs of a plan."""

    files: HostFiles | None
    """None: no programs."""
    lacks: Sequence[Unsupported] = ()

    @property
    def memory_mib(self) -> int:
        """The memory for the archive and for the files that the agent unpacks from it."""
        steps = 0 if self.files is None else -(-2 * self.files.bytes // (_STEP_MIB << 20))
        return steps * _STEP_MIB

    def archive(self) -> bytes:
        """Return the archive (OSError if a file has changed since plait found it)."""
        return b"" if self.files is None else pack(self.files.entries())


def files_of(programs: Sequence[Program], readable: Sequence[Path] = ()) -> ProgramFiles:
    """Find the files that these programs need; `readable`: what the user adds by --ro to what they see."""
    if not programs:
        return ProgramFiles(None)
    needed = NeededFiles(view_for_programs(programs, readable))
    program = programs[0]
    try:
        for program in programs:
            needed.add(program)
    except TooManyFilesError as error:
        reason = (
            f"takes at most {MAX_BYTES >> 20} MiB in {MAX_FILES} files for programs, and the program needs more "
            f"(at {error}); name smaller folders in its command"
        )
        return ProgramFiles(needed.files, [_lack(program.name, reason)])
    return ProgramFiles(needed.files, needed.missing)


def no_mptcp(plan: Plan, version: str) -> Iterator[Unsupported]:
    """Yield the programs whose sockets a kernel of this version cannot give MPTCP."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is not None and (int(match[1]), int(match[2])) >= _MPTCP_SINCE:
        return
    for program in plan.programs:
        if program.transport == "mptcp":
            reason = f"has Linux {version}, which cannot give programs MPTCP in place of TCP (Linux 6.6 can)"
            yield _lack(program.name, reason)


def _lack(program: str, reason: str) -> Unsupported:
    return Unsupported(Use("programs", "programs", program), reason)


def offered_algorithms(kernel: StockKernel) -> tuple[str, ...]:
    """Return the algorithms that this machine can load into the kernel of a trial; none if something is missing.

    Only the kernel's inventory says whether it takes the schedulers among them.
    """
    try:
        names = bpf.loaded_by(bpf.find_loader())
    except MachineError:
        return ()
    return names if bpf.accepts(kernel.version) and all(map(bpf.has_object, names)) else ()


def bpf_archive(names: Sequence[str]) -> bytes:
    """Return an archive with the objects and their loader; empty for no names.

    Raises MachineError if one is missing, OSError if a file of the loader has changed meanwhile.
    """
    if not names:
        return b""
    loader = bpf.find_loader()
    files = HostFiles(view=HostView(PROGRAMS))
    libraries = Libraries(files)
    real = files.add(str(loader))
    if real is not None:
        libraries.add(real, required=True)
    missing = libraries.take_missing() if real else [f"{loader} is not among this machine's programs"]
    if missing:
        raise MachineError(f"copying the loader of BPF programs: {', '.join(missing)}; install bpftool again")
    entries = [
        *files.copies(""),
        ArchiveEntry("bpf", stat.S_IFDIR | 0o755),
        ArchiveEntry("bpf/loader", stat.S_IFLNK | 0o777, str(real).encode()),
        ArchiveEntry("bpf/order", stat.S_IFREG | 0o644, "".join(f"{name}\n" for name in names).encode()),
        *(ArchiveEntry(f"bpf/{name}.bpf.o", stat.S_IFREG | 0o644, bpf.object_of(name)) for name in names),
    ]
    return pack(entries)
