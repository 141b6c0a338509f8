"""Code in a guest's kernel that calls the host directly reaches nothing, and programs cannot load such code."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.request import Policy
from plait.engine.virtual.trial import VirtualEngine
from plait.errors import TrialError
from plait.kernel import additions
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.guest

PLAIT = Path(sys.executable).parent / "plait"
HOSTILE = r"""
#include <linux/module.h>

static long host(long number, long a, long b, long c)
{
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static struct { unsigned short family; char path[108]; } to = { 1, "FOLDER/socket" };

static int __init attack(void)
{
	long file = host(2, (long)"FOLDER/file", 02001, 0); /* open, O_WRONLY | O_APPEND */
	long descriptor = host(41, 1, 1, 0); /* socket, AF_UNIX, SOCK_STREAM */

	pr_info("hostile: write %ld\n", file < 0 ? file : host(1, file, (long)"x", 1));
	pr_info("hostile: kill %ld\n", host(62, VICTIM, 9, 0));
	pr_info("hostile: connect %ld\n", descriptor < 0 ? descriptor : host(42, descriptor, (long)&to, sizeof(to)));
	return 0;
}
module_init(attack);
MODULE_LICENSE("GPL");
"""
SCENARIO = """
title: Nothing but a module
network: {hosts: [h1, h2], links: {h1-h2: {delay: 1ms}}}
traffic: [{transfer: {from: h1, to: h2, bytes: 10KB}}]
"""
NEEDED = ("minimal_root", "pid_namespace", "seccomp", "landlock")


@pytest.fixture
def target() -> Iterator[tuple[Path, subprocess.Popen[bytes], socket.socket]]:
    """Yield a folder with a file and a listening socket, and a process, all of this user."""
    with (
        tempfile.TemporaryDirectory(prefix="plait-hostile-", dir="/var/tmp") as name,
        socket.socket(socket.AF_UNIX) as listener,
        subprocess.Popen(["sleep", "600"]) as victim,
    ):
        (Path(name) / "file").write_text("the host's\n")
        listener.bind(f"{name}/socket")
        listener.listen()
        listener.setblocking(False)
        try:
            yield Path(name), victim, listener
        finally:
            victim.kill()


def attack(folder: Path, victim: int, work: Path, policy: Policy) -> list[str]:
    """Load the hostile module into a trial's guest, and return what it printed."""
    path = work / "hostile.c"
    path.write_text(HOSTILE.replace("FOLDER", str(folder)).replace("VICTIM", str(victim)))
    kernel = kernels.ensure()
    source = additions.read(path)
    module = work / "hostile.ko"
    module.write_bytes(additions.compile_module(kernel, source).content)
    plan = resolve(expand(parse(SCENARIO, "t.yaml"))[0].scenario, 1)
    machine = plan.machine.model_copy(update={"modules": (source.module,)})
    job = Path(tempfile.mkdtemp(dir=work))
    engine = VirtualEngine(kernel, AGENT, build=lambda _: module, policy=policy)
    try:
        engine.execute(Job(plan.model_copy(update={"machine": machine}), {}, job))
    except TrialError as error:
        pytest.fail(f"the module was not loaded: {error}")
    lines = (job / "console.log").read_text(errors="replace").splitlines()
    return [line.partition("hostile: ")[2] for line in lines if "hostile: " in line]


def test_a_kernel_module_that_calls_the_host_succeeds_without_the_layers_and_fails_with_them(
    target: tuple[Path, subprocess.Popen[bytes], socket.socket], tmp_path: Path
) -> None:
    folder, victim, listener = target
    attack(folder, victim.pid, tmp_path, Policy())
    assert (folder / "file").read_text() == "the host's\n"
    assert victim.poll() is None
    with pytest.raises(BlockingIOError):
        listener.accept()
    attack(folder, victim.pid, tmp_path, Policy(unconfined=True, without=NEEDED))
    assert (folder / "file").read_text() == "the host's\nx"
    assert victim.wait(300) == -9
    listener.accept()[0].close()


def test_a_program_cannot_load_a_module(
    target: tuple[Path, subprocess.Popen[bytes], socket.socket], tmp_path: Path
) -> None:
    folder, victim, _ = target
    path = tmp_path / "hostile.c"
    path.write_text(HOSTILE.replace("FOLDER", str(folder)).replace("VICTIM", str(victim.pid)))
    module = folder / "hostile.ko"
    module.write_bytes(additions.compile_module(kernels.ensure(), additions.read(path)).content)
    load = (
        "import ctypes, errno, os; libc = ctypes.CDLL(None, use_errno=True); fd = os.open(os.sys.argv[1], os.O_RDONLY);"
        "done = libc.syscall(313, fd, b'', 0); print(done, errno.errorcode.get(ctypes.get_errno()))"
    )
    done = subprocess.run(
        [str(PLAIT), "exec", "--", "/usr/bin/python3", "-c", load, str(module)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout == "-1 EPERM\n", done.stderr
    enable = "echo 0 > /proc/sys/kernel/modules_disabled; cat /proc/sys/kernel/modules_disabled; id -u"
    done = subprocess.run(
        [str(PLAIT), "exec", "--", "sh", "-c", enable],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["1", "0"]


JOB = "/proc/1/root/job"
TRICKS = {
    "a FIFO for progress": f"rm {JOB}/progress; mkfifo {JOB}/progress; sleep 300",
    "words for progress": f"while :; do echo abc > {JOB}/progress; sleep 0.1; done",
    "a link for progress": f"rm {JOB}/progress; ln -s /dev/zero {JOB}/progress; sleep 300",
    "too much": f"head -c 40000000 /dev/zero > {JOB}/much; sleep 300",
    "too much in a deleted file":
        f"exec 3> {JOB}/much; rm {JOB}/much; head -c 40000000 /dev/zero >&3; sleep 300",
    "too many": f"cd {JOB}; (i=0; while [ $i -lt 30000 ]; do true > f$i; i=$((i+1)); done); sleep 300",
    "a frame without end": f"printf '\\001\\0\\0\\0\\001\\0\\0\\0\\377\\377\\377\\377' >> {JOB}/output; sleep 300",
}  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_what_a_program_does_to_the_job_folder_ends_its_guest_alone_and_in_time(trick: str) -> None:
    done = subprocess.run(
        [str(PLAIT), "exec", "--clock", "real", "--disk-limit", "16MiB", "--", "sh", "-c", TRICKS[trick]],
        capture_output=True, text=True, check=False, timeout=200, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1, done
    assert "plait: " in done.stderr.splitlines()[-1], done.stderr  # after errors of the program
    assert "Traceback" not in done.stderr


def test_links_in_the_job_folder_lead_plait_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("nobody's business\n")
    secret.chmod(0o600)
    trick = (
        f"cd {JOB}; ln -s {secret} data/more; rm -rf programs/it; ln -s {secret} programs/it; "
        f"ln -sf {secret} status.json; mkdir pcap; ln -s {secret} pcap/capture"
    )
    scenario = tmp_path / "tricks.yaml"
    scenario.write_text(
        "title: Links\nnetwork: {hosts: [h1, h2], links: {h1-h2: {delay: 1ms}}}\nprograms:\n"
        f"  - {{name: it, node: h1, wait: true, exit_code: any, run: [sh, -c, '{trick}']}}\n"
    )
    done = subprocess.run(
        [str(PLAIT), "run", str(scenario), "--repeat", "1", "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "symbolic link" in done.stderr
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_symlink() or path.is_file()]
    assert not any(path.is_symlink() for path in kept)
    assert not any(b"nobody's business" in path.read_bytes() for path in kept)
    assert secret.stat().st_mode & 0o777 == 0o600
