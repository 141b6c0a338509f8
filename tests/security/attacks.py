"""The attacks of a guest's kernel that was taken over: what each tries, and the layers that stop it.

A static program (`attack.c`) makes the calls of the host that hostile code in a guest's kernel or an emulator would
make.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.engine.host_view import HostView
from plait.engine.machine.qemu import FOLDER
from plait.engine.request import Policy
from plait.engine.virtual.containment import GUEST, MAX_ENTRIES, Sandbox
from plait.engine.virtual.guest import start
from plait.engine.virtual.guest_folder import GuestFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = os.getuid() == 0
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
MAY_TRACE = ROOT or not YAMA.exists() or YAMA.read_text().strip() == "0"


@dataclass
class Host:
    """What of this machine is attacked."""

    folder: Path
    victim: subprocess.Popen[bytes]
    unix: socket.socket
    abstract: socket.socket
    datagram: socket.socket
    abstract_datagram: socket.socket
    tcp: socket.socket
    shared_memory: int
    byte: ctypes.c_char

    @property
    def file(self) -> Path:
        return self.folder / "file"

    def accepted(self, listener: socket.socket) -> bool:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def received(self, receiver: socket.socket) -> bool:
        with contextlib.suppress(BlockingIOError):
            return bool(receiver.recv(1))
        return False


def built(folder: Path) -> Path:
    """Compile the attacks in `folder`, and return their program."""
    program = folder / "attack"
    source = Path(__file__).with_name("attack.c")
    subprocess.run(["gcc", "-O1", "-static", "-o", str(program), str(source)], check=True, timeout=300)
    return program


@contextlib.contextmanager
def attacked_host(attack: Path) -> Iterator[Host]:
    """Yield a folder, a process, sockets and shared memory of this user; the folder has the program `attack`."""
    with (
        tempfile.TemporaryDirectory(prefix="plait-escape-", dir="/var/tmp") as name,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract_datagram,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        subprocess.Popen(["sleep", "600"]) as victim,
    ):
        folder = Path(name)
        (folder / "file").write_text("the host's\n")
        os.mkfifo(folder / "fifo")
        unix.bind(f"{name}/socket")
        abstract.bind(f"\0plait-{victim.pid}")
        for listener in (unix, abstract, tcp):
            listener.listen()
            listener.setblocking(False)
        datagram.bind(f"{name}/datagram")
        abstract_datagram.bind(f"\0plait-datagram-{victim.pid}")
        for receiver in (datagram, abstract_datagram):
            receiver.setblocking(False)
        shutil.copy(attack, folder / "program")
        libc = ctypes.CDLL(None)
        segment = libc.shmget(victim.pid, 4096, 0o1600)
        try:
            yield Host(
                folder,
                victim,
                unix,
                abstract,
                datagram,
                abstract_datagram,
                tcp,
                segment,
                ctypes.c_char(b"-"),
            )
        finally:
            libc.shmctl(segment, 0, None)
            victim.kill()


def attacked(
    attack: Path,
    folder: Path,
    wanted: str,
    without: tuple[str, ...],
    *,
    emulator: bool = False,
    executes_memory: bool = False,
) -> int:
    """Return the number of the error that the attack met; 0: it succeeded.

    `emulator`: the attack comes from an emulator, whose sandbox allows more system calls and has executable files.
    """
    lines = output(attack, folder, wanted, without, emulator=emulator, executes_memory=executes_memory)
    assert len(lines) == 1, lines
    return int(lines[0].split()[1])


def output(
    attack: Path,
    folder: Path,
    wanted: str,
    without: tuple[str, ...],
    *,
    emulator: bool = False,
    executes_memory: bool = False,
) -> list[str]:
    """Return the lines that the attack wrote to its console."""
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / GUEST).mkdir()
    if emulator:
        (place / FOLDER).mkdir()
        shutil.copy(attack, place / FOLDER / "qemu")
    sandbox = Sandbox(
        attack,
        [wanted],
        place,
        (FOLDER,) if emulator else (),
        view=HostView(("/etc", *_shown(wanted))),
        policy=Policy(disk_bytes=1 << 20, without=without),
        emulator=emulator,
        executes_memory=executes_memory,
    )
    with (place / "console.log").open("wb") as console:
        guest = start(sandbox, console)
        try:
            guest.process.wait(300)
        finally:
            guest.end()
    GuestFolder(place / GUEST).remove()
    missing = set(guest.missing) - set(without)
    if "user_namespace" in without and not ROOT:
        missing = set()  # an ordinary user has no other namespace without it
    if missing:
        pytest.skip(f"NOT TESTED: this machine lacks the layers {', '.join(sorted(missing))}")
    return (place / "console.log").read_text().splitlines()


def _shown(wanted: str) -> list[str]:
    """Return the folder of the host's file that an attack names, which programs then see."""
    named = wanted.partition("=/plait/host")[2]
    folder = Path(named) if Path(named).is_dir() else Path(named).parent
    return [str(folder)] if named.startswith("/var/") else []


