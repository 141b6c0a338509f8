"""The file of results: it survives a round trip, and a stranger's file is read with bounds."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from plait.benchmark.results_file import MOST_BYTES, published, read_results
from plait.benchmark.run import drawn_cells
from plait.benchmark.score import floor_of
from plait.benchmark.suite import cells
from plait.errors import DataError
from result_folders import benchmark_results


def _changed(folder: Path, **fields: Any) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps({**json.loads(benchmark_results("a", 1.5).as_bytes()), **fields}))
    return path


def test_a_round_trip_keeps_everything(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(benchmark_results("a, b", 1.5).as_bytes())
    assert read_results(tmp_path / "results.json") == benchmark_results("a, b", 1.5)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"suite": "plait-mptcp-2"}, "nothing compares them"),
        ({"suite_sha256": "00" * 32}, "nothing compares them"),
        ({"subset": "full"}, "not those of the subset full"),
        ({"seeds": [1, 2]}, "one value for each of the 2 seeds"),
        ({"seeds": [-1]}, "seeds.0"),
        ({"entry": {"name": "\x1b[31m"}}, "entry"),
        ({"cells": {}}, "not those of the subset quick"),
        ({"more": 1}, "more"),
    ],
)
def test_other_content_is_refused_with_its_reason(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        read_results(_changed(tmp_path, **fields))


def test_a_value_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = _changed(tmp_path)
    path.write_text(path.read_text().replace("1.5", "NaN", 1))
    with pytest.raises(DataError, match=r"has no results of plait-mptcp-1: cells\."):
        read_results(path)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(DataError, match=r"reading the results .*results\.json"):
        read_results(tmp_path / "results.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"reading the results .*none\.json: No such file"):
        read_results(tmp_path / "none.json")


def test_published_results_are_of_this_suite_and_have_the_floor() -> None:
    known = published()
    names = [item.entry.name for item in known]
    assert len(set(names)) == len(names)
    floor = floor_of(known)
    assert floor is not None
    assert all(cell.is_whole for cell in floor.cells.values())


def test_a_draw_is_a_tenth_and_repeats() -> None:
    assert drawn_cells("quick", 7) == drawn_cells("quick", 7)
    assert drawn_cells("quick", 7) != drawn_cells("quick", 8)
    assert len(drawn_cells("full", 7)) == round(len(cells("full")) / 10)


def test_each_figure_of_the_reading_is_a_published_one() -> None:
    """The tables have the scores; Jain's indices of the reading are medians of single cells."""
    docs = Path(__file__).parents[3] / "docs" / "benchmark"
    figures = r"(?<![\d.])\d+\.\d+(?![\d.])"
    tables = {
        figure
        for name in ("results.md", "pairs.md")
        for figure in re.findall(figures, (docs / name).read_text())
    }
    jain = {
        f"{statistics.median(value or 0.0 for value in cell.values):.3f}"
        for results in published()
        for name, cell in results.cells.items()
        if name.endswith("/fairness")
    }
    assert set(re.findall(figures, (docs / "reading.md").read_text())) <= tables | jain
