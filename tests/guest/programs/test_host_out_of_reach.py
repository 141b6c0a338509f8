"""No program in a guest that sees the host's files can change the host or reach its networks."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import run_plan
from executing import descendants, run, started
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.engine.virtual.trial import VirtualEngine

pytestmark = [pytest.mark.guest, pytest.mark.users]

SYSTEM_PYTHON = "/usr/bin/python3"
WAYS = r"""
import ctypes, errno, json, os, socket, subprocess, sys

given, here, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
file, own = f"{here}/file", f"{given}/own"
libc = ctypes.CDLL(None, use_errno=True)

def mount(source, target, kind, flags, data=None):
    if libc.mount(source, target, kind, flags, data) < 0:
        raise OSError(ctypes.get_errno(), "mount")

def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(5)
        one.connect(address)

os.makedirs("/tmp/at", exist_ok=True)
RDONLY, REMOUNT, BIND = 1, 32, 4096
up = "../" * 64
ways = {
    "write": lambda: open(file, "w"),
    "append": lambda: open(file, "a"),
    "truncate": lambda: os.truncate(file, 0),
    "create": lambda: open(f"{here}/new", "x"),
    "mkdir": lambda: os.mkdir(f"{here}/folder"),
    "unlink": lambda: os.unlink(file),
    "rename": lambda: os.rename(file, f"{here}/other"),
    "rename out": lambda: os.rename(file, f"{given}/taken"),
    "rename in": lambda: os.rename(own, f"{here}/brought"),
    "chmod": lambda: os.chmod(file, 0o777),
    "chown": lambda: os.chown(file, 12345, 12345),
    "times": lambda: os.utime(file, (1, 1)),
    "attribute": lambda: os.setxattr(file, "user.probe", b"x"),
    "mknod": lambda: os.mknod(f"{here}/node", 0o600 | 0o010000),
    "symlink": lambda: os.symlink("/", f"{here}/link"),
    "hard link out": lambda: os.link(file, f"{given}/hard"),
    "hard link in": lambda: os.link(own, f"{here}/hard"),
    "through a link": lambda: open(f"{given}/out/new", "x"),
    "through the parent": lambda: open(f"{given}/../here/new", "x"),
    "through a descriptor": lambda: os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=os.open(here, os.O_RDONLY)),
    "through /proc": lambda: open(f"/proc/self/root{file}", "w"),
    "remount": lambda: mount(None, b"/", None, REMOUNT),
    "remount a bind": lambda: (mount(None, b"/", None, REMOUNT | BIND), open(file, "w")),
    "bind": lambda: (mount(here.encode(), b"/tmp/at", None, BIND), open("/tmp/at/file", "w")),
    "mount": lambda: mount(b"none", b"/tmp/at", b"hostfs", 0, up.encode()),
    "mount a folder": lambda: mount(b"none", b"/tmp/at", b"hostfs", 0, (up + here).encode()),
    "memory": lambda: os.open("/dev/mem", os.O_RDWR),
    "unseal": lambda: os.write(os.open("/sys/module/hostfs/parameters/sealed", os.O_WRONLY), b"0"),
    "loopback": lambda: connect(socket.AF_INET, ("127.0.0.1", port)),
    "abstract socket": lambda: connect(socket.AF_UNIX, f"\0plait-{port}"),
    "socket in a folder": lambda: connect(socket.AF_UNIX, f"{given}/socket"),
    "socket elsewhere": lambda: connect(socket.AF_UNIX, f"{here}/socket"),
    "vsock": lambda: connect(socket.AF_VSOCK, (2, port)),
    "outside": lambda: connect(socket.AF_INET, ("192.0.2.1", 80)),
}
found = {}
for name, way in ways.items():
    try:
        way()
        found[name] = "done"
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, str(error))
try:
    open("/proc/sys/kernel/hostname", "w").write("plait-probe")
except OSError:
    pass
