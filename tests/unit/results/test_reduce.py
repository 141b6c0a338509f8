"""Trials are reduced once for each content of their files, and alike in any number of processes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.dataset.files import write_table
from plait.dataset.trial import read_trial, trial_number
from plait.report import cached, current
from plait.results import reduce
from plait.results.read import read_study
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from plait.files import Folder


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    write_study(tmp_path / "study", two_paths(), repeat=4)
    return tmp_path / "study"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the trials that are reduced from now on."""
    numbers: list[int] = []
    true = reduce.reduce_trial

    def count(folder: Folder) -> reduce.Reduced:
        numbers.append(trial_number(folder))
        return true(folder)

    monkeypatch.setattr(reduce, "reduce_trial", count)
    return numbers


def test_a_second_report_reduces_no_trial_again(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = counted(monkeypatch)
    first = read_study(study)
    assert len(numbers) == 8
    assert read_study(study) == first
    assert len(numbers) == 8


def test_a_changed_table_is_reduced_again(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_study(study)
    numbers = counted(monkeypatch)
    place = study / "trials" / "transport=tcp" / "002"
    flows = read_trial(place).tables["flows"]
    write_table(flows.with_columns(received_bytes=flows["received_bytes"] // 2), place, "flows")
    second = read_study(study)
    assert numbers == [2]
    assert "DATA_CHANGED" in {caution.code for caution in second.cautions}
    before, after = (data.cases[0].rows[2].metrics["goodput_bps"] for data in (first, second))
    assert before is not None
    assert after == pytest.approx(before / 2, rel=1e-6)


def test_other_code_reduces_again(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_study(study)
    numbers = counted(monkeypatch)
    monkeypatch.setattr(reduce, "code_of_rows", lambda: "another version")
    assert read_study(study) == first
    assert len(numbers) == 8


def test_a_damaged_cache_is_no_source(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_study(study)
    for path in (tmp_path / "cache" / "rows").iterdir():
        path.write_bytes(path.read_bytes().replace(b"goodput", b"badput_"))
    numbers = counted(monkeypatch)
    assert read_study(study) == first
    assert len(numbers) == 8


def test_several_processes_give_what_one_gives(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    alone = read_study(study)
    monkeypatch.setattr(reduce, "code_of_rows", lambda: "another version")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(reduce, "TRIALS_EACH", 1)
    assert read_study(study) == alone


def test_what_an_analysis_cannot_compute_is_not_kept(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.report.assemble import read_partly

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("plait.analysis.metrics.trial.share_metrics", fail)
    for _ in range(2):  # the second report says it, too
        assert "ANALYSIS_FAILED" in {caution.code for caution in read_partly(study).cautions}


def test_progress_counts_every_trial(study: Path) -> None:
    for _ in range(2):
        calls: list[tuple[int, int]] = []
        read_study(study, lambda done, total, calls=calls: calls.append((done, total)))
        assert calls == [(number, 8) for number in range(1, 9)]


@pytest.mark.parametrize(
    "hashed", [reduce.CODE, cached.EXPLAINING, current.CODE], ids=["rows", "explanations", "reports"]
)
def test_what_is_kept_depends_on_all_the_code_that_made_it(hashed: tuple[str, ...]) -> None:
    """`traffic` decides metrics: with an older rule there, a kept row would be another one than a new one."""
    plait = Path(reduce.__file__).parents[1]
    known = {*hashed, *reduce.USED_BY_ALL}
    imported = {
        name
        for package in known - {"plan", "results"}  # they also serve what runs trials
        for path in (plait / package).rglob("*.py")
        for name in re.findall(r"^ *from plait\.(\w+)", path.read_text(), re.MULTILINE)
        if (plait / name).is_dir()
    }
    assert imported <= known
