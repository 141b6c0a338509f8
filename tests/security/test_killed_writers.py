"""A process that is killed (SIGKILL) while it writes leaves the old file or the new one, and nothing else for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

import plait
from fake_engine import FakeEngine
from plait.files import Folder
from plait.study.bundle.pack import write_bundle
from result_folders import fresh_cache

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
title: One link
network: {hosts: [a, b], links: {a-b: {}}}
traffic: [{transfer: {from: a, to: b, bytes: 10KB}}]
"""


DEADLY = """\
import os, signal, sys, zipfile
from pathlib import Path
from plait import whole_files
from plait.files import Folder

owner, name, call, moment = sys.argv[1:5]
owner = {"os": os, "archive": zipfile.ZipFile, "whole_files": whole_files}[owner]
function, calls = getattr(owner, name), []

def deadly(*args, **more):
    calls.append(name)
    if (len(calls), moment) == (int(call), "before"):
        os.kill(os.getpid(), signal.SIGKILL)
    result = function(*args, **more)
    if len(calls) == int(call):
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, deadly)
"""
BUNDLE = """
from plait.study.bundle.pack import write_bundle
write_bundle(Path(sys.argv[5]), Path(sys.argv[6]))
"""
REPLACE = """
Folder(Path(sys.argv[5])).write("file", b"new")
"""


def killed(work: str, point: str, *places: Path) -> bool:
    """Do the work in a process, which SIGKILL ends before or after a call of a function; return whether it did."""
    words = [sys.executable, "-c", DEADLY + work, *point.split(), *map(str, places)]
    return subprocess.run(words, check=False, timeout=120).returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    (folder / "one.yaml").write_text(SCENARIO)
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, folder / "cache")
        patch.chdir(folder)
        plait.run("one.yaml", out="results", engine=FakeEngine(), progress=False)
    return folder / "results"


@pytest.mark.parametrize(
    "point",
    [
        "archive writestr 1 before",
        "archive writestr 4 before",
        "whole_files _give_name 1 before",
        "os link 1 before",
        "os link 1 after",
    ],
)
def test_a_killed_bundle_leaves_nothing_but_a_whole_bundle(point: str, results: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.plait.zip"
    assert killed(BUNDLE, point, results, target)
    assert list(tmp_path.iterdir()) == ([target] if "after" in point else [])
    if target.exists():
        with zipfile.ZipFile(target) as archive:
            assert archive.testzip() is None
        target.unlink()
    write_bundle(results, target)
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("point", "content"),
    [
        ("whole_files _give_name 1 before", b"old"),
        ("os link 2 before", b"old"),
        ("os link 2 after", b"old"),
        ("os replace 1 before", b"old"),
        ("os replace 1 after", b"new"),
    ],
)
def test_a_killed_replacement_leaves_one_of_both_and_the_next_one_removes_the_rest(
    point: str, content: bytes, tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    folder.write("file", b"old")
    assert killed(REPLACE, point, tmp_path)
    assert folder.read("file") == content
    folder.write("file", b"newer")
    assert (folder.names(), folder.read("file")) == (["file"], b"newer")
