"""Each page of the gallery is about a shipped study, has its figures, and says whether they agree."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from plait.scenario import load

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
PAGES = sorted(page for page in GALLERY.glob("*.md") if page.stem != "README")
NOT_REBUILT = "**Not rebuilt yet.**"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_a_shipped_study_and_has_the_figures_that_it_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    head = re.match(
        r"<!-- study: (\S+); figures: ([^;>]+?)(?:; metrics: [^;>]+?)?(?:; set: [^;>]+?)? -->\n+# ", text
    )
    assert head is not None
    assert load(head[1]).title
    shown = re.findall(r"\(figures/([^)]+)\)", text)
    assert shown == [f"{page.stem}-{name.strip()}.svg" for name in head[2].split(",")] or NOT_REBUILT in text
    for name in shown:
        drawing = GALLERY / "figures" / name
        assert drawing.stat().st_size < 100_000
        assert 'width="175mm"' in drawing.read_text(encoding="utf-8")[:400]
    assert re.search(r"\*\*(Agreement|Partly in agreement|What is seen|The published|Not rebuilt)", text)


def test_every_page_is_in_the_list_and_every_figure_on_a_page() -> None:
    listed = re.findall(r"\]\(([a-z-]+)\.md\)", (GALLERY / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.stem for page in PAGES)
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [path.name for path in (GALLERY / "figures").iterdir() if path.name not in pages] == []


def test_a_table_that_is_too_wide_is_split_by_the_first_settings_of_its_cases() -> None:
    narrow = runpy.run_path(str(GALLERY.parents[1] / "tools" / "gallery"))["narrow"]
    cases = ["loss 0 %, n 2, TCP", "", "loss 1 %, n 2, TCP"]
    columns = [("case", cases), ("group", ["a", "b", "a"]), ("published", ["", "", "<1"])]
    assert narrow(columns)[2:] == [
        "| loss 0 %, n 2, TCP | a |  |", "|  | b |  |", "| loss 1 %, n 2, TCP | a | <1 |"
    ]  # fmt: skip
    wide = narrow([*columns, ("note", ["x" * 72] * 3)])
    assert [line for line in wide if "x" not in line] == [
        "loss 0 %:", "", "| case | group | note |", "| -- | -- | -- |", "",
        "loss 1 %:", "", "| case | group | published | note |", "| -- | -- | -- | -- |",
    ]  # fmt: skip
    with pytest.raises(SystemExit, match="wider than 100"):
        narrow([*columns, ("note", ["x" * 100] * 3)])
