"""Attacks by a guest's kernel or by an emulator succeed without the layers of the sandbox and fail with them.

The suite holds for the user who runs it; `make test` runs it as root where it can, and as an ordinary user.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attacks import ATTACKS, OF_EMULATORS, ROOT, Host, attacked, attacked_host, built

from plait.engine.host_view import HostView
from plait.engine.machine.qemu import FOLDER
from plait.engine.request import Policy
from plait.engine.virtual.containment import GUEST, LAYERS, Sandbox
from plait.engine.virtual.guest import start
from plait.engine.virtual.guest_folder import GuestFolder
from plait.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("attack"))


@pytest.fixture
def host(attack: Path) -> Iterator[Host]:
    with attacked_host(attack) as host:
        yield host


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
        assert not any(map(host.received, (host.datagram, host.abstract_datagram)))
        assert os.read(reader, 1) == b""  # nobody has written to the FIFO
        succeeded = attacked(attack, tmp_path, request(host), layers, emulator=emulator) == 0
        assert succeeded, "this proves nothing of its layers"
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    ("name", "layer"), [(name, layer) for name, (_, layers) in ATTACKS.items() for layer in layers]
)
def test_each_layer_of_an_attack_stops_it_alone(
    name: str, layer: str, attack: Path, host: Host, tmp_path: Path
) -> None:
    request, layers = ATTACKS[name]
    others = tuple(other for other in layers if other != layer)
    if not ROOT and "user_namespace" in others:
        pytest.skip("an ordinary user has no other namespace without it")
    reader = os.open(host.folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert attacked(attack, tmp_path, request(host), others) != 0
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


def test_every_mount_of_the_guest_but_its_folder_and_shared_folders_is_read_only(
    attack: Path, tmp_path: Path
) -> None:
    (tmp_path / GUEST).mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    view = HostView(("/etc", "/usr"))
    with (tmp_path / "console.log").open("wb") as console:
        guest = start(Sandbox(attack, ["wait=x"], tmp_path, view=view, writable=[shared]), console)
        try:
            mounts = Path(f"/proc/{guest.pid}/mountinfo").read_text().splitlines()
        finally:
            guest.end()
    GuestFolder(tmp_path / GUEST).remove()
    options = {words[4]: set(words[5].split(",")) for words in (mount.split(" ") for mount in mounts)}
    writable = {place for place, words in options.items() if "ro" not in words}
    assert {"/", "/dev/null", "/plait/linux", "/plait/host", "/plait/host/etc"} <= set(options)
    assert writable == {"/job", f"/plait/host{shared}"}
    assert all("nosuid" in words for words in options.values())
    assert {place for place, words in options.items() if "nodev" not in words} == {"/dev/null"}


def test_plait_can_read_the_log_of_a_console_whatever_the_guest_does_to_it(
    attack: Path, tmp_path: Path
) -> None:
    (tmp_path / GUEST).mkdir()
    with (tmp_path / "console.log").open("wb") as console:
        guest = start(Sandbox(attack, ["console=x"], tmp_path), console)
        guest.process.wait(300)
        assert (tmp_path / "console.log").stat().st_mode & 0o777 == 0, "this attack does nothing"
        guest.end()
    GuestFolder(tmp_path / GUEST).remove()
    assert (tmp_path / "console.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("target", ["group", "everyone"])
def test_a_signal_to_its_group_or_to_everybody_ends_the_guest_alone(
    target: str, attack: Path, tmp_path: Path
) -> None:
    for number, meaning in ((signal.SIGURG, 0), (signal.SIGKILL, 128 + signal.SIGKILL)):
        job = tmp_path / number.name
        (job / GUEST).mkdir(parents=True)
        with (job / "console.log").open("wb") as console:
            guest = start(Sandbox(attack, [f"{target}={int(number)}"], job), console)
            try:
                code = guest.process.wait(300)
            finally:
                guest.end()
        GuestFolder(job / GUEST).remove()
        itself_too = 0 if target == "everyone" else meaning
        assert code == itself_too, "the supervisor reports how its guest ended"


@pytest.mark.parametrize(("without", "succeeds"), [((), False), (("seccomp",), True)])
def test_the_filter_keeps_the_settings_of_a_terminal(
    attack: Path, tmp_path: Path, without: tuple[str, ...], *, succeeds: bool
) -> None:
    (tmp_path / GUEST).mkdir()
    leader, terminal = os.openpty()
    box = Sandbox(attack, ["terminal=x"], tmp_path, policy=Policy(without=without))
    with os.fdopen(terminal, "wb", buffering=0) as console:
        guest = start(box, console)
        guest.process.wait(300)
        guest.end()
        echoes = bool(termios.tcgetattr(console)[3] & termios.ECHO)
    os.close(leader)
    GuestFolder(tmp_path / GUEST).remove()
    assert echoes != succeeds


def test_a_sandbox_ends_with_plait_however_plait_ends(attack: Path, tmp_path: Path) -> None:
    (tmp_path / GUEST).mkdir()
    script = (
        "import sys; from pathlib import Path; from plait.engine.virtual.containment import Sandbox\n"
        "from plait.engine.virtual.guest import start\n"
        "box = Sandbox(Path(sys.argv[1]), ['sleep'], Path(sys.argv[2]))\n"
        "guest = start(box, open(sys.argv[2] + '/console.log', 'wb'))\n"
        "print(guest.pid, guest.process.pid, flush=True); sys.stdin.read()\n"
    )
    sleeper = tmp_path / "sleeper"
    source = tmp_path / "sleeper.c"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    subprocess.run(["gcc", "-static", "-o", str(sleeper), str(source)], check=True, timeout=300)
    plait = subprocess.Popen(
        [shutil.which("python3") or "python3", "-c", script, str(sleeper), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": _package()},
    )  # fmt: skip
    assert plait.stdout
    handles = [os.pidfd_open(int(pid)) for pid in plait.stdout.readline().split()]
    plait.kill()
    plait.communicate(timeout=300)
    for handle in handles:
        import select

        assert select.select([handle], [], [], 20)[0], "it outlived plait"
        os.close(handle)


def _package() -> str:
    import sys

    return ":".join(path for path in sys.path if path)
