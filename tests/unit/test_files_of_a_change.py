"""The list in CONTRIBUTING.md of the files that each kind of change touches is true, and none of them grows.

One existing exemplar stands for each kind of change: the files that name it are those that a new one touches.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEARCHED = ("src", "agent", "kernel")


@dataclass(frozen=True)
class Change:
    """A kind of change, with the exemplar that stands for it."""

    pattern: str
    """What a file that belongs to the exemplar contains."""
    most: int
    """The number of files besides documentation. It may only shrink."""
    beside: frozenset[str] = frozenset()
    """Files that a new one touches although they do not name the exemplar, as a trial in a copy showed."""
    users: frozenset[str] = frozenset()
    """Files that use the exemplar, or mean something else by the word; a new one would not touch them."""


CHANGES = {
    "link condition": Change(
        r"\bcorrupt(_ratio)?\b|(\b|_)CORRUPT\b",
        most=6,
        beside=frozenset({"kernel/links/plait_line.h"}),  # the number of generators
        users=frozenset(
            {
                "src/plait/importers/netns.py",  # names what it does not carry over
                "src/plait/kernel/checkout.py",  # a damaged download
                "src/plait/testing/hunt/netlink.py",  # damaged memory
            }
        ),
    ),
    "kind of traffic": Change(
        r"\bon_off\b|\bOnOff\b",
        most=4,
        users=frozenset(
            {
                "src/plait/scenario/spelling.py",  # spellings of the last version
                "src/plait/scenario/templates/two-paths.yaml",
            }
        ),
    ),
    "cause": Change(
        r"\back-path\b",
        most=1,
    ),
    "metric": Change(r"\bprobe_loss_ratio\b", most=1),
    "kind of figure": Change(r"\bheat[_-]map\b|\bHeatMap", most=4),
}


def listed() -> dict[str, list[str]]:
    """Return the files in CONTRIBUTING.md by the kind of change."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## What a change touches\n")[1].split("\n## ")[0]
    items = re.findall(r"^- \*\*(.+?)\*\*(.+?)(?=^- |\Z)", section, flags=re.MULTILINE | re.DOTALL)
    return {name: re.findall(r"`((?:src|agent|kernel)/[^`]+)`", body) for name, body in items}


def files_with(pattern: str) -> set[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *SEARCHED]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    source = {".py", ".rs", ".c", ".h", ".js", ".sh", ".yaml", ".j2"}
    paths = [ROOT / name for name in names.stdout.splitlines() if Path(name).suffix in source]
    return {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_file() and re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_the_guide_lists_every_kind_of_change() -> None:
    assert set(listed()) == set(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_the_guide_lists_the_files_that_a_change_touches(name: str) -> None:
    change = CHANGES[name]
    touched = (files_with(change.pattern) | change.beside) - change.users
    missing, superfluous = touched - set(listed()[name]), set(listed()[name]) - touched
    assert not missing, (
        f"a new {name} now also touches these: keep it in one place, or list them in the guide"
    )
    assert not superfluous, f"a new {name} no longer touches these: take them off the list, and lower `most`"
    assert len(touched) == change.most, (
        f"a new {name} touches {len(touched)} files: `most` says {change.most}"
    )
