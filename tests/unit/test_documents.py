"""An index reaches every page of the documents, and every relative link leads to a file."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COLUMNS = 100
INDEXES = (DOCS / "README.md", DOCS / "gallery" / "README.md", DOCS / "decisions" / "README.md")


def _tracked_pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).is_file()]


@cache
def _links_and_anchors(page: Path) -> tuple[list[str], set[str]]:
    """Return the targets of a page's links and images, and the anchors of its headings (as GitHub makes them)."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(page.read_text(encoding="utf-8"))
    targets: list[str] = []
    anchors: set[str] = set()
    for before, token in pairwise(tokens):
        children = token.children or []
        links = [child.attrGet("href") or child.attrGet("src") for child in children]
        targets += [str(link) for link in links if link]
        if before.type == "heading_open":
            text = "".join(child.content for child in children).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            anchors.add(next(s for s in [slug, *(f"{slug}-{n}" for n in range(1, 99))] if s not in anchors))
    return targets, anchors


def _linked_pages(page: Path) -> set[Path]:
    targets, _ = _links_and_anchors(page)
    return {(page.parent / target.partition("#")[0]).resolve() for target in targets if "://" not in target}


@pytest.mark.parametrize("page", _tracked_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_and_anchor_of_a_page_resolves(page: Path) -> None:
    for target in _links_and_anchors(page)[0]:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{target}: there is no such file"
        if anchor:
            assert anchor in _links_and_anchors(linked)[1], f"{target}: no heading has this anchor"


@pytest.mark.parametrize("page", _tracked_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_and_blocks_of_code_are_as_narrow_as_a_screen(page: Path) -> None:
    """The formatter wraps all else; what a terminal shows (`console`) stays as it is."""
    lines = page.read_text(encoding="utf-8").splitlines()
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse("\n".join(lines))
    blocks = [token for token in tokens if token.type == "table_open"]
    blocks += [token for token in tokens if token.type == "fence" and token.info != "console"]
    numbers = {number for token in blocks for number in range(*(token.map or (0, 0)))}
    wide = [f"{number + 1}: {lines[number]}" for number in sorted(numbers) if len(lines[number]) > COLUMNS]
    assert not wide, "split the table, transpose it, or make it a list"


def test_an_index_lists_every_page() -> None:
    pages = {page for page in _tracked_pages() if page.is_relative_to(DOCS)}
    listed = set().union(*(_linked_pages(index) for index in INDEXES))
    missing = sorted(str(page.relative_to(DOCS)) for page in pages - listed - {INDEXES[0]})
    assert not missing, "add a line for each to docs/README.md, or to the README.md of its folder"


def test_the_main_index_lists_every_page_that_has_no_index_of_its_own() -> None:
    with_index = {index.parent for index in INDEXES[1:]}
    pages = {page for page in DOCS.rglob("*.md") if page.parent not in with_index} | set(INDEXES[1:])
    assert pages - {INDEXES[0]} <= _linked_pages(INDEXES[0])


def test_every_page_that_code_or_a_scenario_names_exists() -> None:
    named = subprocess.run(
        ["git", "grep", "-ohE", r"docs/[a-z0-9/-]+\.md", "--", ":!*.md", ":!tests/unit/test_documents.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pages = set(named.stdout.split())
    assert len(pages) > 5
    assert {page for page in pages if not (ROOT / page).is_file()} == set()


def test_an_anchor_is_the_one_that_github_makes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# `plait explain`: why?\n\n## Mininet's own (2)\n\n## Again\n\n## Again\n", encoding="utf-8"
    )
    anchors = _links_and_anchors(page)[1]
    assert anchors == {"plait-explain-why", "mininets-own-2", "again", "again-1"}


def test_a_page_leads_from_a_symptom_to_the_setting_in_at_most_seven_commands() -> None:
    """Each command of a console is run by `tests/guest/programs/test_how_to_programs.py`."""
    run = (ROOT / "tests/guest/programs/test_how_to_programs.py").read_text(encoding="utf-8")
    pages = [page for page in (DOCS / "how-to").glob("*.md") if "**Symptom.**" in page.read_text("utf-8")]
    assert len(pages) >= 4
    for page in pages:
        blocks = re.findall(r"^```(console|sh)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        commands = [
            line
            for kind, block in blocks
            for line in block.splitlines()
            if kind == "sh" or line.startswith("$ ")
        ]
        assert 1 < len(commands) <= 7, (page.name, commands)
        assert f'"{page.stem}"' in run, page.name
