"""Fake Linux source trees "build" in no time, with a laboratory of one patch; a process meets another one there."""

from __future__ import annotations

import fcntl
import subprocess
from typing import TYPE_CHECKING

from plait.kernel import recipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

MAKEFILE = """VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 7
EXTRAVERSION =
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
linux:
\t@echo '  CC      one.o'
{steps}\tcp /bin/true linux
\techo symbols > vmlinux.symvers
bzImage:
\tmkdir -p arch/x86/boot
\thead -c 514 /dev/zero > arch/x86/boot/bzImage
\tprintf 'HdrS\\0\\0\\0\\0\\0\\0\\0\\0\\020\\0006.12.7-plait of $(ARCH)\\0' >> arch/x86/boot/bzImage
modules_prepare:
\tmkdir -p scripts/mod include/linux net/mptcp
\ttouch scripts/mod/modpost include/linux/tcp.h net/mptcp/protocol.h net/mptcp/protocol.c
"""

CONFIG = """# The tick.
CONFIG_HZ=250
CONFIG_MPTCP=y
# CONFIG_UML_RANDOM is not set
CONFIG_NEW=y # from 7.0
CONFIG_OLD=y # until 7.0
"""

PATCH = """Subject: a change

Why, and when it can be dropped.
---
--- a/file.c
+++ b/file.c
@@ -1 +1 @@
-before
+after
"""


def make_laboratory(folder: Path) -> Path:
    """Make patches for 6.12 and 7.x and a configuration in `folder`, and adds nothing."""
    for series in ("6.12", "7.x"):
        for place in recipe.PATCH_FOLDERS:
            (folder / place / series).mkdir(parents=True)
        (folder / "patches" / series / "0001-change.patch").write_text(PATCH)
    (folder / "config").mkdir()
    (folder / "config" / "laboratory.config").write_text(CONFIG)
    (folder / "config" / "machine.config").write_text("CONFIG_HZ=100\nCONFIG_VIRTIO_PCI=y\n")
    return folder


def make_tree(folder: Path, *steps: str) -> Path:
    """Make a source tree whose build also runs `steps` (lines of shell)."""
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text(MAKEFILE.format(steps="".join(f"\t{step}\n" for step in steps)))
    (folder / "file.c").write_text("before\n")
    (folder / "drivers" / "gpu").mkdir(parents=True)
    (folder / "drivers" / "gpu" / "large.c").write_text("never compiled\n")
    (folder / "drivers" / "gpu" / "Kconfig").write_text("but configured\n")
    return folder


def make_archive(tree: Path) -> Path:
    """Pack a tree as a distribution does."""
    archive = tree.with_name("linux-source-6.12.tar.xz")
    subprocess.run(["tar", "-cJf", str(archive), "-C", str(tree.parent), tree.name], check=True)
    return archive


def make_numbered_commits(folder: Path, commits: int) -> Path:
    """Make a git tree with `commits` commits on its branch main; each has its number, from 0, in the file `number`."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    stream = "".join(
        f"commit refs/heads/main\ncommitter D <d@example.org> {n} +0000\ndata 1\n{n % 10}\n"
        f"M 100644 inline number\ndata {len(str(n))}\n{n}\n"
        for n in range(commits)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream.encode(), check=True)
    return folder


def number_in(tree: Path, commit: str) -> int:
    """Return the number of a commit that `make_numbered_commits` made."""
    command = ["git", "show", f"{commit}:number"]
    return int(subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout)


def while_waiting(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Call `other` when somebody next waits for a lock, as if it had been held until then."""
    real = fcntl.flock

    def wait(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        other()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", wait)
