"""Shards of the benchmark: merged, they give the results of the whole, and nothing runs again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fake_engine import FakeEngine
from plait.benchmark import run
from plait.benchmark.run import PATHS, Running, run_cells, run_shard
from plait.benchmark.suite import Cell, Settings
from plait.results.merge import merge
from plait.study.executors.local import LocalExecutor
from plait.study.progress import silent
from plait.study.shard import Shard
from result_folders import fresh_cache

if TYPE_CHECKING:
    from pathlib import Path

CHOSEN = (Cell("low-bdp-01", "large"), Cell("low-bdp-01", "small"))


@pytest.fixture(autouse=True)
def _few_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(run, "SEEDS", 2)


def _running(engine: FakeEngine) -> Running:
    return Running(lambda _: engine, silent, lambda _: None, jobs=1)


def test_merged_shards_of_tcp_are_the_results_and_run_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, engine = Settings(transport="tcp"), FakeEngine()
    whole = run_cells(settings, CHOSEN, tmp_path / "whole", _running(engine))[1]
    assert engine.calls == 8
    for number in (1, 2):
        fresh_cache(monkeypatch, tmp_path / f"cache-{number}")  # another machine
        shard, part = FakeEngine(), tmp_path / f"shard-{number}"
        studies = run_shard(settings, CHOSEN, part, replace(_running(shard), shard=Shard(number, 2)))
        assert list(studies) == [part / path for path in PATHS]
        assert shard.calls == 4
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache-none"))
    for path in PATHS:
        merge(tmp_path / "all" / path, [tmp_path / f"shard-{number}" / path for number in (1, 2)])
    none = FakeEngine()
    assert run_cells(settings, CHOSEN, tmp_path / "all", _running(none))[1] == whole
    assert none.calls == 0


def test_each_study_of_an_entry_has_an_executor_of_its_own(tmp_path: Path) -> None:
    made: list[LocalExecutor] = []

    def make_executor() -> LocalExecutor:
        made.append(LocalExecutor(1))
        return made[-1]

    running = replace(_running(FakeEngine()), make_executor=make_executor)
    run_cells(Settings(transport="tcp"), CHOSEN, tmp_path / "out", running)
    assert len(made) == 2
