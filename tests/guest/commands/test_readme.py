"""The README's commands print what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

pytestmark = pytest.mark.guest

README = Path(__file__).parents[3] / "README.md"
PLAIT = Path(sys.executable).parent / "plait"
LIMIT_S = 300


def _blocks(language: str) -> list[str]:
    """Return the fenced blocks of the README in this language."""
    tokens = MarkdownIt().parse(README.read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def _words(text: str) -> str:
    """Return the words of `text` on one line, because the terminal's width decides where lines break."""
    return " ".join(text.split())


def test_the_commands_of_the_readme_print_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "fibre.yaml").write_text(_blocks("yaml")[0], encoding="utf-8")
    sessions = [block for block in _blocks("") if block.startswith("$ ")]
    assert len(sessions) == 2
    for session in sessions:
        for arguments, shown in re.findall(
            r"^\$ \.venv/bin/plait (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE
        ):
            done = subprocess.run(
                [PLAIT, *arguments.split()], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=LIMIT_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            printed = _words(done.stdout)
            for part in shown.split(" ..\n"):
                assert _words(part) in printed, (arguments, done.stdout)
