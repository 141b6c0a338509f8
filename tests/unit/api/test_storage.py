"""`plait store` shows what the cache has, and removes only what it may, also while a study runs."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import plait
from fake_engine import FakeEngine
from plait.api.storage import (
    PARTS,
    CacheEntry,
    age_s,
    chosen_parts,
    entries,
    remove,
    size_text,
    to_remove,
)
from plait.cache import unless_used
from plait.cli import app
from plait.engine.recipe import shipped_file
from plait.errors import RequestError
from plait.results.read import read_study
from plait.study.executors.worker import keep, path_of, prune
from plait.study.perform import Options, perform
from plait.study.progress import silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.engine.engine import Job
    from plait.engine.recipe import ShippedFile

DAY = 86400.0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_every_cache_of_files_is_a_part_that_the_store_lists() -> None:
    sources = (Path(plait.__file__).parent).rglob("*.py")
    named = {
        name for file in sources for name in re.findall(r'= ContentCache\("(\w+)"', file.read_text("utf-8"))
    }
    assert len(named) >= 6
    assert named <= {part.name for part in PARTS}


def run(out: Path, engine: FakeEngine) -> str:
    folder, _ = perform(
        plait.load("two-paths"),
        "two-paths",
        lambda _: engine,
        Options(repeat=4),
        folder=out,
        watch=silent,
        notify=lambda _: None,
    )
    return read_study(folder).digest


def fill(cache: Path, name: str, size: int, days: float) -> None:
    path = cache / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    used = time.time() - days * DAY
    os.utime(path, (used, used))
    os.utime(path.parent, (used, used))


def ended(*arguments: str) -> tuple[int, str]:
    """Return exit code and output of `plait store`."""
    result = CliRunner().invoke(app, ["store", *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.output


@contextlib.contextmanager
def using(imported: str) -> Iterator[None]:
    """Run a plait that uses the cache by one of its functions during the block."""
    program = f"from {imported}; used(); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as other:
        other.stdout.readline()
        yield
        other.communicate(b"\n")


def end_use() -> None:
    """Let other processes believe that this one has ended."""
    while used := plait.cache._used:
        os.close(used.popitem()[1])


def names(cache: Path) -> set[str]:
    return {"/".join(entry.path) for entry in entries(cache)}


def test_the_oldest_entries_go_first_until_the_rest_is_small_enough() -> None:
    part = PARTS[0]
    now = time.time()
    present = [CacheEntry(part, (part.name, str(day)), 100, now - day * DAY) for day in range(10)]
    assert [entry.path[-1] for entry in to_remove(present, None, 650)] == ["9", "8", "7", "6"]
    assert [entry.path[-1] for entry in to_remove(present, 7.5 * DAY, None)] == ["9", "8"]
    assert [entry.path[-1] for entry in to_remove(present, 7.5 * DAY, 950)] == ["9", "8"]
    assert to_remove(present, 20 * DAY, 1000) == []


def test_an_age_without_a_unit_or_a_part_without_a_name_is_refused() -> None:
    assert (age_s("12h"), age_s("30d"), age_s("4w")) == (12 * 3600, 30 * DAY, 28 * DAY)
    for text in ("30", "d", "-3d", "1y", "3 days"):
        with pytest.raises(RequestError, match="for example 30d"):
            age_s(text)
    with pytest.raises(RequestError, match="write one of: trials, "):
        chosen_parts(["trails"])


def test_prune_takes_the_old_of_what_is_cheap_and_leaves_kernels(cache: Path) -> None:
    fill(cache, f"trials/ab/{'ab' * 32}/manifest.json", 5000, days=40)
    fill(cache, f"trials/ab/{'ac' * 32}/manifest.json", 5000, days=1)
    fill(cache, "figures/old.svg", 100, days=40)
    fill(cache, "kernels/one/linux", 100, days=40)
    fill(cache, "additions/mine.c", 100, days=40)
    code, output = ended("prune", "--older-than", "30d", "--dry-run")
    assert code == 0
    assert "nothing is removed" in output
    assert "2 entries go" in output
    assert len(names(cache)) == 4
    assert ended("prune", "--older-than", "30d")[0] == 0
    assert names(cache) == {f"trials/ab/{'ac' * 32}", "kernels/one"}
    assert (cache / "additions/mine.c").exists()
    ended("prune", "--older-than", "30d", "--part", "kernels")
    assert names(cache) == {f"trials/ab/{'ac' * 32}"}


def test_checkouts_and_bisections_go_only_by_their_names_and_not_during_a_build(cache: Path) -> None:
    fill(cache, "kernels/.trees/0123/linux", 100, days=40)
    fill(cache, "kernels/.bisect/4567/values.json", 100, days=40)
    fill(cache, "selftests/abcd/diag", 100, days=40)
    present = {"kernels/.trees/0123", "kernels/.bisect/4567", "selftests/abcd"}
    ended("prune", "--older-than", "30d")
    assert names(cache) == present
    with (
        using("plait.kernel.cache import kernels_root as used"),
        pytest.raises(RequestError, match="plait runs on this machine and may need it"),
    ):
        ended("prune", "--older-than", "30d", "--part", "trees")
    ended("prune", "--older-than", "30d", "--part", "trees", "--part", "bisections")
    assert names(cache) == {"selftests/abcd"}


def test_prune_needs_a_limit(cache: Path) -> None:
    with pytest.raises(RequestError, match="state what to remove"):
        ended("prune")


def test_list_shows_each_part_with_its_size(cache: Path) -> None:
    fill(cache, "figures/one.svg", 1 << 20, days=3)
    output = ended("list")[1]
    (line,) = (line for line in output.splitlines() if line.startswith("figures"))
    assert line.split()[:5] == ["figures", "1", "1.0", "MB", "3"]
    assert all(any(line.startswith(part.name) for line in output.splitlines()) for part in PARTS)
    assert max(map(len, output.splitlines()[1:])) <= 80
    assert (size_text(999), size_text(1000), size_text(123_456_789)) == ("999 B", "1.0 KB", "123 MB")


def test_what_a_running_plait_may_need_stays(cache: Path) -> None:
    fill(cache, "kernels/one/linux", 100, days=40)
    fill(cache, "shipped/ab/abcd", 100, days=40)
    with using("plait.engine.workspace import working_folder as used"):
        with pytest.raises(RequestError, match="may need it"):
            ended("prune", "--older-than", "30d", "--part", "kernels")
        assert ended("prune", "--older-than", "30d")[0] == 0
        assert names(cache) == {"kernels/one", "shipped/ab/abcd"}
    ended("prune", "--older-than", "30d")
    assert names(cache) == {"kernels/one"}


def test_a_study_that_runs_while_its_trials_are_pruned_is_the_same(cache: Path, tmp_path: Path) -> None:
    expected = run(tmp_path / "first", FakeEngine())
    pruned = threading.Event()

    def prune(_: Job) -> None:
        for entry in list(entries(cache)):
            remove(cache, entry)
        pruned.set()

    ended("prune", "--keep", "1MiB")
    for entry in list(entries(cache))[::2]:
        remove(cache, entry)
    assert run(tmp_path / "second", FakeEngine(prune)) == expected
    assert pruned.is_set()


def test_use_makes_a_trial_young_again(cache: Path, tmp_path: Path) -> None:
    run(tmp_path / "first", FakeEngine())
    for entry in entries(cache):
        for path in (cache.joinpath(*entry.path), *cache.joinpath(*entry.path).rglob("*")):
            os.utime(path, (0, 0))
    assert all(entry.used_s == 0 for entry in entries(cache))
    run(tmp_path / "second", FakeEngine())
    assert all(entry.used_s > time.time() - DAY for entry in entries(cache) if entry.part.name == "trials")


def kept_file(tmp_path: Path, name: str, days: float) -> ShippedFile:
    """Return a file that this machine has only because a study sent it, and that was used `days` ago."""
    path = tmp_path / name
    path.write_bytes(name.encode() * 1000)
    file = shipped_file(path)
    keep(file, path.read_bytes())
    path.unlink()
    kept = path_of(file)
    assert kept is not None
    used = time.time() - days * DAY
    os.utime(kept, (used, used))
    return file


def test_prune_takes_old_files_of_other_machines_and_a_study_brings_them_again(
    cache: Path, tmp_path: Path
) -> None:
    old, new = kept_file(tmp_path, "old", 40), kept_file(tmp_path, "new", 1)
    assert "shipped           2" in ended("list")[1]
    end_use()
    code, shown = ended("prune", "--older-than", "30d")
    assert (code, path_of(old)) == (0, None)
    assert "Removed 1 entries" in shown
    assert path_of(new) is not None
    keep(old, b"old" * 1000)
    assert path_of(old) is not None
    end_use()
    assert ended("prune", "--part", "shipped", "--older-than", "0h")[0] == 0
    assert path_of(old) is path_of(new) is None


def test_a_worker_keeps_what_it_uses_and_the_latest_up_to_a_limit(cache: Path, tmp_path: Path) -> None:
    files = [kept_file(tmp_path, f"file-{days}", days) for days in (0, 10, 20, 30)]

    def there() -> list[bool]:
        return [f"shipped/{file.sha256[:2]}/{file.sha256}" in names(cache) for file in files]

    in_use = {files[3].sha256}
    prune(in_use, limit=13_000)  # the others have 20 000 bytes
    assert there() == [True, True, False, True]
    prune(in_use, limit=0)
    assert there() == [True, False, False, True], "what was used within a day may be in use elsewhere"


def test_odd_files_in_the_cache_end_no_prune(cache: Path) -> None:
    deep = cache / "figures"
    deep.mkdir(parents=True)
    inside = os.open(deep, os.O_RDONLY)
    for _ in range(3000):  # longer than any path can be
        os.mkdir("a", dir_fd=inside)
        deeper = os.open("a", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    os.close(inside)
    (cache / "kernels").mkdir()
    os.mkfifo(cache / "kernels" / "linux")
    shown = CliRunner().invoke(app, ["store", "list"])
    words = ["--part", "figures", "--part", "kernels", "--older-than", "0h"]
    pruned = CliRunner().invoke(app, ["store", "prune", *words])
    subprocess.run(["rm", "-rf", str(deep)], check=True)  # pytest removes no folder as deep as that
    assert (shown.exit_code, pruned.exception) == (0, None)
    assert re.search(r"^figures +1 ", shown.output, re.MULTILINE)
    assert "Removed 2 entries" in pruned.output
    assert not names(cache)


def test_an_entry_that_cannot_be_removed_has_its_reason(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(cache, "figures/one.svg", 100, days=40)
    fill(cache, "figures/two.svg", 100, days=40)

    def unlink(name: str, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)

    monkeypatch.setattr(os, "unlink", unlink)
    code, output = ended("prune", "--older-than", "30d")
    assert code == 1
    assert output.splitlines()[-1] == (
        f"plait: removing 2 of 2 entries failed, such as {cache}/figures/one.svg: Read-only file system; "
        "the file system is read-only; choose another folder"
    )


def test_a_plait_that_starts_during_a_prune_waits_for_its_end(cache: Path) -> None:
    fill(cache, "kernels/one/linux", 100, days=40)
    with unless_used(cache) as unused:
        program = (
            "from plait.kernel.cache import kernels_root as used; print(used().joinpath('one').exists())"
        )
        starting = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        lock = f":{(cache / 'used.lock').stat().st_ino} "
        while not re.search(rf"-> .* {starting.pid} .*{lock}", Path("/proc/locks").read_text()):
            assert starting.poll() is None, "it did not wait"
        shutil.rmtree(cache / "kernels" / "one")
    assert (unused, starting.communicate(timeout=100)[0]) == (True, "False\n")


def test_what_is_needed_by_its_path_is_used_by_it() -> None:
    needed = {(part.folder or (part.name,))[0] for part in PARTS if part.needed}
    files = [file.read_text("utf-8") for file in Path(plait.__file__).parent.rglob("*.py")]
    used, unprotected = (
        {name.lower() for text in files for name in re.findall(pattern, text)}
        for pattern in (r'used_folder\("?(\w+)"?\)', r'cache_root\(\)\)? / "?(\w+)"?')
    )
    assert needed <= used
    assert not needed & unprotected


def test_two_prunes_at_once_both_succeed(cache: Path) -> None:
    for number in range(200):
        fill(cache, f"trials/{number % 7:02d}/{number}/plan.json", 1, 3)
    prunes = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from plait.cli import app; app()",
                "store",
                "prune",
                "--older-than",
                "1d",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    printed = [prune.communicate(timeout=100)[0] for prune in prunes]
    assert [prune.returncode for prune in prunes] == [0, 0, 0]
    assert sum(int(re.findall(r"Removed (\d+) entries", text)[0]) for text in printed) == 200
