"""The BPF programs compile, and a kernel with BTF accepts them and forgets them again."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from plait.bpf import programs
from plait.cli import undo
from plait.engine.remote import lasting
from plait.errors import MachineError
from plait.janitor import locked_for_all

ROOT = Path(__file__).parents[2]
ALGORITHMS = ("lia", "olia", "balia", "wvegas", "cap")
SCHEDULERS = ("minrtt", "roundrobin", "blest", "ecf")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LIMIT_S = 120


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stderr[-4000:]}"
    return done.stdout


def _bpftool() -> str | None:
    return shutil.which("bpftool", path=f"{os.environ['PATH']}:/usr/sbin")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the compiled programs."""
    if shutil.which("clang") is None or not Path("/usr/include/bpf/bpf_helpers.h").exists():
        pytest.skip("clang and libbpf-dev are needed (`apt-get install clang libbpf-dev`)")
    folder = tmp_path_factory.mktemp("bpf")
    _run("make", "--no-print-directory", "-C", "bpf", f"OUT={folder}")
    return folder


def test_every_program_compiles(objects: Path) -> None:
    assert {path.name for path in objects.iterdir()} == {
        "bpf.sha256",
        *(f"{name}.bpf.o" for name in (*ALGORITHMS, *SCHEDULERS)),
    }


_HOLDER = """
import sys
from pathlib import Path
from plait.bpf import programs
programs.PROGRAMS = Path(sys.argv[1])
with programs.loaded_for_a_trial(["wvegas"]):
    print(*programs.available(), flush=True)
    sys.stdin.read()
"""


def test_a_killed_trial_leaves_no_program(
    objects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (
        os.geteuid() != 0
        or _bpftool() is None
        or not Path("/sys/kernel/btf/vmlinux").exists()
        or "wvegas" in AVAILABLE.read_text().split()
    ):
        pytest.skip("root, bpftool, a kernel with BTF and the free name wvegas are needed")
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    command = [sys.executable, "-c", _HOLDER, str(objects)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        loaded = holder.stdout.readline().split()
        holder.kill()
    os.close(locked_for_all("host-bpf"))  # the process that takes the program away holds the lock until then
    assert "wvegas" in loaded
    assert "wvegas" not in AVAILABLE.read_text().split()


def need_free_names() -> None:
    """Skip a test that loads and takes away programs of this machine, which may have an owner who uses them."""
    if os.geteuid() != 0 or _bpftool() is None or set(ALGORITHMS) & set(AVAILABLE.read_text().split()):
        pytest.skip("root, bpftool and a kernel without loaded algorithms are needed")


def test_undo_of_this_machine_takes_away_what_bpf_loaded(
    objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_free_names()
    monkeypatch.setattr(programs, "PROGRAMS", objects)
    monkeypatch.setattr(lasting, "undo", lambda host, **_: lasting.Applied(host.name, ()))
    programs.load("wvegas")
    try:
        undo.command("localhost", printed=True)
        kept = programs.loaded()
        undo.command("localhost")
    finally:
        left = programs.loaded()
        for name in left:
            programs.unload(name)
    assert (kept, left) == (("wvegas",), ())


def test_a_program_that_an_open_connection_keeps_can_be_loaded_again(
    objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_free_names()
    monkeypatch.setattr(programs, "PROGRAMS", objects)
    programs.load("wvegas")
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            client.setsockopt(socket.IPPROTO_TCP, _CONGESTION, b"wvegas")
            client.connect(listener.getsockname())
            programs.unload("wvegas")
            kept = programs.loaded()
            is_new = programs.load("wvegas")
            programs.unload("wvegas")
    finally:
        for name in programs.loaded():
            programs.unload(name)
    assert (kept, is_new) == ((), True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_kernel_accepts_and_forgets_the_program(objects: Path, algorithm: str) -> None:
    bpftool = _bpftool()
    if os.geteuid() != 0 or bpftool is None or not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("root, bpftool and a kernel with BTF are needed")
    if algorithm in AVAILABLE.read_text().split():
        pytest.skip(f"this machine uses the name {algorithm} already")
    _run(bpftool, "struct_ops", "register", str(objects / f"{algorithm}.bpf.o"))
    try:
        available = AVAILABLE.read_text().split()
    finally:
        _run(bpftool, "struct_ops", "unregister", "name", f"plait_{algorithm}")
    assert algorithm in available
    assert algorithm not in AVAILABLE.read_text().split()
    listed = json.loads(_run(bpftool, "-j", "struct_ops", "list") or "[]")
    assert f"plait_{algorithm}" not in {entry["name"] for entry in listed}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_scheduler_loads_where_the_kernel_takes_it(
    objects: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    need_free_names()
    monkeypatch.setattr(programs, "PROGRAMS", objects)
    if not programs.takes_schedulers():
        with pytest.raises(MachineError, match="no struct_ops mptcp_sched_ops"):
            programs.load(scheduler)
        return
    programs.load(scheduler)
    try:
        loaded = programs.loaded(), programs.available()
    finally:
        programs.unload(scheduler)
    assert all(scheduler in names for names in loaded)
    assert scheduler not in programs.available()


_SLOTS = 1024
_MPTCP = 262
_CONGESTION = 13


def test_a_map_full_of_wrong_entries_has_room_for_a_new_connection(tmp_path: Path) -> None:
    bpftool = _bpftool()
    mptcp = Path("/proc/sys/net/mptcp/enabled")
    if os.geteuid() != 0 or bpftool is None or not mptcp.exists() or mptcp.read_text() != "1\n":
        pytest.skip("root, bpftool and a kernel with MPTCP are needed")
    if shutil.which("clang") is None or "lia" in AVAILABLE.read_text().split():
        pytest.skip("clang and the free name lia are needed")
    _run("make", "--no-print-directory", "-C", "bpf", f"OUT={tmp_path}", f"DEFINES=-DPLAIT_SLOTS={_SLOTS}")
    _run(bpftool, "struct_ops", "register", f"{tmp_path}/lia.bpf.o")
    try:
        program = json.loads(_run(bpftool, "-j", "prog", "show", "name", "lia_on_ack"))
        identity = str((program if isinstance(program, list) else [program])[-1]["map_ids"][0])
        value = "0xff " * int(json.loads(_run(bpftool, "-j", "map", "show", "id", identity))["bytes_value"])
        wrong = [f"{number % 256} {number // 256} " + "0 " * 14 for number in range(_SLOTS)]
        batch = "".join(f"map update id {identity} key {key} value {value}\n" for key in wrong)
        (tmp_path / "batch").write_text(batch)
        _run(bpftool, "batch", "file", f"{tmp_path}/batch")
        with (
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP) as listener,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP) as client,
        ):
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            client.setsockopt(socket.IPPROTO_TCP, _CONGESTION, b"lia")
            client.connect(listener.getsockname())
            with listener.accept()[0] as server:
                client.sendall(b"data")
                assert server.recv(4) == b"data"
                entries = json.loads(_run(bpftool, "-j", "map", "dump", "id", identity))
        tokens = {entry["formatted"]["key"]["token"] for entry in entries}
    finally:
        _run(bpftool, "struct_ops", "unregister", "name", "plait_lia")
    assert tokens - {0}
