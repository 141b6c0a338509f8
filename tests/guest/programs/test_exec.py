"""`plait exec` runs a program of the host in a guest as on the host, and the program cannot change the host."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executing import descendants, run, started
from plait import kernel as kernels
from plait.binaries import AGENT
from plait.cli.laboratory.exec import plan_of
from plait.engine.engine import Job
from plait.engine.interactive import END, ProgramStart
from plait.engine.request import Policy
from plait.engine.virtual.guest import Guest
from plait.engine.virtual.session import Session, SessionRequest

if TYPE_CHECKING:
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest

HOSTS_ROOT = "../" * 64
HOME = Path.home()
"""What the tests' user may write to outside a guest."""


def test_output_errors_and_the_exit_code_are_those_of_the_program() -> None:
    done = run("--", "sh", "-c", "pwd; id -u; echo wrong >&2; exit 7", cwd="/usr")
    assert (done.returncode, done.stdout, done.stderr) == (7, "/usr\n0\n", "wrong\n")


def test_errors_keep_their_place_in_the_output_where_both_go_to_the_same_place() -> None:
    text = "for i in 1 2 3; do echo $i; echo e$i >&2; done"
    done = run("--", "sh", "-c", text, capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout.split() == ["1", "e1", "2", "e2", "3", "e3"]


@pytest.mark.parametrize("word", ["/" + "a" * 300, "/dev/null/x", "/etc\n/usr"])
def test_a_word_that_is_no_file_reaches_the_program(word: str) -> None:
    done = run("--", "echo", word)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{word}\n", "")


def test_code_of_several_lines_with_paths_runs() -> None:
    code = "import os\nfor path in ('/usr', '/bin'):\n    print(os.path.isdir(path))\n" + "#/" * 2000
    for command in (
        ("/usr/bin/python3", "-c", code),
        ("bash", "-c", "test -d /usr &&\necho True\necho True\n" + "#/" * 2000),
    ):
        done = run("--", *command)
        assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr


def test_ping_keeps_its_interval_from_the_beginning() -> None:
    done = run("--", "ping", "-c", "3", "127.0.0.1")
    assert re.search(r"3 received, 0% packet loss, time 20\d\dms", done.stdout), done.stdout


def test_input_and_output_of_some_megabytes_pass_unchanged_in_both_clocks() -> None:
    numbers = "".join(f"{n}\n" for n in range(400_000))
    done = run("--", "cat", input=numbers)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == numbers
    assert run("--clock", "real", "--", "md5sum", input=numbers).stdout == (
        subprocess.run(["md5sum"], input=numbers, capture_output=True, text=True, check=True).stdout
    )


WRITES = f"""
echo own > /tmp/probe && cat /tmp/probe; echo own > /run/probe && cat /run/probe
echo own > /var/tmp/probe && cat /var/tmp/probe; echo own > /dev/shm/probe && cat /dev/shm/probe
echo kept > "$GIVEN/kept"
for place in /etc /usr {HOME}; do echo changed > $place/plait-probe && echo CHANGED $place; done
mkdir -p /tmp/root; mount -t hostfs none /tmp/root -o {HOSTS_ROOT} && echo MOUNTED
for place in etc usr {HOME} dev "$HERE"; do echo changed > /tmp/root/$place/plait-probe && echo CHANGED $place; done
chmod 777 "/tmp/root/$HERE" && echo CHANGED mode; touch -d 2001-01-01 "/tmp/root/$HERE" && echo CHANGED time
mount -o remount,rw / && echo changed > /etc/plait-probe && echo CHANGED remounted
echo 1 > /tmp/root/proc/sys/net/ipv4/ip_forward && echo CHANGED sysctl
mknod /tmp/disk b 254 0 && echo changed > /tmp/disk && echo CHANGED disk
"""


@pytest.mark.users
def test_nothing_of_the_host_can_be_changed_but_what_is_given_not_even_by_mounting_it(tmp_path: Path) -> None:
    given, here = tmp_path / "given", tmp_path / "here"
    given.mkdir()
    here.mkdir(mode=0o750)
    before = here.stat()
    done = run(
        "--rw", str(given), "--env", f"GIVEN={given}", "--env", f"HERE={here}", "--", "sh", "-c", WRITES
    )
    assert done.stdout.split()[:4] == ["own"] * 4, done.stderr
    assert "CHANGED" not in done.stdout
    assert (given / "kept").read_text() == "kept\n"
    after = here.stat()
    assert (after.st_mode, after.st_mtime, list(here.iterdir())) == (before.st_mode, before.st_mtime, [])
    assert not any(Path(place, "plait-probe").exists() for place in ("/etc", "/usr", HOME, "/dev"))
    assert not Path("/run/probe").exists()


@pytest.mark.users
def test_programs_stay_root_whoever_owns_a_file_with_the_set_user_id_bit(tmp_path: Path) -> None:
    """Where an ordinary user runs the guest, the owner of `mount` is not root there; `mount` has to work even so."""
    copy = Path(shutil.copy("/usr/bin/id", tmp_path))
    if os.geteuid() == 0:
        os.chown(copy, 65534, 65534)
    copy.chmod(0o6755)
    words = f"{copy} -u; {copy} -g; d=$(mktemp -d); mount --bind $d /etc/network; touch /etc/network/b; ls $d"
    for options in ((), ("--rw", str(tmp_path))):
        done = run(*options, "--", "sh", "-c", words)
        assert (done.stdout.split(), done.stderr) == (["0", "0", "b"], "")


@pytest.mark.users
def test_the_process_of_the_guest_has_no_network_of_the_host() -> None:
    """Not only programs in the guest: the host's process that runs it is in a network without devices."""
    guest = started("--timeout", "none", "--", "sh", "-c", "ip -o -4 addr show up; echo up; sleep 1000")
    try:
        assert guest.stdout
        lines = [guest.stdout.readline().decode().split()]
        while lines[-1] != ["up"]:
            lines.append(guest.stdout.readline().decode().split())
        assert [line[1] for line in lines[:-1]] == ["lo"]
        kernels = [
            pid for pid in descendants(guest.pid) if Path(f"/proc/{pid}/comm").read_text().strip() == "linux"
        ]
        assert kernels
        namespace = Path("/proc/self/ns/net").readlink()
        for pid in kernels:
            devices = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
            assert [line.split(":")[0].strip() for line in devices] == ["lo"]
            assert Path(f"/proc/{pid}/ns/net").readlink() != namespace
    finally:
        guest.send_signal(signal.SIGTERM)
        guest.communicate(timeout=300)
    assert guest.returncode == 128 + signal.SIGTERM


def test_a_guest_that_has_ended_may_be_held_while_the_rest_of_its_words_waits_for_a_reader() -> None:
    process = subprocess.Popen(["true"])
    with tempfile.TemporaryFile() as console:
        guest = Guest(process, process.pid, {}, console.fileno())
        process.wait()
        guest.suspend()
        guest.wake()
        guest.end()


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_an_interrupt_reaches_the_program_which_may_answer_it(clock: str) -> None:
    answer = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 1; done"
    program = started("--clock", clock, "--timeout", "none", "--", "sh", "-c", answer)
    assert program.stdout
    assert program.stdout.readline() == b"ready\n"
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=300)[0] == b"interrupted\n"
    assert program.returncode == 3


