"""A published bundle is checked from its unpacked folder on the real kernel, and a forged value fails the check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.guest

LIMIT_S = 300
AUTHOR = ("--author", "Doe, Jane; 0000-0002-1825-0097", "--licence", "CC-BY-4.0")


def plait(folder: Path, *words: str) -> tuple[int, str]:
    """Return the exit code of a command in a folder, and what it prints."""
    ended = subprocess.run(
        [sys.executable, "-c", "from plait.cli import main; main()", *words],
        cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    return ended.returncode, ended.stdout + ended.stderr


def test_the_check_of_an_unpacked_bundle_agrees_until_a_value_is_forged(tmp_path: Path) -> None:
    assert plait(tmp_path, "run", "two-paths", "--repeat", "2", "--out", "study")[0] == 0
    code, text = plait(tmp_path, "bundle", "study", *AUTHOR)
    assert code == 0, text
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(tmp_path / "study.plait.zip") as archive:
        archive.extractall(folder)
    code, text = plait(folder, "verify", ".")
    assert (code, "4 same bytes (4 trials)" in text) == (0, True), text
    code, text = plait(folder, "verify", ".", "--claim", "1")
    assert (code, "claim 1 holds: here 1.9" in text) == (0, True), text

    artefact = json.loads((folder / "artefact.json").read_text())
    artefact["claims"][0] |= {"value": 2.9, "low": 2.8, "high": 3.0}
    (folder / "artefact.json").write_text(json.dumps(artefact))
    code, text = plait(folder, "verify", ".", "--claim", "1")
    assert (code, "claim 1 DOES NOT HOLD: here 1.9" in text) == (1, True), text
    record = json.loads((folder / "bundle.json").read_text())
    record["trials"][0]["digest"] = "sha256:" + "0" * 64
    (folder / "bundle.json").write_text(json.dumps(record))
    code, text = plait(folder, "verify", ".")
    assert (code, "plan, kernel and agent are the same" in text) == (1, True), text
