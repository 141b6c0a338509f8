"""Prepare upstream's suites: copy them from a source tree, and compile their helpers, once for each content."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plait.cache import alone, scratch, used_folder
from plait.errors import KernelBuildError, MachineError, RequestError
from plait.files import Folder
from plait.kernel import Progress, built_by_default
from plait.kernel.model import silent
from plait.kernel.obtain import Sources, source_archive
from plait.kernel.unpack import extract

SUITES = (
    "simult_flows", "mptcp_join", "mptcp_connect", "mptcp_connect_mmap", "mptcp_connect_sendfile",
    "mptcp_connect_checksum", "pm_netlink", "userspace_pm", "mptcp_sockopt", "diag",
)  # fmt: skip
TOOLS = {
    "ip": SUITES,
    "tc": ("simult_flows", "mptcp_join", "mptcp_connect"),
    "ss": ("mptcp_join", "diag"),
    "iptables": ("mptcp_join", "mptcp_sockopt"),
    "ip6tables": ("mptcp_join", "mptcp_sockopt"),
    "nft": ("mptcp_connect",),
    "ethtool": ("mptcp_connect",),
}
"""Programs of this machine that suites run, and the suites that run them."""
_ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NET = "tools/testing/selftests/net"
_NEEDED = (
    f"{_NET}/*.sh",
    f"{_NET}/lib/sh/*.sh",
    f"{_NET}/mptcp/*",
    "include/uapi/linux/mptcp*.h",
    "tools/include/linux/compiler*.h",
)
_LETTERS = re.compile(r"^\s+(?P<letter>[A-Za-z0-9])@(?P<name>\w+)$", re.MULTILINE)
_COMPILE_S = 120


def missing_tools() -> list[str]:
    """Return the programs of `TOOLS` that root does not find on this machine."""
    return [tool for tool in TOOLS if shutil.which(tool, path=_ROOT_PATH) is None]


@dataclass(frozen=True)
class SuiteShard:
    """The work of one guest: a suite, or the group of its subtests that a letter selects."""

    suite: str
    letter: str | None = None
    scripts: tuple[str, ...] = ()
    """Scripts of packetdrill, all of one folder."""

    @property
    def name(self) -> str:
        """The suite, or its group, as `Suites.shards` reads it."""
        return self.suite if self.letter is None else f"{self.suite}:{self.letter}"

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of `plait selftest` that run this shard alone."""
        if not self.scripts:
            return (self.name,)
        folder = Path(self.scripts[0]).parent
        # earlier scripts shift the times of later ones, so a part of the folder is not the folder
        whole = len(self.scripts) > 1 and {str(script) for script in folder.glob("*.pkt")} == set(
            self.scripts
        )
        return (self.suite, *([str(folder)] if whole else self.scripts))

    @property
    def title(self) -> str:
        """The suite, with its letter or the folder of its scripts if there is one."""
        if self.scripts:
            return f"{self.suite} {Path(self.scripts[0]).parent.name}"
        return self.suite if self.letter is None else f"{self.suite} -{self.letter}"


@dataclass(frozen=True)
class Suites:
    """A folder with the suites of a tree and their compiled helpers."""

    folder: Path

    @property
    def readable(self) -> tuple[Path, ...]:
        """The folders that the guest sees; the cache is hidden from programs otherwise."""
        return (self.folder.parent,)

    def command(self, shard: SuiteShard) -> tuple[list[str], Path]:
        """Return the command that runs a shard, and its folder."""
        letter = () if shard.letter is None else (f"-{shard.letter}",)
        return ["/bin/bash", f"./{shard.suite}.sh", *letter], self.folder

    def shards(self, names: tuple[str, ...]) -> list[SuiteShard]:
        """Return what to run for these suites, or for a group of one (`mptcp_join:f`); all suites without names.

        Raises RequestError for an unknown suite or group.
        """
        known = [name for name in SUITES if (self.folder / f"{name}.sh").is_file()]
        shards: list[SuiteShard] = []
        for name in names or known:
            suite, colon, letter = name.partition(":")
            if suite not in known:
                raise RequestError(
                    f"selftest {suite}: the tree has no such suite; it has: {', '.join(known)}"
                )
            groups = list(self._shards_of(suite))
            wanted = [shard for shard in groups if not colon or shard.letter == letter]
            if not wanted:
                letters = ", ".join(shard.letter for shard in groups if shard.letter is not None)
                has = f"has no such group; it has: {letters}" if letters else "has no groups; leave it out"
                raise RequestError(f"selftest {name}: the suite {has}")
            shards += wanted
        return shards

    def _shards_of(self, name: str) -> Iterator[SuiteShard]:
        text = (self.folder / f"{name}.sh").read_text(encoding="utf-8", errors="replace")
        letters = [match["letter"] for match in _LETTERS.finditer(text)]
        yield from (SuiteShard(name, letter) for letter in letters) if letters else (SuiteShard(name),)


