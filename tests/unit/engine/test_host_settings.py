"""Settings that all namespaces share are compared, and restored whatever ends the process that wrote them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from fake_plans import fake_plan
from kernel_fakes import while_waiting
from plait import janitor
from plait.engine.host import settings
from plait.plan.model.plan import Machine, Plan

MEMORY, ALLOWED = "net/ipv4/tcp_mem", "net/ipv4/tcp_allowed_congestion_control"
PRESENT = {MEMORY: "1000\t2000\t3000", ALLOWED: "reno cubic", "net/core/rmem_max": "212992"}


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in place of /proc/sys."""
    folder = tmp_path / "proc"
    for path, value in PRESENT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{value}\n")
    monkeypatch.setattr(settings, "_PROC", folder)
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(janitor, "MACHINE", tmp_path / "run")
    return folder


def plan(*sysctls: tuple[str, str]) -> Plan:
    return fake_plan().model_copy(update={"machine": Machine(sysctls=sysctls)})


def text(proc: Path, path: str) -> str:
    return (proc / path).read_text().strip()


@pytest.mark.usefixtures("proc")
def test_only_what_this_machine_does_not_meet_differs() -> None:
    met = plan((MEMORY, "16384 24576 32768"), (ALLOWED, "cubic reno"), ("net/core/rmem_max", "1000"))
    assert settings.differences(met) == []
    assert settings.differences(plan((ALLOWED, "cubic olia")), coming={"olia"}) == []
    unmet = plan((MEMORY, "1 2 3"), (ALLOWED, "bbr reno"), ("net/core/rmem_max", "300000"))
    assert [(setting.name, setting.needed) for setting in settings.differences(unmet)] == [
        ("net.ipv4.tcp_mem", "1 2 3"),
        ("net.ipv4.tcp_allowed_congestion_control", "reno cubic bbr"),
        ("net.core.rmem_max", "300000"),
    ]


def test_settings_are_restored_after_the_trial(proc: Path) -> None:
    unmet = settings.differences(plan((ALLOWED, "bbr reno"), ("net/core/rmem_max", "300000")))
    with settings.written(lambda: unmet):
        assert text(proc, ALLOWED) == "reno cubic bbr"
        assert text(proc, "net/core/rmem_max") == "300000"
    assert {path: text(proc, path) for path in PRESENT} == PRESENT


def test_what_another_trial_set_meanwhile_is_not_taken_for_the_value_of_this_machine(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would restore the other trial's value, and leave it for ever."""
    limit = proc / "net/core/rmem_max"
    limit.write_text("300000\n")
    while_waiting(monkeypatch, lambda: limit.write_text("212992\n"))
    with settings.written(partial(settings.differences, plan(("net/core/rmem_max", "300000")))) as unmet:
        assert text(proc, "net/core/rmem_max") == "300000"
    assert [setting.present for setting in unmet] == ["212992"]
    assert text(proc, "net/core/rmem_max") == "212992"


@pytest.mark.usefixtures("proc")
def test_root_has_one_lock_for_a_machine_whatever_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a lock in each cache, the second trial would restore what the first one set."""

    class WaitedError(Exception):
        """The lock is held."""

    def wait() -> None:
        raise WaitedError

    for user, is_shared in ((0, True), (1000, False)):
        monkeypatch.setattr(janitor.os, "geteuid", lambda user=user: user)
        monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "one"))
        first = janitor.locked_for_all("host-settings")
        monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "other"))
        with pytest.raises(WaitedError) if is_shared else nullcontext():
            os.close(janitor.locked_for_all("host-settings", wait=wait))
        os.close(first)


def test_settings_are_restored_after_kill_9(proc: Path, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from plait import janitor as j; from plait.engine.host import settings as s\n"
        "s._PROC = pathlib.Path(sys.argv[1]); j.MACHINE = s._PROC / 'run'\n"
        "d = s.Difference('net/core/rmem_max', '300000', '212992', '300000')\n"
        "with s.written(lambda: [d]): print('written', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(proc)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PLAIT_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(Path(settings.__file__).parents[3])},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"written\n"
    assert text(proc, "net/core/rmem_max") == "300000"
    process.send_signal(signal.SIGKILL)
    process.wait(300)
    process.stdin.close()
    process.stdout.close()
    deadline = time.monotonic() + 300
    while text(proc, "net/core/rmem_max") != "212992":
        assert time.monotonic() < deadline, "the janitor did not restore the setting"
        select.select([], [], [], 0.01)
