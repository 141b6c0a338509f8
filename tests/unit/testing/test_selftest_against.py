"""Results of a night compare with those of an earlier one: what fails newly, what flakes, and what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.benchmark.moved import moved_figures
from plait.benchmark.results_file import published
from plait.cli.laboratory.selftest import _comparison
from plait.errors import DataError, RequestError
from plait.testing.selftest.against import changes_of_subtests, read_junit
from plait.testing.selftest.tap import Subtest, Verdict, as_junit

if TYPE_CHECKING:
    from pathlib import Path


def subtests(**verdicts: str) -> list[Subtest]:
    """Return the subtests of a suite: a letter for each seed from 1."""
    words: dict[str, Verdict] = {"P": "pass", "F": "fail", "S": "skip", "I": "ignore"}
    return [
        Subtest("diag", name, seed, words[letter], "why")
        for name, letters in verdicts.items()
        for seed, letter in enumerate(letters, 1)
    ]


def test_a_failure_is_new_if_its_seed_passed_before() -> None:
    old = subtests(
        breaks="PPP", flakes="PPP", known="FPF", mended="PFP", gone="PPP", lost="PPP", ignored="III"
    )
    new = subtests(
        breaks="FFF", flakes="PFP", known="FPF", mended="PPP", gone="SSS", ignored="III", fresh="FF"
    )
    assert changes_of_subtests(old, new) == [
        ("new failure", "diag: breaks", "seeds 1, 2, 3; passed before"),
        ("new failure", "diag: fresh", "seeds 1, 2; not run before"),
        ("new flake", "diag: flakes", "seed 2; passed before"),
        ("newly skipped", "diag: gone", "seeds 1, 2, 3"),
        ("not run", "diag: lost", "its suite ran"),
        ("fixed", "diag: mended", "seed 2 failed before"),
    ]


def test_a_known_flake_is_not_new_with_a_seed_that_never_ran() -> None:
    assert changes_of_subtests(subtests(a="PF"), subtests(a="PFF")) == []
    [change] = changes_of_subtests(subtests(a="PP"), subtests(a="PPF"))
    assert change[::2] == ("new flake", "seed 3; passed before")
    assert changes_of_subtests([Subtest("other", "x", 1, "pass")], subtests(a="P")) == [], (
        "its suite did not run"
    )


def test_junit_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "old.xml"
    written = subtests(a="PFSI", b="P")
    path.write_bytes(as_junit(written))
    key = lambda s: (s.suite, s.name, s.seed, s.verdict)  # noqa: E731 - a key for two lists
    assert sorted(map(key, read_junit(path))) == sorted(map(key, written))
    for content in (
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><testsuites/>",
        b"<testsuite name='x'/>",
        b"\xff\xfe<",
        b"no",
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"old\.xml.*give a file of `plait selftest --junit`"):
            read_junit(path)
    with pytest.raises(DataError, match="check the path"):
        read_junit(tmp_path / "absent.xml")


def test_figures_move_seed_by_seed() -> None:
    results = next(r for r in published() if len(r.seeds) > 5)
    assert moved_figures(results, results) == []
    name = min(results.cells)
    cell = results.cells[name]
    worse = cell.model_copy(update={"values": tuple(value and value * 0.8 for value in cell.values)})
    changed = results.model_copy(update={"cells": {**results.cells, name: worse}})
    [change] = moved_figures(results, changed)
    assert change[1] == f"benchmark: {name}"
    assert change[2].startswith("\N{MINUS SIGN}20.0 % (")
    assert change[0] in ("worse", "better")
    assert {c[0] for c in moved_figures(changed, results)} == {"worse", "better"} - {change[0]}
    other = results.model_copy(update={"seeds": tuple(seed + 1000 for seed in results.seeds)})
    with pytest.raises(RequestError, match="no seed in common"):
        moved_figures(results, other)


def test_the_table_fails_a_night_for_what_is_new_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.xml"
    path.write_bytes(as_junit(subtests(known="F", breaks="P")))
    compare = _comparison([path], None)
    assert compare is not None
    assert compare(subtests(known="F", breaks="P"), as_tap=False) == 0
    assert f"Against {path}: as before\n" in capsys.readouterr().out
    assert compare(subtests(known="F", breaks="F"), as_tap=True) == 1
    assert "#   new failure    diag: breaks" in capsys.readouterr().out
    compare(subtests(**{"a_name_of_many_words_" * 3: "F", "words " * 20: "F"}), as_tap=True)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("words") == 23, "a part of a name is gone"
    assert _comparison([], None) is None
    with pytest.raises(RequestError, match="belong together"):
        _comparison([tmp_path / "old.json"], None)
