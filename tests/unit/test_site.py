"""The documentation site builds without a warning, and has a page for every document and every verb."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from plait.cli import app

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, ROOT / "tools/site/build.py", "--out", folder],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_document_is_a_page_of_the_site(site: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "docs/*.md"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    pages = {Path(name).with_suffix(".html") for name in listed.stdout.split()}
    assert {str(page) for page in pages if not (site / page).is_file()} == set()


def test_the_commands_page_has_every_option_of_every_verb(site: Path) -> None:
    page = (site / "docs/reference/commands.html").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]*>", "", page)
    pending = [("plait", typer.main.get_command(app))]
    while pending:
        name, command = pending.pop()
        inner = getattr(command, "commands", {})
        pending += [(f"{name} {verb}", of_verb) for verb, of_verb in inner.items()]
        if inner or command.hidden:
            continue
        assert name in words
        for parameter in command.params:
            assert parameter.hidden or parameter.opts[0] in words or parameter.metavar in words


def test_the_python_page_documents_the_public_functions(site: Path) -> None:
    page = (site / "docs/reference/python-api.html").read_text(encoding="utf-8")
    for name in ("plait.load", "plait.run", "plait.open", "plait.api.study.Study"):
        assert f'id="{name}"' in page, f"{name} is missing"


def test_a_page_loads_nothing_from_another_machine(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="(https?:[^"]*)"', text)
        assert not loaded, f"{path.name} loads {loaded[0]}"
