"""The command `plait benchmark` refuses what it cannot do before any trial runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.benchmark import run
from plait.cli.laboratory.benchmark import command
from plait.errors import PlaitError
from result_folders import benchmark_results


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
        ({"against": [Path("none.json")]}, "No such file"),
    ],
)
def test_a_mistake_has_its_reason(options: dict[str, object], reason: str) -> None:
    with pytest.raises(PlaitError, match=reason):
        command(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["mine", "blest, cubic"])
def test_two_results_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlaitError, match="several results have the name"):
        command(name="mine", against=[_written(tmp_path, name)])
