"""The libraries that a program needs, found as its loader finds them (ld.so(8)), without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plait.engine.machine.host_files import HostFiles

_USUAL_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_CONFIGURATION = "/etc/ld.so.conf"
_OPENED_LATER = ("libgcc_s.so.1",)
"""The C library opens it when a thread ends."""
_MOST_INCLUDES = 200


class Libraries:
    """Adds the libraries of programs to `files`."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files
        self._folders = tuple(dict.fromkeys([*_configured(Path(_CONFIGURATION)), *_USUAL_FOLDERS]))
        self._known: set[Path] = set()
        self._missing: list[str] = []

    def take_missing(self) -> list[str]:
        """Return what required files lacked since the last call, as sentences without their subject."""
        missing, self._missing = self._missing, []
        return missing

    def add(self, program: Path, *, required: bool) -> None:
        """Add the loader and the libraries of an ELF file at a real path, and theirs (TooManyFilesError)."""
        pending = [program]
        while pending:
            path = pending.pop()
            if path in self._known:
                continue
            self._known.add(path)
            facts = _facts(path)
            if facts is None:
                continue  # the machine's kernel will refuse it, and say so
            interpreter, needed, folders = facts
            if interpreter is not None:
                self._loader(path, interpreter, required=required)
                pending += [
                    library for name in _OPENED_LATER if (library := self._find(name, ())) is not None
                ]
            for name in needed:
                library = self._find(name, folders)
                if library is not None:
                    pending.append(library)
                elif required:
                    self._missing.append(f"{path} needs the library {name}")

    def _loader(self, program: Path, interpreter: str, *, required: bool) -> None:
        if self._files.add(interpreter) is None and required:
            self._missing.append(f"{program} needs the loader {interpreter}")

    def _find(self, name: str, folders: tuple[str, ...]) -> Path | None:
        places = [name] if "/" in name else [f"{folder}/{name}" for folder in (*folders, *self._folders)]
        for place in places:
            if place.startswith("/") and Path(place).is_file():
                return self._files.add(place)
        return None


def _facts(path: Path) -> tuple[str | None, list[str], tuple[str, ...]] | None:
    """Return the loader of an ELF file, the libraries that it needs, and the folders that it names for them.

    None: the file is no ELF file that plait can read.
    """
    from elftools.common.exceptions import ELFError  # half of a second on a slow disk, and few trials need it
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    interpreter, needed, folders = None, [], []
    try:
        with path.open("rb") as file:
            for segment in ELFFile(file).iter_segments():
                if isinstance(segment, InterpSegment):
                    interpreter = segment.get_interp_name()
                for tag in segment.iter_tags() if isinstance(segment, DynamicSegment) else ():
                    match tag.entry.d_tag:
                        case "DT_NEEDED":
                            needed.append(tag.needed)  # type: ignore[attr-defined]  # pyelftools sets it by kind
                        case "DT_RPATH":
                            folders += tag.rpath.split(":")  # type: ignore[attr-defined]  # as above
                        case "DT_RUNPATH":
                            folders += tag.runpath.split(":")  # type: ignore[attr-defined]  # as above
    except (ELFError, OSError, ValueError, LookupError, ArithmeticError):
        return None
    origin = str(path.parent)
    places = (folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for folder in folders)
    return interpreter, needed, tuple(places)


def _configured(path: Path, depth: int = 0) -> Iterator[str]:
    """Yield the folders of ld.so.conf(5)."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        word, _, pattern = line.strip().partition(" ")
        if word == "include" and depth < 2 and pattern.startswith("/"):
            for included in sorted(Path("/").glob(pattern.strip().lstrip("/")))[:_MOST_INCLUDES]:
                yield from _configured(included, depth + 1)
        elif word.startswith("/"):
            yield word
