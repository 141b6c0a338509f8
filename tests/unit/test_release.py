"""The release script takes its notes from the changes, refuses an unfit tree, and a dry run creates no tag."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plait.cache import alone

ROOT = Path(__file__).parents[2]
CARGO = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
CHANGES = (
    "# Changes\n\n## Unreleased\n\nNew.\n\n"
    "## 0.2.0 (2026-12-01)\n\n- One.\n\n### More\n\n- Two.\n\n## 0.1.0\n\n- Old.\n"
)


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "dist"))
    import release

    yield release
    for name in ("release", "build", "bill", "kernel_package"):
        sys.modules.pop(name, None)


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_notes_are_the_section_of_the_version(release: Any) -> None:
    assert release.notes(CHANGES, "0.2.0") == "# plait 0.2.0\n\n- One.\n\n### More\n\n- Two.\n"
    with pytest.raises(SystemExit, match=r"no section `## 0\.3\.0`; rename `## Unreleased`"):
        release.notes(CHANGES, "0.3.0")


def test_a_changed_tree_and_a_used_version_are_refused(release: Any, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one\n")
    with pytest.raises(SystemExit, match=r"(?s)not committed.*file"):
        release.check(tmp_path, "0.2.0")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "one")
    release.check(tmp_path, "0.2.0")
    git(tmp_path, "tag", "v0.2.0")
    with pytest.raises(SystemExit, match=r"v0\.2\.0 exists"):
        release.check(tmp_path, "0.2.0")


@pytest.mark.users  # the user that `make test` makes has no cargo
@pytest.mark.skipif(CARGO is None, reason="NOT TESTED: the list of crates needs cargo")
def test_a_dry_run_leaves_all_files_with_their_sums_and_no_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    before = git(ROOT, "tag", "--list")
    out = tmp_path / "dist"
    command = [sys.executable, ROOT / "tools/dist/release.py", "--dry-run", "--out", out, "--without-kernel"]
    with alone("distributions"):  # other tests pack the same tree
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert git(ROOT, "tag", "--list") == before
    names = {path.name for path in out.iterdir()}
    assert {"NOTES.md", "SHA256SUMS", "plait-0.1.0.cdx.json"} <= names
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True)
    assert len((out / "SHA256SUMS").read_text().splitlines()) == len(names) - 1
    components = {
        part["name"] for part in json.loads((out / "plait-0.1.0.cdx.json").read_text())["components"]
    }
    assert {"polars", "seccompiler", "arrow-array"} <= components
