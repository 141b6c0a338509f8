"""What a machine gets of this machine's files for its programs, and which programs it refuses."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_engine import FakeEngine
from plait.engine.host_view import HostView
from plait.engine.machine import host_files
from plait.engine.machine.host_files import HostFiles, TooManyFilesError
from plait.engine.machine.needed_files import NeededFiles, ProgramFiles, files_of, no_mptcp
from plait.engine.support import uses
from plait.errors import ScenarioError
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.preflight.engines import refuse_what_engines_lack
from plait.study.study import plan_study

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.engine.support import Unsupported
    from plait.plan.model.plan import Plan

TEXT = """\
title: One program
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms}}}
programs:
  - {name: one, node: a, wait: true, run: RUN}
"""


def plan_of(run: str, text: str = TEXT) -> Plan:
    return resolve(expand(parse(text.replace("RUN", run), "t.yaml"))[0].scenario, 1)


def needed(run: str, text: str = TEXT) -> set[str]:
    """Return the paths that a machine gets for a program."""
    copied = files_of(plan_of(run, text).programs)
    assert not copied.lacks
    assert copied.files is not None
    return {f"/{entry.name.partition('/')[2]}" for entry in copied.files.entries()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that programs see, although guests have a /tmp of their own."""
    monkeypatch.setattr(host_files, "PRIVATE", ())
    return tmp_path.resolve()


def test_a_file_has_its_path_and_the_links_that_lead_to_it_and_only_python_sees_times(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real/tool").write_text("content")
    (folder / "real/tool").chmod(0o4755)
    os.utime(folder / "real/tool", (0, 1_600_000_000))
    os.utime(folder / "real", (0, 1_500_000_000))
    (folder / "real/module.py").touch()
    os.utime(folder / "real/module.py", (0, 1_600_000_000))
    (folder / "alias").symlink_to("real")
    (folder / "tool").symlink_to(folder / "alias/tool")
    files = HostFiles()
    assert files.add(f"{folder}/tool") == folder / "real/tool"
    assert files.add(f"{folder}/real/module.py") is not None
    made = {entry.name: entry for entry in files.entries()}
    copy = made[f"host{folder}/real/tool"]
    assert (copy.content, copy.mode) == (b"content", stat.S_IFREG | 0o755)
    times = {entry.mtime for name, entry in made.items() if not name.endswith(".py")}
    assert times == {0}, "or a touched file would change the results"
    assert made[f"host{folder}/real/module.py"].mtime == 1_600_000_000
    assert made[f"host{folder}/alias"].content == b"real"
    assert stat.S_ISLNK(made[f"host{folder}/tool"].mode)
    names = list(made)
    assert names == sorted(names), "a folder comes before what is in it"


def test_what_a_guest_of_the_engine_virtual_does_not_see_stays_outside(folder: Path) -> None:
    (folder / "mounted").mkdir()
    (folder / "mounted/secret").write_text("x")
    (folder / "link").symlink_to("/proc/self/environ")
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    files = HostFiles([f"{folder}/mounted"])
    for path in ("/proc/self/environ", "/dev/null", "/sys/kernel", "/run", "/usr/../proc/version"):
        assert files.add(path) is None, path
    for name in ("link", "mounted/secret", "fifo", "loop", "nothing", "mounted"):
        assert files.add(f"{folder}/{name}") is None, name
    assert all(stat.S_IFMT(entry.mode) != stat.S_IFREG or not entry.content for entry in files.entries())


def test_the_folders_of_the_guest_are_not_those_of_this_machine(tmp_path: Path) -> None:
    files = HostFiles()
    for path in ("/tmp", "/var/tmp/x", "/mnt"):  # noqa: S108 - that is what it tests
        assert files.covers(path)
    assert not files.covers("/tmpx")  # noqa: S108 - as above
    assert {entry.name for entry in files.entries()} >= {
        "host/tmp",
        "host/var/tmp",
        "host/dev",
        "host/etc/hosts",
    }


def test_a_file_that_changes_meanwhile_is_refused(folder: Path) -> None:
    (folder / "tool").write_text("long")
    files = HostFiles()
    files.add(f"{folder}/tool")
    (folder / "tool").write_text("longer")
    with pytest.raises(OSError, match="changed meanwhile"):
        files.entries()


def test_files_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_files, "MAX_BYTES", 100)
    (folder / "large").write_bytes(b"1" * 101)
    with pytest.raises(TooManyFilesError):
        HostFiles().add(f"{folder}/large")
    monkeypatch.setattr(host_files, "MAX_FILES", 10)
    for number in range(10):
        (folder / str(number)).touch()
    with pytest.raises(TooManyFilesError):
        list(HostFiles().add_tree(str(folder)))


def test_a_program_gets_its_loader_and_libraries() -> None:
    files = needed("[ip, link]")
    assert any(path.endswith("/ip") for path in files)
    assert any("/libc.so.6" in path for path in files)
    assert any("ld-linux" in path for path in files)
    assert "/etc/passwd" in files
    assert "/etc/shadow" not in files