@pytest.mark.users
def test_a_program_that_ignores_its_end_is_ended_and_does_not_outlive_its_terminal() -> None:
    program = started(
        "--timeout", "none", "--", "sh", "-c", "trap '' TERM HUP; echo up; while :; do sleep 1; done"
    )
    assert program.stdout
    assert program.stdout.readline() == b"up\n"
    program.send_signal(signal.SIGHUP)
    program.communicate(timeout=300)
    assert program.returncode == 128 + signal.SIGHUP


def test_what_a_program_prints_is_bounded() -> None:
    done = run("--output-limit", "1MiB", "--", "yes")
    assert done.returncode == 1
    assert len(done.stdout) <= 1 << 20
    assert "wrote more than 1 MiB; raise it with --output-limit" in done.stderr


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    words = (
        "--",
        "python3",
        "-c",
        "import os, time, uuid; print(os.urandom(8), uuid.uuid4(), time.time_ns(), id([]))",
    )
    first = run("--seed", "5", *words)
    assert first.stdout
    assert run("--seed", "5", *words).stdout == first.stdout
    assert run("--seed", "6", *words).stdout != first.stdout


def test_each_kind_of_failure_gives_one_clear_line() -> None:
    missing = run("--", "no-such-program")
    assert (missing.returncode, missing.stdout) == (127, "")
    assert missing.stderr == (
        "plait: starting no-such-program: there is no such program in PATH; install it, or give its path\n"
    )
    iperf3 = run("--env", "PATH=/nowhere", "--", "iperf3")
    assert iperf3.stderr.endswith("install it (`apt-get install iperf3`), or give its path\n")
    crashed = run("--", "sh", "-c", "kill -SEGV $$")
    assert (crashed.returncode, crashed.stderr) == (139, "plait: the program was terminated by SIGSEGV\n")
    endless = run("--timeout", "20s", "--", "sleep", "1000")
    assert endless.returncode == 124
    assert (
        endless.stderr
        == "plait: the program exceeded 20 s of the guest's clock; raise the limit with --timeout\n"
    )


@pytest.mark.users
def test_a_full_disk_is_named_and_leaves_memory_to_run_in() -> None:
    full = "for place in /tmp /run /dev/shm; do dd if=/dev/zero of=$place/much bs=1M 2>/dev/null; done; ls /; exit 5"
    done = run("--memory", "128MiB", "--", "sh", "-c", full)
    assert done.returncode == 5
    assert done.stderr == (
        "plait: /tmp and /var, /run, /dev/shm: no space left in the guest's memory; set more with --memory, or write "
        "to --rw DIR\n"
    )


