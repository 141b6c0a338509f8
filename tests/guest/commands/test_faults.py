"""A fault during a study gives one clear message, loses no finished trial and leaves nothing behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from result_folders import ONLY_TRIALS, fresh_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.guest

PLAIT = Path(sys.executable).parent / "plait"
KERNEL_PID = "2"
"""The guest's kernel in the namespace of its sandbox, whose process 1 is plait-contain."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a store of its own, with the user's kernels."""
    return fresh_cache(monkeypatch, tmp_path / "cache", with_kernels=True)


@pytest.fixture(autouse=True)
def hangup_ends_processes() -> Iterator[None]:
    """Let SIGHUP end the studies of these tests, which also run where it is ignored (`nohup make test`)."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@contextmanager
def running(out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a study in the background; yields it when its second trial has ended, and ends it after the block."""
    command = [str(PLAIT), "run", "two-paths", "--out", str(out), "--jobs", "1", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[2/"):
            break
    else:
        pytest.fail("the study ended before its second trial did")
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=300)


def guests(out: Path) -> list[int]:
    """Return the supervisors of sandboxes whose job folder is below `out`, and the guests in them."""
    pids = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = process.joinpath("cmdline").read_bytes().split(b"\0")
                if command[0].endswith(b"plait-contain") and str(out).encode() in command[1]:
                    pids.add(int(process.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ended, or is not ours
    return sorted(pids | {pid for supervisor in pids for pid in children(supervisor)})


def children(parent: int) -> list[int]:
    """Return the processes that `parent` started and that are still there."""
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def kernels(out: Path) -> set[int]:
    """Return the processes of guests' kernels. Process 1 of a sandbox may have children of the kernel's, too."""
    pids = set()
    for pid in guests(out):
        try:
            state = Path(f"/proc/{pid}/status").read_text()
            inside = next(line.split()[-1] for line in state.splitlines() if line.startswith("NSpid:"))
            if Path(f"/proc/{pid}/comm").read_text().strip() == "linux" and inside == KERNEL_PID:
                pids.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pids


def next_kernel(out: Path) -> int:
    """Return the process of the next guest's kernel as soon as it is there: one that is there now may soon end."""
    present = kernels(out)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        for pid in kernels(out) - present:
            return pid
    pytest.fail("no further guest ran within 300 s")


def wait_until_gone(pids: list[int]) -> None:
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ready, _, _ = select.select([descriptor], [], [], 300)
        os.close(descriptor)
        assert ready, f"process {pid} is still there after 300 s"


def janitors(out: Path) -> list[int]:
    pids = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = process.joinpath("cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if str(out).encode() in line and line.startswith(b"/bin/sh"):
                pids.append(int(process.name))
    return pids


def finish(out: Path, *options: str) -> str:
    """Continue a study, and return what it prints."""
    done = subprocess.run(
        [str(PLAIT), "run", "two-paths", "--out", str(out), *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reused = done.stderr.count("from the store")
    assert reused >= 2, "finished trials were run again"
    return done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_study_keeps_finished_trials_and_says_so(
    number: signal.Signals, tmp_path: Path, cache: Path
) -> None:
    """Each signal ends the study in the same way; after SIGINT, as a person sends it, there are reports as well."""
    out, options = tmp_path / "out", () if number == signal.SIGINT else ONLY_TRIALS
    with running(out, *options) as study:
        study.send_signal(number)
        _, message = study.communicate(timeout=300)
        assert study.returncode == 128 + number
        assert "interrupted" in message
        assert number == signal.SIGINT or f"by {number.name}" in message
        assert "The same command continues from there" in message
    assert guests(out) == []
    assert list(out.glob(".work-*")) == []
    finish(out, *options)


@pytest.mark.users
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_leaves_at_once_and_nothing_behind(
    number: signal.Signals, tmp_path: Path, cache: Path
) -> None:
    out = tmp_path / "out"
    with running(out) as study:
        left = guests(out) + janitors(out)
        study.send_signal(signal.SIGTERM)
        study.send_signal(number)
        _, message = study.communicate(timeout=300)
        codes = {code for sent in (number, signal.SIGTERM) for code in (-sent, 128 + sent)}
        assert study.returncode in codes
        assert "Traceback" not in message
    wait_until_gone(left)
    assert guests(out) == []
    assert list(out.glob(".work-*")) == []


def test_nohup_is_respected(tmp_path: Path, cache: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with running(tmp_path / "out", "--repeat", "2") as study:
            study.send_signal(signal.SIGHUP)
            study.communicate(timeout=300)
            assert study.returncode == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.users
def test_kill_9_leaves_no_process_and_no_folder_and_a_rerun_gives_the_same_data(
    tmp_path: Path, cache: Path
) -> None:
    out = tmp_path / "out"
    with running(out) as study:
        left = guests(out) + janitors(out)
        study.kill()
        study.wait(timeout=300)
    wait_until_gone(left + guests(out))
    assert guests(out) == []
    assert list(out.glob(".work-*")) == []
    assert list((cache / "trials").glob(".stage-*")) == []
    continued = json.loads(finish(out, "--json"))
    undisturbed = subprocess.run(
        [str(PLAIT), "run", "two-paths", "--out", str(tmp_path / "fresh"), "--json", "--fresh"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(undisturbed.stdout)["digest"] == continued["digest"]


@pytest.mark.users
def test_a_killed_guest_fails_its_trial_alone(tmp_path: Path, cache: Path) -> None:
    """The killed trial would run for minutes, so that no load of the machine lets it end before the signal."""
    out = tmp_path / "out"
    durations = "vary={traffic.0.bulk.duration: [30000s, 1s]}"
    command = [
        str(PLAIT),
        "run",
        "two-paths",
        "--set",
        durations,
        "--repeat",
        "1",
        "--jobs",
        "1",
        "--out",
        str(out),
    ]
    study = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        os.kill(next_kernel(out), signal.SIGKILL)
        _, message = study.communicate(timeout=300)
    finally:
        study.kill()
        study.wait(timeout=300)
    assert study.returncode == 1, message
    assert "without a report (exit code 137)" in message, message
    summary = json.loads((out / "summary.json").read_text())
    assert [case["failed"] for case in summary["cases"]] == [1, 0]


def test_a_trial_that_is_too_slow_is_given_up(tmp_path: Path, cache: Path) -> None:
    done = subprocess.run(
        [
            str(PLAIT),
            "run",
            "two-paths",
            "--out",
            str(tmp_path / "out"),
            "--repeat",
            "1",
            "--trial-timeout",
            "1",
            "--set",
            "traffic.0.bulk.duration=3000s",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "too slow" in done.stderr
    assert "--trial-timeout" in done.stderr


def test_the_limit_of_a_trial_is_not_that_of_a_question_to_the_kernel(cache: Path) -> None:
    """A busy machine needs longer than a short limit to boot: the study then ended before its first trial."""
    engine = make_engine("virtual", EngineRequest(trial_timeout_s=0))
    inventory = engine.inventory()
    assert inventory is not None
    assert "cubic" in inventory.congestion_controls


@pytest.mark.users
def test_a_full_disk_is_reported_with_its_remedy(tmp_path: Path, cache: Path) -> None:
    """A small file system in a mount namespace of our own stands for the full disk."""
    small = tmp_path / "small"
    small.mkdir()
    study = f"{PLAIT} run two-paths --out {small}/out --repeat 3 --jobs 1"
    inner = f"mount -t tmpfs -o size=200k none {small} && exec {study}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", inner], capture_output=True, text=True, timeout=120, check=False
    )
    if "unshare" in done.stderr:
        pytest.skip("no user namespaces here; see docs/limitations.md")
    assert done.returncode in (1, 3), done.stderr
    assert "No space left on device" in done.stderr or "disk is full" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
