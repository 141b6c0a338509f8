"""Find packetdrill and its scripts, and say how a guest runs them: one guest for each folder of scripts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.errors import MachineError, RequestError
from plait.testing.selftest.suites import SuiteShard

SUITE = "packetdrill"
OF_A_TREE = Path("tools/testing/selftests/net/packetdrill")
"""The scripts of a source tree of Linux."""
_DRIVER = Path(__file__).with_name("packetdrill_driver.py")
_MAPPED = "ipv4-mapped-v6"
_SENT_TO = {
    "ipv4": "-D CMSG_LEVEL_IP=SOL_IP -D CMSG_TYPE_RECVERR=IP_RECVERR",
    _MAPPED: "-D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR",
    "ipv6": "-D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR",
}
"""What a script calls the level and type of its control messages."""
_MOST_SCRIPTS = 2000


@dataclass(frozen=True)
class _Addresses:
    """The addresses that scripts are written for."""

    local4: str
    remote4: str
    local6: str
    gateway6: str
    remote6: str

    def options(self, family: str) -> str:
        """Return the options of packetdrill for an address family."""
        if family == "ipv6":
            return (
                f"--ip_version=ipv6 --mtu=1520 --local_ip={self.local6} --gateway_ip={self.gateway6} "
                f"--remote_ip={self.remote6} -D TFO_COOKIE=6aa6ae70c288023b {_SENT_TO[family]}"
            )
        version = "ipv4-mapped-ipv6" if family == _MAPPED else family
        return (
            f"--ip_version={version} --local_ip={self.local4} --gateway_ip=192.168.0.1 --netmask_ip=255.255.0.0 "
            f"--remote_ip={self.remote4} -D TFO_COOKIE=de4f234f0f433a55 {_SENT_TO[family]}"
        )


_UPSTREAM = _Addresses(
    "192.168.0.2", "192.0.2.1/24", "fd3d:fa7b:d17d::0", "fd3d:fa7b:d17d:8888::0", "2001:DB8::1/32"
)
"""Those of `run_all.py` in packetdrill's repository."""
_LINUX = _Addresses(
    "192.168.0.1", "192.0.2.1", "fd3d:0a0b:17d6::1", "fd3d:0a0b:17d6:8888::1", "fd3d:fa7b:d17d::1"
)
"""Those of `ksft_runner.sh` in Linux."""


@dataclass(frozen=True)
class Scripts:
    """Scripts of packetdrill, and the program that runs them."""

    program: Path
    folders: tuple[Path, ...]
    """Folders that hold the scripts, and the files that they read."""
    tolerance_us: int | None = None
    """The tolerance of times instead of each script's own; 0: measure the slack of each script."""

    @property
    def readable(self) -> tuple[Path, ...]:
        """The folders that the guest sees."""
        beside = self.program.parent
        return (self.program if Path.home().is_relative_to(beside) else beside, *self.folders)

    def command(self, shard: SuiteShard) -> tuple[list[str], Path]:
        """Return the command that runs a shard, and its folder."""
        tolerance = "" if self.tolerance_us is None else str(self.tolerance_us)
        words = [sys.executable, "-I", "-S", str(_DRIVER), str(self.program), tolerance]
        for path in map(Path, shard.scripts):
            addresses = _LINUX if (path.parent / "ksft_runner.sh").is_file() else _UPSTREAM
            for family in _families(path):
                words += [f"{path.parent.name}/{path.stem} {family}", str(path), addresses.options(family)]
        return words, Path("/")


def program_of(given: Path | None) -> Path:
    """Return the packetdrill to run: the given one, that of PLAIT_PACKETDRILL, or the first on PATH.

    Raises MachineError if there is none.
    """
    named = given or Path(os.environ.get("PLAIT_PACKETDRILL") or SUITE)
    program = shutil.which(named)
    if program is None:
        asked = "it is not on PATH" if named == Path(SUITE) else f"{named} is no program"
        raise MachineError(
            f"running packetdrill's scripts: {asked}; build it from its repository "
            "(github.com/multipath-tcp/packetdrill for scripts of MPTCP: `./configure && make packetdrill CFLAGS=-g` "
            "in gtests/net/packetdrill), and name the program with --packetdrill FILE or PLAIT_PACKETDRILL"
        )
    return Path(program).resolve()


def prepare(
    paths: Sequence[Path], *, program: Path | None, tree: Path | None, tolerance_us: int | None
) -> tuple[Scripts, list[SuiteShard]]:
    """Return the scripts below these paths, and a shard for each folder; without paths, those of a source tree.

    Raises:
        RequestError: a path does not exist, or has no script.
        MachineError: packetdrill is not installed.
    """
    if not paths and tree is None:
        raise RequestError(
            "selftest packetdrill: name scripts (*.pkt) or their folders, or a source tree of Linux with --tree"
        )
    roots = list(paths) or [(tree or Path()) / OF_A_TREE]
    scripts = [script.resolve() for root in roots for script in _scripts(root)]
    if len(scripts) > _MOST_SCRIPTS:
        raise RequestError(
            f"selftest packetdrill: {len(scripts)} scripts; at most {_MOST_SCRIPTS} run at once; name subfolders"
        )
    by_folder: dict[Path, list[str]] = {}
    for script in dict.fromkeys(scripts):
        by_folder.setdefault(script.parent, []).append(str(script))
    shards = [SuiteShard(SUITE, scripts=tuple(group)) for group in by_folder.values()]
    folders = tuple(dict.fromkeys(_checkout(folder) for folder in by_folder))
    return Scripts(program_of(program), folders, tolerance_us), shards


def _scripts(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    scripts = sorted(root.rglob("*.pkt"))
    if not scripts:
        problem = "it has no script (*.pkt)" if root.is_dir() else "there is no such file or folder"
        raise RequestError(f"selftest packetdrill {root}: {problem}; name scripts or their folders")
    return scripts


def _checkout(folder: Path) -> Path:
    """Return the checkout with the folder, or the folder above it: scripts run commands of neighbouring folders.

    A guest never sees a home directory whole.
    """
    above = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder.parent)
    return folder if Path.home().is_relative_to(above) else above


def _families(script: Path) -> Iterator[str]:
    """Yield the address families that a script is for: a name may end in v4 or v6, as in packetdrill's `run_all.py`."""
    if not script.stem.endswith("v6"):
        yield from ("ipv4", _MAPPED)
    if not script.stem.endswith("v4"):
        yield "ipv6"
