"""What the scripts that stress a kernel share: the boot of a guest, its first process, and the search for leaks."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from plait.testing.hunt import netlink

_MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp"))  # noqa: S108 - the guest's own
_LEAKS = Path("/sys/kernel/debug/kmemleak")
HOME: list[int] = []
"""The initial namespace of the guest."""


class Node(netlink.HuntNamespace):
    """A namespace with a name of `ip netns`, which ends when that is deleted."""

    def __init__(self, name: str) -> None:
        netlink.run(["ip", "netns", "add", name])
        self.name = name
        self._handle = os.open(f"/run/netns/{name}", os.O_RDONLY)
        self.run("ip link set lo up")

    @property
    def handle(self) -> int:
        return self._handle

    def run(self, command: str) -> None:
        """Run a program in the namespace (subprocess.CalledProcessError)."""
        netlink.run(["ip", "netns", "exec", self.name, *command.split()])

    def delete(self) -> None:
        netlink.leave(HOME[0])
        os.close(self._handle)
        netlink.run(["ip", "netns", "delete", self.name])


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of all scripts."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--kernel", help="a built kernel (`plait kernel list`); default: the default one")
    parser.add_argument("--seed", type=int, default=1, help="that of the first trial")
    parser.add_argument("--memory", default="768M")
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    return parser


def boot(binary: Path, script: str, options: argparse.Namespace, seed: int, names: tuple[str, ...]) -> str:
    """Run the guest's side of `script` in a fresh kernel with some of the options, and return its console."""
    with tempfile.TemporaryDirectory() as folder:
        init = Path(folder) / "init"
        command = [sys.executable, str(Path(script).resolve()), "--guest", f"--seed={seed}"]
        command += [f"--{name}={getattr(options, name)}" for name in names]
        init.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        init.chmod(0o755)
        words = [
            f"mem={options.memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
            "time-travel=inf-cpu", f"um_rng_seed={seed}", "con=null", "con0=null,fd:1", "uml_dir=.", "panic=-1",
            "loglevel=6",
        ]  # fmt: skip
        answer = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", "setarch", "-R", str(binary), *words],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    return answer.stdout.decode(errors="replace").replace("\r", "")


def run_first_process(body: Callable[[], None]) -> int:
    """Prepare the guest, run `body` as its first process, and end the guest."""
    try:
        os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
        for kind, place in _MOUNTS:
            netlink.run(["mount", "-t", kind, kind, place])
        if _LEAKS.parent.exists():
            netlink.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"])
        HOME.append(netlink.home())
        body()
        print("SOAK finished", flush=True)
    except BaseException as error:
        print(f"SOAK failed: {type(error).__name__}: {error}", flush=True)
        raise
    finally:
        sys.stdout.flush()
        netlink.LIBC.reboot(0x4321FEDC)
    return 0


def unreferenced_objects() -> int:
    """Return how many objects nothing refers to, and print the kernel's report; 0 if it cannot look for them."""
    if not _LEAKS.exists():
        return 0
    for _ in range(3):
        time.sleep(15)
        _LEAKS.write_text("scan")
    report = _LEAKS.read_text()
    print(report, flush=True)
    return report.count("unreferenced object")
