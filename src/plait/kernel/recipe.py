"""The recipe of a laboratory kernel: patches, configuration, added sources, and settings of its build.

It reads the folder `kernel/` of the repository and runs nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plait.errors import KernelBuildError, RequestError
from plait.kernel.model import KernelEngine

LABORATORY = Path(__file__).parent / "laboratory"
"""The patches and the configuration; a link to `kernel/` of the repository."""

PATCH_FOLDERS = ("patches", "schedulers/patches")
"""Folders of the laboratory with patches, in their order; each has a folder for each series of kernels."""

ADDITIONS: tuple[str, ...] = ("include", "congestion", "schedulers", "queues", "links")
"""Folders whose sources and headers plait copies to `ADDED`; the kernel builds those with a Makefile in."""

ADDED = "net/plait"
"""The folder of added sources in the source tree."""

DEFAULT_SERIES = "6.12"
"""The series that plait builds by default."""

# Every build has the same builder, host and date, on any machine at any time. All settings are part of the identity.
PINNED = {
    "ARCH": "um",  # of the laboratory kernel; that for the engine `machine` has x86_64
    "KBUILD_BUILD_USER": "plait",
    "KBUILD_BUILD_HOST": "plait",
    "KBUILD_BUILD_TIMESTAMP": "2000-01-01 00:00:00 UTC",
    "KBUILD_BUILD_VERSION": "1",
}

_INDEX = re.compile(rb"^index [0-9a-f]{40}\.\.[0-9a-f]{40} \d+\n", re.MULTILINE)
"""Where git finds the file that a patch was made for; it does not change what the patch does."""
_OPTION = re.compile(
    r"^(?P<line>(?P<name>CONFIG_\w+)=(?P<value>\S+)|# (?P<unset>CONFIG_\w+) is not set)"
    r"(?:\s+# (?P<condition>from|until) (?P<version>\d+\.\d+))?$"
)


@dataclass(frozen=True)
class Option:
    """One line of the requested configuration. `value` is None for an option that must be off."""

    name: str
    value: str | None

    @property
    def line(self) -> str:
        """The line as Kconfig writes it."""
        return f"# {self.name} is not set" if self.value is None else f"{self.name}={self.value}"


@dataclass(frozen=True)
class Recipe:
    """Everything except the source, for one series of kernels."""

    patches: tuple[Path, ...]
    additions: tuple[tuple[Path, str], ...]
    """Files to copy into the tree: (from, to)."""
    options: tuple[Option, ...]
    sha256: str
    engine: KernelEngine = "virtual"

    @property
    def settings(self) -> dict[str, str]:
        """The variables of make."""
        return _settings(self.engine)

    @property
    def fragment(self) -> str:
        """The requested configuration, as Kconfig reads it."""
        return "".join(f"{option.line}\n" for option in self.options)

    @property
    def has_symbols(self) -> bool:
        """Whether the kernel has debug information."""
        return any(
            option.name.startswith("CONFIG_DEBUG_INFO_DWARF") and option.value for option in self.options
        )

    @property
    def hz(self) -> int:
        """Timer ticks per second in the configuration."""
        return next(int(option.value or 0) for option in self.options if option.name == "CONFIG_HZ")

    def identity(self, source_sha256: str) -> str:
        """Return the identity of the kernel built from this recipe and the source with that hash."""
        return hashlib.sha256(f"plait kernel 1\n{source_sha256}\n{self.sha256}\n".encode()).hexdigest()


@dataclass(frozen=True)
class Changes:
    """The user's changes to a recipe."""

    fragments: tuple[Path, ...] = ()
    """Files with options of the configuration; a later line replaces an earlier one."""
    without: tuple[str, ...] = ()
    """Patches of plait to leave out, by a beginning of their names."""
    nearest: bool = False
    """Use the patches of the nearest older series for a version that has none of its own."""


def load(
    version: str = DEFAULT_SERIES,
    laboratory: Path | None = None,
    *,
    debug: bool = False,
    changes: Changes = Changes(),
    engine: KernelEngine = "virtual",
) -> Recipe:
    """Return the recipe for a kernel of `version` (`6.12` or `6.12.117`); `debug`: for a debug kernel.

    One for the engine `machine` has none of plait's patches and sources.

    Raises:
        KernelBuildError: there are no patches for that version, or a line of the configuration is invalid.
        RequestError: `changes` name a patch that does not exist.
    """
    laboratory = laboratory or LABORATORY
    major, minor = _numbers(version)
    places = [laboratory / name for name in PATCH_FOLDERS] if engine == "virtual" else []
    folders = [_patches(place, major, minor, nearest=changes.nearest) for place in places]
    patches = tuple(patch for folder in folders for patch in sorted(folder.glob("*.patch")))
    patches = _without(patches, changes.without)
    additions = tuple(_additions(laboratory)) if engine == "virtual" else ()
    options = _options(laboratory / "config" / "laboratory.config", (major, minor))
    for name in [*(["machine"] if engine == "machine" else []), *(["debug"] if debug else [])]:
        options = _replaced(options, _options(laboratory / "config" / f"{name}.config", (major, minor)))
    for fragment in changes.fragments:
        options = _replaced(options, _options(fragment, (major, minor)))
    digest = hashlib.sha256(json.dumps(_settings(engine), sort_keys=True).encode())
    for patch in patches:
        digest.update(b"\n" + _change(patch))
    for path, target in additions:
        digest.update(f"\n{target}\n".encode() + path.read_bytes())
    for option in options:
        digest.update(f"\n{option.line}".encode())
    return Recipe(patches, additions, options, digest.hexdigest(), engine)


