"""Added schedulers and congestion controls: kept as C source, and built for each kernel when needed.

additions/<sha256 of the source>/
    NAME.c           the source, unchanged
    addition.json    the algorithms in it, by the names that select them
    <kernel>.ko      the module built for the kernel of that identity, with its SHA-256 in a file beside it
    retired          no name selects the source any more (another one replaced it, or the user removed it), but
                     studies that began before still read it; plait removes the folder some weeks later

A trial's identity has the hash of the source, not of the module: together with the kernel's identity it determines what
runs, and it is the same on machines with different compilers.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plait.cache import alone, cache_root, temporary
from plait.errors import KernelBuildError, RequestError
from plait.files import Folder
from plait.kernel import kit
from plait.kernel.build import check_tools
from plait.kernel.model import Kernel
from plait.kernel.recipe import PINNED
from plait.plan.model.plan import Module

_RECORD, _RETIRED = "addition.json", "retired"
_LONGEST_STUDY_S = 30 * 86400.0
_MAX_BYTES = 1 << 20
_MAKEFILE = """\
obj-m := {module}.o
{module}-y := {stem}.o
ccflags-y := -g -I$(srctree)/net/mptcp -I$(srctree)/net/plait/include -ffile-prefix-map={folder}/=
"""
_NOISE = re.compile(r"^(make(\[\d+\])?: |cc1: (all|some) warnings being treated)")

_building = threading.Lock()


class AdditionRecord(BaseModel):
    """`addition.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    module: str
    file: str
    """The name of the source file in this folder."""
    sha256: str
    """The SHA-256 of the source's content."""
    schedulers: tuple[str, ...]
    congestion_controls: tuple[str, ...]
    added_at: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its algorithms."""
        return (*self.schedulers, *self.congestion_controls)


@dataclass(frozen=True)
class AlgorithmSource:
    """A C file to add."""

    path: str
    """The path as the user wrote it; compiler messages show it."""
    content: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def stem(self) -> str:
        """The file's name without its suffix, as a valid name of a module."""
        return re.sub(r"[^A-Za-z0-9_]", "_", Path(self.path).stem)[:40]

    @property
    def module(self) -> Module:
        """The module built from it; its name differs between versions of the file."""
        return Module(name=f"{self.stem}_{self.sha256[:6]}", sha256=self.sha256)


@dataclass(frozen=True)
class BuiltModule:
    """A module built from a source."""

    content: bytes
    warnings: str
    """The warnings of the compiler, or an empty string."""


def read(path: Path) -> AlgorithmSource:
    """Return the source in a file (RequestError if the file is not a valid source)."""
    if path.suffix != ".c":
        raise RequestError(
            f"adding {path}: the name does not end in .c; write each scheduler or congestion control as one C file"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"reading {path}: {error.strerror}; check the path and its permissions") from error
    if len(content) > _MAX_BYTES:
        raise RequestError(
            f"adding {path}: the file has {len(content)} bytes, and a source has at most {_MAX_BYTES}"
        )
    return AlgorithmSource(str(path), content)


def compile_module(kernel: Kernel, source: AlgorithmSource) -> BuiltModule:
    """Build a module of `source` for `kernel` (some seconds).

    Raises:
        RequestError: the source does not compile; the message has the compiler's output with the user's path.
        KernelBuildError: the kernel has no kit.
        MachineError: programs for a build are missing.
    """
    check_tools()
    tree = kit.unpacked(kernel.binary.parent)
    with temporary("add") as folder:
        name = source.module.name
        Folder(folder).write(f"{source.stem}.c", source.content)
        makefile = _MAKEFILE.format(module=name, stem=source.stem, folder=folder)
        Folder(folder).write("Makefile", makefile.encode())
        compiled = subprocess.run(
            ["make", "--silent", f"M={folder}", "modules"],
            cwd=tree, env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **PINNED},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            check=False,
        )  # fmt: skip
        output = _with_user_paths(compiled.stdout, folder / f"{source.stem}.c", source.path)
        if compiled.returncode != 0:
            raise RequestError(f"{source.path} does not compile for Linux {kernel.version}:\n{output}")
        return BuiltModule((folder / f"{name}.ko").read_bytes(), output)


def object_of(kernel: Kernel, module: Module) -> Path:
    """Return the file of `module` built for `kernel`; build it the first time.

    Raises:
        KernelBuildError: the source of the module is not among the added ones, or the kernel has no kit.
        RequestError: the source does not compile for this kernel.
    """
    folder = _root() / module.sha256
    target = folder / f"{kernel.identity}.ko"
    with _building:
        if _is_sound(target):
            return target
        record = _read(folder)
        if record is None:
            raise KernelBuildError(
                f"the module {module.name} is not among the added ones; add its source (`plait kernel add FILE.c`)"
            )
        source = _source(folder, record)
        _write_object(target, compile_module(kernel, source).content)
    return target


def _source(folder: Path, record: AdditionRecord) -> AlgorithmSource:
    """Return an added source (KernelBuildError if it has changed since)."""
    try:
        source = AlgorithmSource(record.file, Folder(folder).read(record.file, _MAX_BYTES))
    except OSError as error:
        raise KernelBuildError(
            f"reading {error.filename}: {error.strerror}; add its source again (`plait kernel add FILE.c`)"
        ) from error
    if source.sha256 != record.sha256:
        raise KernelBuildError(
            f"{folder / record.file}: the file has changed since it was added; "
            "add the source again (`plait kernel add FILE.c`)"
        )
    return source


def _write_object(target: Path, content: bytes) -> None:
    """Write the SHA-256 of a module, and then the module."""
    folder = Folder(target.parent)
    folder.write(f"{target.name}.sha256", hashlib.sha256(content).hexdigest().encode())
    folder.write(target.name, content)


def _is_sound(target: Path) -> bool:
    """Return whether a module exists and is unchanged since its build."""
    folder = Folder(target.parent)
    try:
        content, digest = folder.read(target.name), folder.read(f"{target.name}.sha256")
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest().encode() == digest


def keep(
    kernel: Kernel, source: AlgorithmSource, built: BuiltModule, record: AdditionRecord
) -> list[AdditionRecord]:
    """Store an addition; return the earlier additions that it replaces, because they have the same names.

    Names select the earlier ones until the new one is complete, even if plait is killed.
    """
    folder = _root() / record.sha256
    with alone("additions"):
        names, present = set(record.names), added()
        replaced = [old for old in present if old.sha256 != record.sha256 and names & set(old.names)]
        try:
            _forget_retired()
            if record.sha256 not in {old.sha256 for old in present}:
                _retire(record.sha256)
            Folder(folder).write(record.file, source.content)
            _write_object(folder / f"{kernel.identity}.ko", built.content)
            Folder(folder).write(_RECORD, record.model_dump_json(by_alias=True, indent=2).encode() + b"\n")
            for old in replaced:
                _retire(old.sha256)
            (folder / _RETIRED).unlink(missing_ok=True)
        except OSError as error:
            raise KernelBuildError(
                f"storing {source.path} in {folder}: {error.strerror}; check the space and permissions of the cache"
            ) from error
    return replaced


def record_of(
    source: AlgorithmSource, schedulers: tuple[str, ...], congestion_controls: tuple[str, ...]
) -> AdditionRecord:
    """Return the record of a source with these algorithms."""
    return AdditionRecord(
        module=source.module.name, file=f"{source.stem}.c", sha256=source.sha256, schedulers=schedulers,
        congestion_controls=congestion_controls, added_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def remove(name: str) -> AdditionRecord:
    """Remove the addition that has `name`, and return its record (RequestError if there is none)."""
    with alone("additions"):
        for record in added():
            if name in record.names:
                _retire(record.sha256)
                return record
    names = ", ".join(name for record in added() for name in record.names)
    hint = f"there is: {names}" if names else "nothing is added yet (`plait kernel add FILE.c`)"
    raise RequestError(f"removing {name!r}: there is no addition of this name; {hint}")


def added() -> list[AdditionRecord]:
    """Return the records of all additions, in the order of their names."""
    active = (record for record in _records() if not Folder(_root() / record.sha256).has(_RETIRED))
    return sorted(active, key=lambda record: record.names)


def modules_by_name() -> dict[str, Module]:
    """Return the added modules by the names of their algorithms."""
    return {
        name: Module(name=record.module, sha256=record.sha256) for record in added() for name in record.names
    }


def source_of(sha256: str) -> AlgorithmSource:
    """Return the added source with this hash, even if no name selects it any more.

    Raises RequestError if there is none, KernelBuildError if its file has changed.
    """
    record = next((record for record in _records() if record.sha256 == sha256), None)
    if record is None:
        raise RequestError(
            f"looking for the algorithm with SHA-256 {sha256}: it is not among the added ones; "
            "add its source again (`plait kernel add FILE.c`)"
        )
    return _source(_root() / sha256, record)


def _retire(sha256: str) -> None:
    Folder(_root() / sha256).write(_RETIRED, b"")


def _forget_retired() -> None:
    """Remove what was retired before any study that still runs began."""
    for path in _root().glob(f"*/{_RETIRED}"):
        if time.time() - path.stat().st_mtime > _LONGEST_STUDY_S:
            shutil.rmtree(path.parent)


def _root() -> Path:
    return cache_root() / "additions"


def _records() -> Iterator[AdditionRecord]:
    names = Folder(_root()).names()
    yield from (record for name in names if (record := _read(_root() / name)) is not None)


def _read(folder: Path) -> AdditionRecord | None:
    try:
        record = AdditionRecord.model_validate_json(Folder(folder).read(_RECORD))
    except (OSError, ValidationError):
        return None
    return record if record.sha256 == folder.name else None


def _with_user_paths(output: str, inside: Path, path: str) -> str:
    """Return the compiler's output with the user's path instead of that of the copy, without lines of make.

    From 6.13 on the kernel's build calls the copy by its name alone.
    """
    named = re.sub(rf"(?<![\w/.-]){re.escape(inside.name)}:", lambda _: f"{inside}:", output)
    lines = named.replace(str(inside), path).replace(f"{inside.parent}/", "").splitlines()
    return "\n".join(line for line in lines if line.strip() and not _NOISE.match(line))
