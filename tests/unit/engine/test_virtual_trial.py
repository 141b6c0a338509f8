"""The virtual engine judges guests that go wrong. A shell script stands in for the kernel here.

A script needs the host's files and more system calls than a kernel, so the layers that keep these away are left out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

from fake_plans import fake_plan
from plait.engine.engine import Interrupted, Job
from plait.engine.request import Policy
from plait.engine.virtual.boot_inputs import kernel_parameters
from plait.engine.virtual.trial import VirtualEngine
from plait.engine.virtual.watch import Standstill, TrialLimits, waited_s
from plait.errors import TrialError
from plait.kernel import Kernel

GOOD = """echo '{"ok": true, "phase": "done", "error": null, "virtual_us": 1, "boot_us": 1}' > status.json"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def guest(tmp_path: Path, script: str, limits: TrialLimits | None = None) -> tuple[VirtualEngine, Job]:
    binary = tmp_path / "linux"
    binary.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    binary.chmod(0o755)
    agent = tmp_path / "agent"
    agent.write_bytes(b"agent")
    folder = tmp_path / "job"
    folder.mkdir()
    kernel = Kernel(identity="0" * 64, version="0", binary=binary, binary_sha256="", hz=1000)
    without = ("minimal_root", "landlock", "seccomp")
    return VirtualEngine(kernel, agent, limits, policy=Policy(without=without)), Job(fake_plan(), {}, folder)


def failure(tmp_path: Path, script: str, limits: TrialLimits | None = None) -> str:
    engine, job = guest(tmp_path, script, limits)
    with pytest.raises(TrialError) as caught:
        engine.execute(job)
    return str(caught.value)


def test_a_good_guest_finds_its_plan_and_leaves_in_peace(cache: Path) -> None:
    engine, job = guest(cache, f"test -s plan.json && test -s initramfs.cpio && {GOOD}")
    engine.execute(job)


def test_a_panic_is_reported_as_such_with_the_console(cache: Path) -> None:
    text = failure(cache, "echo before; echo 'Kernel panic - not syncing: Attempted to kill init!'; exit 1")
    assert text.startswith("the guest's kernel panicked: not syncing: Attempted to kill init!")
    assert "  before" in text


def test_a_guest_that_ends_without_a_word_is_reported_with_its_exit_code(cache: Path) -> None:
    assert "without a report (exit code 7)" in failure(cache, "exit 7")


def test_a_killed_guest_is_reported(cache: Path) -> None:
    assert "without a report (exit code 137)" in failure(cache, "kill -9 $$")


def test_what_the_agent_says_failed_is_the_error(cache: Path) -> None:
    status = '{"ok": false, "phase": "apply", "error": "adding netem to w0a", "virtual_us": 1, "boot_us": 1}'
    script = f"echo '{status}' > status.json"
    assert failure(cache, script) == "apply: adding netem to w0a"


def test_a_stopped_clock_is_distinguished_from_a_slow_guest(cache: Path) -> None:
    stuck = failure(
        cache, "echo '2000000 traffic' > progress; sleep 60", TrialLimits(total_s=50, stall_s=0.5)
    )
    assert stuck.startswith("no virtual progress: virtual time stands at 2.0 s")


def test_a_slow_guest_is_distinguished_from_a_stopped_clock(cache: Path) -> None:
    script = 'i=0; while sleep 0.1; do i=$((i + 1000)); echo "$i traffic" > progress; done'
    slow = failure(cache, script, TrialLimits(total_s=1, stall_s=20))
    assert slow.startswith("too slow: virtual time stands at")


def test_a_guest_that_never_comes_up_is_given_up(cache: Path) -> None:
    assert "the guest did not boot" in failure(cache, "sleep 60", TrialLimits(total_s=50, stall_s=0.3))


def test_waiting_for_a_processor_is_no_stall(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with more work than processors: the guest would run, and may not."""
    monkeypatch.setattr("plait.engine.virtual.watch.waited_s", lambda _pid: time.monotonic())
    script = "echo '2000000 traffic' > progress; sleep 60"
    starved = failure(cache, script, TrialLimits(total_s=2, stall_s=0.3))
    assert starved.startswith("too slow: virtual time stands at 2.0 s")


def test_waits_that_are_counted_only_when_they_are_over_are_no_stall() -> None:
    """As at idle priority: a guest waits 3 s for 20 ms of a processor, again and again, and the machine counts then."""
    standstill = Standstill(0.0)
    for quarters in range(1, 1200):
        now = quarters / 4
        standing = standstill.seconds(now, 2.98 * (now // 3))
        assert standing < 3 + 0.02 * now
    standstill.restart(300.0, 298.0)
    assert standstill.seconds(310.0, 298.0) == 10


def test_waits_of_several_processes_at_once_excuse_no_time_to_come() -> None:
    standstill = Standstill(0.0)
    assert standstill.seconds(10.0, 30.0) == 0
    assert standstill.seconds(25.0, 30.0) == 15
    # A process that ends takes its waits with it, and those of the others go on.
    assert standstill.seconds(35.0, 5.0) == 25
    assert standstill.seconds(45.0, 15.0) == 25


def test_the_time_a_process_waits_for_a_processor_includes_its_children(tmp_path: Path) -> None:
    for pid, waited_ns, children in ((7, 3_000_000_000, "8 9"), (8, 500_000_000, ""), (9, 250_000_000, "")):
        task = tmp_path / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (tmp_path / str(pid) / "schedstat").write_text(f"1 {waited_ns} 5\n")
        (task / "children").write_text(children)
    assert waited_s(7, tmp_path) == pytest.approx(3.75)
    assert waited_s(6, tmp_path) == 0


def test_a_large_network_has_longer_to_come_up_and_no_longer_afterwards() -> None:
    limits = TrialLimits()
    assert limits.patience_s(3, is_booted=False) < 121
    assert limits.patience_s(4001, is_booted=False) == 120 + 400.1
    assert limits.patience_s(4001, is_booted=True) == 120


def test_a_stopped_guest_is_ended_with_its_children(cache: Path) -> None:
    engine, job = guest(cache, "sleep 60 & touch started; sleep 60")
    there: list[int] = []

    def stop() -> None:
        while not (job.folder / "guest" / "started").exists():
            pass
        there.extend(processes_in(job.folder / "guest"))
        job.stop.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Interrupted):
        engine.execute(job)
    thread.join()
    assert len(there) >= 2
    assert processes_in(job.folder / "guest") == []


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose working directory is `folder`, in whatever namespace they are."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            if (entry / "cwd").readlink() == folder:
                pids.append(int(entry.name))
    return pids


def test_the_command_line_holds_no_path_of_the_host() -> None:
    same_everywhere = {"rdinit=/init", "hostfs=/proc/self/cwd"}
    assert not any("/" in parameter for parameter in set(kernel_parameters(fake_plan())) - same_everywhere)


def test_a_variable_sends_each_packet_through_whole_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_CUT_THROUGH", raising=False)
    usual = kernel_parameters(fake_plan())
    monkeypatch.setenv("PLAIT_CUT_THROUGH", "1")
    assert kernel_parameters(fake_plan()) == usual
    monkeypatch.setenv("PLAIT_CUT_THROUGH", "0")
    assert set(kernel_parameters(fake_plan())) - set(usual) == {"plait_cut_through=0"}
