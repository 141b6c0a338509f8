"""The files of this machine that programs in a guest see: those that they need to run, and folders that the user names.

They see the folders of installed programs, the environment of the running Python, the current folder, and the files
and folders that a command line names, all of them read-only. They do not see the rest, above all not the user's home
with its keys. `--ro DIR` adds a folder.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plait.cache import used_folder
from plait.plan.model.programs import PRIVATE, Program

PROGRAMS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix/store", "/gnu/store"),
)
"""The folders of installed programs, their libraries and their settings."""
_OF_THE_GUEST = ("/proc", "/sys", "/dev", "/run")
_PYTHON = re.compile(r"python3?(\.\d+)?")
_PATH_IN_TEXT = re.compile(r"/[^\s'\":;,()\[\]{}<>|&]+")
_PART = re.compile(r"[^\s'\":;,()\[\]{}<>|&=$`]+")
_MOST_PATHS, _MOST_FOLDERS, _MOST_LINKS = 50, 200, 40
_FIRST_PERSON = 1000
"""The lowest number of a user who is a person (UID_MIN of login.defs)."""
MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")
_PLAIT = Path(__file__).parents[1]
"""plait itself, some of whose programs run in guests."""


@dataclass(frozen=True)
class HostView:
    """The files and folders of this machine that programs see, each with all that is in it."""

    paths: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """Folders in whose place the guest has its own."""

    def shows(self, path: Path) -> bool:
        """Return whether programs see the file or folder at the absolute path."""
        text = str(path)
        return any(text == shown or text.startswith(f"{shown}/") for shown in self.paths)

    def leads_to(self, path: Path) -> bool:
        """Return whether programs see the path, or something in the folder at the path."""
        folder = f"{str(path).rstrip('/')}/"
        return self.shows(path) or any(shown.startswith(folder) for shown in self.paths)

    def hidden_path(self, text: str) -> str | None:
        """Return what to do about the first path in `text` that exists on this machine but not in the guest."""
        hidden = [
            path
            for text_path in _PATH_IN_TEXT.findall(text)[:_MOST_PATHS]
            if self._hides(path := Path(text_path))
        ]
        if not hidden:
            return None
        path = next((path for path in hidden if not _contains_home(path)), hidden[0])
        folder = path if path.is_dir() else path.parent
        added = path if _contains_home(folder) else folder
        return f"programs do not see {path} of this machine; add --ro {shlex.quote(str(added))} to let them read it"

    def _hides(self, path: Path) -> bool:
        if any(path.is_relative_to(folder) for folder in (*_OF_THE_GUEST, *self.private)) or path == Path(
            "/"
        ):
            return False
        return not self.shows(path) and _exists(path) and not self.shows(_resolved(path))


def view_for(
    words: Sequence[str] = (), folders: Sequence[Path] = (), directory: Path | None = None
) -> HostView:
    """Return what programs see whose command lines have these `words`.

    `folders`: what the user adds by --ro; `directory`: where the programs run, if not in the current folder.
    """
    start = Path.cwd() if directory is None else directory
    implied = [start, *_named(words, start)]
    interpreters = [*_environments(words, start)]
    installed = [*map(Path, (*PROGRAMS, sys.prefix, sys.base_prefix)), _PLAIT, used_folder("npm")]
    paths = [*installed, *interpreters, *filter(_may_be_implied, implied), *folders]
    return HostView(tuple(dict.fromkeys(_with_targets(paths))))


def view_for_programs(programs: Sequence[Program], folders: Sequence[Path] = ()) -> HostView:
    """Return what the programs of a plan see; `folders`: what the user adds by --ro."""
    words = [word for program in programs for word in (*program.argv, program.directory)]
    return replace(view_for(words, folders), private=PRIVATE)


def state_folders() -> list[Path]:
    """Return the folders in which installed programs keep their state, which are empty in a guest."""
    folders = [Path("/var") / name for name in ("cache", "lib", "log", "opt", "spool")]
    for folder in tuple(folders):
        with contextlib.suppress(OSError):
            folders += [
                path
                for path in sorted(folder.iterdir())[:_MOST_FOLDERS]
                if not path.is_symlink() and path.is_dir()
            ]
    return folders


def unseen(directory: Path) -> str:
    """Return a message about the current folder, of which programs see nothing."""
    return (
        f"programs do not see {directory}, which contains a home folder or is hidden in one; run plait in a "
        f"folder of your experiment, or add --ro {shlex.quote(str(directory))}"
    )


def _environments(words: Sequence[str], start: Path) -> Iterator[Path]:
    """Yield the environment of each Python that a command line names, and the one that it comes from."""
    for path in _paths(words, start):
        target = _resolved(path)
        if _PYTHON.fullmatch(target.name) and target.parent.name == "bin":
            places = [target.parents[1], *([path.parents[1]] if path.parent.name == "bin" else [])]
            yield from (place for place in places if not _contains_home(place))


def _named(words: Sequence[str], start: Path) -> Iterator[Path]:
    """Yield the folders that words of a command line name, and those of the files that they name."""
    for path in _paths(words, start):
        folder = path if path.is_dir() else path.parent
        yield folder if _may_be_implied(folder) else path


def _paths(words: Sequence[str], start: Path) -> Iterator[Path]:
    """Yield the files and folders of this machine that command lines name, also those of a shell."""
    parts = [part for word in words for part in _PART.findall(word)[:_MOST_PATHS] if "/" in part]
    for path in dict.fromkeys(start / part for part in parts):
        if not any(path.is_relative_to(folder) for folder in _OF_THE_GUEST) and _exists(path):
            yield path


def _may_be_implied(path: Path) -> bool:
    """Return whether programs may see `path` without --ro: it contains no home, and is no hidden part of one."""
    if _contains_home(path):
        return False
    place = _resolved(path)
    inside = [place.relative_to(home) for home in _homes_above(place)]
    return not any(part.parts[0].startswith(".") for part in inside if part.parts)


def _contains_home(path: Path) -> bool:
    place = _resolved(path)
    return any(home.is_relative_to(place) for home in _own_homes()) or _is_home(place) or _holds_homes(place)


def _homes_above(place: Path) -> list[Path]:
    """Return the homes that contain `place`, whoever owns them: root may stand in the folder of somebody else."""
    own = _own_homes()
    return [folder for folder in (place, *place.parents) if folder in own or _is_home(folder)]


def _own_homes() -> set[Path]:
    """Return the homes of this process: of its environment, of its user, and of the user who called sudo."""
    homes = {_resolved(Path.home())}
    for uid in (os.getuid(), os.environ.get("SUDO_UID", "")):
        with contextlib.suppress(KeyError, ValueError, OverflowError):
            homes.add(_resolved(Path(pwd.getpwuid(int(uid)).pw_dir)))
    return {home for home in homes if home != Path("/")}


def _is_home(place: Path) -> bool:
    """Return whether `place` is the home of the person after whom it is named."""
    try:
        user = pwd.getpwnam(place.name)
    except (KeyError, ValueError):
        return False
    return (user.pw_uid == 0 or user.pw_uid >= _FIRST_PERSON) and _resolved(Path(user.pw_dir)) == place


def _holds_homes(place: Path) -> bool:
    """Return whether one of the first folders in `place` is a home, as in /home."""
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_FOLDERS), strict=False)]
    except OSError:
        return False
    return any(_is_home(place / name) for name in names)


def _with_targets(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the paths that exist, and where links lead."""
    for path in paths:
        target = _resolved(path)
        if _exists(path) and target != Path("/"):
            yield str(target)
            if path != target and ".." not in path.parts:
                yield str(path)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path


