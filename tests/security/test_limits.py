"""Process limits that are too low end in one message that says what to change, and in exit code 3."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import study

from plait import limits
from plait.engine.virtual import guest
from plait.engine.workspace import Workspace
from plait.errors import MachineError
from plait.files import Folder
from plait.report.render import render

PLAIT = Path(sys.executable).parent / "plait"


def limited(kind: int, amount: int, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PLAIT), *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PLAIT_CACHE": str(cache)},
        preexec_fn=lambda: resource.setrlimit(kind, (amount, amount)),
    )


@pytest.mark.parametrize(
    ("kind", "amount", "option"),
    [(resource.RLIMIT_NOFILE, 20, "ulimit -n"), (resource.RLIMIT_AS, 1 << 30, "ulimit -v")],
)
def test_too_low_a_limit_is_refused_before_a_library_meets_it(
    kind: int, amount: int, option: str, tmp_path: Path
) -> None:
    done = limited(kind, amount, "run", "two-paths", "--out", str(tmp_path / "out"), cache=tmp_path)
    assert done.returncode == 3
    assert option in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.users
@pytest.mark.skipif(
    os.getuid() == 0, reason="the kernel does not limit root's processes; see docs/limitations.md"
)
@pytest.mark.parametrize("amount", [0, 8, 24])
def test_too_few_processes_are_refused_before_a_guest_meets_it(amount: int, tmp_path: Path) -> None:
    done = limited(
        resource.RLIMIT_NPROC, amount, "run", "two-paths", "--out", str(tmp_path / "out"), cache=tmp_path
    )
    assert done.returncode == 3
    assert "ulimit -u" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_processes_are_counted_with_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    running = limits._tasks_of_user(os.getuid())
    assert running >= 1
    monkeypatch.setattr(os, "getuid", lambda: 10_000_000)
    assert limits._tasks_of_user(10_000_000) == 0
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, 40))
    with pytest.raises(
        MachineError, match=r"limited to 40 and runs 0 \(ulimit -u\); raise the limit to at least"
    ):
        limits.require_processes()


def test_a_sandbox_that_gets_no_process_names_the_limit() -> None:
    assert "ulimit -u" in guest._advice("starting process 1: Resource temporarily unavailable (os error 11)")
    assert "plait doctor" in guest._advice("mounting /proc: Operation not permitted (os error 1)")


def test_a_report_that_cannot_be_drawn_within_the_addresses_says_so(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", repeat=1)
    done = limited(resource.RLIMIT_AS, 8 << 30, "report", str(folder), cache=tmp_path / "empty")
    assert done.returncode == 3, done.stderr
    assert "72 GiB of addresses" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_drawn_already_needs_no_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    render._cached("key", ".svg", lambda: b"<svg/>")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 30, 1 << 30))
    assert render._cached("key", ".svg", lambda: b"") == b"<svg/>"
    with pytest.raises(MachineError, match="72 GiB"):
        render._cached("other", ".svg", lambda: b"")


@pytest.mark.parametrize(
    ("number", "words"), [(11, "ulimit -u"), (24, "ulimit -n"), (12, "ulimit -v"), (28, "space")]
)
def test_every_shortage_has_its_remedy(
    number: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(MachineError, match=words), Workspace(tmp_path, ".work-"):
        pass
    assert list(tmp_path.iterdir()) == []
    assert words in limits.remedy(OSError(number, "x"), "otherwise")


def test_a_full_disk_leaves_the_previous_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    folder.write("file", b"before")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        folder.write("file", b"after")
    assert folder.read("file") == b"before"
    assert folder.names() == ["file"]