@pytest.mark.users
def test_plait_distinguishes_a_program_out_of_memory_from_a_killed_one() -> None:
    """What is asked for at once is refused, and the program says so itself; what is used bit by bit ends it."""
    greedy = "kept = []\nwhile True: kept.append(bytearray(1 << 20))"
    short = run("--memory", "128MiB", "--", "/usr/bin/python3", "-c", greedy)
    assert short.returncode == 128 + signal.SIGKILL
    assert short.stderr.splitlines() == [
        "plait: the guest ran out of memory (128 MiB) and its kernel killed a program; set more with --memory",
        "plait: the program was terminated by SIGKILL",
    ]
    at_once = run("--memory", "128MiB", "--", "/usr/bin/python3", "-c", "bytearray(500 << 20)")
    assert at_once.returncode == 1
    assert at_once.stderr.splitlines()[-1] == "MemoryError"


def test_a_device_that_a_guest_has_not_is_named() -> None:
    done = run("--", "head", "-c1", "/dev/kvm")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "plait: there is no /dev/kvm in a guest, which has none of this machine's devices (`plait exec -- ls /dev`)"
    )
    assert run("--", "sh", "-c", "echo /dev/kvm").stderr == ""


@pytest.mark.users
def test_a_fork_bomb_is_bounded_and_named() -> None:
    bomb = "while :; do sleep 1000 & done"
    done = run("--processes", "50", "--", "sh", "-c", bomb)
    assert done.returncode == 2
    assert "reached the limit of 50 processes" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--clock", "lunar", "--", "true"],
            "--clock lunar: unknown clock; write one of: virtual, real",
        ),
        (["--rw", "/nowhere", "--", "true"], "--rw /nowhere: there is no such folder"),
        (["--rw", "/", "--", "true"], "--rw /: a guest must not change the whole machine"),
        (["--with", "cake", "--", "true"], "--with cake: unknown service; write one of: ovs"),
        (["--memory", "1G", "--", "true"], "--memory 1G: 'G' is not a unit of a size"),
        (["--timeout", "soon", "--", "true"], "--timeout soon: "),
        (["--env", "NO_SUCH_VARIABLE_HERE", "--", "true"], "this environment has no such variable"),
    ],
)
def test_a_wrong_request_runs_nothing_and_says_what_would_be_right(words: list[str], message: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.users
def test_the_guest_of_a_program_is_kept_on_one_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that computes for longer than plait leaves a guest unwatched."""
    kept, checked = [], []

    class Recorder:
        def __init__(self, pid: int, _now: float) -> None:
            kept.append(pid)

        def check(self, now: float, waited_s: float) -> None:
            checked.append((now, waited_s))

    monkeypatch.setattr("plait.engine.virtual.session.OneProcessor", Recorder)
    computes = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo done"
    first = SessionRequest(start=ProgramStart(1, ["/bin/sh", "-c", computes], [("PATH", "/usr/bin:/bin")]))
    with Session(kernels.ensure(), AGENT, tmp_path, plan_of(1, 1024), first) as session:
        frames = []
        while not session.has_ended():
            session.wait()
            frames += session.frames()
        assert frames[-1].kind == END
    assert kept == [session.guest.pid]
    assert checked
    assert all(waited >= 0 for _, waited in checked)


@pytest.mark.users
def test_what_a_program_leaves_in_the_guests_folder_is_there_until_the_session_has_ended(
    tmp_path: Path,
) -> None:
    """A trace of events goes this way, so the limit of that folder is its limit."""
    writes = (
        "echo trace > /proc/1/root/job/trace; dd if=/dev/zero of=/proc/1/root/job/more bs=1M count=64; exit 7"
    )
    left: list[tuple[bytes | None, int]] = []
    first = SessionRequest(
        start=ProgramStart(1, ["/bin/sh", "-c", writes], [("PATH", "/usr/bin:/bin")]),
        at_end=lambda folder: left.append((folder.read("trace", 100), (folder.path / "more").stat().st_size)),
    )
    policy = Policy(disk_bytes=16 << 20)
    with Session(kernels.ensure(), AGENT, tmp_path, plan_of(1, 1024), first, policy=policy) as session:
        while not session.has_ended():
            session.wait()
            list(session.frames())
    ((trace, more),) = left
    assert trace == b"trace\n"
    assert more < 16 << 20


def test_a_guest_with_the_hosts_files_costs_at_most_300_ms_more_than_a_bare_one(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    """In processor time, which other work on the machine does not change."""
    plan = plan_of(1, 1024)
    first = SessionRequest(start=ProgramStart(1, ["/bin/true"], [("PATH", "/usr/bin:/bin")]))

    def bare(folder: Path) -> None:
        engine.execute(Job(plan, {}, folder))

    def full(folder: Path) -> None:
        with Session(kernels.ensure(), AGENT, folder, plan, first) as session:
            session.guest.process.wait()
            assert [frame.kind for frame in session.frames()][-1] == END

    costs = {}
    for run_one in (bare, full, bare, full):
        folder = tmp_path / f"{run_one.__name__}{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_one(folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cost = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        costs[run_one] = min(cost, costs.get(run_one, cost))
    assert costs[full] - costs[bare] < 0.3, costs