def makefile(folder: Path) -> str:
    """Return the Makefile that builds those folders of added sources in `folder` that have a Makefile."""
    return makefile_of(sorted(path.parent.name for path in folder.glob("*/Makefile")))


def makefile_of(built: list[str]) -> str:
    """Return the Makefile that builds these folders."""
    return "".join(f"obj-y += {name}/\n" for name in built)


def rejected_options(options: tuple[Option, ...], config: str) -> list[Option]:
    """Return the requested options that have another value in `config`, the text of a complete `.config`."""
    values = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", config, re.MULTILINE))
    return [option for option in options if values.get(option.name) != option.value]


def _settings(engine: KernelEngine) -> dict[str, str]:
    return PINNED if engine == "virtual" else {**PINNED, "ARCH": "x86_64"}


def _numbers(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)(?:\D|$)", version)
    if match is None:
        raise KernelBuildError(f"reading the version of Linux: {version!r} is not of the form 6.12.64")
    return int(match[1]), int(match[2])


def _replaced(options: tuple[Option, ...], replacements: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return the options with `replacements`, whose lines win."""
    return tuple({option.name: option for option in (*options, *replacements)}.values())


def _without(patches: tuple[Path, ...], names: tuple[str, ...]) -> tuple[Path, ...]:
    excluded = {_patch_named(name, patches) for name in names}
    return tuple(patch for patch in patches if patch not in excluded)


def _patch_named(name: str, patches: tuple[Path, ...]) -> Path:
    """Return the patch whose name is, or alone begins with, `name` (RequestError)."""
    chosen = [patch for patch in patches if name in (patch.stem, patch.name)] or [
        patch for patch in patches if patch.name.startswith(name)
    ]
    if not chosen:
        known = ", ".join(patch.stem for patch in patches) or "none"
        raise RequestError(f"--without {name}: plait has no such patch for this version; it has: {known}")
    if len(chosen) > 1:
        several = ", ".join(patch.stem for patch in chosen)
        raise RequestError(f"--without {name}: several patches begin so ({several}); give more of the name")
    return chosen[0]


def _patches(folder: Path, major: int, minor: int, *, nearest: bool = False) -> Path:
    for name in (f"{major}.{minor}", f"{major}.x"):
        if (folder / name).is_dir():
            return folder / name
    older = [
        path for path in folder.iterdir() if _numbers(path.name.replace(".x", ".0")) < (major, minor)
    ]  # fmt: skip
    if nearest and older:
        return max(older, key=lambda path: _numbers(path.name.replace(".x", ".0")))
    supported = ", ".join(sorted(path.name for path in folder.iterdir()))
    raise KernelBuildError(
        f"patching Linux {major}.{minor}: plait has no patches for it, but for {supported}; "
        "give a source of one of these versions (`plait kernel build --source PATH`)"
    )


def _change(patch: Path) -> bytes:
    """Return the change in a patch without its header, so that a new description does not change the identity."""
    header, separator, change = patch.read_bytes().partition(b"\n---\n")
    return _INDEX.sub(b"", change if separator else header)


def _additions(laboratory: Path) -> Iterator[tuple[Path, str]]:
    for name in ADDITIONS:
        for path in sorted((laboratory / name).rglob("*")):
            if path.suffix in (".c", ".h") or path.name == "Makefile":
                yield path, f"{ADDED}/{path.relative_to(laboratory).as_posix()}"


def _options(path: Path, version: tuple[int, int]) -> tuple[Option, ...]:
    options = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _OPTION.match(line.rstrip())
        if match is None:
            if line.strip() and (not line.startswith("#") or line.rstrip().endswith("is not set")):
                raise KernelBuildError(
                    f"{path.name}:{number}: {line!r} is not a valid option; "
                    "write CONFIG_NAME=VALUE or # CONFIG_NAME is not set"
                )
            continue
        if _applies(match["condition"], match["version"], version):
            options.append(Option(match["name"] or match["unset"], match["value"]))
    return tuple(options)


def _applies(condition: str | None, bound: str | None, version: tuple[int, int]) -> bool:
    if condition is None or bound is None:
        return True
    return version >= _numbers(bound) if condition == "from" else version < _numbers(bound)
