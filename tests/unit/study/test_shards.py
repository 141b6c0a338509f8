"""Shards: their merge is the whole study, whatever the division, and nothing else can be merged as if it were one."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import plait
from fake_engine import FakeEngine
from plait.dataset.finished import INDEX
from plait.dataset.study_file import read_study_file
from plait.errors import RequestError, TrialError
from plait.results.merge import merge
from plait.results.read import read_study
from plait.results.shards import missing_shards
from plait.study.perform import Options, perform
from plait.study.progress import silent
from plait.study.shard import Shard, shard
from result_folders import fresh_cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plait.engine.engine import Job


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_cache(monkeypatch, tmp_path / "cache")


def fail_one(job: Job) -> None:
    if len(job.plan.flows[0].paths) > 1 and job.plan.seed % 3 == 0:
        raise TrialError("the guest's kernel panicked: not syncing")


def run(
    folder: Path,
    part: str | None = None,
    *,
    fields: tuple[str, ...] = (),
    repeat: int | None = 5,
    fresh: bool = True,
    also: Callable[[Job], None] = lambda _: None,
) -> Path:
    def fault(job: Job) -> None:
        also(job)
        fail_one(job)

    options = Options(
        repeat=repeat,
        fresh=fresh,
        shard=shard(part) if part else None,
        command="plait run two-paths",
    )
    perform(
        plait.load("two-paths", set=dict(field.split("=") for field in fields)),
        "two-paths",
        lambda _: FakeEngine(fault),
        options,
        folder=folder,
        watch=silent,
        notify=lambda _: None,
    )
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("provenance.json", INDEX)  # they have times
    }


@pytest.mark.slow
@pytest.mark.parametrize("of", [2, 3, 16])
def test_merged_shards_are_the_whole_study(of: int, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    parts = [run(tmp_path / f"shard-{number}", f"{number}/{of}") for number in range(1, of + 1)]
    assert merge(tmp_path / "merged", parts[::-1]) == 10
    assert files(tmp_path / "merged") == files(whole)
    merged = read_study(tmp_path / "merged")
    assert merged.digest == read_study(whole).digest
    assert any(case.failed for case in merged.cases)


@pytest.mark.slow
def test_the_command_of_the_study_runs_what_a_missing_shard_lacks(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    parts = [run(tmp_path / f"shard-{number}", f"{number}/3") for number in (1, 3)]
    assert missing_shards([read_study_file(part) for part in parts]) == [2]
    merge(tmp_path / "merged", parts)
    shutil.rmtree(tmp_path / "cache")  # the shards come from other machines
    ran: list[int] = []
    run(tmp_path / "merged", fresh=False, also=lambda job: ran.append(job.plan.seed))
    failed = sum(len(case.failed) for case in read_study(whole).cases)
    assert 3 <= len(ran) <= 3 + failed
    assert files(tmp_path / "merged") == files(whole)


def test_each_case_has_its_part_in_each_shard() -> None:
    positions = [
        position for number in range(1, 4) for position in range(20) if Shard(number, 3).holds(position)
    ]
    assert sorted(positions) == list(range(20))


def test_shards_of_different_studies_or_divisions_are_refused(tmp_path: Path) -> None:
    first = run(tmp_path / "first", "1/2")
    faster = run(tmp_path / "faster", "2/2", fields=("network.links.*.rate=6mbit",))
    third = run(tmp_path / "third", "2/3")
    whole = run(tmp_path / "whole")
    for other, reason in ((faster, "scenario differ"), (third, "one division"), (whole, "only one of them")):
        with pytest.raises(RequestError, match=reason):
            merge(tmp_path / "merged", [first, other])
    assert not (tmp_path / "merged").exists()


def test_a_shard_that_cannot_know_the_number_of_repeats_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plait.study.perform.is_steady", lambda _: True)
    with pytest.raises(RequestError, match="--repeat 2"):
        run(tmp_path / "out", "1/2", repeat=None)
    assert not (tmp_path / "out").exists()


def test_wrong_shards_are_refused() -> None:
    assert shard("3/16") == Shard(3, 16)
    for text in ("0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2"):
        with pytest.raises(RequestError, match="write I/N"):
            shard(text)


def test_a_damaged_shard_in_study_json_is_refused(tmp_path: Path) -> None:
    folder = run(tmp_path / "out", "1/2")
    about = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(about | {"shard": "../../2"}))
    with pytest.raises(plait.errors.DataError, match="shard"):
        read_study_file(folder)
