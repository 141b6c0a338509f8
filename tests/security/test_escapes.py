"""Attacks by a guest's kernel or by an emulator succeed without the layers of the sandbox and fail with them.

A static program stands in for both: it makes the calls of the host that hostile code in them would make.
The suite holds for the user who runs it; `make test` runs it as root where it can, and as an ordinary user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.engine.machine.qemu import FOLDER
from plait.engine.uml.containment import GUEST, LAYERS, Policy, Sandbox
from plait.engine.uml.guest import start
from plait.kernel import Kernel

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


@pytest.fixture(scope="session")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("attack") / "attack"
    source = Path(__file__).with_name("attack.c")
    subprocess.run(["gcc", "-O1", "-static", "-o", str(program), str(source)], check=True, timeout=60)
    return program


@pytest.fixture
def host() -> Iterator[Host]:
    with (
        tempfile.TemporaryDirectory(prefix="plait-escape-", dir="/var/tmp") as name,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
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
        libc = ctypes.CDLL(None)
        segment = libc.shmget(victim.pid, 4096, 0o1600)
        try:
            yield Host(folder, victim, unix, abstract, tcp, segment, ctypes.c_char(b"-"))
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
        host_files=True,
        policy=Policy(disk_bytes=1 << 20, without=without),
        emulator=emulator,
        executes_memory=executes_memory,
    )
    with (place / "console.log").open("wb") as console:
        guest = start(sandbox, console)
        try:
            guest.process.wait(60)
        finally:
            guest.end()
    missing = set(guest.missing) - set(without)
    if "user_namespace" in without and not ROOT:
        missing = set()  # an ordinary user has no other namespace without it
    if missing:
        pytest.skip(f"NOT TESTED: this machine lacks the layers {', '.join(sorted(missing))}")
    lines = (place / "console.log").read_text().splitlines()
    assert len(lines) == 1, lines
    return int(lines[0].split()[1])


ROOT_ONLY = ("user_namespace", "no_capabilities") if ROOT else ("user_namespace",)
NETWORK = ("seccomp", "network_namespace", "landlock")
ATTACKS: dict[str, tuple[Callable[[Host], str], tuple[str, ...]]] = {
    "write a file": (lambda host: f"write={host.file}", ("minimal_root",)),
    "read the host's processes": (lambda _: "read=/proc/1/stat", ("minimal_root",)),
    "kill a process": (lambda host: f"kill={host.victim.pid}", ("pid_namespace", "landlock")),
    "connect to a socket in a folder": (
        lambda host: f"unix={host.folder}/socket",
        ("minimal_root", "seccomp"),
    ),
    "connect to a socket among the host's files": (
        lambda host: f"unix=/plait/host{host.folder}/socket",
        ("seccomp", "landlock"),
    ),
    "connect to an abstract socket": (lambda host: f"abstract=plait-{host.victim.pid}", NETWORK),
    "connect to the loopback": (lambda host: f"tcp={host.tcp.getsockname()[1]}", NETWORK),
    "execute what is in memory": (lambda _: "memfd=/plait/linux", ("seccomp", "landlock")),
    "make a namespace": (lambda _: "namespace=x", ("seccomp", "landlock", "minimal_root")),
    "leave a set-user-ID file": (lambda _: "setuid=/job/it", ("seccomp",)),
    "attach shared memory": (lambda host: f"shm={host.victim.pid}", ("seccomp", "ipc_namespace")),
    "write more than is allowed": (lambda _: f"much={1 << 21}", ("resource_limits",)),
    "gain privileges": (
        lambda _: "privileges=x",
        ("no_new_privileges", "seccomp", "landlock"),
    ),
    "use a capability": (lambda _: "capability=x", ("no_capabilities",)),
    "write to a FIFO among the host's files": (
        lambda host: f"write=/plait/host{host.folder}/fifo",
        ("landlock",),
    ),
}
if ROOT:  # executing the kernel takes the capabilities of anybody else
    ATTACKS["mount"] = (lambda _: "mount=/job", ("seccomp", "no_capabilities", "landlock"))
if MAY_TRACE:
    ATTACKS["trace a process"] = (
        lambda host: f"trace={host.victim.pid}",
        ("pid_namespace", "landlock", *ROOT_ONLY),
    )


OF_EMULATORS: dict[str, tuple[Callable[[Host], str], tuple[str, ...]]] = {
    "make a namespace with flags in memory": (lambda _: "clone3=x", ("seccomp", "landlock", "minimal_root")),
    "execute a file of the emulator": (lambda _: f"execute={FOLDER}/qemu", ("landlock",)),
}


@pytest.mark.parametrize(
    ("name", "emulator"),
    [(name, False) for name in ATTACKS] + [(name, True) for name in ATTACKS | OF_EMULATORS],
)
def test_an_attack_that_succeeds_without_its_layers_fails_with_them(
    name: str, attack: Path, host: Host, tmp_path: Path, *, emulator: bool
) -> None:
    request, layers = (ATTACKS | OF_EMULATORS)[name]
    assert set(layers) <= set(LAYERS)
    reader = os.open(host.folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert attacked(attack, tmp_path, request(host), (), emulator=emulator) != 0
        assert host.file.read_text() == "the host's\n"
        assert host.victim.poll() is None
        assert not any(map(host.accepted, (host.unix, host.abstract, host.tcp)))
        assert os.read(reader, 1) == b""  # nobody has written to the FIFO
        succeeded = attacked(attack, tmp_path, request(host), layers, emulator=emulator) == 0
        assert succeeded, "this proves nothing of its layers"
    finally:
        os.close(reader)


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "execute what is in memory"])
def test_a_kernel_that_executes_memory_can_do_nothing_else_in_addition(
    name: str, attack: Path, host: Host, tmp_path: Path
) -> None:
    request, _ = ATTACKS[name]
    assert attacked(attack, tmp_path, request(host), (), executes_memory=True) != 0
    assert host.victim.poll() is None


def test_only_a_kernel_that_executes_memory_may_call_execveat_and_only_with_its_flag(
    attack: Path, tmp_path: Path
) -> None:
    memory, file = "memfd=/plait/linux", "execveat=/plait/linux"
    assert attacked(attack, tmp_path, memory, ()) == errno.EPERM
    assert attacked(attack, tmp_path, memory, (), executes_memory=True) == 0
    assert attacked(attack, tmp_path, file, (), executes_memory=True) == errno.EPERM
    assert attacked(attack, tmp_path, file, ("seccomp",)) == 0, "this proves nothing of the filter"


@pytest.mark.parametrize(
    ("version", "executes"), [("6.12.117", False), ("6.13", True), ("7.3.0-rc7", True), ("10.0", True)]
)
def test_kernels_since_6_13_execute_memory(version: str, *, executes: bool) -> None:
    assert Kernel("0", version, Path(), "0", 100).executes_memory == executes


def test_the_guest_sees_nothing_of_the_host_but_what_it_was_given(attack: Path, tmp_path: Path) -> None:
    for path in ("/etc/passwd", "/proc/version", "/sys/kernel", "/dev/kmsg", "/run", "/root", str(tmp_path)):
        assert attacked(attack, tmp_path, f"read={path}", ()) != 0, path
    for path in ("proc/version", "sys/kernel/notes", "dev/kmsg", "run/lock"):
        assert attacked(attack, tmp_path, f"read=/plait/host/{path}", ()) != 0, path
    assert attacked(attack, tmp_path, "read=/plait/host/etc/passwd", ()) == 0
    assert attacked(attack, tmp_path, "write=/plait/host/etc/passwd", ()) != 0
    assert attacked(attack, tmp_path, f"read={FOLDER}/qemu", (), emulator=True) == 0
    assert attacked(attack, tmp_path, f"write={FOLDER}/qemu", (), emulator=True) != 0


def test_a_sandbox_ends_with_plait_however_plait_ends(attack: Path, tmp_path: Path) -> None:
    (tmp_path / GUEST).mkdir()
    script = (
        "import sys; from pathlib import Path; from plait.engine.uml.containment import Sandbox\n"
        "from plait.engine.uml.guest import start\n"
        "box = Sandbox(Path(sys.argv[1]), ['sleep'], Path(sys.argv[2]))\n"
        "guest = start(box, open(sys.argv[2] + '/console.log', 'wb'))\n"
        "print(guest.pid, guest.process.pid, flush=True); sys.stdin.read()\n"
    )
    sleeper = tmp_path / "sleeper"
    source = tmp_path / "sleeper.c"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    subprocess.run(["gcc", "-static", "-o", str(sleeper), str(source)], check=True, timeout=60)
    plait = subprocess.Popen(
        [shutil.which("python3") or "python3", "-c", script, str(sleeper), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": _package()},
    )  # fmt: skip
    assert plait.stdout
    handles = [os.pidfd_open(int(pid)) for pid in plait.stdout.readline().split()]
    plait.kill()
    plait.communicate(timeout=60)
    for handle in handles:
        import select

        assert select.select([handle], [], [], 20)[0], "it outlived plait"
        os.close(handle)


def _package() -> str:
    import sys

    return ":".join(path for path in sys.path if path)
