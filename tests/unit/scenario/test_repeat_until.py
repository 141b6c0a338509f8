"""A study repeats until its means are precise enough, and remains one study."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fake_engine import FakeEngine
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.statistics.precision import next_repeat, wide
from plait.results.read import read_study
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.scenario.vary.repeat import Repeat
from plait.study.perform import Options, perform
from plait.study.progress import silent
from result_folders import fresh_cache
from scenario_samples import TWO, mistakes_as_text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from plait.study.study import Observer


def repeat_of(text: str) -> Repeat:
    return parse(TWO + f"repeat: {text}\n", "t.yaml").repeat


def test_a_number_or_until_is_read_and_written_back() -> None:
    plain = repeat_of("3")
    assert (plain, plain.until, plain.least, str(plain)) == (3, None, 3, "3")
    default = repeat_of("until 2%")
    assert (default, default.until, default.least) == (100, 0.02, 5)
    asked = repeat_of("until 0.5 %, at least 10, at most 500")
    assert (asked, asked.until, asked.least) == (500, 0.005, 10)
    assert str(asked) == "until 0.5%, at least 10, at most 500"
    assert Repeat.parse(str(asked)).until == asked.until


def test_a_case_keeps_what_it_was_repeated_by() -> None:
    scenario = parse(TWO + "vary: {transport: [tcp]}\nrepeat: until 3%\n", "t.yaml")
    assert expand(scenario)[0].scenario.repeat.until == 0.03
    assert scenario.model_dump(mode="json")["repeat"] == "until 3%, at least 5, at most 100"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("until", "'until' is not a number of trials; write a number, or until 2%"),
        ("until 2", "is not a number of trials"),
        ("until 0%", "'0%' is out of range; write something above 0%"),
        ("until 90%", "'90%' is out of range"),
        (
            "until 2%, at least 1",
            "at least 1, at most 100 is not possible; write 2 (which an interval needs)",
        ),
        ("until 2%, at least 50, at most 20", "at least 50, at most 20 is not possible"),
        ("often", "'often' is not a whole number"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, message: str) -> None:
    reported = mistakes_as_text(TWO + f"repeat: {text}\n")
    assert reported.startswith("t.yaml:12:")
    assert message in reported


def rows(*values: float | None) -> CaseRows:
    trials = tuple(TrialRow(i, i, "", {"goodput_bps": value}) for i, value in enumerate(values))
    return CaseRows("tcp", {}, trials)


def test_the_spread_decides_further_repeats_up_to_a_doubling() -> None:
    case = rows(9, 10, 11, 10, 10)
    (precision,) = wide([case], 0.05)
    # By hand: stdev is sqrt(1/2), t(0.975, 4) 2.776: half the interval is 2.776 * 0.7071 / sqrt(5) = 0.878 of 10.
    assert precision.share == pytest.approx(0.0878, rel=1e-3)
    assert next_repeat([case], 5, precision=0.05, limit=100) == 10
    assert next_repeat([case], 5, precision=0.08, limit=100) == 7, "(0.0878 / 0.08)^2 * 5 = 6.02"
    assert next_repeat([case], 5, precision=0.05, limit=8) == 8
    assert next_repeat([case], 8, precision=0.05, limit=8) is None
    assert next_repeat([case], 5, precision=0.09, limit=100) is None


def test_trials_that_agree_or_cannot_be_measured_ask_for_no_more() -> None:
    assert next_repeat([rows(5, 5, 5)], 3, precision=0.01, limit=100) is None
    assert next_repeat([rows(None, None)], 2, precision=0.01, limit=100) is None
    assert next_repeat([rows(None, 7)], 2, precision=0.01, limit=100) == 4, (
        "one value tells nothing of the spread"
    )


def run(text: str, folder: Path, engine: FakeEngine) -> list[int]:
    """Run it and returns how many trials each part had."""
    parts: list[int] = []

    def watch(total: int) -> AbstractContextManager[Observer]:
        parts.append(total)
        return silent(total)

    scenario = parse(TWO + f"vary: {{transport: [tcp, mptcp]}}\nrepeat: {text}\n", "t.yaml")
    _, outcome = perform(
        scenario, "until", lambda _: engine, Options(), folder=folder, watch=watch, notify=lambda _: None
    )
    assert outcome.total == len(outcome.finished) == sum(parts)
    return parts


def test_a_study_goes_on_in_parts_and_again_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_cache(monkeypatch, tmp_path / "cache")
    engine = FakeEngine()
    parts = run("until 0.001%, at least 2, at most 7", tmp_path / "out", engine)
    assert (parts[0], sum(parts), engine.calls) == (4, 14, 14)
    study = read_study(tmp_path / "out")
    assert [len(case.rows) for case in study.cases] == [7, 7]
    assert json.loads((tmp_path / "out/study.json").read_text())["repeat"] == 7
    assert {caution.code for caution in study.cautions} >= {"INTERVAL_WIDE"}
    assert run("until 0.001%, at least 2, at most 7", tmp_path / "out", engine) == parts
    assert engine.calls == 14, "all of it came from the store"
    assert read_study(tmp_path / "out").digest == study.digest


def test_a_study_that_is_known_well_enough_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_cache(monkeypatch, tmp_path / "cache")
    assert run("until 50%, at least 3", tmp_path / "out", FakeEngine()) == [6]
    assert "INTERVAL_WIDE" not in {caution.code for caution in read_study(tmp_path / "out").cautions}
