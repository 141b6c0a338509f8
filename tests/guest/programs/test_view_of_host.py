"""Programs in a guest see of this machine what they need to run and what the user names, and not the user's home."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from plait.engine.host_view import HostView, view_for, view_for_programs
from plait.engine.machine.needed_files import files_of
from plait.plan.resolve import resolve
from plait.scenario import parse

pytestmark = [pytest.mark.guest, pytest.mark.users]

PLAIT = Path(sys.executable).parent / "plait"
SCENARIO = """
title: A program that reads a file
network: {hosts: [h1, h2], links: {h1-h2: {delay: 1ms}}}
programs:
  - {name: reader, node: h1, wait: true, run: [cat, FILE]}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home folder with a key, and two projects."""
    folder = tmp_path / "home"
    for name in (".ssh", "project", "other"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text(f"{name}\n")
    (folder / "notes").write_text("notes\n")
    os.mkfifo(folder / "other" / "fifo")
    return folder


def run(*words: str, home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "PLAIT_CACHE": str(cache())}
    return subprocess.run(
        [str(PLAIT), *words], capture_output=True, text=True, timeout=120, check=False,
        env=environment, cwd=folder, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def cache() -> Path:
    from plait.cache import cache_root

    return cache_root()


def test_a_program_sees_the_current_folder_and_nothing_else_of_the_home(home: Path) -> None:
    script = f"cat file; cat {home}/.ssh/file; ls -A {home}"
    done = run("exec", "--", "sh", "-c", script, home=home, folder=home / "project")
    assert done.stdout.splitlines() == ["project", "project"], done.stderr
    assert f"cat: {home}/.ssh/file: No such file or directory" in done.stderr


def test_the_error_of_a_file_that_programs_do_not_see_says_how_to_add_it(home: Path) -> None:
    other = home / "other"
    (home / "project" / "script").write_text(f"cat {other}/file\n")
    done = run("exec", "--", "sh", "script", home=home, folder=home / "project")
    assert done.returncode == 1
    assert f"plait: programs do not see {other}/file of this machine; add --ro {other}" in done.stderr
    done = run("exec", "--ro", str(other), "--", "sh", "script", home=home, folder=home / "project")
    assert done.stdout == "other\n", done.stderr
    write = f"echo x > {other}/file"
    run("exec", "--ro", str(other), "--", "sh", "-c", write, home=home, folder=home / "project")
    assert (other / "file").read_text() == "other\n"


def test_a_program_in_the_home_folder_does_not_see_the_home_and_plait_says_so(home: Path) -> None:
    done = run("exec", "--", "ls", "-A", home=home, folder=home)
    assert done.stdout == "", "an empty folder in place of the home"
    assert f"programs do not see {home}, which contains a home folder" in done.stderr


def test_a_study_in_the_home_folder_says_once_that_its_programs_do_not_see_it(home: Path) -> None:
    scenario = home / "project" / "study.yaml"
    scenario.write_text(SCENARIO.replace("FILE", "/etc/hostname"))
    words = ("run", str(scenario), "--repeat", "2", "--fresh", "--out", str(home / "out"))
    done = run(*words, home=home, folder=home)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"programs do not see {home}, which contains a home folder") == 1
    assert "programs do not see" not in run(*words, home=home, folder=home / "project").stderr


def test_a_command_line_shows_what_it_names_but_no_hidden_folder_of_the_home(home: Path) -> None:
    words = ["cat", f"{home}/other/file", f"{home}/.ssh/file", f"--notes={home}/notes"]
    done = run("exec", "--", *words[:3], home=home, folder=home / "project")
    assert done.stdout == "other\n"
    assert f"programs do not see {home}/.ssh/file" in done.stderr


def test_a_program_that_is_not_seen_is_not_reported_as_missing(home: Path) -> None:
    program = home / ".ssh" / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = run("exec", "--", str(program), home=home, folder=home / "project")
    assert done.returncode == 127
    assert f"programs do not see {program} of this machine; add --ro {program.parent}" in done.stderr


def test_a_scenario_shows_its_programs_no_hidden_file_either(home: Path) -> None:
    key = Path.home() / ".plait-test-key"
    scenario = home / "project" / "study.yaml"
    scenario.write_text(SCENARIO.replace("FILE", str(key)))
    key.write_text("secret\n")
    try:
        words = ("run", str(scenario), "--repeat", "1", "--fresh", "--out", str(home / "out"))
        done = run(*words, home=Path.home(), folder=home / "project")
        assert done.returncode == 1
        assert f"programs do not see {key} of this machine; add --ro {key}" in done.stderr
        done = run(*words, "--ro", str(key), home=Path.home(), folder=home / "project")
        assert done.returncode == 0, done.stderr
    finally:
        key.unlink()


def test_a_machine_copies_no_file_that_programs_do_not_see(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")
    monkeypatch.setattr("plait.engine.machine.host_files.PRIVATE", ())
    for path, shown in ((home / ".ssh" / "file", False), (home / "other" / "file", True)):
        programs = resolve(parse(SCENARIO.replace("FILE", str(path)), "t.yaml"), 1).programs
        copied = files_of(programs).files
        assert copied is not None
        assert (f"host{path}" in {entry.name for entry in copied.entries()}) == shown
        assert view_for_programs(programs).shows(path) == shown


def test_root_shows_no_home_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = tmp_path / "homes"
    alice = homes / "alice"
    (alice / ".ssh").mkdir(parents=True)
    (alice / "project").mkdir()
    real = pwd.getpwnam

    def with_alice(name: str) -> pwd.struct_passwd:
        user = ("alice", "x", 1000, 1000, "", str(alice), "/bin/sh")
        return pwd.struct_passwd(user) if name == "alice" else real(name)

    monkeypatch.setattr(pwd, "getpwnam", with_alice)
    for folder, shown in ((homes, False), (alice, False), (alice / ".ssh", False), (alice / "project", True)):
        monkeypatch.chdir(folder)
        assert view_for().shows(folder) == shown, folder
        monkeypatch.chdir("/")
        assert view_for([f"--key={folder}"]).shows(folder) == shown, folder


def test_no_path_that_a_stranger_names_makes_an_automounter_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "net"
    unmounted, mounted = folder / "unmounted" / "file", folder / "mounted" / "file"
    for path in (unmounted, mounted):
        path.parent.mkdir(parents=True)
        path.write_text("")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        f"2 1 0:1 / {folder} rw - autofs -hosts rw\n"
        f"3 2 0:2 / {folder}/mounted rw shared:1 - nfs4 server:/ rw\n"
        f"4 1 0:3 / {folder}/mounted\\040too rw - autofs -hosts rw\n"
    )
    monkeypatch.setattr("plait.engine.host_view.MOUNTS", mounts)
    (tmp_path / "link").symlink_to("net/unmounted")
    (tmp_path / "way").symlink_to(tmp_path / "link")
    (tmp_path / "loop").symlink_to("loop")
    looks: list[Path] = []
    for name in ("exists", "resolve", "is_dir"):
        method = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda path, method=method: looks.append(path) or method(path))
    hidden = [
        str(unmounted), f"/usr/..{unmounted}", f"{tmp_path}/link/file", f"{tmp_path}/way/../unmounted/file",
        f"{tmp_path}/loop/file",
    ]  # fmt: skip
    view = view_for([*hidden, str(mounted)], directory=Path("/usr"))
    assert (view.shows(mounted), view.shows(unmounted)) == (True, False)
    advice = [HostView(("/usr",)).hidden_path(f"cat: {path}: No such file") for path in (mounted, *hidden)]
    assert [text is None for text in advice] == [False, True, True, True, True, True]
    assert mounted in looks
    assert not any(path.is_relative_to(unmounted.parent) for path in looks)
    assert not any(path.is_relative_to(tmp_path / name) for path in looks for name in ("link", "way"))


def test_a_view_knows_what_it_shows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    view = HostView(("/usr", "/etc"))
    assert view.shows(Path("/usr/bin/sh"))
    assert not view.shows(Path("/usrs"))
    assert view.leads_to(Path("/"))
    assert not view.leads_to(Path("/us"))
    monkeypatch.chdir(home)
    assert not view_for().shows(home)
    assert not view_for([str(home)]).shows(home / "notes")
    monkeypatch.chdir("/")
    assert not view_for(["/"]).shows(home)
    assert view_for((), [home]).shows(home / "notes")
