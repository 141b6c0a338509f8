"""The working folder disappears after the block, after an error, and after kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from plait.engine import workspace
from plait.engine.workspace import Workspace
from plait.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_folder_is_gone_after_the_block(tmp_path: Path) -> None:
    with Workspace(tmp_path, ".work-") as work:
        (work.job() / "file").write_text("x")
        assert work.job() != work.job()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_gone_after_kill_9(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from plait.engine.workspace import Workspace\n"
        f"with Workspace(Path({str(tmp_path)!r}), '.work-') as work:\n"
        "    (work.job() / 'file').write_text('x'); print(work._janitor.pid, flush=True); sys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    janitor = os.pidfd_open(int(child.stdout.readline()))
    assert len(list(tmp_path.iterdir())) == 1
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=300)
    wait_for_end(janitor)
    assert list(tmp_path.iterdir()) == []


def wait_for_end(pidfd: int) -> None:
    import select

    ready, _, _ = select.select([pidfd], [], [], 10)
    assert ready, "the janitor still runs 10 s after plait was killed"
    os.close(pidfd)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(MachineError, match=r"file.*choose another folder"), Workspace(blocked, ".work-"):
        pass


def test_the_folder_is_gone_though_its_janitor_was_killed(tmp_path: Path) -> None:
    with Workspace(tmp_path, ".work-") as work:
        (work.job() / "file").write_text("x")
        assert work._janitor is not None
        work._janitor.kill()
        work._janitor.wait(timeout=300)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_and_its_killed_janitor_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".work-abandoned" / "00001").mkdir(parents=True)
    (tmp_path / ".work-link").symlink_to(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with Workspace(tmp_path, ".work-") as used, Workspace(tmp_path, ".work-") as work:
        assert used.path.is_dir(), "a folder in use is not abandoned"
        assert sorted(tmp_path.glob(".work-*")) == sorted([used.path, work.path, tmp_path / ".work-link"])
    assert (tmp_path / "mine" / "file").read_text() == "x"


def test_the_janitor_waits_before_the_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[Path]] = []
    start = subprocess.Popen

    def popen(*arguments: object, **options: object) -> object:
        seen.append(list(tmp_path.iterdir()))
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    with Workspace(tmp_path, ".work-"):
        assert seen == [[]], "a process that is killed between the two leaves a folder that nobody removes"


def test_what_a_guest_has_made_unreadable_is_removed_as_well(tmp_path: Path) -> None:
    with Workspace(tmp_path, ".work-") as work:
        locked = work.job() / "locked"
        (locked / "inside").mkdir(parents=True)
        locked.chmod(0)
    assert list(tmp_path.iterdir()) == []


def test_the_janitor_of_a_folder_that_another_plait_removed_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another plait may take a folder that is not locked yet for an abandoned one."""
    janitors: list[subprocess.Popen[bytes]] = []
    begin, lock = workspace._janitor, workspace.lock_folder

    def beginning(folder: Path) -> subprocess.Popen[bytes]:
        janitors.append(begin(folder))
        return janitors[-1]

    def locked(folder: Path) -> int | None:
        if len(janitors) == 1:
            folder.rmdir()
        return lock(folder)

    monkeypatch.setattr(workspace, "_janitor", beginning)
    monkeypatch.setattr(workspace, "lock_folder", locked)
    with Workspace(tmp_path, ".work-"):
        assert [janitor.poll() is None for janitor in janitors] == [False, True]
