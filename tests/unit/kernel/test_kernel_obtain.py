"""Building a kernel refuses bad sources, cleans up, and lets one process build while others wait (on a fake tree)."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_fakes import make_archive, make_laboratory, make_tree
from plait.cache import unless_used
from plait.errors import KernelBuildError, MachineError
from plait.kernel import build, ensure, fetch, list_built, recipe
from plait.kernel.obtain import Sources, source_archive


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipe, "LABORATORY", make_laboratory(tmp_path / "laboratory"))
    return tmp_path / "cache"


def nothing_half_made(cache: Path) -> bool:
    return not list(cache.glob("kernels/.building-*")) and not list_built()


def test_a_tree_is_built_once_and_then_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tree = make_tree(tmp_path / "linux", "cat file.c", f"echo built >> {log}")
    kernel = ensure(source=tree)
    assert (kernel.version, kernel.hz) == ("6.12.7", 250)
    assert kernel.binary.stat().st_mode & 0o111
    assert ensure(source=tree) == kernel
    assert log.read_text() == "built\n"
    assert (tree / "file.c").read_text() == "before\n"


def test_the_patches_are_applied_before_the_build(tmp_path: Path) -> None:
    ensure(source=make_tree(tmp_path / "linux", 'test "$$(cat file.c)" = after'))


def test_added_sources_are_in_the_tree_below_a_makefile_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "ADDITIONS", ("schedulers", "include"))
    for name, file in (("schedulers", "Makefile"), ("schedulers", "one.c"), ("include/plait", "one.h")):
        (recipe.LABORATORY / name).mkdir(exist_ok=True, parents=True)
        (recipe.LABORATORY / name / file).write_text("obj-y := one.o\n")
    steps = ("test -e net/plait/schedulers/one.c", "test -e net/plait/include/plait/one.h")
    ensure(
        source=make_tree(
            tmp_path / "linux", *steps, 'test "$$(cat net/plait/Makefile)" = "obj-y += schedulers/"'
        )
    )


def test_another_content_is_another_kernel(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    first = ensure(source=tree)
    (tree / "more.c").write_text("int more;\n")
    assert ensure(source=tree).identity != first.identity


def test_what_is_built_does_not_depend_on_where_the_tree_lies_nor_on_what_was_built_in_it(
    tmp_path: Path,
) -> None:
    first, second = make_tree(tmp_path / "one"), make_tree(tmp_path / "two")
    (second / "file.o").write_bytes(b"left by a build")
    (second / ".git").mkdir()
    assert ensure(source=first).identity == ensure(source=second).identity


def test_the_default_source_is_the_installed_package_before_any_download(tmp_path: Path) -> None:
    def never(_folder: Path, _progress: object) -> Path:
        raise AssertionError

    archive = make_archive(make_tree(tmp_path / "usr" / "linux-source-6.12"))
    sources = Sources(installed=(tmp_path / "none", archive.parent), fetched=(("distribution", never),))
    kernel = ensure(sources=sources)
    assert ensure(sources=Sources((), ())) == kernel
    assert list_built()[0][1].source.kind == "installed"


def test_a_debug_kernel_is_another_one_and_never_the_default(tmp_path: Path) -> None:
    (recipe.LABORATORY / "config" / "debug.config").write_text("CONFIG_KASAN=y\n")
    archive = make_archive(make_tree(tmp_path / "usr" / "linux-source-6.12"))
    sources = Sources(installed=(archive.parent,), fetched=())
    debug = ensure(sources=sources, debug=True)
    plain = ensure(sources=sources)
    assert plain.identity != debug.identity
    assert [ensure(sources=Sources((), ()), debug=wanted) for wanted in (True, False)] == [debug, plain]


def test_sources_are_tried_in_order_and_all_failures_are_reported(tmp_path: Path) -> None:
    def fails(reason: str) -> object:
        def get(_folder: Path, _progress: object) -> Path:
            raise KernelBuildError(reason)

        return get

    sources = Sources((), (("distribution", fails("no lists")), ("kernel.org", fails("no network"))))
    with pytest.raises(KernelBuildError, match=r"(?s)no lists.*no network.*--source"):
        ensure(sources=sources)


def test_a_fetched_archive_is_removed_when_the_kernel_is_built(tmp_path: Path, cache: Path) -> None:
    archive = make_archive(make_tree(tmp_path / "linux"))

    def get(folder: Path, _progress: object) -> Path:
        folder.mkdir(parents=True)
        return archive.rename(folder / archive.name)

    ensure(sources=Sources((), (("distribution", get),)))
    assert list((cache / "sources").iterdir()) == []


def test_no_build_can_remove_a_fetched_archive_while_it_is_read(tmp_path: Path, cache: Path) -> None:
    archive = make_archive(make_tree(tmp_path / "linux"))
    with (
        source_archive(sources=Sources((), (("distribution", lambda *_: archive),))),
        unless_used(cache) as unused,
    ):
        assert not unused


def test_the_same_kernel_is_not_built_again_for_those_who_give_no_source(tmp_path: Path) -> None:
    log = tmp_path / "log"
    archive = make_archive(make_tree(tmp_path / "linux", f"echo built >> {log}"))
    given = ensure(source=archive)
    assert ensure(sources=Sources((archive.parent,), ())) == given
    assert log.read_text() == "built\n"


def test_an_archive_that_was_built_is_not_even_unpacked(tmp_path: Path) -> None:
    archive = make_archive(make_tree(tmp_path / "linux"))
    kernel = ensure(source=archive)
    steps: list[str] = []
    assert ensure(source=archive, progress=lambda step, _: steps.append(step)) == kernel
    assert steps == []


def test_a_lost_option_fails_the_build_by_name(tmp_path: Path, cache: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(
        makefile.replace("\tcp $(KCONFIG_ALLCONFIG)", "\tgrep -v MPTCP $(KCONFIG_ALLCONFIG) >")
    )
    with pytest.raises(KernelBuildError, match="CONFIG_MPTCP=y"):
        ensure(source=tree)
    assert nothing_half_made(cache)


def test_a_compile_error_shows_the_end_of_the_log_and_where_it_is_kept(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(KernelBuildError, match=r"error: no such thing") as caught:
        ensure(source=make_tree(tmp_path / "linux", "echo 'one.c:1: error: no such thing'; false"))
    log = Path(str(caught.value).rpartition("the whole log: ")[2])
    assert "error: no such thing" in log.read_text()
    assert nothing_half_made(cache)


def test_a_full_disk_is_reported_and_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "sendfile", full)
    with pytest.raises(KernelBuildError, match="No space left on device"):
        ensure(source=make_tree(tmp_path / "linux"))
    assert nothing_half_made(cache)


def test_a_cache_that_cannot_be_made_is_reported_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(KernelBuildError, match="set PLAIT_CACHE to a folder that you can write to"):
        ensure(source=make_tree(tmp_path / "linux"))


def test_a_patch_that_does_not_apply_fails_the_build(tmp_path: Path, cache: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    (tree / "file.c").write_text("something else\n")
    with pytest.raises(KernelBuildError, match=r"0001-change\.patch"):
        ensure(source=tree)
    assert nothing_half_made(cache)


@pytest.mark.parametrize("content", ["", "all:\n\ttrue\n"])
def test_what_is_not_a_linux_tree_is_refused(tmp_path: Path, cache: Path, content: str) -> None:
    (tmp_path / "other").mkdir()
    if content:
        (tmp_path / "other" / "Makefile").write_text(content)
    with pytest.raises(KernelBuildError, match="not a Linux source tree"):
        ensure(source=tmp_path / "other")
    assert nothing_half_made(cache)


def test_missing_programs_are_named_with_the_command_that_brings_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        build.shutil, "which", lambda tool: None if tool in ("flex", "xz") else f"/bin/{tool}"
    )
    with pytest.raises(MachineError, match="`sudo apt-get install flex xz-utils`"):
        ensure(source=Path("anything"))


def test_the_progress_names_the_steps_and_counts_compilations(tmp_path: Path) -> None:
    heard: list[tuple[str, float | None]] = []
    ensure(source=make_tree(tmp_path / "linux"), progress=lambda step, share: heard.append((step, share)))
    assert [step for step, _ in heard] == [
        "unpacking linux",
        "patching",
        "configuring",
        "compiling, 1 of about 930 files: one.o",
        "linking",
        "packing the files that modules need",
    ]
    assert heard[3][1] == pytest.approx(1 / build.STEPS)


def test_a_build_that_continues_counts_on_from_the_files_that_it_has(tmp_path: Path) -> None:
    """It began at 1 of about 930 again."""
    tree = make_tree(tmp_path / "linux")
    for name in ("net/.a.o.cmd", "net/ipv4/.b.o.cmd", "net/.built-in.a.cmd", "scripts/.tool.o.cmd"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    heard: list[str] = []
    with (tmp_path / "log").open("w") as log:
        make = build._Make(tree, 1, tmp_path / "log", log, recipe.load())
        make.compile(lambda step, _share: heard.append(step), build.STEPS, build._compiled(tree))
    assert heard == [f"compiling, 3 of about {build.STEPS} files: one.o"]


CHILD = """
import sys
from pathlib import Path
from plait.kernel import ensure, recipe
recipe.LABORATORY = Path(sys.argv[1])
say = lambda step, share: print(step, flush=True)
print("kernel", ensure(source=Path(sys.argv[2]), progress=say).identity, flush=True)
"""


def child(laboratory: Path, tree: Path) -> subprocess.Popen[str]:
    """Start a process that builds `tree` and tells its progress, a line a step."""
    command = [sys.executable, "-c", CHILD, str(laboratory), str(tree)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def until(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"the process ended without saying {beginning!r}")


def test_of_two_processes_at_once_one_builds_and_the_other_waits_and_says_so(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    os.mkfifo(gate)
    tree = make_tree(tmp_path / "linux", f"read line < {gate}", f"echo built >> {log}")
    with child(recipe.LABORATORY, tree) as first:
        until(first, "compiling")
        with child(recipe.LABORATORY, tree) as second:
            assert f"process {first.pid}" in until(second, "waiting for another plait")
            gate.write_text("go\n")
            assert until(first, "kernel") == until(second, "kernel")
    assert log.read_text() == "built\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_file_and_no_process(
    tmp_path: Path, cache: Path, number: signal.Signals
) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    os.mkfifo(gate)
    os.mkfifo(started)
    tree = make_tree(tmp_path / "linux", f"echo $$$$ > {started}; read line < {gate}")
    with child(recipe.LABORATORY, tree) as process:
        compiler = os.pidfd_open(int(started.read_text()))
        process.send_signal(number)
    assert select.select([compiler], [], [], 60)[0], "it should have ended"
    os.close(compiler)
    assert list_built() == []
    ensure(source=make_tree(tmp_path / "another"))
    assert not list(cache.glob("kernels/.building-*"))
    assert len(list_built()) == 1


def test_what_make_writes_after_plait_was_killed_does_not_end_it(tmp_path: Path) -> None:
    """It would end before the signal that lets it end its compilers."""
    gate, started, survived = tmp_path / "gate", tmp_path / "started", tmp_path / "survived"
    os.mkfifo(gate)
    os.mkfifo(started)
    wait = f"trap '' TERM; echo $$$$ > {started}; read line < {gate}"
    tree = make_tree(tmp_path / "linux", f"{wait}; echo late; touch {survived}")
    with child(recipe.LABORATORY, tree) as process:
        step = os.pidfd_open(int(started.read_text()))
        process.kill()
    gate.write_text("go\n")
    assert select.select([step], [], [], 60)[0], "it should have ended"
    os.close(step)
    assert survived.exists()


def waiting(tmp_path: Path) -> str:
    """Return a step of a build that says `started`, and ends once `go` exists."""
    os.mkfifo(tmp_path / "gate")
    os.mkfifo(tmp_path / "started")
    wait = f"echo $$$$ > {tmp_path / 'started'}; read line < {tmp_path / 'gate'}"
    return f"test -e {tmp_path / 'go'} || {{ {wait}; }}"


def end(pid: int) -> None:
    """End a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_of_an_archive_goes_on_where_it_was(
    tmp_path: Path, cache: Path, number: signal.Signals
) -> None:
    log = tmp_path / "log"
    compile_once = f"test -e first.o || {{ touch first.o; echo first >> {log}; }}"
    archive = make_archive(make_tree(tmp_path / "linux", compile_once, waiting(tmp_path)))
    with child(recipe.LABORATORY, archive) as process:
        compiler = int((tmp_path / "started").read_text())
        process.send_signal(number)
    end(compiler)
    assert list_built() == []
    (tmp_path / "go").touch()
    assert (ensure(source=archive).version, log.read_text()) == ("6.12.7", "first\n")
    assert not list(cache.glob("kernels/.unfinished-*"))