ROOT_ONLY = ("user_namespace", "no_capabilities") if ROOT else ("user_namespace",)
NETWORK = ("seccomp", "network_namespace", "landlock")
ATTACKS: dict[str, tuple[Callable[[Host], str], tuple[str, ...]]] = {
    "write a file": (lambda host: f"write={host.file}", ("minimal_root",)),
    "open a device of the host": (lambda _: "read=/dev/zero", ("minimal_root",)),
    "read a file that it was not given": (lambda host: f"read={host.file}", ("minimal_root",)),
    "read a FIFO that it was not given": (lambda host: f"read={host.folder}/fifo", ("minimal_root",)),
    "read the host's processes": (lambda _: "read=/proc/1/stat", ("minimal_root",)),
    "kill a process": (lambda host: f"kill={host.victim.pid}", ("pid_namespace", "landlock")),
    "connect to a socket in a folder": (
        lambda host: f"unix={host.folder}/socket",
        ("minimal_root", "seccomp"),
    ),
    "connect to a socket among the host's files": (
        lambda host: f"unix=/plait/host{host.folder}/socket",
        ("seccomp",),
    ),
    "connect to an abstract socket": (lambda host: f"abstract=plait-{host.victim.pid}", NETWORK),
    "connect to the loopback": (lambda host: f"tcp={host.tcp.getsockname()[1]}", NETWORK),
    "execute what is in memory": (lambda _: "memfd=/plait/linux", ("seccomp",)),
    "make a namespace": (lambda _: "namespace=x", ("seccomp",)),
    "leave a set-user-ID file": (lambda _: "setuid=/job/it", ("seccomp",)),
    "leave a child to the supervisor": (lambda _: "sibling=x", ("seccomp",)),
    "leave a whiteout": (lambda _: "whiteout=/job/it", ("seccomp",)),
    "let a crash start the host's program for crashes": (lambda _: "core=0", ("seccomp",)),
    "attach shared memory": (lambda host: f"shm={host.victim.pid}", ("seccomp", "ipc_namespace")),
    "write more than is allowed": (lambda _: f"much={1 << 21}", ("resource_limits",)),
    "write more to deleted files": (lambda _: f"deleted={1 << 21}", ("minimal_root",)),
    "write more to a folder that cannot be listed": (lambda _: f"hidden={1 << 21}", ("minimal_root",)),
    "make too many files": (lambda _: f"files={MAX_ENTRIES + 1}", ("minimal_root",)),
    "gain privileges": (
        lambda _: "privileges=x",
        ("no_new_privileges", "seccomp", "landlock"),
    ),
    "use a capability": (lambda _: "capability=x", ("no_capabilities", "seccomp")),
    "send to a datagram socket among the host's files": (
        lambda host: f"datagram=/plait/host{host.folder}/datagram",
        ("seccomp",),
    ),
    "send to an abstract datagram socket": (
        lambda host: f"abstract-datagram=plait-datagram-{host.victim.pid}",
        NETWORK,
    ),
    "execute a file of the host": (
        lambda host: f"execute=/plait/host{host.folder}/program",
        ("landlock",),
    ),
    "take a lease": (lambda host: f"lease=/plait/host{host.file}", ("seccomp",)),
    "lock a file": (lambda host: f"flock=/plait/host{host.file}", ("seccomp",)),
    "lock a range of a file": (lambda host: f"range=/plait/host{host.file}", ("seccomp",)),
    "lock a file by its description": (lambda host: f"description=/plait/host{host.file}", ("seccomp",)),
    "watch a folder": (lambda host: f"notify=/plait/host{host.folder}", ("seccomp",)),
    "choose the signal of a descriptor": (lambda _: "signal=/dev/null", ("seccomp",)),
    "write to a FIFO among the host's files": (
        lambda host: f"write=/plait/host{host.folder}/fifo",
        ("landlock",),
    ),
}
if ROOT:  # executing the kernel takes the capabilities of anybody else
    ATTACKS["mount"] = (lambda _: "mount=/job", ("seccomp", "no_capabilities", "landlock"))
    ATTACKS["change the mode of a device"] = (lambda _: "mode=/dev/null", ("minimal_root",))
    ATTACKS["make a device"] = (
        lambda _: "device=/job/device",
        ("seccomp", "no_capabilities", "user_namespace", "landlock"),
    )
if MAY_TRACE:
    ATTACKS["write another process's memory"] = (
        lambda host: f"memory={os.getpid()}:{ctypes.addressof(host.byte):x}",
        ("pid_namespace", "seccomp", "landlock", *ROOT_ONLY),
    )
    ATTACKS["trace a process"] = (
        lambda host: f"trace={host.victim.pid}",
        ("pid_namespace", "landlock", *ROOT_ONLY),
    )


OF_EMULATORS: dict[str, tuple[Callable[[Host], str], tuple[str, ...]]] = {
    "make a namespace with flags in memory": (lambda _: "clone3=x", ("seccomp",)),
    "execute a file of the emulator": (lambda _: f"execute={FOLDER}/qemu", ("landlock",)),
}

WITH_TESTS_OF_THEIR_OWN = ("signal its group", "signal everybody", "change the terminal")
"""Attacks that need more than one answer of the program (`test_escapes.py`)."""
KINDS: dict[str, tuple[str, ...]] = {
    "regular file": ("write a file", "read a file that it was not given", "execute a file of the host"),
    "folder": ("watch a folder", "write more to a folder that cannot be listed"),
    "FIFO": ("write to a FIFO among the host's files", "read a FIFO that it was not given"),
    "stream socket": ("connect to a socket in a folder", "connect to a socket among the host's files"),
    "datagram socket": ("send to a datagram socket among the host's files",),
    "abstract socket": ("connect to an abstract socket", "send to an abstract datagram socket"),
    "device": ("open a device of the host", "make a device", "change the mode of a device"),
    "lock": ("lock a file", "lock a range of a file", "lock a file by its description"),
    "lease": ("take a lease",),
    "signal": ("kill a process", "choose the signal of a descriptor", "signal everybody"),
    "process group": ("signal its group",),
    "process outside of the sandbox": ("let a crash start the host's program for crashes",),
    "terminal": ("change the terminal",),
    "shared memory": ("attach shared memory",),
    "disk space": ("write more than is allowed", "write more to deleted files"),
    "inodes": ("make too many files",),
    "memory": ("write another process's memory",),
}
"""For each kind of object of the host, attacks on it."""