def _exists(path: Path) -> bool:
    """Return whether the path exists; False if it leads below an automounter: a look there mounts what it names."""
    try:
        return not _leads_below_automounter(path) and path.exists()
    except OSError:
        return False


def _leads_below_automounter(path: Path) -> bool:
    """Return whether the path, or a link on the way, lies below an automounter that nothing is mounted on.

    It looks at one name after the other, and at none below an automounter. A program may have left the links.
    """
    mounted: list[tuple[Path, str]] = []
    with contextlib.suppress(OSError):
        mounted = mounts()
    pending = list(reversed((Path.cwd() / path).parts[1:]))
    place = Path("/")
    is_below, links = False, 0
    while pending and links <= _MOST_LINKS:
        name = pending.pop()
        place = place.parent if name == ".." else place / name
        is_below = _kind_of_mount(place, mounted) == "autofs"
        if not is_below and place.is_symlink():
            links += 1
            target = place.readlink()
            place = Path("/") if target.is_absolute() else place.parent
            pending += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return is_below


def mounts() -> list[tuple[Path, str]]:
    """Return the place and the kind of each mount, in the order in which they were made (`proc_pid_mountinfo(5)`)."""
    found = []
    for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        mount, _, system = line.partition(" - ")
        place = Path(_ESCAPE.sub(lambda found: chr(int(found[1], 8)), mount.split(" ")[4]))
        found.append((place, system.split(" ")[0]))
    return found


def _kind_of_mount(path: Path, mounted: Sequence[tuple[Path, str]]) -> str:
    """Return the kind of the innermost mount of a path without links."""
    innermost, kind = Path("/"), ""
    for place, system in mounted:
        if path.is_relative_to(place) and place.is_relative_to(innermost):
            innermost, kind = place, system
    return kind