def test_an_interrupted_build_is_forgotten_once_the_recipe_or_the_source_differs(
    tmp_path: Path, cache: Path
) -> None:
    archive = make_archive(make_tree(tmp_path / "linux", waiting(tmp_path), "test ! -e first.o"))
    with child(recipe.LABORATORY, archive) as process:
        compiler = int((tmp_path / "started").read_text())
        process.kill()
    end(compiler)
    (left,) = cache.glob("kernels/.unfinished-*/source")
    (left / "first.o").touch()
    (tmp_path / "go").touch()
    (recipe.LABORATORY / "config" / "laboratory.config").write_text("CONFIG_HZ=500\n")
    assert ensure(source=archive).hz == 500
    (cache / "kernels" / ".unfinished-0").mkdir()
    ensure(source=make_archive(make_tree(tmp_path / "another")))
    assert not list(cache.glob("kernels/.unfinished-*"))


def test_a_download_that_is_not_the_pinned_file_is_never_built(tmp_path: Path, cache: Path) -> None:
    served = make_archive(make_tree(tmp_path / "linux"))
    pinned = fetch.Pinned(served.as_uri(), "0" * 64)
    sources = Sources((), (("kernel.org", lambda folder, tell: fetch.download(pinned, folder, tell)),))
    with pytest.raises(KernelBuildError, match="but plait expects"):
        ensure(sources=sources)
    assert nothing_half_made(cache)