print(json.dumps(found))
"""
REFUSED = {"ECONNREFUSED"}
SOCKETS = {
    "loopback": REFUSED,
    "abstract socket": REFUSED,
    "socket in a folder": {*REFUSED, "EACCES"},  # below a home that is closed to others
    "socket elsewhere": {*REFUSED, "EACCES"},
    "vsock": {"EAFNOSUPPORT"},
    "outside": {"ENETUNREACH"},
}


@pytest.fixture
def host_folder() -> Iterator[Path]:
    """Yield a folder of the host that programs see as it is: /tmp and /var are the guest's own."""
    parents = [Path(path) for path in ("/srv", "/opt", Path.home()) if os.access(path, os.W_OK)]
    with tempfile.TemporaryDirectory(dir=parents[0], prefix="plait-probe-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return all that `ls -l` and `cat` show of a folder."""
    entries: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        entries[str(path)] = (
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_size,
            status.st_mtime_ns,
            status.st_nlink,
            content,
        )
    return entries


@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_no_attempt_to_change_or_reach_the_host_succeeds(host_folder: Path, user: str) -> None:
    given, here = host_folder / "given", host_folder / "here"
    for folder in (given, here):
        folder.mkdir()
    (here / "file").write_text("the host's\n")
    (given / "own").write_text("given\n")
    (given / "out").symlink_to(here)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as inside,
        socket.socket(socket.AF_UNIX) as outside,
    ):
        port = tcp.getsockname()[1]
        abstract.bind(f"\0plait-{port}")
        for listener, name in ((inside, given / "socket"), (outside, here / "socket")):
            listener.bind(os.path.relpath(name))
            name.chmod(0o777)
        before, name = state(here), socket.gethostname()
        becoming = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"] if user == "ordinary" else []
        probe = [SYSTEM_PYTHON, "-c", WAYS, str(given), str(here), str(port)]
        for listener in (tcp, abstract, inside, outside):
            listener.listen()
            listener.setblocking(False)
        done = run("--rw", str(given), "--", *becoming, *probe)
        for listener in (tcp, abstract, inside, outside):
            with pytest.raises(BlockingIOError):
                listener.accept()
    assert done.returncode == 0, done.stderr
    attempts = json.loads(done.stdout)
    assert len(attempts) > 30
    assert [way for way, how in attempts.items() if how == "done"] == []
    for way, how in SOCKETS.items():
        assert attempts[way] in how, (way, attempts[way])
    if user == "root":
        assert (
            attempts["mount"] == attempts["mount a folder"] == attempts["remount"] == "EPERM"
        )  # hostfs is sealed
        assert attempts["write"] == attempts["chmod"] == "EROFS"
    assert state(here) == before
    assert (given / "own").read_text() == "given\n"
    assert socket.gethostname() == name


def test_a_running_guest_is_in_namespaces_of_its_own_without_any_privilege() -> None:
    guest = started("--timeout", "none", "--", "sh", "-c", "echo up; sleep 1000")
    try:
        assert guest.stdout
        assert guest.stdout.readline() == b"up\n"
        kernels = [
            pid for pid in descendants(guest.pid) if Path(f"/proc/{pid}/comm").read_text().strip() == "linux"
        ]
        assert kernels
        for pid in kernels:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
            assert status["NoNewPrivs"] == "1"
            assert status["Seccomp"] == "2"
            for namespace in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
                path = f"ns/{namespace}"
                assert Path(f"/proc/{pid}/{path}").readlink() != Path(f"/proc/self/{path}").readlink()
    finally:
        guest.send_signal(signal.SIGTERM)
        guest.communicate(timeout=300)


PROGRAM = """\
title: A program that would
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit, delay: 5ms}}}
programs:
  - {name: it, node: h1, wait: true, exit_code: any, run: [PYTHON, ways, HERE, HERE, "1"],
     files: {ways: WAYS}}
"""


def test_a_program_of_a_scenario_cannot_change_the_host_either(
    engine: VirtualEngine, host_folder: Path, tmp_path: Path
) -> None:
    here, folder = host_folder / "here", tmp_path / "job"
    for path in (here, folder):
        path.mkdir()
    (here / "file").write_text("the host's\n")
    (here / "own").write_text("the host's, too\n")
    before = state(here)
    text = (
        PROGRAM.replace("PYTHON", SYSTEM_PYTHON).replace("HERE", str(here)).replace("WAYS", json.dumps(WAYS))
    )
    run_plan(engine, resolve(parse(text, "t.yaml"), 1), folder)
    attempts = json.loads((folder / "programs/it.log").read_text())
    assert [way for way, how in attempts.items() if how == "done"] == []
    assert attempts["mount"] == attempts["remount"] == "EPERM"
    assert state(here) == before