def test_a_shell_gets_what_its_line_names() -> None:
    files = needed("'sleep 1; cat /etc/hostname | head -c 3'")
    for name in ("sleep", "cat", "head", "sh"):
        assert any(path.endswith(f"bin/{name}") for path in files), name
    assert "/etc/hostname" in files
    assert not any(path.endswith("bin/ls") for path in files)


def test_a_script_gets_its_interpreter_and_what_it_imports(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "#!/usr/bin/env python3\nimport json, beside\nfrom package.part import x\n"
    )
    (folder / "mine.py").chmod(0o755)
    (folder / "beside.py").write_text("import third\nsyntax error here\n")
    (folder / "unused.py").touch()
    (folder / "package/inner").mkdir(parents=True)
    (folder / "package/inner/part.py").touch()
    files = needed(f"[{folder}/mine.py]")
    assert {f"{folder}/beside.py", f"{folder}/package/inner/part.py"} <= files
    assert f"{folder}/unused.py" not in files
    for name in ("bin/env", "/json/decoder.py", "/encodings/utf_8.py"):
        assert any(path.endswith(name) for path in files), name
    assert not any("/test/" in path and "python3" in path for path in files)


def test_a_virtual_environment_brings_the_packages_that_a_program_imports(folder: Path) -> None:
    real = Path(_system_python())
    packages = folder / f"venv/lib/{real.name}/site-packages"
    for name in ("wanted", "other"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").touch()
    (folder / "venv/bin").mkdir()
    (folder / "venv/bin/python").symlink_to(real)
    (folder / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    files = needed(f"[{folder}/venv/bin/python, -c, 'import wanted']")
    assert {f"{folder}/venv/pyvenv.cfg", f"{packages}/wanted/__init__.py"} <= files
    assert f"{packages}/other/__init__.py" not in files


def _system_python() -> str:
    for path in sorted(Path("/usr/bin").glob("python3.*")):
        if path.name[8:].isdigit():
            return str(path)
    pytest.skip("needs /usr/bin/python3; see docs/limitations.md")


def test_a_folder_in_a_command_comes_whole_and_one_in_a_shell_does_not(folder: Path) -> None:
    (folder / "site/deep").mkdir(parents=True)
    (folder / "site/deep/page.html").write_text("<p>")
    page = f"{folder}/site/deep/page.html"
    assert page in needed(f"[ls, {folder}/site]")
    assert page in needed(f"[ls, --directory={folder}/site]")
    assert page not in needed(f"'ls {folder}/site'")


def without_its_library(folder: Path) -> Path:
    """Return a program that needs a library that no machine has."""
    content = Path("/bin/true").read_bytes()
    assert b"\0libc.so.6\0" in content
    broken = folder / "broken"
    broken.write_bytes(content.replace(b"\0libc.so.6\0", b"\0libz.no.6\0"))
    broken.chmod(0o755)
    return broken


def lacks(plan: Plan) -> list[Unsupported]:
    return [*files_of(plan.programs).lacks, *no_mptcp(plan, "6.12.1")]


def refusal(text: str, monkeypatch: pytest.MonkeyPatch, problems: Callable[[Plan], list[Unsupported]]) -> str:
    study = plan_study(parse(text, "t.yaml"), "t")
    engine = FakeEngine()
    monkeypatch.setattr(engine, "unsupported", problems)
    with pytest.raises(ScenarioError) as refused:
        refuse_what_engines_lack(study, {case.engine: engine for case in study.cases})
    return str(refused.value)


def test_a_missing_library_is_refused_with_its_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = without_its_library(folder)
    message = refusal(TEXT.replace("RUN", f"[{broken}]"), monkeypatch, lacks)
    assert message.startswith("t.yaml:4:")
    assert f"{broken} needs the library libz.no.6, which is not on this machine" in message


def test_a_command_with_a_large_folder_is_refused_with_its_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate(host_files.MAX_BYTES + 1)
    message = refusal(TEXT.replace("RUN", f"[ls, {folder}]"), monkeypatch, lacks)
    assert message.startswith("t.yaml:4:")
    assert "takes at most 256 MiB in 20000 files for programs" in message


@pytest.mark.parametrize(("version", "expected"), [("6.1.0-9-amd64", 1), ("6.6.1", 0), ("7.0.0", 0)])
def test_a_kernel_without_the_hook_gives_programs_no_mptcp(version: str, expected: int) -> None:
    plan = plan_of("[ip, link]", TEXT + "transport: mptcp\n")
    assert len(list(no_mptcp(plan, version))) == expected
    assert not list(no_mptcp(plan_of("[ip, link]", TEXT + "transport: tcp\n"), version))


def test_the_time_of_system_calls_is_asked_for_only_by_the_scenario() -> None:
    asks = [
        any(use.feature == "system call time" for use in uses(plan_of("[ip, link]", TEXT + more)))
        for more in ("", "system_call: 5us\n")
    ]
    assert asks == [False, True]


def test_memory_grows_with_the_files_in_steps() -> None:
    assert ProgramFiles(None).memory_mib == 0
    needs = NeededFiles(HostView())
    needs.files.bytes = 33 << 20
    assert ProgramFiles(needs.files).memory_mib == 128
    assert ProgramFiles(None).archive() == b""
