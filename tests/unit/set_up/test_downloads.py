"""Set-up runs nothing that it downloaded before it has checked the SHA-256, and installs fixed versions."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").replace("\\\n", " ")
REQUIREMENTS = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
SETUP = [ROOT / "Makefile", *(path for path in (ROOT / "tools").iterdir() if path.is_file())]


def canonical(requirement: str) -> str:
    """Return the name of a requirement as the Python packaging specification normalises it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def test_each_requirement_has_one_version_and_its_hashes() -> None:
    assert len(REQUIREMENTS) > 50
    for requirement in REQUIREMENTS:
        assert re.fullmatch(
            r"[a-z0-9-]+==[^ ;]+( ; [^-]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", requirement
        ), requirement[:80]


def test_all_that_setup_needs_is_among_the_requirements() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    needed = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *extras["docs"],
        *extras["dev"],
    ]
    locked = {canonical(requirement) for requirement in REQUIREMENTS}
    assert {canonical(each) for each in needed} - {"plait"} <= locked, "constraints.txt says how to add it"


def test_setup_installs_python_packages_in_one_place_and_by_their_hashes() -> None:
    installing = {path.name: path.read_text(encoding="utf-8") for path in SETUP}
    assert [name for name, text in installing.items() if re.search(r"\bpip\b.* install", text)] == [
        "python-packages"
    ]
    assert "--require-hashes" in installing["python-packages"]
    assert "--no-build-isolation" in installing["python-packages"], (
        "pip would download hatchling without a hash"
    )


def test_setup_pipes_nothing_into_a_shell() -> None:
    for path in SETUP:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s+(ba|da)?sh\b", text), f"{path.name} pipes something into a shell"


def test_another_rustup_than_the_expected_one_does_not_run(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (
        "bash",
        "dirname",
        "sed",
        "uname",
        "mktemp",
        "rm",
        "sha256sum",
        "chmod",
        "sort",
        "head",
        "cut",
    ):
        (programs / name).symlink_to(
            next(path for path in map(Path, ("/usr/bin", "/bin")) if (path / name).exists()) / name
        )
    (programs / "curl").write_text(
        f"#!{sys.executable}\n"
        "import sys, pathlib\n"
        "target = sys.argv[sys.argv.index('-o') + 1]\n"
        f"pathlib.Path(target).write_text('#!/bin/sh\\necho >{tmp_path}/ran\\n')\n"
    )
    (programs / "curl").chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools/rust"],
        env={"PATH": str(programs), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "another SHA-256" in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["programs"], "it ran, or it is still there"
