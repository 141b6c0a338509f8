"""The command `plait benchmark` refuses what it cannot do before any trial runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from plait.benchmark import run
from plait.cli.laboratory.benchmark import command, time_spent
from plait.errors import PlaitError
from plait.study.shard import Shard
from plait.study.study import TrialKey, TrialOutcome
from result_folders import benchmark_results

if TYPE_CHECKING:
    from plait.benchmark.suite import Settings


@pytest.fixture(autouse=True)
def _no_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise AssertionError("a trial was about to run")

    monkeypatch.setattr(run, "run", refuse)


def _written(folder: Path, name: str) -> Path:
    path = folder / f"{name[:3]}.json"
    path.write_bytes(benchmark_results(name, 1.0).as_bytes())
    return path


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subset": "tiny"}, "write quick or full"),
        ({"sysctl": ["net.ipv4.tcp_sack"]}, "write NAME=VALUE"),
        ({"transport": "udp"}, "write mptcp or tcp"),
        ({"name": "../x"}, "at most 60 letters"),
        ({"scheduler": "mine.bpf.c"}, "no compiler for BPF"),
        ({"draw": 3}, "--draw is of --verify"),
        ({"shard": "3/2"}, "write I/N"),
        ({"shard": "1/2", "verify": Path("results.json")}, "omit --shard"),
        ({"against": [Path("none.json")]}, "No such file"),
    ],
)
def test_a_mistake_has_its_reason(options: dict[str, object], reason: str) -> None:
    with pytest.raises(PlaitError, match=reason):
        command(**options)


@pytest.mark.parametrize("name", ["mine", "blest, cubic"])
def test_two_results_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlaitError, match="several results have the name"):
        command(name="mine", against=[_written(tmp_path, name)])


def test_a_shard_names_the_merges_and_the_command_that_writes_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Shard | None] = []

    def run_shard(
        _settings: Settings, _cells: object, folder: Path, running: run.Running
    ) -> dict[Path, object]:
        seen.append(running.shard)
        return {folder / path: SimpleNamespace(cases=[]) for path in run.PATHS}

    monkeypatch.setattr(run, "run_shard", run_shard)
    assert command(transport="tcp", shard="1/3", out=tmp_path / "mine") == 0
    assert seen == [Shard(1, 3)]
    words = capsys.readouterr().err
    assert "`plait merge ALL/client-one DIR...` and `plait merge ALL/client-two DIR...`" in words
    assert "without --shard" in words


def test_the_time_is_that_of_trials_that_ran_by_class() -> None:
    def ended(cell: str, *, reused: bool = False) -> TrialOutcome:
        return TrialOutcome(TrialKey(cell, 0), None, reused, 30.0)

    mixed, page = "network=wifi-lte,traffic=mixed", "network=behind-nat,traffic=page"
    words = time_spent([ended(mixed), ended(page), ended(mixed), ended(page, reused=True)], 0.0)
    assert "for 3 trials (1 more came from the store), which took 2 min" in words
    assert words.endswith("the dearest classes: everyday: requests beside bulk 67%, everyday: web page 33%.")
    assert time_spent([ended(page, reused=True)], 0.0).endswith("; all trials came from the store.")