def prepare(tree: Path | None, progress: Progress | None = None, sources: Sources | None = None) -> Suites:
    """Return the suites of a source tree; without one, those of the distribution's source.

    Suites of the distribution's source are kept for the default kernel, so that another call reads no archive.

    Raises:
        RequestError: the tree has no suites.
        MachineError: gcc is not installed, there is no source, or a helper does not compile.
    """
    if shutil.which("gcc") is None:
        raise MachineError(
            "compiling the helpers of the selftests: gcc is not installed; run `sudo apt-get install gcc libc6-dev`"
        )
    root = used_folder("selftests")
    default = built_by_default() if tree is None else None
    kept = None if default is None else root / f"of-{default.identity}"
    if kept is not None and kept.is_dir():
        return Suites(kept.resolve() / _NET / "mptcp")
    say = progress or silent
    with (
        alone("selftests", lambda holder: say(f"waiting for {holder} that prepares selftests", None)),
        scratch(root, ".preparing-") as folder,
    ):
        copy = folder / "tree"
        copy.mkdir()
        _copy(tree or _unpacked(folder / "source", progress, sources), copy)
        place = root / _content(copy)
        if not place.is_dir():
            _compile(copy)
            Folder(root).take(copy, place.name)
        if kept is not None:
            kept.unlink(missing_ok=True)
            Folder(root).link(kept.name, Path(place.name))
    return Suites(place / _NET / "mptcp")


def _content(folder: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return content.hexdigest()[:32]


def _copy(tree: Path, copy: Path) -> None:
    sources = sorted({path for pattern in _NEEDED for path in tree.glob(pattern)})
    if not any(path.name == "mptcp_lib.sh" for path in sources):
        raise RequestError(f"--tree {tree}: it has no {_NET}/mptcp; give a source tree of Linux")
    for path in sources:
        if path.is_file() and not path.is_symlink() and path.suffix in (".sh", ".c", ".h"):
            target = copy / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def _unpacked(folder: Path, progress: Progress | None, sources: Sources | None) -> Path:
    """Unpack the network selftests of the distribution's source into a new folder, and return it."""
    folder.mkdir()
    wanted = (
        f"*/{_NET}/*.sh",
        f"*/{_NET}/mptcp/*",
        "*/include/uapi/linux/mptcp*.h",
    )  # `*` also matches a slash
    try:
        with source_archive(progress, sources) as archive:
            extract(archive, folder, "--strip-components=1", "--wildcards", *wanted)
    except KernelBuildError as error:
        raise MachineError(
            f"reading upstream's selftests: {error}\nFor the selftests, a source tree with --tree serves too"
        ) from error
    return folder


def _compile(copy: Path) -> None:
    """Compile every C file of the suites, with the headers of their own tree."""
    folder = copy / _NET / "mptcp"
    headers = copy / "hdr" / "linux"
    headers.mkdir(parents=True)
    for header in (copy / "include" / "uapi" / "linux").glob("mptcp*.h"):
        Folder(headers).bring(header, header.name)
    for source in sorted(folder.glob("*.c")):
        own = [f"-I{headers.parent}", "-I..", "-idirafter", str(copy / "tools" / "include")]
        command = ["gcc", "-O2", *own, "-o", source.stem, source.name]
        answer = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_COMPILE_S
        )
        if answer.returncode != 0:
            errors = [line for line in answer.stderr.splitlines() if "error" in line] or ["gcc failed"]
            raise MachineError(
                f"compiling the selftests' helper {source.name}: {errors[0]}; `sudo apt-get install libc6-dev` brings "
                "the C library's headers"
            )
