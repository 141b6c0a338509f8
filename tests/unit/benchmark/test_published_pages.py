"""The pages of published results are those that `bench/publish_benchmark.py` writes from the files."""

from __future__ import annotations

import re
import runpy
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
