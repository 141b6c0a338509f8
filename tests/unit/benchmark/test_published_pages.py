"""The pages of published results are those that `bench/publish_benchmark.py` writes from the files."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PAGES = {"results.md": "page", "pairs.md": "pairs_page", "coverage.md": "coverage_page"}


@pytest.fixture(scope="module")
def publish() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        return runpy.run_path(str(ROOT / "bench/publish_benchmark.py"))


def _words(text: str) -> list[str]:
    """Return the words of a page, however it is wrapped."""
    return re.sub(r"\| -+:(?= )", "| -:", text).split()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_the_files_say(publish: dict[str, Any], name: str) -> None:
    written = (ROOT / "docs/benchmark" / name).read_text(encoding="utf-8")
    assert _words(publish[PAGES[name]]()) == _words(written)


def test_what_the_reading_says_of_pairs_follows_from_their_tables() -> None:
    tables: dict[str, dict[tuple[str, str], str]] = {}
    controls: list[str] = []
    for line in (ROOT / "docs/benchmark/pairs.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("## "):
            table = tables.setdefault(line.removeprefix("## "), {})
        elif line.startswith("| scheduler"):
            controls = cells[1:]
        elif line.startswith("| ") and not line.startswith("| --"):
            table.update(zip(((cells[0], control) for control in controls), cells[1:], strict=True))
    assert [len(table) for table in tables.values()] == [49] * 25

    def scores(title: str) -> dict[tuple[str, str], float]:
        return {pair: float(score.strip("*")) for pair, score in tables[title].items()}

    messages = {scheduler: set[float]() for scheduler, _ in tables["Low BDP: messages"]}
    for (scheduler, _), score in scores("Low BDP: messages").items():
        messages[scheduler].add(score)
    fast = {"minrtt", "redundant", "blest", "ecf"}
    assert all(messages[scheduler] == ({0.999} if scheduler in fast else {0.518}) for scheduler in messages)
    lossy = scores("Low BDP, lossy: 20 MB")
    assert min(score for (_, control), score in lossy.items() if control == "bbr") == pytest.approx(2.74)
    assert max(score for (_, control), score in lossy.items() if control != "bbr") == pytest.approx(1.39)
    best = Counter(pair for table in tables.values() for pair, score in table.items() if "*" in score)
    assert best.most_common(2)[0] == (("blest", "bbr"), 9)
    assert best.most_common(2)[1][1] < 9
    assert 49 - len(best) == 10


def test_the_drawn_networks_lie_in_the_unit_cube(publish: dict[str, Any]) -> None:
    coverage = publish["benchmark_coverage"]
    shapes = {group: design.shape for group, design in coverage.points().items()}
    assert shapes == {
        "low-bdp": (12, 6),
        "low-bdp-lossy": (12, 8),
        "high-bdp": (12, 6),
        "high-bdp-lossy": (12, 8),
    }
    for design in coverage.points().values():
        assert design.min() >= 0
        assert design.max() <= 1


def test_the_widest_gap_is_over_all_factors_and_both_ends(publish: dict[str, Any]) -> None:
    gap = publish["benchmark_coverage"].widest_gap
    assert gap(np.array([[0.5, 0.1], [0.6, 0.5]])) == pytest.approx(0.5)
    assert gap(np.array([[0.0, 0.25], [1.0, 1.0]])) == pytest.approx(1.0)
