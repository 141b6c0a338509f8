"""The cache names what stands in its place, and whoever waits for a lock says so once."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from plait import cache
from plait.api.storage import entries
from plait.cache import CACHE_REMEDY, ContentCache, cache_root, locked, temporary
from plait.cli.laboratory import shell
from plait.cli.shared.ending import code_of
from plait.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_link_that_leads_nowhere_in_place_of_the_cache_is_named(place: Path) -> None:
    """The system's own reason would be "File exists"."""
    place.symlink_to(place.parent / "unmounted")
    with pytest.raises(MachineError) as caught:
        cache_root()
    where = f"a link to {place.parent / 'unmounted'}, where you can use no folder"
    assert str(caught.value) == f"using the cache {place}: {place} is {where}; {CACHE_REMEDY}"


@pytest.mark.parametrize("below", [(), ("below", "it")])
def test_a_file_in_place_of_the_cache_or_above_it_is_named(
    below: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.touch()
    root = place.joinpath(*below)
    monkeypatch.setenv("PLAIT_CACHE", str(root))
    with pytest.raises(MachineError, match=f"using the cache {root}: {place} is no folder; set PLAIT_CACHE"):
        cache_root()


def test_what_costs_only_time_needs_no_cache(place: Path) -> None:
    place.symlink_to(place.parent / "unmounted")
    figures = ContentCache("figures", most=1)
    figures.put("key", b"content")
    figures.prune()
    assert figures.get("key") is None


def test_who_waits_for_a_lock_names_the_holder_once(place: Path) -> None:
    first, notices, waits = locked("work"), list[str](), list[int]()

    def wait() -> None:
        waits.append(1)
        if len(waits) == 3:
            os.close(first)

    os.close(locked("work", notices.append, wait))
    assert notices == [f"another plait (process {os.getpid()})"]
    assert len(waits) == 3
    os.close(locked("work", notices.append))
    assert len(notices) == 1, "nobody held it"


def test_a_second_shell_says_that_it_waits_for_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, messages = locked("shell"), list[str]()

    def notify(text: str) -> None:
        messages.append(text)
        os.close(first)

    monkeypatch.setattr(shell, "notify", notify)
    monkeypatch.setattr(shell, "_has_server", lambda _: True)
    monkeypatch.setattr(shell, "_use", lambda *_: 0)
    assert shell.command("two-paths") == 0
    assert messages == [f"waiting for another plait (process {os.getpid()}) that boots a network"]


def test_a_file_system_without_locks_is_named(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(MachineError, match=f"locking {place}/work.lock: No locks available; set PLAIT_CACHE"):
        locked("work")


@pytest.mark.parametrize("inside", [True, False])
def test_an_error_of_a_file_in_the_cache_names_the_way_to_another_cache(
    inside: bool, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place / "shell" if inside else place.parent / "shell"
    code_of(PermissionError(errno.EACCES, "Permission denied", str(path)))
    assert (CACHE_REMEDY in capsys.readouterr().err) is inside


def test_a_cache_that_cannot_be_read_is_not_listed_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError):
        list(entries(cache_root()))


def test_a_temporary_folder_goes_with_its_block_or_with_the_next_one_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, link = f"plait-{os.geteuid()}-", tmp_path / f"plait-{os.geteuid()}-link"
    (tmp_path / "outside").mkdir()
    link.symlink_to(tmp_path / "outside")
    (tmp_path / f"{mine}ssh-killed" / "socket").mkdir(parents=True)
    with temporary("ssh", tmp_path) as first, temporary("probe", tmp_path) as second:
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {first.name, second.name, link.name, "outside"}, "one in use is not abandoned"
        assert first.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (tmp_path / f"plait-{os.getuid() + 1}-theirs").mkdir()
    with temporary("ssh", tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {
        link.name, "outside", f"plait-{os.getuid() + 1}-theirs"
    }, "a folder of another user is none of this user's"  # fmt: skip


def test_a_temporary_folder_that_another_plait_takes_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cache.lock_folder

    def lock_folder(folder: Path) -> int | None:
        monkeypatch.setattr(cache, "lock_folder", real)
        cache.remove_abandoned(tmp_path, "plait-")
        return real(folder)

    monkeypatch.setattr(cache, "lock_folder", lock_folder)
    with temporary("ssh", tmp_path) as folder:
        assert [folder] == list(tmp_path.iterdir())
